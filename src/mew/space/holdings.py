"""What each participant holds: its configuration and the baseline, less revocations, plus grants."""

from collections.abc import Iterable

from msgspec import Raw

from mew.protocol.capability import Capability, CapabilitySet
from mew.protocol.codec import encode_json
from mew.protocol.envelope import EnvelopeId, ParticipantId

from .state import SpaceState

__all__ = ["base", "changed", "forget", "held", "held_before", "is_known", "narrowed", "shown"]


def is_known(state: SpaceState, who: str) -> bool:
    """Whether this participant belongs to the space, connected or not."""
    if who in state.invited:
        return True
    return who not in state.kicked and (who in state.rules.profiles or who in state.identities)


def held(state: SpaceState, who: ParticipantId) -> CapabilitySet:
    """Everything `who` holds now, compiled."""
    found = state.held.get(who)
    if found is None:
        found = state.held[who] = held_before(state, who, None)
    return found


def held_before(state: SpaceState, who: ParticipantId, grant: EnvelopeId | None) -> CapabilitySet:
    """What `who` holds of itself and through the grants made before `grant`: what that grant may rest on."""
    capabilities = list(base(state, who))
    for granted in state.grants.values():
        if granted.id == grant:
            break
        if granted.recipient == who:
            capabilities += granted.capabilities
    return CapabilitySet(capabilities)


def base(state: SpaceState, who: ParticipantId) -> tuple[Capability, ...]:
    """What `who` holds of itself, without any grant."""
    if not is_known(state, who):
        return ()
    own: tuple[Capability, ...]
    if who in state.invited:
        own = ()  # what it was invited with is a grant
    elif who in state.identities:
        own = state.identities[who]
    else:
        own = state.rules.profiles[who]
    return narrowed((*own, *state.rules.baseline), state.cuts.get(who, ()))


def narrowed(capabilities: Iterable[Capability], cuts: Iterable[Capability]) -> tuple[Capability, ...]:
    """These capabilities without what the cuts take: gone where inside one, with an exception where wider."""
    left = tuple(capabilities)
    for cut in cuts:
        left = tuple(rest for capability in left if (rest := capability.without(cut)) is not None)
    return left


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
