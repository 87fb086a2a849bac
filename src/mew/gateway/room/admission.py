"""PURE. The checks that need no space: size, form, and that the sender is whoever is connected."""

from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import ProtocolError, Refusal

__all__ = ["admit"]


def admit(received: bytes, who: ParticipantId, *, bytes_max: int) -> Envelope:
    """The envelope in these bytes, if `who` may send such a one at all.

    Raises:
        ProtocolError: it may not go further; `refusal` says why.
    """
    if len(received) > bytes_max:
        raise ProtocolError(
            f"an envelope may have {bytes_max} bytes, this one has {len(received)}; send large data as a stream",
            Refusal.TOO_LARGE,
        )
    envelope = decode(received)
    if envelope.sender != who:
        raise ProtocolError(
            f"connection is {who!r}, envelope {envelope.id!r} says {envelope.sender!r}",
            Refusal.WRONG_SENDER,
            envelope.kind,
        )
    return envelope
