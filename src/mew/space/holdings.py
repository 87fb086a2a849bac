"""What each participant holds: its configuration and the baseline, less revocations, plus grants."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw

from mew.protocol.capability import Capability, CapabilitySet, ProofBudget
from mew.protocol.envelope import ParticipantId
from mew.protocol.json import encode_json

from .state import SpaceState

__all__ = [
    "BYTES_MAX",
    "base",
    "bounded",
    "changed",
    "cut",
    "cut_again",
    "forget",
    "held",
    "is_known",
    "known",
    "narrowed",
    "shown",
]

BYTES_MAX: Final = 1 << 17
"""What one participant may hold as JSON, where it is not the operator who says so: every welcome has all of it."""

_CUT_STEPS: Final = 100_000  # for one participant whose own capabilities were set anew
_CUT_STEPS_ALL: Final = 2_000_000  # for all of them, where they share it
_CUT_STEPS_MIN: Final = 5_000


def is_known(state: SpaceState, who: str) -> bool:
    """Whether this participant belongs to the space, connected or not."""
    if who in state.invited:
        return True
    return who not in state.kicked and (who in state.rules.profiles or who in state.identities)


def known(state: SpaceState) -> Iterator[ParticipantId]:
    """All who belong to the space, connected or not."""
    for who in dict.fromkeys((*state.rules.profiles, *state.identities, *state.invited)):
        if is_known(state, who):
            yield who


def held(state: SpaceState, who: ParticipantId) -> CapabilitySet:
    """Everything `who` holds now, compiled."""
    found = state.held.get(who)
    if found is None:
        capabilities = list(base(state, who))
        for granted in state.grants.values():
            if granted.recipient == who:
                capabilities += granted.capabilities
        found = state.held[who] = CapabilitySet(capabilities)
    return found


def base(state: SpaceState, who: ParticipantId) -> tuple[Capability, ...]:
    """What `who` holds of itself, without any grant."""
    if not is_known(state, who):
        return ()
    left = state.left.get(who)
    return _own(state, who) if left is None else left


def cut(state: SpaceState, who: ParticipantId, cuts: Iterable[Capability], effort: ProofBudget) -> None:
    """Carve the patterns out of what `who` holds of itself, for as long as it belongs to the space."""
    known = state.cuts.get(who, ())
    fresh = tuple(pattern for pattern in dict.fromkeys(cuts) if pattern not in known)
    own = base(state, who)
    state.left[who] = bounded(own, narrowed(own, fresh, effort), BYTES_MAX)
    state.cuts[who] = (*known, *fresh)


def cut_again(state: SpaceState, whose: Iterable[ParticipantId]) -> None:
    """What these hold of themselves was set anew: carve again what was revoked before."""
    concerned = [who for who in whose if who in state.cuts]
    for who in concerned:  # each has its own steps: what one was cut with takes nothing from another
        steps = min(_CUT_STEPS, max(_CUT_STEPS_MIN, _CUT_STEPS_ALL // len(concerned)))
        own = _own(state, who)
        state.left[who] = bounded(own, narrowed(own, state.cuts[who], ProofBudget(steps)), BYTES_MAX)


def _own(state: SpaceState, who: ParticipantId) -> tuple[Capability, ...]:
    own: tuple[Capability, ...]
    if who in state.invited:
        own = ()  # what it was invited with is a grant
    elif who in state.identities:
        own = state.identities[who]
    else:
        own = state.rules.profiles.get(who, ())
    return (*own, *state.rules.baseline)


def narrowed(
    capabilities: Iterable[Capability], cuts: Iterable[Capability], effort: ProofBudget
) -> tuple[Capability, ...]:
    """These capabilities without what the cuts take: gone where inside one, with an exception where wider."""
    left = tuple(capabilities)
    for pattern in cuts:
        carved = (capability.without(pattern, effort=effort) for capability in left)
        left = tuple(rest for rest in carved if rest is not None)
    return left


def bounded(
    had: tuple[Capability, ...], left: tuple[Capability, ...], bytes_max: int
) -> tuple[Capability, ...]:
    """What is left, without what grew by exceptions beyond these bytes: more is taken, not less."""
    if left == had:
        return left
    whole, kept = frozenset(had), []
    for capability in left:
        if capability.size <= bytes_max or capability in whole:
            kept.append(capability)
            bytes_max -= capability.size
    return tuple(kept)


def shown(state: SpaceState, who: ParticipantId) -> Raw:
    """`{"id": …, "capabilities": […]}` as presence and welcome have it, encoded once."""
    found = state.shown.get(who)
    if found is None:
        listed = [capability.source for capability in held(state, who)]
        found = state.shown[who] = Raw(encode_json({"id": who, "capabilities": listed}))
    return found


def changed(state: SpaceState, who: ParticipantId) -> None:
    """What `who` holds has changed: forget what was derived from it."""
    state.held.pop(who, None)
    state.shown.pop(who, None)


def forget(state: SpaceState) -> None:
    """What everyone holds may have changed."""
    state.held.clear()
    state.shown.clear()
