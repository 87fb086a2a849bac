"""The rooms of this process: opened together, reconfigured together, closed in order."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any

from mew.log.base import Log
from mew.log.memory import MemoryLog
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import Rules

from . import mail
from .room import Room
from .settings import Config, SpaceConfig
from .trace import Trace

__all__ = ["Node"]

_logger = logging.getLogger(__name__)


class Node:
    """All rooms, and the tasks that run them. An async context: inside it the rooms run."""

    def __init__(self, config: Config, base_url: str, trace: Trace | None = None) -> None:
        self.rooms: dict[str, Room] = {}
        self.failed: dict[str, str] = {}
        self.stopping = False
        self.now = partial(datetime.now, UTC)
        self._config = config
        self._base_url = base_url
        self._trace = trace
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup | None = None

    async def __aenter__(self) -> "Node":
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._open(self._config.spaces)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for room in self.rooms.values():
            room.close()
        await self._stack.__aexit__(kind, error, trace)

    # What a room needs of the world.

    def connection_url(self, space: str) -> str:
        return f"{self._base_url}/ws?space={space}"

    def sends_mail(self) -> bool:
        return self._config.smtp is not None

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        assert self._config.smtp is not None, "no SMTP configured"
        self.spawn(mail.invite(self._config.smtp, to, space, ack))

    # What the server asks for.

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside, until the node is left; its failure is logged and goes no further."""
        assert self._tasks is not None, "spawn outside the node"
        return self._tasks.create_task(_guarded(coroutine))

    def reconfigure(self, config: Config) -> None:
        """Take over new rules; connections stay. New spaces open; one that is gone closes for those in it."""
        self._config = config
        for name, space in config.spaces.items():
            if name in self.rooms:
                self.rooms[name].configure(_rules(space), space.limits)
        self._open({name: space for name, space in config.spaces.items() if name not in self.rooms})
        for name in [name for name in self.rooms if name not in config.spaces]:
            room = self.rooms.pop(name)
            for guest in tuple(room.guests.values()):
                guest.close(CloseCode.NO_SUCH_SPACE, "the space is no longer served here")
            room.close()

    async def dismiss(self, code: CloseCode, reason: str) -> None:
        """Say goodbye to everyone, all at once, and return when they have gone."""
        self.stopping = True
        for room in self.rooms.values():
            room.news.set()  # who waits for something new need not wait longer
        guests = [guest for room in self.rooms.values() for guest in room.guests.values()]
        await asyncio.gather(*(guest.goodbye(code, reason) for guest in guests))

    def _open(self, spaces: Mapping[str, SpaceConfig]) -> None:
        for name, space in spaces.items():
            log: Log = MemoryLog()
            room = self.rooms[name] = Room(_rules(space), space.limits, log, self, self._trace)
            self.spawn(self._run(room))

    async def _run(self, room: Room) -> None:
        try:
            await room.run()
        except Exception as error:
            # A broken log or a bug of ours: this space stops rather than guess its way on; the others go on.
            _logger.exception("space stopped", extra={"space": room.id})
            self.failed[room.id] = type(error).__name__
            for guest in tuple(room.guests.values()):
                guest.close(CloseCode.UNAVAILABLE, "the space is not available now")


def _rules(space: SpaceConfig) -> Rules:
    return Rules(
        id=space.id,
        name=space.name,
        description=space.description,
        profiles={ParticipantId(who): space.capabilities_of(who) for who in space.participants},
        defaults=space.default_capabilities,
        baseline=space.baseline,
        delivery=space.delivery.value,
        announce_violations=space.announce_violations,
        streams_max=space.limits.streams_per_space,
    )


async def _guarded(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        await coroutine
    except Exception:
        _logger.exception("a background task failed")
