"""PURE. What clients of the TypeScript implementation do differently, all of it here.

They open any path and send a join as their first frame; after it their envelopes may lack the fields that the
gateway knows anyway. Only a connection that joined this way is treated so.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct

from mew.protocol.codec import fields_in, repeats_a_field
from mew.protocol.envelope import PROTOCOL, ParticipantId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.json import decode_json, encode_json

from .partial import fill

__all__ = ["Join", "complete", "is_heartbeat", "read_join"]

_JOIN_KIND = "system/join"
_HEARTBEAT_KIND = "system/heartbeat"
_NAMES_OF_PARTICIPANT = ("participantId", "participant_id", "participant")


class Join(Struct, frozen=True):
    """A first frame: which space, with which token, and who the client believes it is."""

    space: str | None
    token: str
    claimed: str | None


def read_join(received: bytes) -> Join:
    """Read `{"type": "join", …}` or `{"kind": "system/join", "payload": {…}}`.

    Raises:
        ProtocolError: it is neither, speaks another version, or is without a token.
    """
    said = decode_json(received)
    if not isinstance(said, dict):
        raise ProtocolError("expected a join as the first frame, or a token in the Authorization header")
    if said.get("type") == "join":
        fields = said
    elif said.get("kind") == _JOIN_KIND:
        payload = said.get("payload")
        fields = {**said, **payload} if isinstance(payload, dict) else said
    else:
        raise ProtocolError("expected a join as the first frame, or a token in the Authorization header")
    if said.get("protocol", PROTOCOL) != PROTOCOL:
        raise ProtocolError(f"this gateway speaks {PROTOCOL!r}", Refusal.WRONG_VERSION)
    token = fields.get("token")
    if not isinstance(token, str) or not token:
        raise ProtocolError("the join has no token")
    return Join(_text(fields, "space"), token, _text(fields, *_NAMES_OF_PARTICIPANT))


def complete(received: bytes, who: ParticipantId, claimed: str | None, *, new_id: str, ts: str) -> bytes:
    """The envelope with what it left out filled in, each value as the bytes that came.

    What is no object or repeats a field is for the codec to refuse, as it came.
    """
    try:
        fields = fields_in(received)
        rewritten = _rewritten(fields, who, claimed)
    except ProtocolError:
        return received
    if rewritten:
        if repeats_a_field(received, fields):
            return received
        fields |= rewritten
        received = encode_json(fields)
    return fill(received, fields, who, new_id=new_id, ts=ts)


def is_heartbeat(received: bytes) -> bool:
    """Their clients send one every half minute and take an answer for a failure."""
    if _HEARTBEAT_KIND.encode() not in received:
        return False
    said = decode_json(received)
    return isinstance(said, dict) and said.get("kind") == _HEARTBEAT_KIND


def _rewritten(fields: Mapping[str, Raw], who: ParticipantId, claimed: str | None) -> dict[str, Raw]:
    """A lone `correlation_id` as an array, and the id that the client made up for itself as its own."""
    rewritten: dict[str, Raw] = {}
    named = bytes(fields.get("correlation_id", b""))
    if named.startswith(b'"'):
        rewritten["correlation_id"] = Raw(b"[" + named + b"]")
    if claimed not in (None, who) and "from" in fields and decode_json(bytes(fields["from"])) == claimed:
        rewritten["from"] = Raw(encode_json(who))
    return rewritten


def _text(fields: dict[str, Any], *names: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return None
