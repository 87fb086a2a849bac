"""Effective capabilities: who held what at a given time, from whom, and through which chain of grants."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from mew.audit.record.index import Index
from mew.journal.files.database import Damaged
from mew.journal.reader import JournalReader
from mew.protocol.capability import Capability
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.space import Entry, Event, Refuse, Sent, Space, TimePassed
from mew.space.holdings import base, is_known
from mew.space.state import ActiveGrant, SpaceState

from .search import facts_of_grants, last_before

__all__ = [
    "CapabilityOrigin",
    "DelegationStep",
    "EffectiveCapability",
    "ParticipantCapabilities",
    "effective_capabilities",
    "state_at",
]

_STEPS_MAX: Final = 64


class CapabilityOrigin(StrEnum):
    """Where somebody has a capability from."""

    CONFIGURATION = "configuration"
    IDENTITY = "identity"
    BASELINE = "baseline"
    GRANT = "grant"


class DelegationStep(Struct, frozen=True):
    """One up the chain: who gave it, and by which grant they had it themselves; None: they held it of themselves.

    `others`: so many more grants, together with this one, made up what was given. `in_force`: whether it still is.
    """

    giver: str
    grant_id: str | None = None
    in_force: bool = True
    others: int = 0


class EffectiveCapability(Struct, frozen=True):
    """One capability of somebody's, as it is written. Of a grant: its id, when it was given, until when, and the chain.

    `narrowed`: a part of what the configuration gives was revoked.
    """

    capability: Any
    origin: CapabilityOrigin
    grant_id: str | None = None
    given: datetime | None = None
    until: datetime | None = None
    chain: tuple[DelegationStep, ...] = ()
    narrowed: bool = False


class ParticipantCapabilities(Struct, frozen=True):
    """Somebody who belongs to the space. `invited_by`: None for who is configured or vouched for."""

    participant: str
    invited_by: str | None
    held: tuple[EffectiveCapability, ...]


def effective_capabilities(state: SpaceState, only: str | None = None) -> list[ParticipantCapabilities]:
    """Everyone who belongs to the space, or one of them, with all that they hold."""
    everyone = dict.fromkeys([*state.rules.profiles, *state.identities, *state.invited])
    received: dict[str, list[ActiveGrant]] = {}
    for granted in state.grants.values():
        received.setdefault(granted.recipient, []).append(granted)
    return [
        ParticipantCapabilities(
            who,
            state.invited[who].by if who in state.invited else None,
            (*_own(state, who), *_received(state, received.get(who, ()))),
        )
        for who in everyone
        if is_known(state, who) and only in (None, who)
    ]


def _own(state: SpaceState, who: ParticipantId) -> Iterator[EffectiveCapability]:
    origins: dict[Any, CapabilityOrigin] = {}
    configured = CapabilityOrigin.IDENTITY if who in state.identities else CapabilityOrigin.CONFIGURATION
    given = state.identities.get(who, state.rules.profiles.get(who, ()))
    whole = [] if who in state.invited else [(capability, configured) for capability in given]
    whole += [(capability, CapabilityOrigin.BASELINE) for capability in state.rules.baseline]
    for capability, origin in whole:
        origins.setdefault(_before_cuts(capability), origin)
    known = {capability for capability, _ in whole}
    for capability in dict.fromkeys(base(state, who)):
        origin = origins.get(_before_cuts(capability), configured)
        yield EffectiveCapability(capability.source, origin, narrowed=capability not in known)


def _before_cuts(capability: Capability) -> Capability:
    """Without its exceptions, some of which a revocation may have put there."""
    return Capability.parse({name: value for name, value in capability.source.items() if name != "except"})


def _received(state: SpaceState, grants: Iterable[ActiveGrant]) -> Iterator[EffectiveCapability]:
    for granted in grants:
        chain = tuple(_chain(state, granted))
        for capability in granted.capabilities:
            yield EffectiveCapability(
                capability.source, CapabilityOrigin.GRANT, granted.id, granted.at, granted.expires_at, chain
            )


def _chain(state: SpaceState, granted: ActiveGrant) -> Iterator[DelegationStep]:
    """Up from a grant, by the first of the grants that its giver needed; ids used again cannot make a circle of it."""
    seen: set[EnvelopeId] = {granted.id}
    current: ActiveGrant | None = granted
    while current is not None and len(seen) <= _STEPS_MAX:
        via = _first(state, current.via)
        if via is None:
            yield DelegationStep(current.by)
            return
        above = state.grants.get(via)
        yield DelegationStep(current.by, via, in_force=above is not None, others=len(current.via) - 1)
        current = None if via in seen else above
        seen.add(via)


def _first(state: SpaceState, via: Sequence[EnvelopeId]) -> EnvelopeId | None:
    """One that is still in force, if there is one."""
    return next((one for one in via if one in state.grants), via[0] if via else None)


_NOBODY_WAITS: Final = ("paused", "shut_down")  # what was accepted was accepted, whoever was to be silent


def state_at(journal: JournalReader, index: Index, at: datetime) -> SpaceState:
    """The state at this time: what everyone held and had granted, who was invited and who kicked.

    Who was connected, paused or streaming is not in it: of a million entries only those are gone through that say who
    may do what.

    Raises:
        JournalUnavailable: the system says no, or what came before is gone and there is no snapshot.
        Damaged: an entry cannot be read, or is not what the index says.
    """
    last = last_before(index, at)
    state = journal.state_before(last + 1)
    for name in _NOBODY_WAITS:
        getattr(state, name).clear()
    space = Space(state)
    for seq in dict.fromkeys(fact.seq for fact in facts_of_grants(index, state.seq, last) if not fact.n):
        record = journal.record(seq)
        if record is None:
            raise Damaged(f"entry {seq} is missing")
        entry = record.entry
        _apply(space, Entry(seq, entry.at, _alone(entry.event, seq - entry.seq)))
    _apply(space, Entry(max(last, state.seq) + 1, at, TimePassed()))  # what has expired by then
    return state


def _apply(space: Space, entry: Entry) -> None:
    space.state.seq = entry.seq - 1
    if any(isinstance(decision, Refuse) for decision in space.apply(entry)):
        raise Damaged(f"entry {entry.seq} was accepted, and would not be now")


def _alone(event: Event, place: int) -> Event:
    """One envelope of a batch, as if without a connection: those of the time are not known. Its id was new then."""
    if isinstance(event, Sent):
        one = event.envelopes.part(place, place + 1)
        return Sent(one, (None,), lenient=True, token_hash=event.token_hash)
    return event
