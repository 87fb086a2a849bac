"""One pass of the event loop for all rooms: every room takes its turn, one commit, then all deliver."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from mew.journal.port import JournalStorage

from .other_nodes import OtherNodes

__all__ = ["TurnTaker", "Turns", "WorkQueue"]


class TurnTaker(Protocol):
    """A room as seen by the scheduler."""

    def turn(self, at: datetime) -> None:
        """Decide and journal everything received since the last turn; it is so late now."""

    def deliver(self) -> None:
        """Deliver what was decided: it is committed."""


class Turns:
    """Schedule the rooms that received something and run them together.

    What arrives while a commit waits for the disk is processed in the next turn.
    """

    def __init__(
        self,
        storage: JournalStorage,
        failed: Callable[[TurnTaker, Exception], None],
        now: Callable[[], datetime],
    ) -> None:
        """`failed` is told of a room that cannot go on: by a bug of ours, or because nothing can be committed."""
        self.storage = storage
        self._failed = failed
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._due: list[TurnTaker] = []
        self._committing: list[TurnTaker] | None = None
        self._told: list[TurnTaker] = []  # to whom entries came during a commit
        self._waiting: list[asyncio.Future[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_committing(self) -> bool:
        """Whether a commit is in progress."""
        return self._committing is not None

    def schedule(self, room: TurnTaker) -> None:
        """Schedule a room for the next pass of the event loop; call once per turn."""
        if not self._due and self._committing is None:
            self._loop.call_soon(self._run)
            self._idle.clear()
        self._due.append(room)

    def came_round(self, room: TurnTaker, error: Exception | None) -> None:
        """Deliver what entries of other nodes decided, now or with the commit in progress; an error stops the room."""
        if error is None and self._committing is not None:
            self._told.append(room)
            return
        try:
            if error is not None:
                raise error
            room.deliver()
        except Exception as failure:
            self._failed(room, failure)

    async def settled(self) -> None:
        """Wait until every scheduled turn is committed and delivered."""
        await self._idle.wait()

    async def committed(self) -> None:
        """Wait for the commit in progress, if any."""
        if self._committing is not None:
            over = self._loop.create_future()
            self._waiting.append(over)
            await over

    def _run(self) -> None:
        rooms, self._due = self._due, []
        self._committing = rooms
        at = self._now()
        for room in tuple(rooms):
            try:
                room.turn(at)
            except Exception as error:
                rooms.remove(room)  # it has closed: what it had decided is delivered to nobody
                self._failed(room, error)
        try:
            self.storage.commit(self._committed)
        except Exception as error:
            if self._committing is None:
                raise
            self._committed(error)

    def _committed(self, error: Exception | None) -> None:
        assert self._committing is not None, "a commit that nobody asked for"
        for room in self._committing:
            try:
                if error is not None:
                    raise error
                room.deliver()
            except Exception as failure:
                self._failed(room, failure)
        self._committing = None
        if self._told:
            told, self._told = dict.fromkeys(self._told), []
            for room in told:
                self.came_round(room, None)
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for over in waiting:
                if not over.done():
                    over.set_result(None)
        if self._due:
            self._loop.call_soon(self._run)
        else:
            self._idle.set()


class WorkQueue:
    """Work for the next turn. With several nodes some of it waits for one turn more, and all behind it too.

    An acceptance is judged again at its place in the order, a refusal is not: so before anyone is refused, the entries
    that other nodes have appended until now must have come round.
    """

    __slots__ = ("_caught_up", "_others", "_postponed", "items", "must_wait")

    def __init__(self, others: OtherNodes | None) -> None:
        self._others = others
        self.items: list[Callable[[], None]] = []
        self._postponed: list[Callable[[], None]] = []
        self._caught_up = 0  # so many of the items were here before the last commit began
        self.must_wait = False
        """Whether what is decided just now, and all behind it, is to wait for the next turn."""

    def append(self, work: Callable[[], None]) -> None:
        self.items.append(work)

    def clear(self) -> None:
        self.items = []

    def run(self) -> None:
        """Do all of it, up to what must wait."""
        items, self.items = self.items, []
        caught_up, self._caught_up = self._caught_up, 0
        others = self._others
        if others is None:
            for work in items:
                work()
            return
        for place, work in enumerate(items, 1):
            others.is_caught_up = place <= caught_up
            work()
            if self.must_wait:
                self._postponed += items[place:]
                break
        others.is_caught_up = False

    def wait_with(self, work: Callable[[], None]) -> None:
        """Do this in the next turn, and before all else."""
        self.must_wait = True
        self._postponed.append(work)

    def postpone(self) -> None:
        """Put what must wait back: when it is looked at again, it is not behind other nodes."""
        self.must_wait = False
        self.items, self._postponed = self._postponed + self.items, []
        self._caught_up = len(self.items)
