"""PURE. Envelopes on their way to the gateway: in order, none lost, none twice.

An envelope is done when its echo or its refusal has come. What was sent when a connection was lost is sent again, and
the gateway's memory of ids keeps it from happening twice (design §3.7). A refusal that only means *not now* keeps it
waiting: too fast, or paused.
"""

from collections import deque
from typing import Final

from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.kinds import Kind

__all__ = ["PASS_WHEN_PAUSED", "Outgoing"]

# Acknowledgements, cancellations and status pass a pause (§3.9.1, design §3.13).
PASS_WHEN_PAUSED: Final = frozenset(
    {
        Kind.CHAT_ACKNOWLEDGE,
        Kind.CHAT_CANCEL,
        Kind.REASONING_CANCEL,
        Kind.MCP_WITHDRAW,
        Kind.MCP_REJECT,
        Kind.GRANT_ACK,
        Kind.STATUS,
        Kind.COMPACT_DONE,
        Kind.RESUME,  # one's own, once the time of the pause is over
    }
)
_RETRY_PAUSED_S: Final = 1.0
_INTERVAL_LEAST_S: Final = 0.0005
_INTERVAL_MOST_S: Final = 1.0
_FASTER: Final = 0.98


class _Pending:
    __slots__ = ("envelope", "held", "id", "kind", "message", "number", "repeated")

    def __init__(self, number: int, envelope: Envelope, message: bytes) -> None:
        self.number = number
        self.envelope = envelope
        self.id = EnvelopeId(envelope.id)
        self.kind = envelope.kind
        self.message = message
        self.repeated = False  # sent over a connection that was lost
        self.held = False  # refused because of a pause


class Outgoing:
    """Times are seconds of any clock that only goes forward; `paused_until` is None while not paused."""

    def __init__(self) -> None:
        self.paused_until: float | None = None
        self._count = 0
        self._not_before = 0.0
        self._interval_s = 0.0
        self.waiting: deque[_Pending] = deque()
        """Those that have not been sent over this connection, in the order they were added."""
        self._sent: dict[str, _Pending] = {}
        self._by_message: dict[bytes, _Pending] = {}  # the same

    def __len__(self) -> int:
        return len(self.waiting) + len(self._sent)

    def add(self, envelope: Envelope, message: bytes) -> None:
        self._count += 1
        self.waiting.append(_Pending(self._count, envelope, message))

    def next(self, now_s: float) -> bytes | None:
        """The next message to hand to the link; None when nothing may be sent now: `due_s` says when."""
        if not self.waiting or now_s < self._not_before:
            return None
        if self.paused_until is not None:
            if now_s < self.paused_until:
                return self._next_that_passes()
            self.resumed()
        if self._interval_s:  # once told that it was too fast: ever a little faster, until told again
            self._not_before = now_s + self._interval_s
            self._interval_s = self._interval_s * _FASTER if self._interval_s > _INTERVAL_LEAST_S else 0.0
        return self._take(self.waiting.popleft())

    def due_s(self) -> float | None:
        """When `next` may have something that it has not now, by the passing of time alone."""
        if not self.waiting:
            return None
        return max(self._not_before, self.paused_until or 0.0)

    def echoed(self, message: bytes) -> Envelope | None:
        """What comes back byte for byte as it was sent need not be read: it is this envelope, and it was accepted."""
        pending = self._by_message.pop(message, None)
        if pending is None or self._sent.pop(pending.id, None) is None:
            return None
        return pending.envelope

    def accepted(self, envelope_id: str) -> bool:
        """Its echo came; whether that was waited for."""
        if self._forget_sent(envelope_id):
            return True
        return self._forget_waiting(envelope_id)  # a replay shows what was sent over the connection before

    def repeated(self, envelope_id: EnvelopeId) -> bool:
        """Whether it was sent over an earlier connection too: then `duplicate_id` means that it was accepted."""
        pending = self._sent.get(envelope_id)
        return pending is not None and pending.repeated

    def give_up(self, envelope_id: EnvelopeId) -> bool:
        """It will not be sent, or not again; whether it was on its way."""
        return self._forget_sent(envelope_id) or self._forget_waiting(envelope_id)

    def take_back(self, envelope_id: EnvelopeId) -> bool:
        """It will not be sent; whether it never was."""
        pending = next((pending for pending in self.waiting if pending.id == envelope_id), None)
        return pending is not None and not pending.repeated and self._forget_waiting(envelope_id)

    def too_fast(self, envelope_id: EnvelopeId, now_s: float, wait_s: float) -> None:
        """It was refused because of the rate: from now on there is time between any two."""
        self._again(envelope_id)
        self._not_before = max(self._not_before, now_s + wait_s)
        self._interval_s = min(max(self._interval_s, wait_s, 2 * _INTERVAL_LEAST_S), _INTERVAL_MOST_S)

    def paused(self, envelope_id: EnvelopeId, now_s: float) -> None:
        """It was refused because of a pause; who paused us, and until when, may not be known."""
        pending = self._again(envelope_id)
        if pending is not None:
            pending.held = True
        if self.paused_until is None or self.paused_until <= now_s:
            self.paused_until = now_s + _RETRY_PAUSED_S

    def resumed(self) -> None:
        """The pause is over."""
        self.paused_until = None
        for pending in self.waiting:
            pending.held = False

    def lost(self) -> tuple[EnvelopeId, ...]:
        """The connection is gone: what was sent over it waits again, before the rest. Returns their ids."""
        unanswered = list(self._sent.values())
        for pending in unanswered:
            pending.repeated = True
        together = sorted((*unanswered, *self.waiting), key=lambda pending: pending.number)
        self.waiting.clear()
        self.waiting.extend(together)
        self._sent.clear()
        self._by_message.clear()
        self._not_before = 0.0
        return tuple(pending.id for pending in unanswered)

    def largest(self) -> EnvelopeId | None:
        """Of those that were sent over a connection that was lost: the one to suspect if it was lost for its size."""
        sent = (pending for pending in self.waiting if pending.repeated)
        largest = max(sent, key=lambda pending: len(pending.message), default=None)
        return None if largest is None else largest.id

    def _take(self, pending: _Pending) -> bytes:
        self._sent[pending.id] = self._by_message[pending.message] = pending
        return pending.message

    def _next_that_passes(self) -> bytes | None:
        for place, pending in enumerate(self.waiting):
            if pending.kind in PASS_WHEN_PAUSED and not pending.held:
                del self.waiting[place]
                return self._take(pending)
        return None

    def _again(self, envelope_id: EnvelopeId) -> _Pending | None:
        """Back to its place in the order of those that wait."""
        pending = self._sent.get(envelope_id)
        if pending is not None:
            self._forget_sent(envelope_id)
            later = (place for place, other in enumerate(self.waiting) if other.number > pending.number)
            self.waiting.insert(next(later, len(self.waiting)), pending)
        return pending

    def _forget_sent(self, envelope_id: str) -> bool:
        pending = self._sent.pop(envelope_id, None)
        if pending is not None:
            self._by_message.pop(pending.message, None)
        return pending is not None

    def _forget_waiting(self, envelope_id: str) -> bool:
        for pending in self.waiting:
            if pending.id == envelope_id:
                self.waiting.remove(pending)
                return True
        return False
