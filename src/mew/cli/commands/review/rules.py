"""`mew rules` and `mew why`: what the autopilot learned, and why it asked or decided."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mew.autopilot.comparison import PolicyComparison
from mew.autopilot.rule import RuleState
from mew.autopilot.state import DECISION, OBJECT, RATIFY, REVOKE, RULE
from mew.cli.commands.autopilot import read_config
from mew.cli.errors import CommandError, ExitCode
from mew.cli.render.policy_changes import show_changes
from mew.cli.render.text import say, say_json
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.protocol.visible import visible

from .write_rule import write

__all__ = ["app", "why"]

_SPAN: Final = re.compile(r"(\d{1,4})([mhd])")
_ANSWER_S: Final = 10.0
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="The rules of the autopilot: list, show, accept, write, pause, revoke, object, export, test.",
)

app.command()(write)

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The rule, as 'mew rules list' names it.")]


@app.command("list")
@session_command
def list_rules(session: SpaceSession) -> None:
    """List the rules of the autopilot: state, sentence, evidence and bound.

    Example: mew rules list
    """
    rules = session.run(_latest)
    if session.json:
        say_json(list(rules.values()))
        return
    if not rules:
        say("No rules yet. The autopilot suggests one after several approvals of similar calls.")
    for rule in rules.values():
        say(f"{rule['rule']}  {_state(rule):<24} {visible(str(rule.get('sentence')))}")
        say(f"{'':11}{visible(str(rule.get('bound')))}")


@app.command()
@session_command
def show(session: SpaceSession, rule: RuleId) -> None:
    """Show one rule: sentence, evidence, bound and what it does not cover, last use and sample calls.

    Example: mew rules show r3f2a91c0
    """
    found = _one(session.run(_latest), rule)
    if session.json:
        say_json(found)
        return
    say(visible(str(found.get("sentence"))))
    say(f"state      {_state(found)}")
    say(f"evidence   {visible(str(found.get('bound')))}")
    say(f"           {visible(str(found.get('limits')))}")
    say(f"uses       {found.get('uses')}, last {found.get('last_used') or 'never'}")
    for sample in found.get("samples") or ():
        say(f"sample     {visible(str(sample))}")


@app.command()
@session_command
def accept(
    session: SpaceSession,
    rule: RuleId,
    span: Annotated[
        str | None, typer.Option("--for", metavar="SPAN", help="How long: 30m, 1h, 7d. Else until revoked.")
    ] = None,
    uses: Annotated[
        int | None, typer.Option("--uses", min=1, metavar="N", help="How many calls it may decide.")
    ] = None,
) -> None:
    """Put a suggested rule into force: the autopilot then decides such calls without asking.

    Example: mew rules accept r3f2a91c0 --for 7d
    """
    order: dict[str, Any] = {"rule": rule}
    if span is not None:
        order["until"] = (datetime.now(UTC) + _span(span)).isoformat()
    if uses is not None:
        order["uses"] = uses
    _send(session, RATIFY, rule, order)


@app.command()
@session_command
def pause(session: SpaceSession, rule: RuleId) -> None:
    """Let a rule sleep until somebody accepts it again.

    Example: mew rules pause r3f2a91c0
    """
    _send(session, REVOKE, rule, {"rule": rule, "pause": True})


@app.command()
@session_command
def revoke(session: SpaceSession, rule: RuleId) -> None:
    """Take a rule out of force.

    Example: mew rules revoke r3f2a91c0
    """
    _send(session, REVOKE, rule, {"rule": rule})


@app.command("object")
@session_command
def object_to(
    session: SpaceSession, proposal: Annotated[str, typer.Argument(metavar="ID", help="The proposal.")]
) -> None:
    """Say that a proposal should have been asked about: the rule that decided it is demoted.

    Example: mew rules object 3f2a91c0
    """

    async def core(me: Client) -> str:
        id = await _whole_id(me, proposal)
        await me.send(OBJECT, {"proposal": id}, correlation_id=id)
        return id

    id = session.run(core)
    if session.json:
        say_json({"proposal": id})
    else:
        say("Objected. The rule that decided it is demoted and has to earn its evidence again.")


@app.command()
@session_command
def export(session: SpaceSession, rule: RuleId) -> None:
    """Write a rule's group and pattern as JSON, for programs.

    Example: mew rules export r3f2a91c0
    """
    found = _one(session.run(_latest), rule)
    say_json({"rule": found["rule"], "group": found.get("group"), "pattern": found.get("pattern")})


@app.command()
@session_command
def test(
    session: SpaceSession,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Settings of the autopilot.")],
) -> None:
    """Run the settings of a file over the history: which past decisions would change, and for whom.

    Exit code 1: a proposal that was rejected would have been fulfilled.

    Example: mew rules test space.yaml
    """
    comparison = PolicyComparison(read_config(file))

    async def core(me: Client) -> None:
        async for envelope in me.history():
            comparison.apply(envelope, datetime.now(UTC))

    session.run(core)
    show_changes(comparison, as_json=session.json)


@session_command
def why(
    session: SpaceSession, proposal: Annotated[str, typer.Argument(metavar="ID", help="The proposal.")]
) -> None:
    """Say why the autopilot asked about a proposal, or which rule decided it, with the rule's bound.

    Exit code 1: it decided nothing about it.

    Example: mew why 3f2a91c0
    """

    async def core(me: Client) -> dict[str, Any]:
        async for envelope in me.history(kind=DECISION, newest_first=True):
            if any(id.startswith(proposal) for id in envelope.correlation_id):
                return {"proposal": envelope.correlation_id[0], **envelope.content}
        raise CommandError(f"the autopilot decided nothing about {proposal!r}", ExitCode.NO)

    found = session.run(core)
    if session.json:
        say_json(found)
        return
    begin = {"fulfil": "Decided by", "audit": "Asked although covered by", "shadow": "Would be decided by"}
    verdict = str(found.get("verdict"))
    rule = f" rule {found['rule']}" if found.get("rule") else " a rule"
    reason = visible(str(found.get("why")))
    say(f"{begin[verdict]}{rule}: {reason}" if verdict in begin else f"Asked because {reason}")
    if found.get("bound"):
        say(visible(str(found["bound"])))


async def _latest(me: Client) -> dict[str, dict[str, Any]]:
    """The newest word of an autopilot on each rule, the newest rule first."""
    found: dict[str, dict[str, Any]] = {}
    async for envelope in me.history(kind=RULE, newest_first=True):
        content = envelope.content
        if isinstance(content.get("rule"), str):
            found.setdefault(content["rule"], content)
    return found


async def _whole_id(me: Client, written: str) -> str:
    async for envelope in me.history(kind="mcp/proposal", newest_first=True):
        if envelope.id.startswith(written):
            return envelope.id
    raise CommandError(f"no proposal begins with {written!r}", ExitCode.NO)


def _send(session: SpaceSession, kind: str, rule: str, order: dict[str, Any]) -> None:
    async def core(me: Client) -> dict[str, Any]:
        _one(await _latest(me), rule)
        answers = me.envelopes(RULE)
        await me.send(kind, order)
        async for envelope in answers:
            if envelope.content.get("rule") == rule:
                return envelope.content
        raise CommandError("the connection ended before the autopilot answered", ExitCode.NO)

    async def within(me: Client) -> dict[str, Any]:
        try:
            return await asyncio.wait_for(core(me), _ANSWER_S)
        except TimeoutError:
            raise CommandError("the autopilot did not answer; is it running?", ExitCode.NO) from None

    said = session.run(within)
    if said.get("refused"):
        raise CommandError(str(said["refused"]), ExitCode.NO)
    if session.json:
        say_json(said)
    else:
        say(f"{rule} is {_state(said)}.")


def _one(rules: dict[str, dict[str, Any]], id: str) -> dict[str, Any]:
    if id not in rules:
        raise CommandError(f"there is no rule {id!r}; 'mew rules list' shows them", ExitCode.NO)
    return rules[id]


def _state(rule: dict[str, Any]) -> str:
    state = str(rule.get("state"))
    if state == RuleState.ACTIVE and rule.get("by"):
        return f"{state}, ratified by {visible(str(rule['by']))}"
    return state


def _span(written: str) -> timedelta:
    found = _SPAN.fullmatch(written)
    if found is None:
        raise CommandError(f"--for {written!r}: expected a number and m, h or d, like 1h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
