"""The rooms of this process: open, reconfigure and close them together."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from random import random
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

__all__ = ["Node", "OpenRoom", "rules_of"]

_logger = logging.getLogger(__name__)

_ROUND_S: Final = 60.0
_REOPEN_S: Final = 0.5

OpenRoom: TypeAlias = Callable[[Rules, Limits, Turns, RoomEnvironment], Room]
"""Opens the room of a space; may raise `JournalUnavailable`."""


class Node:
    """All rooms and their background tasks, as an async context manager.

    `open_room` and `now` replace how rooms are opened and the clock.
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
        """Why each failed space stopped, in words that may be shown to anyone."""
        self.stopping = False
        self.disk = DiskStatus()
        self.now = now or partial(datetime.now, UTC)
        self._config = config
        self._base_url = base_url
        self._open_room = open_room
        self._storage = storage
        self._turns = Turns(storage, self._failed, self.now)
        self._lost: set[str] = (
            set()
        )  # failed because a journal that is shared with other nodes was out of reach
        self._post = InvitationMailer()
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup | None = None
        self._logged = ""  # what stopped a space last

    async def __aenter__(self) -> "Node":
        """Open every room. A bug that stops one space does not affect the others.

        Raises:
            JournalUnavailable: a journal cannot be read.
        """
        await self._storage.prepare(self._config.spaces)
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
        if self.is_shared:
            self._stack.callback(self.spawn(self._reopen()).cancel)
        self.rooms.update(rooms)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._turns.settled()
        for room in self.rooms.values():
            room.close()
        if self._post.unsent:
            _logger.warning(
                "invitations not sent: the gateway is shutting down", extra={"count": self._post.unsent}
            )
        await self._stack.__aexit__(kind, error, trace)

    @property
    def is_shared(self) -> bool:
        """Whether other nodes serve the same spaces."""
        return self._storage.is_shared

    # The environment of the rooms.

    def connection_url(self, space: str) -> str:
        return f"{self._base_url}/ws?space={quote(space)}"

    def sends_mail(self) -> bool:
        return self._config.smtp is not None

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        assert self._config.smtp is not None, "no SMTP configured"
        self._post.invite(self._config.smtp, to, space, ack)

    # Called by the server.

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a background task until the node closes; log its failure."""
        assert self._tasks is not None, "spawn outside the node"
        return self._tasks.create_task(_guarded(coroutine))

    def reconfigure(self, config: Config, base_url: str) -> None:
        """Apply a new configuration without dropping connections.

        Open new spaces, reopen failed ones from their journal, and close removed ones. Waits for a commit in progress.
        """
        if self._turns.is_committing or self.is_shared:
            self.spawn(self._reconfigure_later(config, base_url))
        else:
            self._reconfigure(config, base_url)

    async def _reconfigure_later(self, config: Config, base_url: str) -> None:
        await self._turns.committed()
        if self.is_shared:
            try:
                await self._storage.prepare(config.spaces.keys() - self.rooms.keys())
            except JournalUnavailable as error:
                _logger.error("configuration not reloaded: %s", error)
                return
        if not self.stopping:
            self._reconfigure(config, base_url)

    def _reconfigure(self, config: Config, base_url: str) -> None:
        again = self.failed.keys() - self._lost  # those come back by themselves
        wanted = {n: it for n, it in config.spaces.items() if n in again or n not in self.rooms}
        fresh, unopened = self._prepare(wanted)
        self.failed, self._logged = {n: why for n, why in self.failed.items() if n in self._lost}, ""
        self._note(unopened)
        self._config = config
        self._base_url = base_url
        for name, room in tuple(self.rooms.items()):
            if name not in config.spaces:
                del self.rooms[name]
                _disconnect_all(room, CloseCode.NO_SUCH_SPACE, "this gateway no longer serves the space")
                room.close()
            elif name not in wanted:
                room.configure(self._rules(config.spaces[name]), config.spaces[name].limits)
        self.rooms.update(fresh)

    def begin_shutdown(self, code: CloseCode, reason: str) -> None:
        """Refuse new participants and close all connections."""
        self.stopping = True
        for room in self.rooms.values():
            room.begin_shutdown()
            _disconnect_all(room, code, reason)

    def stop_all(self, error: JournalUnavailable) -> None:
        """Stop every space because the journal is unavailable."""
        for room in tuple(self.rooms.values()):
            self._failed(room, error)

    async def mailed(self) -> None:
        """Wait until every queued invitation was sent or failed."""
        await self._post.emptied()

    def _prepare(self, spaces: Mapping[str, SpaceConfig]) -> tuple[dict[str, Room], dict[str, Exception]]:
        """Open a room per space; return the rooms and the errors."""
        rooms: dict[str, Room] = {}
        unopened: dict[str, Exception] = {}
        for name, space in spaces.items():
            try:
                rooms[name] = self._open_room(self._rules(space), space.limits, self._turns, self)
            except Exception as error:
                unopened[name] = error
        return rooms, unopened

    def _rules(self, space: SpaceConfig) -> Rules:
        return rules_of(space, space.revision if self.is_shared else 0)

    def _note(self, unopened: Mapping[str, Exception]) -> None:
        for name, error in unopened.items():
            if isinstance(error, JournalUnavailable):
                _logger.error("space not opened: %s", error, extra={"space": name})
            else:
                _logger.error("space not opened", extra={"space": name}, exc_info=error)
            self.failed[name] = _summary(error)

    async def _reopen(self) -> None:
        """Open spaces again from a shared journal that was out of reach, as soon as it is there."""
        while True:
            await asyncio.sleep(_REOPEN_S * (1 + random()))
            spaces = {name: self._config.spaces[name] for name in self._lost & self._config.spaces.keys()}
            if not spaces or self.stopping:
                continue
            try:
                await self._storage.prepare(spaces)
            except JournalUnavailable as error:
                _logger.info("spaces not opened again yet: %s", error)
                continue
            rooms, unopened = self._prepare(spaces)
            self._lost.difference_update(rooms)
            for name in rooms:
                self.failed.pop(name, None)
            self._note(unopened)
            self.rooms.update(rooms)
            self._logged = ""
            _logger.info("spaces opened again", extra={"count": len(rooms)})

    async def _forget(self) -> None:
        """Evict expired history in all rooms, spread evenly over each minute."""
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
        """Stop one space after a journal failure or a bug; the others keep running."""
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
            if self.is_shared and isinstance(error, JournalUnavailable):
                self._lost.add(room.id)
        room.close()
        _disconnect_all(room, CloseCode.UNAVAILABLE, "the space is currently unavailable")


def _disconnect_all(room: Room, code: CloseCode, reason: str) -> None:
    for connection in tuple(room.connections.values()):
        connection.close(code, reason)


def _summary(error: Exception) -> str:
    return error.summary if isinstance(error, JournalUnavailable) else "an internal error; see the log"


async def _guarded(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        await coroutine
    except Exception:
        _logger.exception("a background task failed")


def rules_of(space: SpaceConfig, revision: int = 0) -> Rules:
    """What the configuration of a space means to its state machine."""
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
        revision=revision,
    )
