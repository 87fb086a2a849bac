"""Two rooms of one space over one journal in memory, each as far behind as the test says."""

import asyncio
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mew.gateway.config.settings import Limits
from mew.gateway.room.outbox import Outbox
from mew.gateway.room.rate_limit import RateLimiter
from mew.gateway.room.room import Room
from mew.gateway.room.turns import Turns, TurnTaker
from mew.journal.port import (
    CommitCallback,
    Follower,
    Journal,
    JournalContents,
    JournalUnavailable,
    RetentionPolicy,
    RetentionStats,
)
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.space import ConnectionId, Entry, Event, Rules, Sent, Violated

__all__ = ["Node", "Peer", "Published", "SharedLog"]


class Published(NamedTuple):
    """A frame at its place in the order."""

    node: str
    frame: bytes


class SharedLog:
    """The one order."""

    def __init__(self) -> None:
        self.entries: list[Entry | Published] = []

    def append(self, at: datetime, event: Event) -> None:
        size = len(event.envelopes) if isinstance(event, Sent) else 1
        last = max((entry.last for entry in self.entries if isinstance(entry, Entry)), default=0)
        self.entries.append(Entry(last + 1, at, event, size))


class Node:
    """One node: what its room appends goes to the log at once, and comes round when `take` is called."""

    policy = RetentionPolicy()
    stats = RetentionStats()
    is_shared = True
    epoch = "0123abcd"

    def __init__(self, log: SharedLog, rules: Rules, name: str) -> None:
        self.node = name
        self.in_flight = False
        self._log = log
        self._follower: Follower = lambda entry: ()
        self._came_round: Callable[[Exception | None], None] = lambda error: None
        self._frame: Callable[[bytes], None] = lambda frame: None
        self._followed = len(log.entries)
        self._done: CommitCallback | None = None
        self._asked = asyncio.Event()
        self._due_at = 0
        self.turns = Turns(self, self._failed, self.now)
        self.room = Room(rules, Limits(), self.turns, self)

    def take(self, most: int = 1_000_000) -> None:
        """Take the next entries, and deliver what they decide; a commit is over when all before it have come."""
        for one in self._log.entries[self._followed : self._followed + most]:
            self._followed += 1
            if isinstance(one, Entry):
                self._follower(one)
            elif one.node != self.node:
                self._frame(one.frame)
        self._came_round(None)
        if self._done is not None and self._followed >= self._due_at:
            done, self._done = self._done, None
            self._asked.clear()
            self.in_flight = False
            done(None)

    async def settled(self) -> None:
        """What was received is decided and appended; it has not come round yet."""
        waiting = [asyncio.ensure_future(self.turns.settled()), asyncio.ensure_future(self._asked.wait())]
        _, unfinished = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for one in unfinished:
            one.cancel()

    # As the journal, and its storage.

    async def prepare(self, spaces: Iterable[str]) -> None:
        """It is all in memory."""

    def open(self, space: str, follower: Follower) -> tuple[Journal, JournalContents]:
        self._follower = follower
        past = (one for one in self._log.entries[: self._followed] if isinstance(one, Entry))
        return self, JournalContents(entries=past, shared=self)

    def append(self, at: datetime, event: Event) -> None:
        self._log.append(at, event)
        self.in_flight = self.in_flight or not isinstance(event, Violated)

    def follow(self, came_round: Callable[[Exception | None], None], frame: Callable[[bytes], None]) -> None:
        self._came_round, self._frame = came_round, frame

    def publish(self, frame: bytes) -> None:
        self._log.entries.append(Published(self.node, frame))

    def commit(self, done: CommitCallback) -> None:
        self._done, self._due_at = done, len(self._log.entries)
        self._asked.set()

    def save_snapshot(self, pieces: Iterable[bytes]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """There is nothing to release."""

    # As the world.

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sends_mail(self) -> bool:
        return False

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        raise AssertionError("no mail is sent from here")

    def connection_url(self, space: str) -> str:
        return f"memory://{space}"

    def _failed(self, room: TurnTaker, error: Exception) -> None:
        assert isinstance(error, JournalUnavailable), "a bug of ours"
        raise error


class Peer(asyncio.WriteTransport):
    """Somebody connected to a node, and what it was sent."""

    lenient = False
    after: EnvelopeId | None = None

    def __init__(self, node: Node, who: str) -> None:
        super().__init__()
        self.id = ConnectionId(f"{node.room.connection_prefix}{who}")
        self.who = ParticipantId(who)
        self.rate_limiter = RateLimiter(1e9, 1e9)
        self.refusal_limiter = RateLimiter(1e9, 1e9)
        self.budget = node.room.budget_of(self.who)
        self.outbox = Outbox(self, 1 << 20, lambda: None, lambda dropped: None)
        self.closed: tuple[int, str] | None = None
        self._room = node.room
        self._written = b""

    async def join(self) -> None:
        await self._room.enter(self)

    def say(self, kind: str, payload: Any = None, **fields: Any) -> None:
        head = {"protocol": "mew/v0.4", "from": self.who, "kind": kind, **fields}
        text = json.dumps(head | ({} if payload is None else {"payload": payload})).encode()
        self._room.receive(self, [text], len(text))

    @property
    def seen(self) -> list[Any]:
        """Everything that it was sent so far."""
        messages, start, data = [], 0, self._written
        while start < len(data):
            size, start = data[start + 1] & 0x7F, start + 2
            if size == 126:
                size, start = int.from_bytes(data[start : start + 2], "big"), start + 2
            message = data[start : start + size]
            messages.append(message.decode() if message.startswith(b"#") else json.loads(message))
            start += size
        return messages

    def kinds(self, *kinds: str) -> list[dict[str, Any]]:
        return [one for one in self.seen if isinstance(one, dict) and one["kind"] in kinds]

    # As the room sees it.

    def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed = (code, reason)

    def pause(self) -> None:
        """It has nothing to hold back."""

    def resume(self) -> None:
        """Nor anything to go on with."""

    # As its outbox sees it.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written += bytes(data)

    def is_closing(self) -> bool:
        return self.closed is not None

    def get_write_buffer_size(self) -> int:
        return 0
