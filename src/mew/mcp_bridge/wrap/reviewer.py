"""The reviewer of a wrapped server: no file holds their token, and their browser opens when a call waits (0021)."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from mew.client.client import Client
from mew.gateway.auth.sealed import read_sealed, sealed_path, write_sealed
from mew.gateway.auth.tokens import token_path
from mew.gateway.config.settings import Config
from mew.protocol.kinds import Kind

from .server_name import YOU
from .state_folder import wrap_seal

__all__ = ["call_reviewer", "lay_seal", "private_tokens"]

_TOKEN_BYTES: Final = 32
_REOPEN_S: Final = 60.0


def private_tokens(config: Config, space: str, *participants: str) -> dict[str, str]:
    """Make tokens that live as long as this process; delete the files that held one before.

    Raises:
        OSError: such a file cannot be deleted.
    """
    for who in participants:
        token_path(config, space, who).unlink(missing_ok=True)
    return {who: secrets.token_urlsafe(_TOKEN_BYTES) for who in participants}


def lay_seal(config: Config, space: str, environ: Mapping[str, str]) -> None:
    """Let the reviewer sign in to this space with the passphrase that they chose for all, if they did.

    Raises:
        ConfigError: the file that says how to check it holds something else.
        OSError, ValueError: it cannot be kept, or this user has no home.
    """
    place = sealed_path(token_path(config, space, YOU))
    sealed = read_sealed(wrap_seal(environ))
    if sealed is None:
        place.unlink(missing_ok=True)
    else:
        write_sealed(place, sealed)


async def call_reviewer(host: Client, open_page: Callable[[], Awaitable[None]]) -> None:
    """Open the page whenever a proposal waits and the reviewer is not connected, at most once a minute."""
    loop = asyncio.get_running_loop()
    opened_at = -_REOPEN_S
    async with host.envelopes(Kind.MCP_PROPOSAL) as proposals:
        async for _ in proposals:
            if YOU not in host.participants and loop.time() - opened_at >= _REOPEN_S:
                opened_at = loop.time()
                await open_page()
