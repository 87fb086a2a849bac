"""Deciding about one proposal: what will run is shown, somebody is asked, and it is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mew.autopilot.rule import Rung
from mew.cli.arguments import read_pairs
from mew.cli.elicitation import answering
from mew.cli.errors import CommandError, ExitCode
from mew.cli.prompt import ask, edited, has_terminal
from mew.cli.render.ids import short
from mew.cli.render.proposal import circumstances, ended, shown_differences, shown_in_full
from mew.cli.render.text import note
from mew.client.client import Client
from mew.client.mcp.validation import InvalidArguments
from mew.client.proposals.review import Review
from mew.proposals.differences import differences
from mew.proposals.record import ProposalRecord
from mew.protocol.visible import visible

from .always import ladder_of, ratify, rung_in_words
from .review_session import ReviewSession

__all__ = ["APPROVED_S", "ApprovalOptions", "approved", "rejected", "rejected_all_left", "what_will_run"]

APPROVED_S: Final = 300.0
"""How long the answer may take: a tool may ask something meanwhile, and people take their time."""
_DESCRIPTION_CHARS_MAX: Final = 400
_TERMINAL: Final = "terminal"
_UNATTENDED: Final = "unattended"
_YES: Final = "y"
_EDIT: Final = "e"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOptions:
    """How a proposal is to be carried out: with which arguments, by whom, and whether somebody is asked first."""

    changes: Sequence[str] = ()
    arguments: str | None = None
    target: str | None = None
    timeout_s: float = APPROVED_S
    edit: bool = False
    yes: bool = False
    always: int | None = None
    anyway: bool = False

    def of(self, review: Review) -> dict[str, Any] | None:
        """The arguments that were typed, in place of those proposed; None: as proposed."""
        if not self.changes and self.arguments is None:
            return None
        typed = read_pairs(self.changes, self.arguments, review.schema)
        return typed if self.arguments is not None else {**review.arguments, **typed}


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it."""

    id: str
    value: Any
    edited: bool


async def approved(me: Client, written: str, wanted: ApprovalOptions) -> Done:
    """Carry out a proposal as wanted, after showing it and asking, unless that is not wanted.

    Raises:
        CommandError: there is none that is open, or who was asked does not want it.
        InvalidArguments: the tool's schema does not allow the arguments.
        MewError: as `Review.approve`.
    """
    session = await ReviewSession.open(me, about=written, via=_UNATTENDED if wanted.yes else _TERMINAL)
    await session.look_at_tools([session.find(written)])
    review = session.review(written)
    if not review.open and not (wanted.anyway and review.withdrawn):
        hint = "; use --anyway to run it all the same" if review.withdrawn else ""
        raise CommandError(
            f"proposal {short(review.id)} no longer waits: {ended(review.record, datetime.now(UTC)).plain}{hint}",
            ExitCode.NO,
        )
    session.check_may_approve(review.record, wanted.target)
    arguments = wanted.of(review)
    if wanted.edit:
        arguments = await edited(review.arguments if arguments is None else arguments, review.schema)
    rung = None if wanted.always is None else await _chosen(me, review, wanted.always)
    if not wanted.yes:
        arguments = await _agreed(review, arguments)
    if rung is not None and arguments is not None and arguments != review.arguments:
        raise CommandError(
            "--always is for calls as they were proposed, and you changed the arguments", ExitCode.NO
        )
    try:
        async with answering(me):
            value = await review.approve(
                arguments, target=wanted.target, timeout_s=wanted.timeout_s, anyway=wanted.anyway
            )
    except InvalidArguments:
        raise
    except ValueError as error:
        raise CommandError(str(error).replace("target=", "--to")) from error
    if rung is not None:
        await ratify(me, review.id, rung)
    return Done(review.id, value, arguments is not None and arguments != review.arguments)


async def _chosen(me: Client, review: Review, number: int) -> Rung:
    """The rung of the ladder with this number, or the one that somebody at the terminal chooses."""
    rungs = await ladder_of(me, review.id)
    lines = [f"  {place}  {rung_in_words(rung)}" for place, rung in enumerate(rungs, start=1)]
    if number == 0:
        answer = await ask("\n".join(("Do not ask again if:", *lines, f"Which, 1 to {len(rungs)}? ")))
        number = int(answer) if answer.strip().isdecimal() else 0
    if not 1 <= number <= len(rungs):
        raise CommandError(
            f"there are {len(rungs)} rules to choose from; not approved, it stays open", ExitCode.NO
        )
    note(f"From now on nobody is asked if {lines[number - 1].strip()[1:].strip()}")
    return rungs[number - 1]


async def _agreed(review: Review, arguments: dict[str, Any] | None) -> dict[str, Any] | None:
    """The arguments that somebody said yes to, having seen them."""
    while True:
        shown = list(what_will_run(review, arguments))
        choices = "[y]es, [n]o, [e]dit" if review.tool is not None else "[y]es, [n]o"
        # Both on the controlling terminal: whoever says yes has been shown what to.
        answer = (await ask("\n".join((*shown, f"Run this? {choices}: "))))[:1].lower()
        if answer == _YES and shown != list(what_will_run(review, arguments)):
            note("! what is known of it has changed since you were shown it; look again:")
            continue
        if answer == _YES:
            return arguments
        if answer != _EDIT or review.tool is None:
            raise CommandError(f"not approved; {short(review.id)} stays open", ExitCode.NO)
        arguments = await edited(review.arguments if arguments is None else arguments, review.schema)


def what_will_run(review: Review, arguments: dict[str, Any] | None) -> Iterator[str]:
    """All of it, in lines that nobody but us begins."""
    yield review.preview()
    yield from circumstances(review.record, datetime.now(UTC))
    if review.description:
        yield f"  it says of itself: {visible(' '.join(review.description.split()), _DESCRIPTION_CHARS_MAX)}"
    changes = () if arguments is None else differences(review.arguments, arguments)
    if arguments is not None and changes:
        yield "not as proposed, but with these changes:"
        yield from shown_differences(changes)
    yield from shown_in_full(review.record, review.arguments if arguments is None else arguments)


async def rejected(me: Client, written: str, reason: str, message: str | None) -> ProposalRecord:
    """Reject a proposal, in words if there are any; return all that is known of it then.

    Raises:
        CommandError: there is none that is open.
        MewError: as `Review.reject`.
    """
    session = await ReviewSession.open(me, about=written, via=_TERMINAL if has_terminal() else _UNATTENDED)
    review = session.review(written)
    if not review.open:
        raise CommandError(
            f"proposal {short(review.id)} no longer waits: {ended(review.record, datetime.now(UTC)).plain}",
            ExitCode.NO,
        )
    await review.reject(reason, message)
    return review.record


async def rejected_all_left(me: Client, reason: str, message: str | None) -> list[ProposalRecord]:
    """Reject every open proposal whose proposer is no longer here; return what is known of each then.

    Raises:
        MewError: as `Review.reject`.
    """
    session = await ReviewSession.open(me, via=_TERMINAL if has_terminal() else _UNATTENDED)
    reviews = [session.review(record.id) for record in session.waiting() if session.has_left(record)]
    for review in reviews:
        await review.reject(reason, message or "Its proposer has left the space.")
    return [review.record for review in reviews]
