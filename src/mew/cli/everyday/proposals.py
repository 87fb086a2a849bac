"""`mew proposals`, `mew approve`, `mew reject`: what waits for a decision, and the decision."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from mew.cli.where import Failed
from mew.client.client import Client
from mew.client.proposals.decided import ProposalStatus
from mew.client.proposals.record import ProposalRecord

from .arguments import ArgumentsOption
from .deciding import APPROVED_S, Wanted, approved, rejected
from .decision import ended, short, shown_in_full, shown_line, shown_open
from .desk import Desk
from .out import is_terminal, note, say, say_json, shown_value
from .place import Place, everyday

__all__ = ["approve", "proposals", "reject"]

ProposalId = Annotated[
    str, typer.Argument(metavar="ID", help="The proposal: its id, or as much of it as no other has.")
]


@everyday
def proposals(
    place: Place,
    which: Annotated[str | None, typer.Argument(metavar="[ID]", help="One of them, with all of it.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, max=1_000, help="How many that were decided.")
    ] = 5,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on, and show each that comes and is decided.")
    ] = False,
) -> None:
    """What is proposed and waits for a decision, and what was decided last.

    Examples:
      mew proposals
      mew proposals --watch
    """
    if which is not None:
        place.run(lambda me: _one(me, which, as_json=place.json))
    else:
        place.run(lambda me: _listed(me, limit, as_json=place.json, watch=watch))


@everyday
def approve(
    place: Place,
    proposal: ProposalId,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Run it with this argument instead; may be repeated."
        ),
    ] = None,
    arguments: ArgumentsOption = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="NAME", help="Who is to do it, where it does not say.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for the answer.")
    ] = APPROVED_S,
    *,
    edit: Annotated[
        bool, typer.Option("--edit", "-e", help="Change the arguments in $EDITOR before it runs.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Carry a proposal out, as it is or with other arguments; shows what will run, and asks.

    Examples (the id is one that 'mew proposals' shows):
      mew approve 3f2a91c0
      mew approve 3f2a91c0 --set path=notes.txt
      mew approve 3f2a91c0 --edit
    """
    if not yes and not is_terminal():
        raise Failed("nobody can be asked here, this is no terminal; --yes approves without asking")
    wanted = Wanted(
        changes=changes or (),
        arguments=arguments,
        target=target,
        timeout_s=timeout_s,
        edit=edit,
        yes=yes,
    )
    done = place.run(lambda me: approved(me, proposal, wanted))
    if place.json:
        say_json({"proposal": done.id, "edited": done.edited, "value": done.value})
    else:
        say(shown_value(done.value))


@everyday
def reject(
    place: Place,
    proposal: ProposalId,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            "-r",
            metavar="WORD",
            help="In a word: disagree, inappropriate, unsafe, busy, incapable, policy, invalid, or any other.",
        ),
    ] = "disagree",
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="What you have to say about it.")
    ] = None,
) -> None:
    """Say no to a proposal. Others may still approve it, unless its proposer takes that for an answer.

    Example (the id is one that 'mew proposals' shows):
      mew reject 3f2a91c0 -r unsafe -m "Not in the home folder, please."
    """
    record = place.run(lambda me: rejected(me, proposal, reason, message))
    if place.json:
        say_json(record.as_dict())
    else:
        say(f"rejected {short(record.id)}")


async def _one(me: Client, which: str, *, as_json: bool) -> None:
    desk = await Desk.open(me, about=which)
    await desk.look_at_tools([desk.find(which)])
    record, now = desk.find(which), datetime.now(UTC)
    if as_json:
        say_json(record.as_dict())
        return
    say(shown_open(record, now, desk.hindrance(record)))
    for line in shown_in_full(record, record.arguments):
        say(line)
    say(f"  id {record.id}, it is {ended(record).plain}")


async def _listed(me: Client, limit: int, *, as_json: bool, watch: bool) -> None:
    coming = me.envelopes("mcp/*")
    desk = await Desk.open(me)
    await desk.look_at_tools(desk.book.open)
    waiting = desk.book.open
    others = [record for record in desk.book if not record.is_open]
    decided = others[-limit:] if limit else []
    if as_json and not watch:
        say_json([record.as_dict() for record in (*waiting, *reversed(decided))])
        return
    _show(desk, waiting, decided, as_json=as_json)
    if not watch:
        return
    if not waiting:
        note("waiting for proposals, Ctrl-C ends it")
    told = {record.id: _state(record) for record in desk.book}
    async with coming:
        async for _ in coming:
            for record in desk.book:
                if told.get(record.id) != _state(record):
                    await desk.look_at_tools([record] if record.is_open else [])
                    told[record.id] = _state(desk.book[record.id])
                    _show_change(desk, desk.book[record.id], as_json=as_json)


def _state(record: ProposalRecord) -> tuple[ProposalStatus, int]:
    return record.status, len(record.rejections)


def _show(
    desk: Desk, waiting: tuple[ProposalRecord, ...], decided: list[ProposalRecord], *, as_json: bool
) -> None:
    now = datetime.now(UTC)
    if as_json:
        for record in waiting:
            say_json(record.as_dict())
        return
    for record in waiting:
        say(shown_open(record, now, desk.hindrance(record)))
        say()
    if not waiting:
        say("nothing waits for a decision")
    for record in reversed(decided):
        say(shown_line(record, now))


def _show_change(desk: Desk, record: ProposalRecord, *, as_json: bool) -> None:
    now = datetime.now(UTC)
    if as_json:
        say_json(record.as_dict())
    elif record.is_open and not record.rejections:
        say()
        say(shown_open(record, now, desk.hindrance(record)))
    else:
        say(shown_line(record, now))
