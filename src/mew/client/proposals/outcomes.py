"""PURE. How a proposal ends for its proposer, when rejections end it (§3.3.2), and each update on the way."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias, assert_never

from msgspec import UNSET

from mew.proposals.differences import Difference
from mew.proposals.record import Fulfilment, ProposalStatus, Rejection
from mew.protocol.kinds import JsonRpcError
from mew.protocol.visible import literal, named, visible

__all__ = [
    "TIMEOUT",
    "Fulfilled",
    "OnUpdate",
    "Outcome",
    "ProposalUpdate",
    "Rejected",
    "Strategy",
    "TimedOut",
    "Withdrawn",
    "is_rejected",
    "told_rejections",
]

TIMEOUT: Final = "timeout"
"""The reason of a withdrawal because nobody took the proposal up in time."""
_SHOWN_MAX: Final = 4


class Strategy(StrEnum):
    """When a proposer takes no for an answer."""

    FIRST_REJECT = "first_reject"
    """Fail fast: the first rejection ends it."""
    RESILIENT = "resilient"
    """Wait for others: only when everybody here who could fulfil it has rejected it, it is rejected."""
    PREFERRED = "preferred"
    """Named reviewers first; when all of them rejected it, or after a time, everyone, as in `RESILIENT`."""
    EXCLUSIVE = "exclusive"
    """Named reviewers only: it is rejected when all of them rejected it, whatever others say."""


@dataclass(frozen=True, kw_only=True)
class Fulfilled:
    """`by` approved it on the surface `via`, and `response_by` answered: with a `result`, or with an `error`.

    `arguments` are those that the tool was called with, `digest` is of what was sent. `edited`: that is not what was
    proposed; `differences` says in what.
    """

    by: str
    request_id: str
    response_by: str
    via: str | None = None
    result: Any = None
    error: JsonRpcError | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    digest: str | None = None
    edited: bool = False
    differences: tuple[Difference, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether what came of it is an error of JSON-RPC, or a result that MCP marks as one."""
        return self.error is not None or (
            isinstance(self.result, dict) and self.result.get("isError") is True
        )

    def __str__(self) -> str:
        edits = ", ".join(visible(change.path, 80) for change in self.differences[:_SHOWN_MAX])
        more = ", …" if len(self.differences) > _SHOWN_MAX else ""
        edited = f" with changes ({edits}{more})" if self.edited else ""
        answered = "answered" if self.error is None else f"failed: {visible(self.error.message)}"
        by = "" if self.error is not None else f" by {named(self.response_by)}"
        return f"approved by {named(self.by)}{edited}, {answered}{by}"


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """`by` rejected it last, in the words of `message`, and that was the end of it; `rejections` are all of them."""

    by: str
    reason: str | None
    message: str | None = None
    rejections: tuple[Rejection, ...]

    def __str__(self) -> str:
        return f"rejected {told_rejections(self.rejections)}"


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """Its proposer took it back."""

    reason: str | None

    def __str__(self) -> str:
        return "withdrawn" if self.reason is None else f"withdrawn: {visible(self.reason)}"


@dataclass(frozen=True, kw_only=True)
class TimedOut:
    """No end in time, which is nobody's no. `approved_by` sent the request, and no answer to it was seen."""

    rejections: tuple[Rejection, ...] = ()
    approved_by: str | None = None

    def __str__(self) -> str:
        if self.approved_by is not None:
            return f"approved by {named(self.approved_by)}, but no answer came in time; it may have been carried out"
        some = f" (rejected {told_rejections(self.rejections)})" if self.rejections else ""
        return f"nobody took it up in time{some}"


Outcome: TypeAlias = Fulfilled | Rejected | Withdrawn | TimedOut


def is_rejected(
    strategy: Strategy, rejecters: Collection[str], *, reviewers: Collection[str], able: Collection[str]
) -> bool:
    """Whether what they said ends a proposal. `able`: those here whose capabilities fit the request.

    `PREFERRED` asks whether its named reviewers are through with it.
    """
    match strategy:
        case Strategy.FIRST_REJECT:
            return len(rejecters) > 0
        case Strategy.RESILIENT:  # where nobody here could say yes, nobody's no is the last word
            return len(able) > 0 and set(able) <= set(rejecters)
        case Strategy.PREFERRED | Strategy.EXCLUSIVE:
            return set(reviewers) <= set(rejecters)
        case _:
            assert_never(strategy)


def told_rejections(rejections: tuple[Rejection, ...]) -> str:
    """`by ann: unsafe ("No ponies."); by bob`, each with the last it said."""
    last = {rejection.by: rejection for rejection in rejections}
    told = [_told(rejection) for rejection in last.values()]
    return "; ".join(told[:_SHOWN_MAX] + ["…"] * (len(told) > _SHOWN_MAX))


def _told(rejection: Rejection) -> str:
    reason = "" if rejection.reason is None else f": {visible(rejection.reason)}"
    words = f" ({literal(rejection.words)})" if rejection.words else ""
    return f"by {named(rejection.by)}{reason}{words}"


_VALUE_CHARS_MAX: Final = 80


@dataclass(frozen=True, kw_only=True)
class ProposalUpdate:
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
    ) -> "ProposalUpdate":
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
    def at_the_end(cls, proposal_id: str, status: ProposalStatus, outcome: Outcome) -> "ProposalUpdate":
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


OnUpdate: TypeAlias = Callable[[ProposalUpdate], None]
"""Told each stage of a proposal, the first when everyone is being shown it. Must not wait."""


def _edits(stage: ProposalUpdate) -> str:
    edits = [
        visible(change.path, _VALUE_CHARS_MAX)
        + (" left out" if change.new is UNSET else f" is {literal(change.new, _VALUE_CHARS_MAX)}")
        for change in stage.differences[:_SHOWN_MAX]
    ]
    return ", ".join([*edits, "…"] if len(stage.differences) > _SHOWN_MAX else edits)
