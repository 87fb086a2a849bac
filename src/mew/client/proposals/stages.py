"""PURE. Where a proposal stands, for somebody who waits for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from msgspec import UNSET

from mew.proposals.differences import Difference
from mew.proposals.record import Fulfilment, ProposalStatus, Rejection
from mew.protocol.visible import literal, named, visible

from .outcomes import Fulfilled, Outcome, Rejected, TimedOut, Withdrawn, told_rejections

__all__ = ["OnStage", "Stage"]

_SHOWN_MAX: Final = 4
_VALUE_CHARS_MAX: Final = 80


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a proposal; as a text, a sentence that is safe for a terminal: `approved by ann, running`.

    `status`: open, approved (which is: it runs), or how it ended, with the `outcome`. `by`: who approved it, or
    rejected it last. `edited`: what was sent is not what was proposed; `differences` says in what.
    """

    proposal_id: str
    status: ProposalStatus
    by: str | None = None
    edited: bool = False
    differences: tuple[Difference, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    outcome: Outcome | None = None

    @classmethod
    def on_the_way(
        cls, proposal_id: str, fulfilment: Fulfilment | None, rejections: tuple[Rejection, ...]
    ) -> "Stage":
        """Not at its end yet: it waits for somebody, or runs."""
        if fulfilment is None:
            by = rejections[-1].by if rejections else None
            return cls(proposal_id=proposal_id, status=ProposalStatus.OPEN, by=by, rejections=rejections)
        return cls(
            proposal_id=proposal_id,
            status=ProposalStatus.APPROVED,
            by=fulfilment.by,
            edited=fulfilment.edited,
            differences=fulfilment.differences,
            rejections=rejections,
        )

    @classmethod
    def at_the_end(cls, proposal_id: str, status: ProposalStatus, outcome: Outcome) -> "Stage":
        match outcome:
            case Fulfilled(by=by, edited=edited, differences=differences):
                return cls(
                    proposal_id=proposal_id,
                    status=status,
                    by=by,
                    edited=edited,
                    differences=differences,
                    outcome=outcome,
                )
            case Rejected(by=by, rejections=rejections):
                return cls(
                    proposal_id=proposal_id, status=status, by=by, rejections=rejections, outcome=outcome
                )
            case Withdrawn():
                return cls(proposal_id=proposal_id, status=status, outcome=outcome)
            case TimedOut(rejections=rejections, approved_by=by):
                return cls(
                    proposal_id=proposal_id, status=status, by=by, rejections=rejections, outcome=outcome
                )
            case _:
                assert_never(outcome)

    def __str__(self) -> str:
        if self.outcome is not None:
            return str(self.outcome)
        if self.status is ProposalStatus.APPROVED:
            by = named(self.by or "")
            return f"edited by {by}: {_edits(self)}; running" if self.edited else f"approved by {by}, running"
        if self.rejections:
            return f"rejected {told_rejections(self.rejections)}; waiting for others"
        return "waiting for approval"


OnStage: TypeAlias = Callable[[Stage], None]
"""Told each stage of a proposal, the first when everyone is being shown it. Must not wait."""


def _edits(stage: Stage) -> str:
    edits = [
        visible(change.path, _VALUE_CHARS_MAX)
        + (" left out" if change.new is UNSET else f" is {literal(change.new, _VALUE_CHARS_MAX)}")
        for change in stage.differences[:_SHOWN_MAX]
    ]
    return ", ".join([*edits, "…"] if len(stage.differences) > _SHOWN_MAX else edits)
