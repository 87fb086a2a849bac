"""Sees who has joined: asks the gateway over HTTP, as a participant may."""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp

__all__ = ["PresenceProbe"]

_ANSWER_S: Final = 2.0
_NOT_THIS_ONE: Final = (401, 403)  # somebody who was kicked, for instance


class PresenceProbe:
    """Of one gateway, on this machine; `tokens` has those of a space, one of which will do. An async context."""

    def __init__(
        self, url: str, tokens: Mapping[str, Sequence[str]], certificate: Path | None = None
    ) -> None:
        """`certificate` is the one that the gateway has, whatever names are in it."""
        self._url = url
        self._tokens = tokens
        self._certificate = certificate
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "PresenceProbe":
        # Never by a proxy: it is on this machine.
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_ANSWER_S),
            trust_env=False,
            connector=aiohttp.TCPConnector(ssl=_trusting(self._certificate)),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def is_ready(self) -> bool:
        """Whether the gateway answers, and serves its spaces."""
        return (await self._get("/ready"))[0] == 200

    async def present(self, space: str) -> frozenset[str] | None:
        """Who is connected to a space; None where the gateway does not say."""
        for token in self._tokens[space]:
            status, said = await self._get(f"/spaces/{quote(space, safe='')}/participants", token)
            if status in _NOT_THIS_ONE:
                continue
            listed = said.get("participants") if isinstance(said, dict) else None
            if status != 200 or not isinstance(listed, list):
                return None
            return frozenset(one["id"] for one in listed if one.get("connected"))
        return None

    async def has_sent(self, space: str, participant: str) -> bool:
        """Whether the history has an envelope of this participant."""
        for token in self._tokens[space]:
            path = f"/spaces/{quote(space, safe='')}/envelopes?participant={quote(participant)}&limit=1"
            status, said = await self._get(path, token)
            if status not in _NOT_THIS_ONE:
                return status == 200 and bool(said.get("envelopes"))
        return False

    async def _get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        """The status, 0 where nothing answers, and the body."""
        assert self._session is not None, "used outside of its context"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            async with self._session.get(self._url + path, headers=headers, allow_redirects=False) as answer:
                return answer.status, await answer.json(content_type=None)
        except (TimeoutError, aiohttp.ClientError, ValueError, OSError):
            return 0, None


def _trusting(certificate: Path | None) -> ssl.SSLContext | bool:
    if certificate is None:
        return True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # it is for the name by which others know this machine
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(certificate)
    return context
