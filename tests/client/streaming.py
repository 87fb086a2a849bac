"""Participants with their streams, in a real space within the process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import awaiting
from mew.client.streams.stream import Stream
from mew.client.streams.streams import Streams
from mew.gateway.config.settings import Limits
from mew.protocol.envelope import Envelope
from mew.testing import Space

__all__ = ["Stage", "everything", "joined", "seen", "stage", "tell"]

PLENTY: Final = Limits(envelopes_per_second=1_000_000, burst=1_000_000)
WHO: Final = {
    "ann": ["*"],
    "bob": ["chat", "stream/*"],
    "eve": ["chat", "stream/*"],
    "cam": ["*"],
    "mute": ["chat"],
}


class Stage(NamedTuple):
    space: Space
    ann: Streams
    bob: Streams
    eve: Streams


@asynccontextmanager
async def stage(limits: Limits = PLENTY) -> AsyncIterator[Stage]:
    """A space with ann, bob and eve in it, where cam and mute may come too; for at most ten seconds."""
    async with (
        asyncio.timeout(10),
        Space(WHO, limits=limits) as space,
        joined(space, "ann") as ann,
        joined(space, "bob") as bob,
        joined(space, "eve") as eve,
    ):
        yield Stage(space, ann, bob, eve)


@asynccontextmanager
async def joined(space: Space, who: str) -> AsyncIterator[Streams]:
    connection = space.connection(who)
    streams = Streams(connection)
    async with connection:
        yield streams


@asynccontextmanager
async def seen(connection: ClientConnection, kind: str, **payload: Any) -> AsyncIterator[None]:
    """What is done inside leads to an envelope of this kind, with these in its payload; wait until it is there."""

    def look(envelope: Envelope, _: Any) -> bool | None:
        return True if envelope.kind == kind and payload.items() <= envelope.content.items() else None

    with awaiting(connection, look) as answer:
        yield
        await answer


async def tell(who: Streams, kind: str, *, to: Sequence[str] = (), **payload: Any) -> None:
    """Send an envelope; return once everyone is being shown it."""
    await who.connection.send(who.connection.compose(kind, payload, to=to))


async def everything(stream: Stream, note: Callable[[bytes], object] = lambda _: None) -> list[bytes]:
    frames = []
    async for data in stream:
        note(data)
        frames.append(data)
    return frames
