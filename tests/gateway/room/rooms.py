"""Rooms of a real node, over a storage whose commits are ended by hand, and connections that note what they get."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.space.table import START

from mew.gateway.config.loader import load_config
from mew.gateway.node import Node
from mew.gateway.room.outbox import Outbox
from mew.gateway.room.rate_limit import RateLimiter
from mew.gateway.room.room import Room
from mew.journal.memory import MemoryJournal
from mew.journal.port import CommitCallback, Follower, Journal, JournalContents, JournalUnavailable
from mew.protocol.envelope import PROTOCOL, EnvelopeId, ParticipantId
from mew.protocol.json import encode_json
from mew.space import ConnectionId, Decision, Entry, Event, Sent

__all__ = [
    "SPACES",
    "Clock",
    "HeldStorage",
    "Visitor",
    "chat",
    "envelope",
    "grant",
    "ids_in",
    "kick",
    "node_with",
    "passes",
]

SPACES: Final = """
spaces: [{id: desk}, {id: hall}]
participants:
  ann: {tokens: [t-ann], capabilities: ["*"]}
  bob: {tokens: [t-bob], capabilities: [chat, stream/*, mcp/proposal]}
  cat: {tokens: [t-cat], capabilities: [chat, mcp/*]}
server: {port: 0}
"""
_numbers = count()


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class HeldStorage:
    """Journals in memory. While it is held, a commit is over when the test says so."""

    def __init__(self) -> None:
        self.is_held = False
        self.commits = 0
        self.log: list[tuple[str, Entry, Sequence[Decision]]] = []
        """What was appended, in which space, and what it decided."""
        self.snapshots: list[int] = []
        """How many entries had been appended when each was saved."""
        self._done: CommitCallback | None = None

    is_shared = False

    async def prepare(self, spaces: Iterable[str]) -> None:
        """There is nothing to read."""

    def open(self, space: str, follower: Follower) -> tuple[Journal, JournalContents]:
        def noted(entry: Entry) -> Sequence[Decision]:
            decisions = follower(entry)
            self.log.append((space, entry, decisions))
            return decisions

        return _HeldJournal(self, noted), JournalContents()

    def commit(self, done: CommitCallback) -> None:
        self.commits += 1
        assert self._done is None, "a commit before the last one is over"
        if self.is_held:
            self._done = done
        else:
            done(None)

    def close(self) -> None:
        """There is nothing to release."""

    @property
    def is_committing(self) -> bool:
        return self._done is not None

    def finish(self, error: JournalUnavailable | None = None) -> None:
        """The commit under way is over; hold the next one too."""
        assert self._done is not None, "no commit is under way"
        done, self._done = self._done, None
        done(error)

    def release(self) -> None:
        """End the commit under way, if one is, and hold no other."""
        self.is_held = False
        if self._done is not None:
            self.finish()

    def events(self, space: str = "desk") -> list[Event]:
        return [entry.event for one, entry, _ in self.log if one == space]

    def batches(self, space: str = "desk") -> list[tuple[str, ...]]:
        """The ids of each batch that was journalled."""
        return [event.envelopes.ids for event in self.events(space) if isinstance(event, Sent)]


class _HeldJournal(MemoryJournal):
    def __init__(self, storage: HeldStorage, follower: Follower) -> None:
        super().__init__(follower)
        self._storage = storage

    def save_snapshot(self, pieces: Iterable[bytes]) -> None:
        self._storage.snapshots.append(len(self._storage.log))


class _Pipe(asyncio.WriteTransport):
    """Puts the messages in what is written into a list."""

    def __init__(self, log: list[Any]) -> None:
        super().__init__()
        self._log = log

    def write(self, data: bytes | bytearray | memoryview) -> None:
        written, at = bytes(data), 0
        while at < len(written):
            size, at = written[at + 1] & 0x7F, at + 2
            if size >= 126:
                wide = 2 if size == 126 else 8
                size, at = int.from_bytes(written[at : at + wide], "big"), at + wide
            message, at = written[at : at + size], at + size
            self._log.append(message if message[:1] == b"#" else json.loads(message))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


class Visitor:
    """One connection, as a room sees it. `log`: what it got, each envelope and frame, and at last how it was closed."""

    def __init__(
        self,
        room: Room,
        who: str,
        *,
        after: str | None = None,
        lenient: bool = False,
        burst: float = 1e9,
        refusals: float = 1e9,
    ) -> None:
        """`burst`: so many envelopes it may send, ever; `refusals`: so many may be refused."""
        self.room = room
        self.id = ConnectionId(f"c{next(_numbers)}")
        self.who = ParticipantId(who)
        self.after = None if after is None else EnvelopeId(after)
        self.lenient = lenient
        self.log: list[Any] = []
        self.outbox = Outbox(_Pipe(self.log), 1 << 30, lambda: None, lambda dropped: None)
        self.rate_limiter = RateLimiter(1e-9, burst)
        self.refusal_limiter = RateLimiter(1e-9, refusals)
        self.budget = room.budget_of(self.who)
        self.is_paused = False

    async def enter(self) -> "Visitor":
        await self.room.enter(self)
        return self

    def send(self, *texts: bytes) -> None:
        """What one read had."""
        if self.lenient:
            self.room.receive_lenient(self, list(texts), sum(map(len, texts)))
        else:
            self.room.receive(self, list(texts), sum(map(len, texts)))

    def leave(self) -> None:
        self.room.leave(self)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self, code: int, reason: str) -> None:
        self.outbox.stop()
        self.log.append(("closed", int(code)))

    @property
    def closed(self) -> int | None:
        """With which code."""
        return next((one[1] for one in self.log if isinstance(one, tuple)), None)

    @property
    def seen(self) -> list[str]:
        """The ids of the envelopes of participants that it got, in order."""
        return ids_in(self.log)

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What it was refused: each payload of `system/error`, with the id it is about."""
        return [
            {**one["payload"], "id": (one.get("correlation_id") or [None])[0]}
            for one in self.log
            if isinstance(one, dict) and one["kind"] == "system/error" and one["to"] == [self.who]
        ]


def ids_in(log: Iterable[Any]) -> list[str]:
    return [one["id"] for one in log if isinstance(one, dict) and one["from"] != "system:gateway"]


@asynccontextmanager
async def node_with(
    storage: HeldStorage, folder: Path, more: str = "", now: Clock | None = None
) -> AsyncIterator[Node]:
    """A node that serves the spaces `desk` and `hall`; at its end no commit is held any longer."""
    file = folder / "space.yaml"
    file.write_text(SPACES + more)
    async with Node(load_config(file, {}), "ws://here", storage, now=now) as node:
        try:
            yield node
        finally:
            storage.release()


async def passes(number: int = 5) -> None:
    """Let the loop go on."""
    for _ in range(number):
        await asyncio.sleep(0)


def envelope(who: str, id: str, kind: str = "chat", payload: Any = None, **fields: Any) -> bytes:
    head = {"protocol": PROTOCOL, "id": id, "from": who, "kind": kind}
    return encode_json({**head, **fields, "payload": payload or {}})


def chat(who: str, id: str, **fields: Any) -> bytes:
    return envelope(who, id, **fields)


def kick(who: str, id: str, whom: str) -> bytes:
    return envelope(who, id, "space/kick", {"participant_id": whom})


def grant(who: str, id: str, whom: str, kind: str, **fields: Any) -> bytes:
    asked = {"recipient": whom, "capabilities": [{"kind": kind}], **fields}
    return envelope(who, id, "capability/grant", asked, to=[whom])
