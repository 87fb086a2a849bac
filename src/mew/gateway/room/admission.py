"""PURE. Checks on an envelope that need no space: size, form and sender; and filling in fields the gateway knows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Raw, Struct

from mew.protocol.codec import decode, fields_in
from mew.protocol.envelope import PROTOCOL, Envelope, ParticipantId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.json import decode_json, encode_json

__all__ = ["Completed", "admit", "complete", "fill"]


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


_BLANK: Final = b" \t\r\n"


class Completed(Struct, frozen=True):
    """The bytes to go on with, and the kind they name, for what may have to be said about them."""

    raw: bytes
    kind: str


def complete(received: bytes, who: ParticipantId, *, new_id: str, ts: datetime) -> Completed:
    """Fill in what is missing, every byte received kept: a field given twice stays so, and is refused.

    Nothing is missing: the bytes as they came. No JSON object: the same; the room says what is wrong with it.
    """
    try:
        fields = fields_in(received)
        kind = decode_json(bytes(fields["kind"])) if "kind" in fields else ""
    except ProtocolError:
        return Completed(received, "")
    raw = fill(received, fields, who, new_id=new_id, ts=ts)
    return Completed(raw, kind[:256] if isinstance(kind, str) else "")


def fill(
    received: bytes, fields: Mapping[str, Raw], who: ParticipantId, *, new_id: str, ts: datetime | str
) -> bytes:
    """Put those of `protocol`, `id`, `ts` and `from` that are missing in front of the bytes of an object."""
    given = {"protocol": PROTOCOL, "id": new_id, "ts": ts, "from": who}
    missing = {name: value for name, value in given.items() if name not in fields}
    if not missing:
        return received
    rest = received.lstrip(_BLANK).removeprefix(b"{")
    return encode_json(missing).removesuffix(b"}") + (b"," if fields else b"") + rest
