"""A space as data: everything a snapshot must hold, and the envelopes the gateway signs."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, NewType

from msgspec import Raw, Struct

from mew.protocol.capability import Capability, CapabilitySet
from mew.protocol.envelope import GATEWAY, PROTOCOL, Envelope, EnvelopeId, ParticipantId
from mew.protocol.json import encode_json

from .entries import ConnectionId, Entry, Rules, StoredDecoder, to_json

__all__ = [
    "GATEWAY_ID_PREFIX",
    "ActiveGrant",
    "ActivePause",
    "Invitation",
    "SpaceState",
    "StreamId",
    "StreamState",
    "is_gateway_id",
    "signed",
]

StreamId = NewType("StreamId", str)

GATEWAY_ID_PREFIX: Final = "gw-"
_PIECE_IDS: Final = 4096
_GATEWAY_ID: Final = re.compile(rf"{GATEWAY_ID_PREFIX}\w+-\d+\.\d+")


class ActiveGrant(Struct, frozen=True):
    """One grant. `via`: the grants through which `by` held what it gave; empty where it held it of itself."""

    id: EnvelopeId
    by: ParticipantId
    recipient: ParticipantId
    capabilities: tuple[Capability, ...]
    at: datetime
    expires_at: datetime | None = None
    via: tuple[EnvelopeId, ...] = ()


class Invitation(Struct, frozen=True):
    """What `by` gave the invited to start with is a grant like any other, under the invite's id."""

    by: ParticipantId
    token_hash: str


class ActivePause(Struct, frozen=True):
    """`until` None: until somebody resumes."""

    envelope_id: EnvelopeId
    by: ParticipantId
    until: datetime | None = None


class StreamState(Struct, frozen=True):
    """`requested` is the payload of the request; `targets` None: everyone reads."""

    id: StreamId
    open_id: EnvelopeId
    owner: ParticipantId
    writers: tuple[ParticipantId, ...]
    targets: tuple[ParticipantId, ...] | None
    created: datetime
    requested: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """How the welcome and `stream/open` describe it: the gateway's word over the requester's."""
        return {
            "encoding": "binary",
            **self.requested,
            "stream_id": self.id,
            "owner": self.owner,
            "authorized_writers": self.writers,
            "created": self.created,
        }


@dataclass(slots=True)
class SpaceState:
    """Everything the entries so far amount to. The fields that compare are what a snapshot holds."""

    seq: int = 0
    changed_at: int = 0  # the last entry that changed any of what follows, ids aside
    epoch: str = ""
    rules: Rules = field(default_factory=lambda: Rules(id=""))
    connections: dict[ConnectionId, ParticipantId] = field(default_factory=dict)
    members: dict[ParticipantId, int] = field(default_factory=dict)  # in order of joining
    identities: dict[ParticipantId, tuple[Capability, ...]] = field(default_factory=dict)
    invited: dict[ParticipantId, Invitation] = field(default_factory=dict)
    kicked: dict[ParticipantId, EnvelopeId] = field(default_factory=dict)
    dead_tokens: dict[str, ParticipantId] = field(default_factory=dict)
    cuts: dict[ParticipantId, tuple[Capability, ...]] = field(default_factory=dict)
    left: dict[ParticipantId, tuple[Capability, ...]] = field(default_factory=dict)  # of its own, after cuts
    grants: dict[EnvelopeId, ActiveGrant] = field(default_factory=dict)
    paused: dict[ParticipantId, ActivePause] = field(default_factory=dict)
    shut_down: dict[ParticipantId, EnvelopeId] = field(default_factory=dict)
    streams: dict[StreamId, StreamState] = field(default_factory=dict)
    recent: dict[str, str] = field(default_factory=dict)  # ids and who sent them
    # Derived from the above, kept for speed; `holdings.changed` forgets what was held and shown.
    connected: dict[ParticipantId, tuple[ConnectionId, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    recent_order: deque[str] = field(default_factory=deque, compare=False, repr=False)
    expires_next: datetime | None = field(default=None, compare=False, repr=False)  # no grant ends before
    held: dict[ParticipantId, CapabilitySet] = field(default_factory=dict, compare=False, repr=False)
    shown: dict[ParticipantId, Raw] = field(default_factory=dict, compare=False, repr=False)
    made: int = field(default=0, compare=False, repr=False)  # envelopes the gateway made of this entry

    def snapshot(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The snapshot as of now, in parts that are made as they are asked for, be it later and elsewhere.

        To take it costs a millisecond or two, each part less: the ids remembered are nearly all of it.
        """
        kept = {name: getattr(self, name) for name in _KEPT if name != "recent"}
        kept = {name: dict(value) if isinstance(value, dict) else value for name, value in kept.items()}
        return _pieces(kept, tuple(self.recent), tuple(self.recent.values()))

    @classmethod
    def restore(cls, snapshot: bytes) -> "SpaceState":
        """The state of this snapshot.

        Raises:
            ValueError: it is none.
        """
        state: SpaceState = _states.read(snapshot)
        state.expires_next = state.first_expiry()
        state.recent_order.extend(state.recent)
        for connection, who in state.connections.items():
            state.connected[who] = (*state.connected.get(who, ()), connection)
        return state

    def connect(self, connection: ConnectionId, who: ParticipantId) -> None:
        self.connections[connection] = who
        self.connected[who] = (*self.connected.get(who, ()), connection)

    def disconnect(self, connection: ConnectionId) -> ParticipantId | None:
        """Whose connection it was; None: nobody's."""
        who = self.connections.pop(connection, None)
        if who is not None:
            left = tuple(other for other in self.connected.pop(who) if other != connection)
            if left:
                self.connected[who] = left
        return who

    def first_expiry(self) -> datetime | None:
        return min((g.expires_at for g in self.grants.values() if g.expires_at is not None), default=None)


_KEPT: Final = tuple(one.name for one in fields(SpaceState) if one.compare)
_states: Final = StoredDecoder(SpaceState)


def _pieces(kept: dict[str, Any], ids: tuple[str, ...], senders: tuple[str, ...]) -> Iterator[bytes]:
    yield to_json(kept)[:-1] + b',"recent":{'
    for at in range(0, len(ids), _PIECE_IDS):
        end = at + _PIECE_IDS
        some = to_json(dict(zip(ids[at:end], senders[at:end], strict=True)))[1:-1]
        yield b"," + some if at else some
    yield b"}}"


def is_gateway_id(envelope_id: str) -> bool:
    """Whether the gateway may make such an id, in this life of the space or another."""
    return _GATEWAY_ID.fullmatch(envelope_id) is not None


def signed(
    state: SpaceState,
    entry: Entry,
    *,
    kind: str,
    payload: Any,
    to: tuple[str, ...] = (),
    correlation_id: tuple[str, ...] = (),
) -> Envelope:
    """The next envelope that the gateway makes of an entry: on every node the same."""
    n, state.made = state.made, state.made + 1
    return Envelope(
        protocol=PROTOCOL,
        id=f"{GATEWAY_ID_PREFIX}{state.epoch}-{entry.seq}.{n}",
        ts=entry.at,
        sender=GATEWAY,
        to=to,
        kind=kind,
        correlation_id=correlation_id,
        payload=Raw(encode_json(payload)),
    )
