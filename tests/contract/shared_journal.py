"""Two rooms of one space over one journal in memory, each as far behind as the test says."""

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

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
from mew.space import ConnectionId, Entry, Event, Rules, Sent

__all__ = ["Node", "Peer", "SharedLog"]


class SharedLog:
    """The one order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def append(self, at: datetime, event: Event) -> None:
        size = len(event.envelopes) if isinstance(event, Sent) else 1
        last = self.entries[-1].last if self.entries else 0
        self.entries.append(Entry(last + 1, at, event, size))


class Node:
    """One node: what its room appends goes to the log at once, and comes round when `follow` is called."""

    policy = RetentionPolicy()
    stats = RetentionStats()

    def __init__(self, log: SharedLog, rules: Rules) -> None:
        self._log = log
        self._follower: Follower = lambda entry: ()
        self._followed = 0
        self.turns = Turns(self, self._failed, self.now)
        self.room = Room(rules, Limits(), self.turns, self)

    def follow(self, most: int = 1_000_000) -> None:
        """Take the next entries, and deliver what they decide."""
        for entry in self._log.entries[self._followed : self._followed + most]:
            self._follower(entry)
            self._followed += 1
        self.room.deliver()

    async def settled(self) -> None:
        """What was received is decided and appended."""
        await self.turns.settled()

    # As the journal, and its storage.

    def open(self, space: str, follower: Follower) -> tuple[Journal, JournalContents]:
        self._follower = follower
        return self, JournalContents()

    def append(self, at: datetime, event: Event) -> None:
        self._log.append(at, event)

    def commit(self, done: CommitCallback) -> None:
        done(None)

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
        self.id = ConnectionId(f"{who}-of-{id(node)}")
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
    def seen(self) -> list[dict[str, Any]]:
        """Everything that it was sent so far."""
        messages, start, data = [], 0, self._written
        while start < len(data):
            size, start = data[start + 1] & 0x7F, start + 2
            if size == 126:
                size, start = int.from_bytes(data[start : start + 2], "big"), start + 2
            messages.append(json.loads(data[start : start + size]))
            start += size
        return messages

    def kinds(self, *kinds: str) -> list[dict[str, Any]]:
        return [one for one in self.seen if one["kind"] in kinds]

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
