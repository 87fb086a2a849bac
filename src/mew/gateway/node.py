"""The rooms of this process: opened together, reconfigured together, closed in order."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeAlias

from mew.log.base import LogUnavailable
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import Rules

from .keeping import Keeping
from .mail import Post
from .ports import Shell
from .room import Room
from .settings import Config, Limits, SpaceConfig

__all__ = ["Node", "OpenRoom"]

_logger = logging.getLogger(__name__)

_ROUND_S: Final = 60.0

OpenRoom: TypeAlias = Callable[[Rules, Limits, Shell], Room]
"""How a space comes by its room; may raise `LogUnavailable`."""


class Node:
    """All rooms, and the tasks that run them. An async context: inside it the rooms run.

    `open_room` gives a space its room, and may raise `LogUnavailable`. `now` is the time there, if it is not ours.
    """

    def __init__(
        self,
        config: Config,
        base_url: str,
        open_room: OpenRoom | None = None,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.rooms: dict[str, Room] = {}
        self.failed: dict[str, str] = {}
        self.stopping = False
        self.now = now or partial(datetime.now, UTC)
        self._config = config
        self._base_url = base_url
        self._open_room = open_room or Keeping(None).open_room
        self._post = Post()
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup | None = None

    async def __aenter__(self) -> "Node":
        """Opens every room.

        Raises:
            LogUnavailable: the log of one cannot be read; a bug that stops one stops no other.
        """
        rooms, unopened = self._prepare(self._config.spaces)
        for error in unopened.values():
            if isinstance(error, LogUnavailable):
                for room in rooms.values():
                    room.close()
                raise error
        self._note(unopened)
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        sending = self.spawn(self._post.run())
        self._stack.callback(sending.cancel)
        forgetting = self.spawn(self._forget())
        self._stack.callback(forgetting.cancel)
        self._take(rooms)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for room in self.rooms.values():
            room.close()
        if self._post.unsent:
            _logger.warning("invitations not sent: the gateway stops", extra={"count": self._post.unsent})
        await self._stack.__aexit__(kind, error, trace)

    # What a room needs of the world.

    def connection_url(self, space: str) -> str:
        return f"{self._base_url}/ws?space={space}"

    def sends_mail(self) -> bool:
        return self._config.smtp is not None

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        assert self._config.smtp is not None, "no SMTP configured"
        self._post.invite(self._config.smtp, to, space, ack)

    # What the server asks for.

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside, until the node is left; its failure is logged and goes no further."""
        assert self._tasks is not None, "spawn outside the node"
        return self._tasks.create_task(_guarded(coroutine))

    def reconfigure(self, config: Config, base_url: str) -> None:
        """Take over new rules; connections stay. New spaces open, and those that failed open anew, from their log;
        one that is gone closes for those in it. A room that cannot take its rules fails by itself: the others have
        theirs.
        """
        wanted = {n: it for n, it in config.spaces.items() if n in self.failed or n not in self.rooms}
        fresh, unopened = self._prepare(wanted)
        self.failed = {}
        self._note(unopened)
        self._config = config
        self._base_url = base_url
        for name, room in tuple(self.rooms.items()):
            if name not in config.spaces:
                del self.rooms[name]
                _see_out(room, CloseCode.NO_SUCH_SPACE, "the space is no longer served here")
                room.close()
            elif name not in wanted:
                self._configure(room, config.spaces[name])
        self._take(fresh)

    def dismiss(self, code: CloseCode, reason: str) -> None:
        """Say goodbye to everyone; who is on the way in does not get in."""
        self.stopping = True
        for room in self.rooms.values():
            room.dismissed = True
            room.news.set()  # who waits for something new need not wait longer
            _see_out(room, code, reason)

    async def mailed(self) -> None:
        """Return when every invitation was sent, or could not be."""
        await self._post.emptied()

    def _prepare(self, spaces: Mapping[str, SpaceConfig]) -> tuple[dict[str, Room], dict[str, Exception]]:
        """A room for each, or why there is none."""
        rooms: dict[str, Room] = {}
        unopened: dict[str, Exception] = {}
        for name, space in spaces.items():
            try:
                rooms[name] = self._open_room(_rules(space), space.limits, self)
            except Exception as error:
                unopened[name] = error
        return rooms, unopened

    def _note(self, unopened: Mapping[str, Exception]) -> None:
        for name, error in unopened.items():
            _logger.error("space not opened", extra={"space": name}, exc_info=error)
            self.failed[name] = type(error).__name__

    def _take(self, rooms: Mapping[str, Room]) -> None:
        for name, room in rooms.items():
            self.rooms[name] = room
            self.spawn(self._run(room))

    def _configure(self, room: Room, space: SpaceConfig) -> None:
        try:
            room.configure(_rules(space), space.limits)
        except LogUnavailable as error:
            self._failed(room, error)

    async def _forget(self) -> None:
        """All rooms let go of what need not be kept, one after the other, so that each has its turn in a round."""
        while True:
            rooms = tuple(self.rooms.values())
            if not rooms:
                await asyncio.sleep(_ROUND_S)
            for room in rooms:
                await asyncio.sleep(_ROUND_S / len(rooms))
                try:
                    room.forget()
                except Exception as error:
                    self._failed(room, error)

    async def _run(self, room: Room) -> None:
        try:
            await room.run()
        except Exception as error:
            self._failed(room, error)
        finally:
            await room.wind_up()

    def _failed(self, room: Room, error: Exception) -> None:
        """A broken log or a bug of ours: this space stops rather than guess its way on; the others go on."""
        _logger.error("space stopped", extra={"space": room.id}, exc_info=error)
        if self.rooms.get(room.id) is room:
            self.failed[room.id] = type(error).__name__
        _see_out(room, CloseCode.UNAVAILABLE, "the space is not available now")
        room.close()


def _see_out(room: Room, code: CloseCode, reason: str) -> None:
    room.inbox.empty()  # what they said before they were told to go
    for guest in tuple(room.guests.values()):
        guest.close(code, reason)


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
