"""The log of one space in Redis: loaded from its snapshot, appended to by script, followed by subscription."""

import asyncio
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mew.journal.port import (
    Follower,
    JournalContents,
    JournalUnavailable,
    RetentionPolicy,
    RetentionStats,
)
from mew.space import Entry, Event, NodeLeft, Violated

from .batch import pack_batch, size_of, unpack_batch
from .line import Line
from .scripts import APPEND, ENTER, GONE, SNAPSHOT, SpaceKeys

if TYPE_CHECKING:
    from .storage import RedisStorage

__all__ = ["NodeFenced", "RedisJournal"]

_PAGE: Final = 500
_KEPT: Final = RetentionPolicy(
    entries=100_000
)  # so a snapshot is made every tenth of it, and two of them are kept
_SUMMARY: Final = "the shared journal cannot be used"


class NodeFenced(JournalUnavailable):
    """Other nodes have declared this one dead: it may append nothing more under its name."""


class _Announced(NamedTuple):
    """A batch at its place in the order; `last` is the number of its last event."""

    id: bytes
    last: int
    node: bytes
    body: bytes


class RedisJournal:
    """The journal of one space, as a node follows it while one line holds."""

    policy = _KEPT

    def __init__(self, storage: "RedisStorage", line: Line, space: str, keys: SpaceKeys) -> None:
        self.space = space
        self.node = storage.node
        self.epoch = ""
        self.in_flight = False
        self.is_closed = False
        self._storage = storage
        self._line = line
        self._keys = keys
        self._follower: Follower | None = None
        self._came_round: Callable[[Exception | None], None] = lambda error: None
        self._frame: Callable[[bytes], None] = lambda frame: None
        self._loaded: list[_Announced] = []
        self._announced: list[_Announced] = []  # while it was loaded
        self._state: bytes | None = None
        self._begin = self._seq = 0
        self._id = b"0-0"
        self._at = datetime.fromtimestamp(0, UTC)
        self._ms = b"0"
        self._events: list[Event] = []
        self._frames: list[bytes] = []
        self._flying: deque[list[Event]] = deque()
        self._is_saving = False

    @property
    def place(self) -> tuple[str, int, bytes]:
        """How far the log was followed: its epoch, and the last number and id."""
        return self.epoch, self._seq, self._id

    # Loading.

    async def load(self, new_epoch: str, nodes: str, dead: Iterable[str]) -> None:
        """Register this node, and read what the log holds; what is announced meanwhile is kept for later.

        Raises:
            JournalUnavailable: it cannot be read, or entries are missing from it.
        """
        call, (log, head, snapshots) = self._line.call, self._keys
        self._line.send_silent("SUBSCRIBE", log)
        epoch, _, _, ghosts = await call("EVALSHA", ENTER.digest, 3, log, head, nodes, new_epoch, self.node)
        self.epoch = epoch.decode()
        for node in {*(ghost.decode() for ghost in ghosts), *dead}:
            self.declare_gone(node)
        state, seq, start = await call("HMGET", snapshots, "old", "old:s", "old:i")
        if state is not None:
            self._state = zlib.decompress(state)
            self._begin = self._seq = int(seq)
            self._id = start
        after = b"(" + self._id
        while page := await call("XRANGE", log, after, "+", "COUNT", _PAGE):
            for entry_id, fields in page:
                named = dict(zip(fields[::2], fields[1::2], strict=True))
                self._loaded.append(_Announced(entry_id, int(named[b"s"]), named[b"w"], named[b"b"]))
            after = b"(" + page[-1][0]

    def open(self, follower: Follower) -> JournalContents:
        """What the log holds; from now on the follower is given what comes round."""
        self._follower = follower
        known = self._loaded + self._announced
        at = _moment(known[-1].id) if known else None
        return JournalContents(self._state, at, self._begin, self._past(), shared=self)

    def _past(self) -> Iterator[Entry]:
        loaded, self._loaded, self._announced = self._loaded + self._announced, [], []
        for announced in loaded:
            yield from self._entries(announced)

    def _entries(self, announced: _Announced, own: Iterable[Event] | None = None) -> Iterator[Entry]:
        """The entries of a batch, at their place; none if they were here before."""
        if announced.last <= self._seq:
            return
        if announced.id.partition(b"-")[0] != self._ms:
            self._ms, self._at = announced.id.partition(b"-")[0], _moment(announced.id)
        try:
            for event in unpack_batch(announced.body) if own is None else own:
                entry = Entry(self._seq + 1, self._at, event, size_of(event))
                self._seq = entry.last
                yield entry
        except ValueError as error:
            raise JournalUnavailable(
                f"space {self.space!r}: entry {self._seq + 1} is none that this version of mew knows: {error}",
                summary=_SUMMARY,
            ) from error
        if self._seq != announced.last:
            raise JournalUnavailable(
                f"space {self.space!r}: entries are missing before number {announced.last}", summary=_SUMMARY
            )
        self._id = announced.id

    # The port.

    def append(self, at: datetime, event: Event) -> None:
        if self.is_closed:
            raise JournalUnavailable("the journal is closed")
        if not (self._events or self._frames):
            self._storage.due(self)
        self._events.append(event)
        if type(event) is not Violated:
            self.in_flight = True

    def publish(self, frame: bytes) -> None:
        if not (self._events or self._frames):
            self._storage.due(self)
        self._frames.append(frame)

    def follow(self, came_round: Callable[[Exception | None], None], frame: Callable[[bytes], None]) -> None:
        self._came_round, self._frame = came_round, frame

    @property
    def stats(self) -> RetentionStats:
        return RetentionStats(entries=self._seq - self._begin, begin=self._begin)

    def save_snapshot(self, pieces: Iterable[bytes]) -> None:
        if self.is_closed or self._is_saving or not self._storage.is_leader:
            return
        self._is_saving = True
        seq, last_id = self._seq, self._id
        saving = asyncio.get_running_loop().run_in_executor(None, _compressed, pieces)
        saving.add_done_callback(lambda done: self._save(seq, last_id, done.result()))

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._storage.closed(self)

    # Called by the storage.

    def send(self, line: Line, replied: Callable[[Any], None]) -> None:
        """Add what this turn appended to the write of all spaces."""
        log, head, _ = self._keys
        for frame in self._frames:
            line.send(replied, "PUBLISH", log, b"F" + self.node.encode() + b" " + frame)
        self._frames = []
        if self._events:
            events, self._events = self._events, []
            self._flying.append(events)
            count = sum(map(size_of, events))
            append = ("EVALSHA", APPEND.digest, 2, log, head, self.epoch, self.node, count)
            line.send(replied, *append, pack_batch(events))

    def receive(self, data: bytes) -> None:
        """Take what was announced: a batch or a frame, of this node or another."""
        if data.startswith(b"F"):
            node, _, frame = data[1:].partition(b" ")
            if node != self.node.encode() and self._follower is not None:
                self._frame(frame)
            return
        entry_id, last, node, body = data[1:].split(b" ", 3)
        announced = _Announced(entry_id, int(last), node, body)
        if self._follower is None:
            self._announced.append(announced)
            return
        own = self._flying.popleft() if node == self.node.encode() and self._flying else None
        for entry in self._entries(announced, own):
            if type(entry.event) is NodeLeft and entry.event.node == self.node:
                if not self.is_closed:
                    raise NodeFenced("this node was declared dead by another", summary=_SUMMARY)
                self._storage.forget(self)
            else:
                self._follower(entry)

    def tell(self, error: Exception | None) -> None:
        """Tell the follower that all of it came, or why there is no more."""
        if error is None and not self._flying:
            self.in_flight = False
        if self._follower is not None:
            self._came_round(error)

    def declare_gone(self, node: str) -> None:
        """Say in the log that a node left, and let it append no more."""
        log, head, _ = self._keys
        gone = ("EVALSHA", GONE.digest, 2, log, head, self.epoch, node)
        self._line.send(_ignored, *gone, pack_batch([NodeLeft(node)]))

    def _save(self, seq: int, last_id: bytes, state: bytes) -> None:
        self._is_saving = False
        if not self.is_closed:
            log, head, snapshots = self._keys
            save = ("EVALSHA", SNAPSHOT.digest, 3, log, head, snapshots, self.epoch)
            self._line.send(_ignored, *save, seq, last_id, state)
            self._line.flush()


def _ignored(reply: Sequence[Any]) -> None:
    """A reply that changes nothing."""


def _moment(entry_id: bytes) -> datetime:
    return datetime.fromtimestamp(int(entry_id.partition(b"-")[0]) / 1000, UTC)


def _compressed(pieces: Iterable[bytes]) -> bytes:
    return zlib.compress(b"".join(pieces), 1)
