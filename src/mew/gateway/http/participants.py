"""PURE. Everyone who belongs to a space, connected or not, and how they stand."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from mew.protocol.envelope import ParticipantId
from mew.space import Space

__all__ = ["ParticipantShown", "PauseShown", "roster"]


class PauseShown(Struct, frozen=True):
    """`until` null: until somebody resumes."""

    by: str
    envelope_id: str
    until: datetime | None


class ParticipantShown(Struct, frozen=True):
    """`streams`: the ids of those it owns."""

    id: str
    connected: bool
    connections: int
    capabilities: list[dict[str, Any]]
    paused: PauseShown | None
    shut_down: bool
    streams: list[str]


def roster(space: Space, at: datetime) -> list[ParticipantShown]:
    """Those connected first, in the order they came; then those absent, as configured or invited."""
    state = space.state
    absent = (*state.rules.profiles, *state.invited, *state.identities)
    everyone = dict.fromkeys((*state.members, *(who for who in absent if space.is_known(who))))
    return [_shown(space, who, at) for who in everyone]


def _shown(space: Space, who: ParticipantId, at: datetime) -> ParticipantShown:
    state = space.state
    connections = state.members.get(who, 0)
    return ParticipantShown(
        id=who,
        connected=connections > 0,
        connections=connections,
        capabilities=[capability.source for capability in space.held(who)],
        paused=_pause(space, who, at),
        shut_down=who in state.shut_down,
        streams=[stream.id for stream in state.streams.values() if stream.owner == who],
    )


def _pause(space: Space, who: ParticipantId, at: datetime) -> PauseShown | None:
    pause = space.state.paused.get(who)
    if pause is None or (pause.until is not None and pause.until <= at):
        return None
    return PauseShown(pause.by, pause.envelope_id, pause.until)
