"""PURE. One participant's view of its space over all its connections: who I am, who is here, what is in flight.

Bytes in, events out: `receive` reads a message and returns what is to be done about it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from mew.protocol.capability import AmbiguousPayload, Capability, CapabilitySet
from mew.protocol.codec import decode
from mew.protocol.envelope import GATEWAY, Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import InvalidCapability, ProtocolError, Refusal
from mew.protocol.kinds import (
    PAYLOADS,
    RESERVED_PREFIX,
    ErrorPayload,
    Grant,
    Kind,
    McpResponse,
    Pause,
    Presence,
    PresentParticipant,
    Revoke,
    SpaceName,
    Welcome,
)

from .outgoing import Outgoing

__all__ = [
    "ClientSession",
    "EnvelopeAccepted",
    "EnvelopeDropped",
    "EnvelopeReceived",
    "EnvelopeRefused",
    "Gap",
    "Misconduct",
    "Roster",
    "SessionEvent",
]

_GRANTS_MAX: Final = 4096
_HELD_MAX: Final = (
    1024  # nobody says when a grant to another ends by itself, so they could add up without end
)


class Roster(Mapping[ParticipantId, CapabilitySet]):
    """Those who are here, each with what it holds, oneself included.

    One's own are what the welcome says. Those of others follow from what everyone sees: their welcome or join, and the
    grants and revocations since; of a grant older than that, only its pattern is not known.
    """

    def __init__(self) -> None:
        self._held: dict[ParticipantId, CapabilitySet] = {}
        self._grants: dict[EnvelopeId, tuple[ParticipantId, tuple[Capability, ...]]] = {}

    def __getitem__(self, who: ParticipantId) -> CapabilitySet:
        return self._held[who]

    def __iter__(self) -> Iterator[ParticipantId]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def welcomed(self, welcome: Welcome) -> None:
        """The whole list, and the last word on oneself."""
        self._held = {
            ParticipantId(member.id): _holdings(member) for member in (*welcome.participants, welcome.you)
        }

    def present(self, presence: Presence) -> None:
        who = ParticipantId(presence.participant.id)
        if presence.event == "join":
            self._held[who] = _holdings(presence.participant)
        else:
            self._held.pop(who, None)

    def granted(self, envelope: Envelope, grant: Grant) -> None:
        who = ParticipantId(grant.recipient)
        given = _parsed(grant.capabilities)
        if len(self._grants) >= _GRANTS_MAX:
            del self._grants[next(iter(self._grants))]
        self._grants[EnvelopeId(envelope.id)] = (who, given)
        if who in self._held:
            held = tuple(self._held[who])
            new = (capability for capability in given if capability not in held)
            self._held[who] = CapabilitySet((*held, *new)[-_HELD_MAX:])

    def revoked(self, revoke: Revoke) -> None:
        who = ParticipantId(revoke.recipient)
        if revoke.grant_id is not UNSET:
            _, taken = self._grants.pop(EnvelopeId(revoke.grant_id), (who, ()))
            self._keep(who, lambda held: None if held in taken else held)
        if revoke.capabilities is not UNSET:
            for pattern in _parsed(revoke.capabilities):
                self._keep(who, lambda held, pattern=pattern: held.without(pattern))

    def _keep(self, who: ParticipantId, left: Any) -> None:
        if who in self._held:
            kept = (left(capability) for capability in self._held[who])
            self._held[who] = CapabilitySet(capability for capability in kept if capability is not None)


def _parsed(written: Iterable[Any] | UnsetType) -> tuple[Capability, ...]:
    """Those that compile: a gateway of another make may list what we cannot read, and that is no right we could use."""
    capabilities: list[Capability] = []
    for item in () if written is UNSET else written:
        try:
            capabilities.append(Capability.parse(item))
        except InvalidCapability:
            continue
    return tuple(capabilities)


def _holdings(member: PresentParticipant) -> CapabilitySet:
    return CapabilitySet(_parsed(member.capabilities))


# Said to one alone, and not part of what everyone sees: nothing comes "after" them.
_PRIVATE: Final = frozenset({Kind.WELCOME, Kind.ERROR, Kind.INVITE_ACK})
# Meaningless without the envelope they are about (§3.1.2, §3.3, §3.4).
_CORRELATED: Final = frozenset(
    {Kind.MCP_RESPONSE, Kind.MCP_WITHDRAW, Kind.MCP_REJECT, Kind.CHAT_ACKNOWLEDGE, Kind.CHAT_CANCEL}
)
_OFFENDERS_MAX: Final = 1024
_RETRY_S: Final = 0.05


class EnvelopeAccepted(Struct, frozen=True, gc=False):
    """The gateway has taken what we sent; it stands in the order."""

    id: EnvelopeId


class EnvelopeRefused(Struct, frozen=True):
    """The gateway has refused what we sent, for good."""

    id: EnvelopeId
    problem: ErrorPayload


class EnvelopeReceived(Struct, frozen=True):
    """An envelope, with its payload as the struct of its kind; None where the kind is not one of ours."""

    envelope: Envelope
    payload: Any


class EnvelopeDropped(Struct, frozen=True):
    """Somebody sent what its kind does not allow; it is dropped (§4.3)."""

    sender: ParticipantId
    envelope_id: EnvelopeId
    why: str


SessionEvent = EnvelopeAccepted | EnvelopeRefused | EnvelopeReceived | EnvelopeDropped


class Gap(Struct, frozen=True):
    """Time without a connection. `complete`: everything that was shown meanwhile has been replayed."""

    lost_at: datetime
    found_at: datetime
    after: EnvelopeId | None
    complete: bool


class Misconduct(Struct):
    """How often one participant sent what had to be dropped, and what the last of it was."""

    count: int
    envelope_id: EnvelopeId
    why: str


class ClientSession:
    """Times are seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self.me = ParticipantId("")
        self.space = SpaceName(id="")
        self.roster = Roster()
        self.outgoing = Outgoing()
        self.after: EnvelopeId | None = None
        """The last envelope seen: what a reconnect asks to have replayed comes after it."""
        self.pause_id: EnvelopeId | None = None
        """The `participant/pause` that holds us back."""
        self.misconduct: dict[ParticipantId, Misconduct] = {}

    @property
    def capabilities(self) -> CapabilitySet:
        return self.roster.get(self.me, CapabilitySet())

    def may(self, kind: str, to: Sequence[str], payload: Any) -> bool:
        """Whether the gateway would let this through, as far as capabilities go: it matches as the gateway does."""
        try:
            return not kind.startswith(RESERVED_PREFIX) and self.capabilities.fits(kind, to, lambda: payload)
        except AmbiguousPayload:
            return False

    def welcome(self, received: bytes) -> EnvelopeReceived:
        """The first message of a connection.

        Raises:
            ProtocolError: it is no welcome.
        """
        envelope = decode(received)
        if envelope.kind != Kind.WELCOME or envelope.sender != GATEWAY:
            raise ProtocolError(f"expected {Kind.WELCOME}, got {envelope.kind!r}")
        welcome = envelope.read(Welcome)
        self._welcomed(welcome)
        return EnvelopeReceived(envelope, welcome)

    def receive(self, received: bytes, now_s: float) -> list[SessionEvent]:
        """What an envelope means for us, in the order it is to be handled.

        Raises:
            ProtocolError: the bytes are no envelope. No gateway of ours sends such.
        """
        news: list[SessionEvent] = []
        echo = self.outgoing.echoed(received)
        envelope = decode(received) if echo is None else echo
        kind = envelope.kind
        if kind == Kind.WELCOME and envelope.to and self.me not in envelope.to:
            return news  # another's: to take it for ours would change who we are (§3.8.1)
        if kind not in _PRIVATE:
            self.after = EnvelopeId(envelope.id)
        if echo is not None or (envelope.sender == self.me and self.outgoing.accepted(envelope.id)):
            news.append(EnvelopeAccepted(EnvelopeId(envelope.id)))
        shape = PAYLOADS.get(kind)
        try:
            payload = None if shape is None else envelope.read(shape)
            if kind in _CHECKED or shape is None:
                _check(envelope, payload)
        except ProtocolError as error:
            news.append(self._malformed(envelope, str(error)))
            return news
        if kind in _NOTED:
            self._note(envelope, payload, now_s)
        if isinstance(payload, ErrorPayload):
            news.extend(self._declined(envelope, payload, now_s))
        news.append(EnvelopeReceived(envelope, payload))
        return news

    def _welcomed(self, welcome: Welcome) -> None:
        self.me = ParticipantId(welcome.you.id)
        self.roster.welcomed(welcome)
        if welcome.space is not UNSET:
            self.space = welcome.space

    def _note(self, envelope: Envelope, payload: Any, now_s: float) -> None:
        """Keep what we know of the space current."""
        match payload:
            case Welcome():
                self._welcomed(payload)
            case Presence():
                self.roster.present(payload)
            case Grant():
                self.roster.granted(envelope, payload)
            case Revoke():
                self.roster.revoked(payload)
            case Pause() if self.me in envelope.to:
                self._paused(envelope, payload, now_s)
            case _ if envelope.kind == Kind.RESUME and self._is_my_resume(envelope):
                self.pause_id = None
                self.outgoing.resumed()

    def _paused(self, envelope: Envelope, pause: Pause, now_s: float) -> None:
        """A second pause may prolong the first, not shorten it: so the gateway has it too."""
        until_s = inf if pause.timeout_seconds is UNSET else now_s + pause.timeout_seconds
        if self.outgoing.paused_until is None or until_s >= self.outgoing.paused_until:
            self.outgoing.paused_until = until_s
            self.pause_id = EnvelopeId(envelope.id)

    def _is_my_resume(self, envelope: Envelope) -> bool:
        return self.me in envelope.to or (not envelope.to and self.pause_id in envelope.correlation_id)

    def _declined(self, envelope: Envelope, problem: ErrorPayload, now_s: float) -> list[SessionEvent]:
        """What a `system/error` says of envelopes of ours: not now, already accepted, or no."""
        news: list[SessionEvent] = []
        for envelope_id in map(EnvelopeId, envelope.correlation_id):
            if problem.error == Refusal.RATE_LIMITED:
                wait_s = _RETRY_S if problem.retry_after_s is UNSET else problem.retry_after_s
                self.outgoing.too_fast(envelope_id, now_s, wait_s)
            elif problem.error == Refusal.PAUSED:
                self.outgoing.paused(envelope_id, now_s)
            elif problem.error == Refusal.DUPLICATE_ID and self.outgoing.repeated(envelope_id):
                self.outgoing.give_up(envelope_id)
                news.append(EnvelopeAccepted(envelope_id))
            elif self.outgoing.give_up(envelope_id):
                news.append(EnvelopeRefused(envelope_id, problem))
        return news

    def _malformed(self, envelope: Envelope, why: str) -> EnvelopeDropped:
        sender, envelope_id = ParticipantId(envelope.sender), EnvelopeId(envelope.id)
        before = self.misconduct.pop(sender, None)
        if len(self.misconduct) >= _OFFENDERS_MAX:
            del self.misconduct[next(iter(self.misconduct))]
        count = 1 if before is None else before.count + 1
        self.misconduct[sender] = Misconduct(count, envelope_id, why)
        return EnvelopeDropped(sender, envelope_id, why)


_CHECKED: Final = _CORRELATED | {Kind.WELCOME, Kind.PRESENCE, Kind.ERROR}
_NOTED: Final = frozenset({Kind.WELCOME, Kind.PRESENCE, Kind.GRANT, Kind.REVOKE, Kind.PAUSE, Kind.RESUME})


def _check(envelope: Envelope, payload: Any) -> None:
    """That the kind is right for what it carries (§4.3, §8.2).

    Raises:
        ProtocolError: it is not.
    """
    kind = envelope.kind
    if kind in _CORRELATED and not envelope.correlation_id:
        raise ProtocolError(f"{kind} names nothing in 'correlation_id'", Refusal.INVALID_PAYLOAD)
    if isinstance(payload, McpResponse) and (payload.result is UNSET) == (payload.error is UNSET):
        raise ProtocolError(f"{kind} has neither or both of 'result' and 'error'", Refusal.INVALID_PAYLOAD)
    if kind.startswith("system/") and envelope.sender != GATEWAY:
        raise ProtocolError(f"{kind} is the gateway's to say", Refusal.RESERVED_KIND)
