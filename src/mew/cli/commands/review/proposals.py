"""`mew proposals`, `mew approve`, `mew reject`: what waits for a decision, and the decision."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from mew.cli import completion
from mew.cli.arguments import ArgumentsOption
from mew.cli.errors import CommandError
from mew.cli.locate.space_file import find_space_file
from mew.cli.prompt import has_terminal
from mew.cli.render.ids import short
from mew.cli.render.proposal import ended, shown_in_full, shown_line, shown_open
from mew.cli.render.text import note, say, say_json, shown_value
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.proposals.record import ProposalRecord, ProposalStatus

from .decide import APPROVED_S, ApprovalOptions, approved, rejected, rejected_all_left
from .review_session import ReviewSession

__all__ = ["approve", "proposals", "reject"]

ProposalId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Id of the proposal; its first or last 3 characters or more are enough.",
        autocompletion=completion.proposals,
    ),
]


@session_command
def proposals(
    session: SpaceSession,
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="Show this proposal in full.", autocompletion=completion.proposals
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, max=1_000, help="Show this many decided proposals.")
    ] = 5,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep running, and show new proposals and decisions.")
    ] = False,
) -> None:
    """List the proposals that wait for a decision, and the last ones that were decided.

    Examples:
      mew proposals
      mew proposals --watch
    """
    if which is not None:
        session.run(lambda me: _one(me, which, as_json=session.json))
    else:
        session.run(lambda me: _listed(me, limit, as_json=session.json, watch=watch))


@session_command
def approve(
    session: SpaceSession,
    proposal: ProposalId,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Run it with this argument instead. May be repeated."
        ),
    ] = None,
    arguments: ArgumentsOption = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="NAME", help="Who runs it, if the proposal does not say.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for the answer.")
    ] = APPROVED_S,
    always: Annotated[
        int | None,
        typer.Option(
            "--always",
            min=0,
            metavar="N",
            help="And do not ask again for such calls: rule N of those offered, 1 for this exact call; 0 to choose.",
        ),
    ] = None,
    *,
    edit: Annotated[
        bool, typer.Option("--edit", "-e", help="Change the arguments in $EDITOR before it runs.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Do not ask; only if the space.yaml allows unattended approvals."),
    ] = False,
    anyway: Annotated[
        bool,
        typer.Option("--anyway", help="Also if its proposer withdrew it, say because its MCP host is gone."),
    ] = False,
) -> None:
    """Approve a proposal, as it is or with other arguments. Shows what will run, and asks for confirmation.

    Examples (the id is one that 'mew proposals' shows):
      mew approve 3f2a91c0
      mew approve 3f2a91c0 --set path=notes.txt
      mew approve 3f2a91c0 --edit
      mew approve 3f2a91c0 --always 0
    """
    if yes and always is not None:
        raise CommandError("--always is a person's decision: leave --yes out")
    if yes:
        _check_unattended(session)
    elif not has_terminal():
        raise CommandError(
            "cannot ask for confirmation: there is no terminal; decide on the page ('mew page'), or let --yes"
            " approve without a person by 'approvals: {unattended: true}' in the space.yaml"
        )
    wanted = ApprovalOptions(
        changes=changes or (),
        arguments=arguments,
        target=target,
        timeout_s=timeout_s,
        edit=edit,
        yes=yes,
        always=always,
        anyway=anyway,
    )
    done = replace(session, decides=True).run(lambda me: approved(me, proposal, wanted))
    if session.json:
        say_json({"proposal": done.id, "edited": done.edited, "value": done.value})
    else:
        say(shown_value(done.value))


def _check_unattended(session: SpaceSession) -> None:
    """
    Raises:
        CommandError: no space.yaml allows --yes.
    """
    flags = session.options
    folder = find_space_file(flags.config, flags.wrapped)
    if folder is None:
        raise CommandError(
            "--yes approves without a person: name with --config a space.yaml that has"
            " 'approvals: {unattended: true}'"
        )
    if not folder.config.spaces[folder.space(session.login.space)].unattended_approvals:
        raise CommandError(
            f"--yes approves without a person, and {folder.path} does not allow that: set"
            " 'approvals: {unattended: true}' there, or leave --yes out and confirm at the terminal"
        )


@session_command
def reject(
    session: SpaceSession,
    proposal: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="Id of the proposal; its first or last 3 characters or more are enough.",
            autocompletion=completion.proposals,
        ),
    ] = None,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            "-r",
            metavar="WORD",
            autocompletion=completion.reject_reasons,
            help="Reason code: disagree, inappropriate, unsafe, busy, incapable, policy, invalid, or your own.",
        ),
    ] = "disagree",
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="A message for the proposer and the audit record.")
    ] = None,
    *,
    left: Annotated[
        bool, typer.Option("--left", help="Reject every open proposal whose proposer has left.")
    ] = False,
) -> None:
    """Reject a proposal. Others can still approve it unless the proposer gives up.

    A proposer that has left can neither give up nor use a result: --left clears what it left behind from your list.

    Examples (the id is one that 'mew proposals' shows):
      mew reject 3f2a91c0 -r unsafe -m "Not in the home folder, please."
      mew reject --left
    """
    if left is (proposal is not None):
        raise CommandError("Name one proposal, or use --left for all whose proposer has left.")
    if proposal is None:
        records = session.run(lambda me: rejected_all_left(me, reason, message))
    else:
        records = [session.run(lambda me: rejected(me, proposal, reason, message))]
    if session.json:
        now = datetime.now(UTC)
        told = [record.as_dict(now) for record in records]
        say_json(told if left else told[0])
    else:
        say("\n".join(f"rejected {short(record.id)}" for record in records) or "no proposer has left")


async def _one(me: Client, which: str, *, as_json: bool) -> None:
    session = await ReviewSession.open(me, about=which)
    await session.look_at_tools([session.find(which)])
    record, now = session.find(which), datetime.now(UTC)
    if as_json:
        say_json(record.as_dict(now))
        return
    say(shown_open(record, now, session.hindrance(record)))
    for line in shown_in_full(record, record.arguments):
        say(line)
    say(f"  id {record.id}, it is {ended(record, now).plain}")


async def _listed(me: Client, limit: int, *, as_json: bool, watch: bool) -> None:
    coming = me.envelopes("mcp/*")
    session = await ReviewSession.open(me)
    await session.look_at_tools(session.waiting())
    waiting = session.waiting()
    others = [record for record in session.book if record not in waiting]
    decided = others[-limit:] if limit else []
    if as_json and not watch:
        now = datetime.now(UTC)
        say_json([record.as_dict(now) for record in (*waiting, *reversed(decided))])
        return
    _show(session, waiting, decided, as_json=as_json)
    if not watch:
        return
    if not waiting:
        note("waiting for proposals; stop with Ctrl-C")
    told = {record.id: _state(record) for record in session.book}
    async with coming:
        async for _ in coming:
            for record in session.book:
                if told.get(record.id) != _state(record):
                    await session.look_at_tools([record] if record.is_open(datetime.now(UTC)) else [])
                    told[record.id] = _state(session.book[record.id])
                    _show_change(session, session.book[record.id], as_json=as_json)


def _state(record: ProposalRecord) -> tuple[ProposalStatus, int]:
    return record.status(datetime.now(UTC)), len(record.rejections)


def _show(
    session: ReviewSession, waiting: list[ProposalRecord], decided: list[ProposalRecord], *, as_json: bool
) -> None:
    now = datetime.now(UTC)
    if as_json:
        for record in waiting:
            say_json(record.as_dict(now))
        return
    for record in waiting:
        say(shown_open(record, now, session.hindrance(record)))
        say()
    if not waiting:
        say("no proposals are waiting for a decision")
    for record in reversed(decided):
        say(shown_line(record, now))


def _show_change(session: ReviewSession, record: ProposalRecord, *, as_json: bool) -> None:
    now = datetime.now(UTC)
    if as_json:
        say_json(record.as_dict(now))
    elif record.is_open(now) and not record.rejections:
        say()
        say(shown_open(record, now, session.hindrance(record)))
    else:
        say(shown_line(record, now))
