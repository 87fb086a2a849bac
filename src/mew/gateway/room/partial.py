"""PURE. An envelope may come without what the gateway knows: over HTTP (§5.3), or from a lenient connection."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Raw, Struct

from mew.protocol.codec import fields_in
from mew.protocol.envelope import PROTOCOL, ParticipantId
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json, encode_json

__all__ = ["Completed", "complete", "fill"]

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
