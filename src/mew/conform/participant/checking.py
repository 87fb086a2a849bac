"""The checks of participants."""

from mew.conform.checking import CheckOn, Registry

from .stage import ParticipantStage

__all__ = ["ParticipantCheck", "check", "participant_checks"]

ParticipantCheck = CheckOn[ParticipantStage]

_registry: Registry[ParticipantStage] = Registry()
check = _registry.check


def participant_checks() -> tuple[ParticipantCheck, ...]:
    """All there are, in the order in which they are played: those that end the participant late, audits last."""
    from mew.conform import participant_checks as _modules  # they register themselves

    assert _modules is not None
    return tuple(_registry.checks)
