"""Streams (§3.10): who owns, writes and reads. Their data never enters the log; this only says where it may go."""

from datetime import datetime
from typing import Any, Final

from msgspec import UNSET, Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind, StreamClose, StreamRequest, StreamTransfer, StreamWriter

from . import holdings, pauses
from .decisions import Decision, Deliver, RefusalDetails
from .entries import Entry, Submission
from .state import SpaceState, StreamId, StreamState, signed

__all__ = [
    "FrameRoute",
    "check_close",
    "check_request",
    "check_transfer",
    "check_writer",
    "close",
    "close_owned",
    "forget_writer",
    "grant_write",
    "request",
    "revoke_write",
    "route",
    "shown_to",
    "transfer",
]

_REQUEST_BYTES_MAX: Final = 8192
_OURS: Final = frozenset({"stream_id", "owner", "authorized_writers", "created"})


class FrameRoute(Struct, frozen=True):
    """Where a frame goes: to `targets`, or to everyone; never back to its writer."""

    targets: tuple[ParticipantId, ...] | None


def route(
    state: SpaceState, at: datetime, writer: ParticipantId, stream_id: str
) -> FrameRoute | RefusalDetails:
    stream = state.streams.get(StreamId(stream_id))
    if stream is None:
        return _unknown(stream_id)
    if writer not in stream.writers:
        message = f"{writer!r} may not write to stream {stream_id!r}"
        return RefusalDetails(Refusal.UNAUTHORIZED_STREAM_WRITE, message, stream_id=stream_id)
    return pauses.silenced(state, at, writer, "") or FrameRoute(stream.targets)


def shown_to(state: SpaceState, who: ParticipantId) -> list[dict[str, Any]]:
    """The open streams as the welcome lists them: with `delivery: addressed`, those that concern `who`."""
    return [
        stream.shown()
        for stream in state.streams.values()
        if state.rules.delivery != "addressed" or stream.targets is None or who in _concerned(stream)
    ]


def check_request(
    state: SpaceState, at: datetime, envelope: Envelope, asked: StreamRequest
) -> RefusalDetails | None:
    if len(state.streams) >= state.rules.streams_max:
        return RefusalDetails(
            Refusal.LIMIT_REACHED, f"this space has {state.rules.streams_max} streams open, its limit"
        )
    refused = _check_owned_max(state, ParticipantId(envelope.sender))
    if refused is not None:
        return refused
    if len(bytes(envelope.payload)) > _REQUEST_BYTES_MAX:  # every welcome shows all of every stream
        return RefusalDetails(
            Refusal.TOO_LARGE, f"the payload of a stream/request may have {_REQUEST_BYTES_MAX} bytes"
        )
    return None


def request(state: SpaceState, entry: Entry, sent: Submission, asked: StreamRequest) -> list[Decision]:
    writers: tuple[ParticipantId, ...] = (sent.who,)
    if asked.direction == "download":
        writers = tuple(ParticipantId(who) for who in sent.envelope.to if holdings.is_known(state, who))
    said = sent.envelope.content
    stream = StreamState(
        id=StreamId(f"stream-{entry.seq}"),
        open_id=EnvelopeId(""),
        owner=sent.who,
        writers=writers,
        targets=_targets(state, sent, asked),
        created=entry.at,
        requested={name: value for name, value in said.items() if name not in _OURS},
    )
    opened = signed(
        state,
        entry,
        kind=Kind.STREAM_OPEN,
        payload=stream.shown(),
        to=(sent.who,),
        correlation_id=(sent.envelope.id,),
    )
    state.streams[stream.id] = _with(stream, open_id=EnvelopeId(opened.id))
    return [Deliver.one(opened, _audience(state, sent.who))]


def check_close(
    state: SpaceState, at: datetime, envelope: Envelope, asked: StreamClose
) -> RefusalDetails | None:
    stream = _named(state, envelope, asked)
    if stream is None:
        # A participant may announce a stream of its own with a `stream/open`, which opens nothing here.
        if any(state.recent.get(about) == envelope.sender for about in envelope.correlation_id):
            return None
        named = asked.stream_id if asked.stream_id is not UNSET else ", ".join(envelope.correlation_id)
        return _unknown(named)
    return _unless_owner(stream, envelope)


def close(state: SpaceState, entry: Entry, sent: Submission, asked: StreamClose) -> list[Decision]:
    stream = _named(state, sent.envelope, asked)
    if stream is not None:
        del state.streams[stream.id]
    return []


def close_owned(state: SpaceState, entry: Entry, who: ParticipantId) -> list[Decision]:
    """The owner is gone: the gateway closes its streams."""
    decisions: list[Decision] = []
    for stream in tuple(state.streams.values()):
        if stream.owner != who:
            continue
        del state.streams[stream.id]
        payload = {"stream_id": stream.id, "reason": "owner_left"}
        cause = (stream.open_id,)
        closed = signed(state, entry, kind=Kind.STREAM_CLOSE, payload=payload, correlation_id=cause)
        concerned = None if stream.targets is None else _concerned(stream)
        decisions.append(Deliver.one(closed, concerned if state.rules.delivery == "addressed" else None))
    return decisions


def forget_writer(state: SpaceState, who: ParticipantId) -> None:
    """Who is removed and comes back is nobody's writer any more."""
    for stream in tuple(state.streams.values()):
        if who in stream.writers:
            state.streams[stream.id] = _with(stream, writers=_less(stream.writers, who))


def check_writer(
    state: SpaceState, at: datetime, envelope: Envelope, asked: StreamWriter
) -> RefusalDetails | None:
    return _check_owned(state, envelope, asked.stream_id, asked.participant_id)


def grant_write(state: SpaceState, entry: Entry, sent: Submission, asked: StreamWriter) -> list[Decision]:
    stream = state.streams[StreamId(asked.stream_id)]
    writers = _added(stream.writers, ParticipantId(asked.participant_id))
    return _rewritten(state, entry, sent, asked, Kind.STREAM_WRITE_GRANTED, writers)


def revoke_write(state: SpaceState, entry: Entry, sent: Submission, asked: StreamWriter) -> list[Decision]:
    stream = state.streams[StreamId(asked.stream_id)]
    writers = _less(stream.writers, ParticipantId(asked.participant_id))
    return _rewritten(state, entry, sent, asked, Kind.STREAM_WRITE_REVOKED, writers)


def check_transfer(
    state: SpaceState, at: datetime, envelope: Envelope, asked: StreamTransfer
) -> RefusalDetails | None:
    refused = _check_owned(state, envelope, asked.stream_id, asked.new_owner)
    if refused is None and asked.new_owner not in state.members:
        refused = RefusalDetails(Refusal.UNKNOWN_PARTICIPANT, f"{asked.new_owner!r} is not connected")
    if refused is None and asked.new_owner != envelope.sender:
        refused = _check_owned_max(state, ParticipantId(asked.new_owner))
    return refused


def transfer(state: SpaceState, entry: Entry, sent: Submission, asked: StreamTransfer) -> list[Decision]:
    """The new owner takes the old one's place, also as a writer where the old one was one."""
    stream = state.streams[StreamId(asked.stream_id)]
    new_owner = ParticipantId(asked.new_owner)
    writers = stream.writers
    if stream.owner in writers:
        writers = _added(_less(writers, stream.owner), new_owner)
    state.streams[stream.id] = _with(stream, owner=new_owner, writers=writers)
    payload = {
        "stream_id": stream.id,
        "previous_owner": stream.owner,
        "new_owner": new_owner,
        "authorized_writers": writers,
    }
    return [_told(state, entry, sent, Kind.STREAM_TRANSFERRED, payload, new_owner)]


def _rewritten(
    state: SpaceState,
    entry: Entry,
    sent: Submission,
    asked: StreamWriter,
    kind: str,
    writers: tuple[ParticipantId, ...],
) -> list[Decision]:
    stream = state.streams[StreamId(asked.stream_id)]
    state.streams[stream.id] = _with(stream, writers=writers)
    payload = {
        "stream_id": stream.id,
        "participant_id": asked.participant_id,
        "authorized_writers": writers,
    }
    return [_told(state, entry, sent, kind, payload, ParticipantId(asked.participant_id))]


def _told(
    state: SpaceState,
    entry: Entry,
    sent: Submission,
    kind: str,
    payload: dict[str, Any],
    other: ParticipantId,
) -> Deliver:
    to = tuple(dict.fromkeys((sent.who, other)))
    answer = signed(state, entry, kind=kind, payload=payload, to=to, correlation_id=(sent.envelope.id,))
    return Deliver.one(answer, _audience(state, *to))


def _audience(state: SpaceState, *named: ParticipantId) -> tuple[ParticipantId, ...] | None:
    return named if state.rules.delivery == "addressed" else None


def _check_owned(state: SpaceState, envelope: Envelope, stream_id: str, other: str) -> RefusalDetails | None:
    stream = state.streams.get(StreamId(stream_id))
    if stream is None:
        return _unknown(stream_id)
    refused = _unless_owner(stream, envelope)
    if refused is None and not holdings.is_known(state, other):
        refused = RefusalDetails(Refusal.UNKNOWN_PARTICIPANT, f"there is no participant {other!r}")
    return refused


def _unless_owner(stream: StreamState, envelope: Envelope) -> RefusalDetails | None:
    if stream.owner == envelope.sender:
        return None
    return RefusalDetails(
        Refusal.NOT_STREAM_OWNER, f"stream {stream.id!r} is {stream.owner!r}'s, not {envelope.sender!r}'s"
    )


def _named(state: SpaceState, envelope: Envelope, asked: StreamClose) -> StreamState | None:
    if asked.stream_id is not UNSET:
        return state.streams.get(StreamId(asked.stream_id))
    for stream in state.streams.values():
        if stream.open_id in envelope.correlation_id:
            return stream
    return None


def _unknown(stream_id: str) -> RefusalDetails:
    return RefusalDetails(Refusal.UNKNOWN_STREAM, f"there is no open stream {stream_id[:128]!r}")


def _targets(state: SpaceState, sent: Submission, asked: StreamRequest) -> tuple[ParticipantId, ...] | None:
    """Who reads: those the request names, or everyone.

    With `delivery: addressed`, a request that names participants in `to` alone is not for the others to read.
    """
    if asked.target is not UNSET:
        named = [asked.target] if isinstance(asked.target, str) else asked.target
        return tuple(map(ParticipantId, dict.fromkeys(named)))
    if state.rules.delivery == "addressed":
        addressed = [who for who in sent.envelope.to if holdings.is_known(state, who)]
        if addressed:
            return tuple(map(ParticipantId, dict.fromkeys((*addressed, sent.who))))
    return None


def _concerned(stream: StreamState) -> tuple[ParticipantId, ...]:
    """Owner, writers and named readers."""
    return tuple(dict.fromkeys((stream.owner, *stream.writers, *(stream.targets or ()))))


def _check_owned_max(state: SpaceState, owner: ParticipantId) -> RefusalDetails | None:
    own = sum(stream.owner == owner for stream in state.streams.values())
    if own < state.rules.streams_each_max:
        return None
    return RefusalDetails(
        Refusal.LIMIT_REACHED, f"{owner!r} has {own} streams open, the limit of a participant"
    )


def _added(writers: tuple[ParticipantId, ...], who: ParticipantId) -> tuple[ParticipantId, ...]:
    return writers if who in writers else (*writers, who)


def _less(writers: tuple[ParticipantId, ...], who: ParticipantId) -> tuple[ParticipantId, ...]:
    return tuple(writer for writer in writers if writer != who)


def _with(
    stream: StreamState,
    *,
    open_id: EnvelopeId | None = None,
    owner: ParticipantId | None = None,
    writers: tuple[ParticipantId, ...] | None = None,
) -> StreamState:
    return StreamState(
        id=stream.id,
        open_id=stream.open_id if open_id is None else open_id,
        owner=stream.owner if owner is None else owner,
        writers=stream.writers if writers is None else writers,
        targets=stream.targets,
        created=stream.created,
        requested=stream.requested,
    )
