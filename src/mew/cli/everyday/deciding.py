"""Deciding about one proposal: what will run is shown, somebody is asked, and it is done."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from mew.cli.where import Failed
from mew.client.client import Client
from mew.client.mcp.validation import InvalidArguments
from mew.client.proposals.record import ProposalRecord
from mew.client.proposals.review import Review
from mew.protocol.differences import differences
from mew.protocol.kinds import Kind
from mew.protocol.visible import visible

from .answering import answering
from .arguments import read_pairs
from .decision import circumstances, ended, short, shown_differences, shown_in_full
from .desk import Desk
from .editing import ask, edited
from .out import note
from .place import SaidNo

__all__ = ["APPROVED_S", "Wanted", "approved", "rejected", "what_will_run"]

APPROVED_S: Final = 300.0
"""How long the answer may take: a tool may ask something meanwhile, and people take their time."""
_DESCRIPTION_CHARS_MAX: Final = 400
_SAID_S: Final = 5.0
_YES: Final = "y"
_EDIT: Final = "e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a proposal is to be carried out: with which arguments, by whom, and whether somebody is asked first."""

    changes: Sequence[str] = ()
    arguments: str | None = None
    target: str | None = None
    timeout_s: float = APPROVED_S
    edit: bool = False
    yes: bool = False

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


async def approved(me: Client, written: str, wanted: Wanted) -> Done:
    """Carry out a proposal as wanted, after showing it and asking, unless that is not wanted.

    Raises:
        SaidNo: there is none that is open, or who was asked does not want it.
        InvalidArguments: the tool's schema does not allow the arguments.
        MewError: as `Review.approve`.
    """
    desk = await Desk.open(me, about=written)
    await desk.look_at_tools([desk.find(written)])
    review = desk.review(written)
    if not review.open:
        raise SaidNo(f"proposal {short(review.id)} no longer waits: {ended(review.record).plain}")
    desk.check_may_approve(review.record, wanted.target)
    arguments = wanted.of(review)
    if wanted.edit:
        arguments = await edited(review.arguments if arguments is None else arguments, review.schema)
    if not wanted.yes:
        arguments = await _agreed(review, arguments)
    try:
        async with answering(me):
            value = await review.approve(arguments, target=wanted.target, timeout_s=wanted.timeout_s)
    except InvalidArguments:
        raise
    except ValueError as error:
        raise Failed(str(error).replace("target=", "--to")) from error
    return Done(review.id, value, arguments is not None and arguments != review.arguments)


async def _agreed(review: Review, arguments: dict[str, Any] | None) -> dict[str, Any] | None:
    """The arguments that somebody said yes to, having seen them."""
    while True:
        shown = list(what_will_run(review, arguments))
        note(Text("\n".join(shown)))
        choices = "[y]es, [n]o, [e]dit" if review.tool is not None else "[y]es, [n]o"
        answer = (await ask(f"Run this? {choices}: "))[:1].lower()
        if answer == _YES and shown != list(what_will_run(review, arguments)):
            note("! what is known of it has changed since you were shown it; look again:")
            continue
        if answer == _YES:
            return arguments
        if answer != _EDIT or review.tool is None:
            raise SaidNo(f"not approved; {short(review.id)} stays open")
        arguments = await edited(review.arguments if arguments is None else arguments, review.schema)


def what_will_run(review: Review, arguments: dict[str, Any] | None) -> Iterator[str]:
    """All of it, in lines that nobody but us begins."""
    yield review.preview()
    yield from circumstances(review.record)
    if review.description:
        yield f"  it says of itself: {visible(' '.join(review.description.split()), _DESCRIPTION_CHARS_MAX)}"
    changes = () if arguments is None else differences(review.arguments, arguments)
    if arguments is not None and changes:
        yield "not as proposed, but with these changes:"
        yield from shown_differences(changes)
    yield from shown_in_full(review.record, review.arguments if arguments is None else arguments)


async def rejected(me: Client, written: str, reason: str, message: str | None) -> ProposalRecord:
    """Reject a proposal, and say what there is to say of it; return all that is known of it then.

    Raises:
        SaidNo: there is none that is open.
        MewError: as `Review.reject`.
    """
    desk = await Desk.open(me, about=written)
    review = desk.review(written)
    if not review.open:
        raise SaidNo(f"proposal {short(review.id)} no longer waits: {ended(review.record).plain}")
    if message is None:
        await review.reject(reason)
        return review.record
    if not me.can_send(Kind.CHAT, {"text": message}, to=[review.proposer]):
        await review.reject(reason)
        raise SaidNo("rejected, but you may not send chats: what you say about it was not sent")
    async with me.envelopes(Kind.CHAT, sender=me.id) as said:
        await review.reject(reason, message)  # right behind it, so that who waits for the outcome has it
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAID_S):
                await anext(aiter(said))
    return review.record
