"""PURE. What clients of the TypeScript implementation do differently, all of it here.

They open any path and send a join as their first frame; after it their envelopes may lack the fields that the
gateway knows anyway. Only a connection that joined this way is treated so.
"""

from typing import Any

from msgspec import Struct

from mew.protocol.codec import decode_json, encode_json
from mew.protocol.envelope import PROTOCOL, ParticipantId
from mew.protocol.errors import ProtocolError

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
        ProtocolError: it is neither, or without a token.
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
    token = fields.get("token")
    if not isinstance(token, str) or not token:
        raise ProtocolError("the join has no token")
    return Join(_text(fields, "space"), token, _text(fields, *_NAMES_OF_PARTICIPANT))


def complete(received: bytes, who: ParticipantId, claimed: str | None, *, new_id: str, ts: str) -> bytes:
    """The envelope with what it left out filled in; as it came if there is nothing to fill in.

    Raises:
        ProtocolError: not JSON.
    """
    said = decode_json(received)
    if type(said) is not dict:  # nor one that repeats a field: that is for the codec to refuse
        return received
    given = {"protocol": PROTOCOL, "id": new_id, "ts": ts, "from": who}
    filled: dict[str, Any] = {**given, **said}
    if claimed is not None and filled["from"] == claimed:
        filled["from"] = who
    if isinstance(filled.get("correlation_id"), str):
        filled["correlation_id"] = [filled["correlation_id"]]
    return received if filled == said else encode_json(filled)


def is_heartbeat(received: bytes) -> bool:
    """Their clients send one every half minute and take an answer for a failure."""
    if _HEARTBEAT_KIND.encode() not in received:
        return False
    said = decode_json(received)
    return isinstance(said, dict) and said.get("kind") == _HEARTBEAT_KIND


def _text(fields: dict[str, Any], *names: str) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return None
