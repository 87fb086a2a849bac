"""The house in which a participant is tried: a gateway of ours, the door before it, and tokens for everyone."""

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mew.conform.cast import Cast, Role
from mew.gateway.config.settings import Config, Limits, ParticipantConfig, SpaceConfig
from mew.gateway.server import Gateway
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

from .company import ROLES, Company, allowance
from .prompts import Prompts
from .relay import Relay
from .subject import Subject

__all__ = ["SPACE", "House", "child", "open_house"]

SPACE: Final = "conform"
_BASELINE: Final = ("mcp/response", "capability/grant-ack")
_LIMITS: Final = Limits(envelopes_per_second=100_000, burst=100_000)
_TERMINATE_S: Final = 3.0
_STDERR: Final = 2


@dataclass(slots=True)
class House:
    """`url` and `token`, which is also in a file, are what the participant needs; `process` is it, if the kit's."""

    company: Company
    url: str
    token: str = field(repr=False)
    token_file: Path
    process: asyncio.subprocess.Process | None = None

    @property
    def ended(self) -> int | None:
        """With what the process ended, if it has."""
        return None if self.process is None else self.process.returncode

    @property
    def environment(self) -> dict[str, str]:
        """What a participant finds its way by: as under `mew up`, and the address and the token by themselves."""
        return {
            "MEW_GATEWAY": self.url,
            "MEW_SPACE": SPACE,
            "MEW_TOKEN_FILE": str(self.token_file),
            "MEW_URL": self.url,
            "MEW_TOKEN": self.token,
        }


@asynccontextmanager
async def open_house(prompts: Prompts, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[House]:
    """Listen there for the participant, for as long as this lasts.

    Raises:
        CannotListen: the address is not free.
    """
    # A name that nobody can guess: it has to come from the welcome (§8.2).
    name, token = f"subject-{secrets.token_hex(3)}", secrets.token_urlsafe(24)
    subject = Subject(name, prompts.patience_s, token)
    tokens = {name: token, **{role: secrets.token_urlsafe(24) for role in ROLES}}
    with TemporaryDirectory(prefix="mew-conform-") as folder:
        space = _space(subject.id, tokens, prompts)
        config = Config(file=Path(folder, "space.yaml"), spaces={SPACE: space})
        async with Gateway(config, {}, host="127.0.0.1", port=0, ephemeral=True) as gateway:
            url = "ws" + gateway.url.removeprefix("http")
            roles = {name: Role(name, tokens[name], name) for name in ROLES}
            cast = Cast(url, SPACE, roles, patience_s=prompts.patience_s)
            async with Relay(subject, url, host, port) as relay:
                yield House(Company(cast, subject, prompts), relay.url, token, _kept(Path(folder), token))


def _kept(folder: Path, token: str) -> Path:
    """The token in a file that only its owner can read."""
    file = folder / "participant.token"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(token)
    return file


def _space(subject: str, tokens: dict[str, str], prompts: Prompts) -> SpaceConfig:
    held = {**ROLES, subject: allowance(prompts)}
    participants = {
        ParticipantId(name): ParticipantConfig(
            id=ParticipantId(name), tokens=(tokens[name],), capabilities=_parsed(capabilities)
        )
        for name, capabilities in held.items()
    }
    return SpaceConfig(
        id=SPACE, name="Conformance", participants=participants, baseline=_parsed(_BASELINE), limits=_LIMITS
    )


def _parsed(written: tuple[Any, ...]) -> tuple[Capability, ...]:
    return tuple(map(Capability.parse, written))


@asynccontextmanager
async def child(command: str, house: House) -> AsyncIterator[None]:
    """The participant as a process of ours, with what it needs in its environment; what it prints goes to stderr.

    Raises:
        OSError: it cannot be started.
    """

    async def start() -> None:
        await _stop(house)
        house.process = await asyncio.create_subprocess_exec(
            *shlex.split(command), env={**os.environ, **house.environment}, stdout=_STDERR
        )

    await start()
    house.company.revive = start
    try:
        yield
    finally:
        await _stop(house)


async def _stop(house: House) -> None:
    process = house.process
    if process is None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_TERMINATE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
