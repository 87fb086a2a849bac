"""PURE. What became of an envelope, for who posted it and waits for the answer."""

from collections.abc import Callable, Sequence
from typing import Final

from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind
from mew.space import Decision, Deliver, Entry, Invite, Refuse, Refused, Sent

from .ports import Accepted

__all__ = ["outcome"]

_REPLIES: Final = frozenset(
    {Kind.STREAM_OPEN, Kind.STREAM_WRITE_GRANTED, Kind.STREAM_WRITE_REVOKED, Kind.STREAM_TRANSFERRED}
)


def outcome(
    entry: Entry, sent: Sent, decisions: Sequence[Decision], ack: Callable[[Entry, Invite], Envelope | None]
) -> Accepted | Refused:
    """Whether it was accepted, with what the gateway itself answered (§3.10.1, §3.6.4); `ack` answers an invitation."""
    reply = None
    for decision in decisions:
        if isinstance(decision, Refuse):
            return decision.refused
        if isinstance(decision, Invite):
            reply = ack(entry, decision)
        elif isinstance(decision, Deliver) and decision.envelope.kind in _REPLIES and not decision.raw:
            reply = decision.envelope
    return Accepted(sent.envelope, entry.at, reply)
