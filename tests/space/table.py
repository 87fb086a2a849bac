"""A space on a table: a clock that is set by hand, entries that are kept, and the wire's own decoder.

Whatever is sent was judged by nobody before: `apply` judges it at its place in the order, as it does with a batch of
another node that knew less.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from mew.protocol.capability import Capability
from mew.protocol.codec import decode
from mew.protocol.envelope import PROTOCOL, Envelope, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.json import encode_json
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Entry,
    Event,
    Joined,
    Left,
    Rules,
    Sent,
    Space,
    TimePassed,
)

__all__ = ["EPOCH", "START", "Table", "capabilities", "envelope_of"]

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH: Final = "t"


class Table:
    """Appends one event after the other, each at the time the clock shows."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.space = Space()
        self.now = START
        self.entries: list[Entry] = []
        self.decided: list[list[Decision]] = []
        if rules is not None:
            self.apply(Configured(rules, EPOCH))

    @property
    def rules(self) -> Rules:
        return self.space.state.rules

    def apply(self, event: Event) -> list[Decision]:
        size = len(event.envelopes) if isinstance(event, Sent) else 1
        entry = Entry(self.space.seq + 1, self.now, event, size)
        self.entries.append(entry)
        decisions = self.space.apply(entry)
        self.decided.append(decisions)
        return decisions

    def join(self, who: str, connection: str | None = None, *, resumed: bool | None = None) -> list[Decision]:
        return self.apply(Joined(ParticipantId(who), ConnectionId(connection or who), resumed))

    def leave(self, connection: str) -> list[Decision]:
        return self.apply(Left(ConnectionId(connection)))

    def send(
        self,
        who: str,
        kind: str,
        payload: Any = None,
        *,
        connection: str | None = None,
        lenient: bool = False,
        **fields: Any,
    ) -> list[Decision]:
        """`payload` as JSON, or as the bytes of it; without `connection` it comes over HTTP."""
        fields.setdefault("id", f"e{len(self.entries) + 1}")
        envelope, raw = envelope_of(who, kind, payload, **fields)
        token_hash = f"hash-of-{envelope.id}" if kind == "space/invite" else ""
        via = None if connection is None else ConnectionId(connection)
        return self.apply(Sent(Envelopes.of(envelope, raw), (via,), lenient=lenient, token_hash=token_hash))

    def wait(self, seconds: float) -> list[Decision]:
        self.now += timedelta(seconds=seconds)
        return self.apply(TimePassed())


def envelope_of(who: str, kind: str, payload: Any = None, **fields: Any) -> tuple[Envelope, bytes]:
    """What the codec makes of such an envelope, and its bytes."""
    head = {"protocol": PROTOCOL, "from": who, "kind": kind, **fields}
    raw = encode_json(head)
    if payload is not None:
        inner = payload if isinstance(payload, bytes) else encode_json(payload)
        raw = raw[:-1] + b',"payload":' + inner + b"}"
    return decode(raw), raw


def capabilities(written: Iterable[object]) -> tuple[Capability, ...]:
    return tuple(map(Capability.parse, written))
