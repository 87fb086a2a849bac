"""PURE. Who is in the space and what each may send, as far as anyone can see it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET, UnsetType

from mew.protocol.capability import Capability, CapabilitySet
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import InvalidCapability
from mew.protocol.kinds import Grant, Member, Presence, Revoke, Welcome

__all__ = ["Roster"]

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


def _holdings(member: Member) -> CapabilitySet:
    return CapabilitySet(_parsed(member.capabilities))
