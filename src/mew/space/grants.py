"""Grant and revoke (§3.6.1, §3.6.2, §3.6.6): nobody grants more than they hold; revocations cascade."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import UNSET

from mew.protocol.capability import Capability, CapabilitySet, ProofBudget, count_expensive
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import InvalidCapability, Refusal
from mew.protocol.kinds import Grant, Kind, Revoke

from . import holdings, presence
from .decisions import Decision, Deliver, RefusalDetails, WakeAt
from .entries import Entry, Submission
from .state import ActiveGrant, SpaceState, signed

__all__ = [
    "check_gift",
    "check_grant",
    "check_revoke",
    "expire_due",
    "give",
    "grant",
    "revoke",
    "settle",
    "take_back",
]

_GRANTS_MAX: Final = 4096
_CUTS_MAX: Final = 1024
_HELD_MAX: Final = 512  # all of it is in every welcome
_PATHS_MAX: Final = 64  # JSONPaths that one participant holds, where it is not the operator who says so
_PAYLOAD_BYTES_MAX: Final = 1 << 15
_ENGINES_MAX: Final = 64
_STEPS_MAX: Final = 100_000  # of proofs for one entry, some 100 ms
_STEPS_PER_GRANT: Final = 64  # where all there are may have to be looked at again


def check_grant(state: SpaceState, at: datetime, envelope: Envelope, asked: Grant) -> RefusalDetails | None:
    if not holdings.is_known(state, asked.recipient):
        return RefusalDetails(Refusal.UNKNOWN_PARTICIPANT, f"there is no participant {asked.recipient!r}")
    expires_at = _expiry(asked, at)
    if expires_at is not None and expires_at <= at:
        return RefusalDetails(Refusal.INVALID_PAYLOAD, "the grant would be over before it begins")
    return check_gift(state, envelope, ParticipantId(asked.recipient), asked.capabilities)


def check_gift(
    state: SpaceState, envelope: Envelope, recipient: ParticipantId, written: list[Any]
) -> RefusalDetails | None:
    """Refuse what does not compile, what is too much, and what is not proven to be inside what the giver holds."""
    giver = ParticipantId(envelope.sender)
    if EnvelopeId(envelope.id) in state.grants:  # a lenient sender's, or one older than the ids remembered
        return RefusalDetails(Refusal.DUPLICATE_ID, f"a grant {envelope.id!r} is still in force")
    if len(state.grants) >= _GRANTS_MAX:
        return RefusalDetails(
            Refusal.LIMIT_REACHED, f"a space holds at most {_GRANTS_MAX} grants; revoke some"
        )
    wanted = _parsed(envelope, written)
    if isinstance(wanted, RefusalDetails):
        return wanted
    would_hold = CapabilitySet((*holdings.held(state, recipient), *wanted))
    if len(would_hold) > _HELD_MAX or sum(held.size for held in would_hold) > holdings.BYTES_MAX:
        return RefusalDetails(
            Refusal.LIMIT_REACHED,
            f"{recipient!r} would hold more than {_HELD_MAX} capabilities, or {holdings.BYTES_MAX} bytes of them",
        )
    if sum(one.paths for one in wanted) and sum(held.paths for held in would_hold) > _PATHS_MAX:
        return RefusalDetails(
            Refusal.LIMIT_REACHED, f"{recipient!r} would hold more than {_PATHS_MAX} JSONPaths; revoke some"
        )
    own, effort = holdings.held(state, giver), ProofBudget(_STEPS_MAX)
    for capability in wanted:
        if not own.covers(capability, effort=effort):
            return RefusalDetails(
                Refusal.GRANT_EXCEEDS_OWN,
                f"{giver!r} cannot pass on {capability.source}: it is not provably inside what {giver!r} holds",
            )
    return None


def grant(state: SpaceState, entry: Entry, sent: Submission, asked: Grant) -> list[Decision]:
    recipient = ParticipantId(asked.recipient)
    expires_at = _expiry(asked, entry.at)
    give(state, entry, sent, recipient, asked.capabilities, expires_at)
    decisions = presence.rewelcome(state, entry, recipient)
    if expires_at is not None:
        decisions.append(WakeAt(expires_at))
    return decisions


def give(
    state: SpaceState,
    entry: Entry,
    sent: Submission,
    recipient: ParticipantId,
    written: list[Any],
    expires_at: datetime | None = None,
) -> None:
    """Write down a grant: the last in order, so that it rests only on what its giver holds now."""
    capabilities = tuple(Capability.parse(capability) for capability in written)
    made = ActiveGrant(
        id=EnvelopeId(sent.envelope.id),
        by=sent.who,
        recipient=recipient,
        capabilities=capabilities,
        at=entry.at,
        expires_at=expires_at,
        via=_chain(state, sent.who, capabilities),
    )
    state.grants[made.id] = made
    if expires_at is not None:
        state.expires_next = min(expires_at, state.expires_next or expires_at)


def check_revoke(state: SpaceState, at: datetime, envelope: Envelope, asked: Revoke) -> RefusalDetails | None:
    if not holdings.is_known(state, asked.recipient):
        return RefusalDetails(Refusal.UNKNOWN_PARTICIPANT, f"there is no participant {asked.recipient!r}")
    if (asked.grant_id is UNSET) == (asked.capabilities is UNSET):
        return RefusalDetails(
            Refusal.INVALID_PAYLOAD, "capability/revoke names either 'grant_id' or 'capabilities'"
        )
    if asked.capabilities is not UNSET:
        if len(state.cuts.get(ParticipantId(asked.recipient), ())) + len(asked.capabilities) > _CUTS_MAX:
            return RefusalDetails(
                Refusal.LIMIT_REACHED, f"{asked.recipient!r} has had {_CUTS_MAX} patterns revoked"
            )
        patterns = _parsed(envelope, asked.capabilities)
        if isinstance(patterns, RefusalDetails):
            return patterns
    elif asked.grant_id is not UNSET:
        granted = state.grants.get(EnvelopeId(asked.grant_id))
        if granted is None or granted.recipient != asked.recipient:
            return RefusalDetails(
                Refusal.UNKNOWN_GRANT, f"{asked.recipient!r} holds nothing by a grant {asked.grant_id!r}"
            )
    return None


def revoke(state: SpaceState, entry: Entry, sent: Submission, asked: Revoke) -> list[Decision]:
    recipient, effort = ParticipantId(asked.recipient), _settling(state)
    cuts: tuple[Capability, ...] = ()
    if asked.grant_id is not UNSET:
        del state.grants[EnvelopeId(asked.grant_id)]
    elif asked.capabilities is not UNSET:
        cuts = tuple(Capability.parse(written) for written in asked.capabilities)
        _cut(state, recipient, cuts, effort)
    return settle(state, entry, [recipient], cause=(sent.envelope.id,), cuts=cuts, effort=effort)


def settle(
    state: SpaceState,
    entry: Entry,
    lost: Sequence[ParticipantId],
    *,
    cause: tuple[str, ...] = (),
    cuts: tuple[Capability, ...] = (),
    effort: ProofBudget | None = None,
) -> list[Decision]:
    """`lost` hold less: take back what they granted on from it, and tell all who hold less what they hold now."""
    notices, reduced = take_back(state, entry, lost, cause=cause, cuts=cuts, effort=effort)
    return notices + [told for who in reduced for told in presence.rewelcome(state, entry, who)]


def take_back(
    state: SpaceState,
    entry: Entry,
    lost: Sequence[ParticipantId],
    *,
    cause: tuple[str, ...] = (),
    cuts: tuple[Capability, ...] = (),
    effort: ProofBudget | None = None,
) -> tuple[list[Decision], list[ParticipantId]]:
    """Take back what `lost` granted on, and so on down the chain: what to show, and who now holds less.

    A grant rests only on what was held before it, so one pass in the order they were made is enough, and two
    participants cannot keep each other's grants alive. What the `cuts` leave of a grant is kept. What is not
    proven to be held within the effort goes.
    """
    effort = _settling(state) if effort is None else effort
    before = _Before(state)
    reduced = dict.fromkeys(lost)
    notices: list[Decision] = []
    for granted in tuple(state.grants.values()):
        kept = granted.capabilities
        if granted.by in reduced:
            kept = _still_held(before.held(granted.by), kept, cuts, effort)
            kept = holdings.bounded(granted.capabilities, kept, before.room(granted.recipient))
        before.add(granted.recipient, kept)
        if kept == granted.capabilities:
            continue
        if kept:
            state.grants[granted.id] = _with(granted, kept)
        else:
            del state.grants[granted.id]
            notices.append(_revoked(state, entry, granted, "the granter no longer holds it", cause))
        reduced[granted.recipient] = None
    for who in reduced:
        holdings.changed(state, who)
    return notices, list(reduced)


def expire_due(state: SpaceState, entry: Entry) -> list[Decision]:
    """End the grants whose time is over, before anything else is decided at that moment."""
    due = [g for g in state.grants.values() if g.expires_at is not None and g.expires_at <= entry.at]
    notices: list[Decision] = []
    for granted in due:
        del state.grants[granted.id]
        notices.append(_revoked(state, entry, granted, "expired"))
    state.expires_next = state.first_expiry()
    return notices + settle(state, entry, [g.recipient for g in due], cause=tuple(g.id for g in due))


def _expiry(asked: Grant, at: datetime) -> datetime | None:
    ends = [] if asked.expires_at is UNSET else [asked.expires_at]
    if asked.ttl_seconds is not UNSET:
        ends.append(at + timedelta(seconds=asked.ttl_seconds))
    return min(ends, default=None)


def _chain(
    state: SpaceState, giver: ParticipantId, capabilities: tuple[Capability, ...]
) -> tuple[EnvelopeId, ...]:
    own, effort = CapabilitySet(holdings.base(state, giver)), ProofBudget(_STEPS_MAX)
    received = [granted for granted in state.grants.values() if granted.recipient == giver]
    via: dict[EnvelopeId, None] = {}
    for capability in capabilities:
        if own.covers(capability, effort=effort):
            continue
        alone = (g for g in received if CapabilitySet(g.capabilities).covers(capability, effort=effort))
        sources = [single] if (single := next(alone, None)) is not None else received  # only some together
        via.update((granted.id, None) for granted in sources)
    return tuple(via)


def _cut(state: SpaceState, who: ParticipantId, cuts: tuple[Capability, ...], effort: ProofBudget) -> None:
    """Carve the patterns out of all that `who` holds now; what it is granted later is not touched."""
    holdings.cut(state, who, cuts, effort)
    before = _Before(state)
    for granted in tuple(state.grants.values()):
        if granted.recipient != who:
            continue
        kept = holdings.narrowed(granted.capabilities, cuts, effort)
        kept = holdings.bounded(granted.capabilities, kept, before.room(who))
        before.add(who, kept)
        if kept:
            state.grants[granted.id] = _with(granted, kept)
        else:
            del state.grants[granted.id]


def _still_held(
    own: CapabilitySet,
    capabilities: tuple[Capability, ...],
    cuts: tuple[Capability, ...],
    effort: ProofBudget,
) -> tuple[Capability, ...]:
    kept: list[Capability] = []
    for capability in capabilities:
        if own.covers(capability, effort=effort):
            kept.append(capability)
        elif cuts:
            carved = holdings.narrowed((capability,), cuts, effort)
            kept += [rest for rest in carved if own.covers(rest, effort=effort)]
    return tuple(kept)


class _Before:
    """What participants hold of themselves and through the grants added so far, in the order of the grants."""

    def __init__(self, state: SpaceState) -> None:
        self._state = state
        self._received: dict[ParticipantId, list[Capability]] = {}
        self._sets: dict[ParticipantId, CapabilitySet] = {}
        self._room: dict[ParticipantId, int] = {}

    def add(self, who: ParticipantId, capabilities: tuple[Capability, ...]) -> None:
        self._room[who] = self.room(who) - sum(capability.size for capability in capabilities)
        self._received.setdefault(who, []).extend(capabilities)
        self._sets.pop(who, None)

    def room(self, who: ParticipantId) -> int:
        """How many bytes of capabilities `who` may have beside these."""
        found = self._room.get(who)
        if found is None:
            own = holdings.base(self._state, who)
            found = self._room[who] = holdings.BYTES_MAX - sum(capability.size for capability in own)
        return found

    def held(self, who: ParticipantId) -> CapabilitySet:
        found = self._sets.get(who)
        if found is None:
            received = self._received.get(who, ())
            found = self._sets[who] = CapabilitySet((*holdings.base(self._state, who), *received))
        return found


def _settling(state: SpaceState) -> ProofBudget:
    """What an entry may take to look at the grants again: bounded, and never short for plain ones."""
    return ProofBudget(_STEPS_MAX + _STEPS_PER_GRANT * len(state.grants))


def _parsed(envelope: Envelope, written: list[Any]) -> tuple[Capability, ...] | RefusalDetails:
    if len(bytes(envelope.payload)) > _PAYLOAD_BYTES_MAX:
        return RefusalDetails(
            Refusal.TOO_LARGE, f"the payload of a {envelope.kind} may have {_PAYLOAD_BYTES_MAX} bytes"
        )
    if count_expensive(written) > _ENGINES_MAX:
        return RefusalDetails(
            Refusal.INVALID_CAPABILITY,
            f"a {envelope.kind} may have {_ENGINES_MAX} regular expressions and JSONPaths",
        )
    try:
        return tuple(Capability.parse(capability) for capability in written)
    except InvalidCapability as error:
        return RefusalDetails(Refusal.INVALID_CAPABILITY, str(error))


def _with(granted: ActiveGrant, capabilities: tuple[Capability, ...]) -> ActiveGrant:
    return ActiveGrant(
        id=granted.id,
        by=granted.by,
        recipient=granted.recipient,
        capabilities=capabilities,
        at=granted.at,
        expires_at=granted.expires_at,
        via=granted.via,
    )


def _revoked(
    state: SpaceState, entry: Entry, granted: ActiveGrant, reason: str, cause: tuple[str, ...] = ()
) -> Deliver:
    """The gateway took a grant back by itself: everyone sees it as a revocation that the gateway signs."""
    payload = {"recipient": granted.recipient, "grant_id": granted.id, "reason": reason}
    return Deliver.one(signed(state, entry, kind=Kind.REVOKE, payload=payload, correlation_id=cause))
