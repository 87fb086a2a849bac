"""PURE. Compatibility with clients of the TypeScript implementation.

They open any path and send a join as their first frame, some of them with a token in the handshake as well; after it
their envelopes may lack the fields that the gateway knows anyway. Only a connection that joined this way is treated so.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw, Struct

from mew.gateway.room.admission import fill
from mew.protocol.codec import fields_in, repeats_a_field
from mew.protocol.envelope import PROTOCOL, ParticipantId, is_reserved_id
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.json import decode_json, encode_json

__all__ = ["JoinFrame", "claim_problem", "complete", "is_heartbeat", "is_join", "read_join"]

_JOIN_KIND = "system/join"
_HEARTBEAT_KIND = "system/heartbeat"
_NAMES_OF_PARTICIPANT = ("participantId", "participant_id", "participant")


class JoinFrame(Struct, frozen=True):
    """A first frame: which space, with which token, and who the client believes it is."""

    space: str | None
    token: str
    claimed: str | None


def is_join(received: bytes) -> bool:
    """Whether this frame is a join, for a connection that brought its token in the handshake."""
    if b"join" not in received:
        return False
    try:
        said = decode_json(received)
    except ProtocolError:
        return False
    return isinstance(said, dict) and (said.get("type") == "join" or said.get("kind") == _JOIN_KIND)


def read_join(received: bytes, token: str | None = None) -> JoinFrame:
    """Read `{"type": "join", …}` or `{"kind": "system/join", "payload": {…}}`; `token` is that of the handshake.

    Raises:
        ProtocolError: it is neither, speaks another version, or there is no token.
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
    token = fields.get("token", token)
    if not isinstance(token, str) or not token:
        raise ProtocolError("the join has no token")
    return JoinFrame(_text(fields, "space"), token, _text(fields, *_NAMES_OF_PARTICIPANT))


def claim_problem(claimed: str | None, who: ParticipantId, is_known: Callable[[str], bool]) -> str | None:
    """Why the holder of `who`'s token may not call itself what its join claims; None if it may.

    Names that clients make up are nobody's, and are read as `who`.
    """
    if claimed is None or claimed == who:
        return None
    if is_reserved_id(claimed):
        return f"{claimed[:64]!r} is the gateway's, not a participant's"
    return f"the token is not {claimed[:64]!r}'s" if is_known(claimed) else None


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
