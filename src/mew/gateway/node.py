"""The rooms of this process: opened together, reconfigured together, closed in order."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from mew.journal.files.disk_watch import DiskStatus
from mew.journal.port import JournalStorage, JournalUnavailable
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import Rules

from .config.settings import Config, Limits, SpaceConfig
from .mail import InvitationMailer
from .room.ports import RoomEnvironment
from .room.room import Room
from .room.turns import Turns, TurnTaker

__all__ = ["Node", "OpenRoom"]

_logger = logging.getLogger(__name__)

_ROUND_S: Final = 60.0

OpenRoom: TypeAlias = Callable[[Rules, Limits, Turns, RoomEnvironment], Room]
"""How a space comes by its room; may raise `JournalUnavailable`."""


class Node:
    """All rooms, and what runs beside them. An async context: inside it the rooms run.

    `open_room` gives a space its room, if not a plain one. `now` is the time there, if it is not ours.
    """

    def __init__(
        self,
        config: Config,
        base_url: str,
        storage: JournalStorage,
        open_room: OpenRoom = Room,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.rooms: dict[str, Room] = {}
        self.failed: dict[str, str] = {}
        """Spaces that have stopped, and why, for anyone who asks."""
        self.stopping = False
        self.disk = DiskStatus()
        self.now = now or partial(datetime.now, UTC)
        self._config = config
        self._base_url = base_url
        self._open_room = open_room
        self._turns = Turns(storage, self._failed, self.now)
        self._post = InvitationMailer()
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup | None = None
        self._logged = ""  # what stopped a space last

    async def __aenter__(self) -> "Node":
        """Opens every room.

        Raises:
            JournalUnavailable: the log of one cannot be read; a bug that stops one stops no other.
        """
        rooms, unopened = self._prepare(self._config.spaces)
        for error in unopened.values():
            if isinstance(error, JournalUnavailable):
                raise error
        self._note(unopened)
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        sending = self.spawn(self._post.run())
        self._stack.callback(sending.cancel)
        forgetting = self.spawn(self._forget())
        self._stack.callback(forgetting.cancel)
        self.rooms.update(rooms)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._turns.settled()
        for room in self.rooms.values():
            room.close()
        if self._post.unsent:
            _logger.warning("invitations not sent: the gateway stops", extra={"count": self._post.unsent})
        await self._stack.__aexit__(kind, error, trace)

    # What a room needs of the world.

    def connection_url(self, space: str) -> str:
        return f"{self._base_url}/ws?space={quote(space)}"

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
        one that is gone closes for those in it. While a commit is under way, it waits for that.
        """
        if self._turns.is_committing:
            self.spawn(self._reconfigure_later(config, base_url))
            return
        wanted = {n: it for n, it in config.spaces.items() if n in self.failed or n not in self.rooms}
        fresh, unopened = self._prepare(wanted)
        self.failed, self._logged = {}, ""
        self._note(unopened)
        self._config = config
        self._base_url = base_url
        for name, room in tuple(self.rooms.items()):
            if name not in config.spaces:
                del self.rooms[name]
                _disconnect_all(room, CloseCode.NO_SUCH_SPACE, "the space is no longer served here")
                room.close()
            elif name not in wanted:
                room.configure(_rules(config.spaces[name]), config.spaces[name].limits)
        self.rooms.update(fresh)

    async def _reconfigure_later(self, config: Config, base_url: str) -> None:
        await self._turns.committed()
        if not self.stopping:
            self.reconfigure(config, base_url)

    def begin_shutdown(self, code: CloseCode, reason: str) -> None:
        """Say goodbye to everyone; who is on the way in does not get in."""
        self.stopping = True
        for room in self.rooms.values():
            room.begin_shutdown()
            _disconnect_all(room, code, reason)

    def stop_all(self, error: JournalUnavailable) -> None:
        """The journal is gone: every space stops."""
        for room in tuple(self.rooms.values()):
            self._failed(room, error)

    async def mailed(self) -> None:
        """Return when every invitation was sent, or could not be."""
        await self._post.emptied()

    def _prepare(self, spaces: Mapping[str, SpaceConfig]) -> tuple[dict[str, Room], dict[str, Exception]]:
        """A room for each, or why there is none."""
        rooms: dict[str, Room] = {}
        unopened: dict[str, Exception] = {}
        for name, space in spaces.items():
            try:
                rooms[name] = self._open_room(_rules(space), space.limits, self._turns, self)
            except Exception as error:
                unopened[name] = error
        return rooms, unopened

    def _note(self, unopened: Mapping[str, Exception]) -> None:
        for name, error in unopened.items():
            if isinstance(error, JournalUnavailable):
                _logger.error("space not opened: %s", error, extra={"space": name})
            else:
                _logger.error("space not opened", extra={"space": name}, exc_info=error)
            self.failed[name] = _summary(error)

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

    def _failed(self, room: TurnTaker, error: Exception) -> None:
        """A broken journal or a bug of ours: this space stops rather than guess its way on; the others go on."""
        assert isinstance(room, Room), f"a turn of {room}"
        if room.is_closed:
            return
        if not isinstance(error, JournalUnavailable):
            _logger.error("space stopped", extra={"space": room.id}, exc_info=error)
        elif str(error) != self._logged:  # one line for all spaces that it stops
            self._logged = str(error)
            _logger.error("space stopped: %s", error, extra={"space": room.id})
        if self.rooms.get(room.id) is room:
            self.failed[room.id] = _summary(error)
        room.close()
        _disconnect_all(room, CloseCode.UNAVAILABLE, "the space is not available now")


def _disconnect_all(room: Room, code: CloseCode, reason: str) -> None:
    for connection in tuple(room.connections.values()):
        connection.close(code, reason)


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
        streams_each_max=space.limits.streams_per_participant,
    )


def _summary(error: Exception) -> str:
    return error.summary if isinstance(error, JournalUnavailable) else "an internal error; see the log"


async def _guarded(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        await coroutine
    except Exception:
        _logger.exception("a background task failed")
