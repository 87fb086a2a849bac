"""Which past decisions other settings would change, and for whom."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from mew.client.connection.session import Roster
from mew.proposals.record import ProposalRecord
from mew.protocol.envelope import Envelope

from .participant import follow_capabilities
from .policy import Decision, Verdict
from .settings import AutopilotSettings
from .state import MODE, SUMMARY, AutopilotState

__all__ = ["Change", "ChangedDecision", "PolicyComparison"]

_DIAL: Final = frozenset({MODE, SUMMARY})


class Change(StrEnum):
    """What would be different."""

    NOT_ASKED = "not asked"
    """A reviewer approved it; a rule would have."""
    OVERRULED = "fulfilled although rejected"
    UNATTENDED = "fulfilled although nobody decided"
    ASKED = "asked"
    """The autopilot fulfilled it; a reviewer would be asked."""


class ChangedDecision(Struct, frozen=True):
    """One proposal that would be decided differently. `reviewer`: who decided about it, or the autopilot."""

    proposal: str
    proposer: str
    call: str
    change: Change
    reviewer: str | None
    why: str


class PolicyComparison:
    """Fed with the envelopes of a space in order: what these settings would decide about each proposal.

    It learns from the reviewers' decisions as they were, also from those that it would have spared them. The mode is
    that of the settings, whatever the dial said; nothing is picked for an audit.
    """

    def __init__(self, settings: AutopilotSettings, me: str = "autopilot") -> None:
        self._me = me
        self._state = AutopilotState(msgspec.structs.replace(settings, audit=0.0), me)
        self._roster = Roster()
        self._decisions: dict[str, Decision] = {}

    @property
    def proposals(self) -> int:
        """How many proposals were seen."""
        return len(self._decisions)

    def apply(self, envelope: Envelope, seen_at: datetime) -> None:
        """Take the next envelope."""
        follow_capabilities(self._roster, envelope)
        if envelope.kind in _DIAL:
            return
        record = self._state.apply(envelope, seen_at)
        if record is not None:
            held = {str(who): capabilities for who, capabilities in self._roster.items()}
            self._decisions[record.id] = self._state.decide(record, record.created, held)

    def changes(self) -> list[ChangedDecision]:
        """The proposals that would be decided differently, oldest first."""
        found: list[ChangedDecision] = []
        for id, decision in self._decisions.items():
            record = self._state.book.get(id)
            if record is None:
                continue
            change, reviewer = self._change(record, decision)
            if change is not None:
                call = self._state.case(record).group.call
                found.append(ChangedDecision(id, record.proposer, call, change, reviewer, decision.why))
        return found

    def _change(self, record: ProposalRecord, decision: Decision) -> tuple[Change | None, str | None]:
        fulfils = decision.verdict in (Verdict.FULFIL, Verdict.SHADOW)
        sent = next((one for one in record.fulfilments if not one.late), None)
        if sent is not None and sent.by == self._me:
            return None if fulfils else Change.ASKED, sent.by
        if not fulfils:
            return None, None
        if record.rejections:
            return Change.OVERRULED, record.rejections[0].by
        if sent is not None and not sent.edited:
            return Change.NOT_ASKED, sent.by
        return (Change.OVERRULED, sent.by) if sent is not None else (Change.UNATTENDED, None)
