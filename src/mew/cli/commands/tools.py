"""`mew tools`, `mew call`, `mew propose`: what others offer, and having it done."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from mew.cli import completion
from mew.cli.arguments import ArgumentsOption, Pairs, read_pairs
from mew.cli.elicitation import answering
from mew.cli.errors import CommandError
from mew.cli.render.envelope import colour_of
from mew.cli.render.ids import short
from mew.cli.render.text import note, say, say_json, shown_value
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.client.errors import MewError, Unanswered
from mew.client.mcp.requests import operation
from mew.client.mcp.validation import mismatch
from mew.client.proposals.outcomes import Fulfilled, ProposalUpdate
from mew.proposals.catalogue import Tool
from mew.protocol.kinds import Kind
from mew.protocol.visible import cut, named, visible

__all__ = ["arguments_for", "call", "offered", "propose", "shown_offers", "tools"]

Name = Annotated[
    str,
    typer.Argument(
        metavar="PARTICIPANT", help="Who offers the tool.", autocompletion=completion.participants
    ),
]
ToolName = Annotated[
    str, typer.Argument(metavar="TOOL", help="Name of the tool.", autocompletion=completion.tools)
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for the answer."),
]
Why = Annotated[
    str | None,
    typer.Option("--why", metavar="TEXT", help="The purpose, shown to reviewers if the call is proposed."),
]
ExpireOption = Annotated[
    float | None,
    typer.Option(
        "--expire", min=1, max=2_592_000, metavar="SECONDS", help="The proposal expires after this time."
    ),
]
_PATIENCE_S: Final = 300.0  # with people, who are to decide or to answer


@session_command
def tools(
    session: SpaceSession,
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="[PARTICIPANT]",
            help="Whose tools; by default those of everyone connected.",
            autocompletion=completion.participants,
        ),
    ] = None,
) -> None:
    """List the tools that participants offer, and how to call them.

    Examples:
      mew tools
      mew tools files --json
    """
    found = session.run(lambda me: offered(me, participant))
    if session.json:
        say_json(
            {name: [tool.as_mcp() for tool in listed] for name, listed in found.items() if listed is not None}
        )
        return
    for line in shown_offers(found):
        say(line)


@session_command
def call(
    session: SpaceSession,
    participant: Name,
    tool: ToolName,
    pairs: Pairs = None,
    arguments: ArgumentsOption = None,
    timeout_s: Timeout = None,
    why: Why = None,
    expire: ExpireOption = None,
    *,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the text unchanged, to redirect it into a file.")
    ] = False,
) -> None:
    """Call a tool and print its result. If you may not call it, propose the call and wait for approval.

    Examples:
      mew call files read_text_file path=notes.txt
      mew call files write_file path=log.txt content=@/etc/hostname
    """
    if raw and sys.stdout.isatty():
        raise CommandError("--raw may send commands to a terminal; redirect it, or leave it out")

    async def core(me: Client) -> Any:
        given, _ = await arguments_for(me, participant, tool, pairs or [], arguments)
        async with answering(me):
            return await me.call(
                participant,
                tool,
                given,
                timeout_s=timeout_s or expire or _PATIENCE_S,
                on_progress=_progress,
                on_update=_tell,
                why=why,
                expires_in=expire,
            )

    value = session.run(core)
    if session.json:
        say_json(value)
    elif raw and isinstance(value, str):
        sys.stdout.buffer.write(value.encode("utf-8", "surrogatepass"))
    else:
        say(shown_value(value))


@session_command
def propose(
    session: SpaceSession,
    participant: Name,
    tool: ToolName,
    pairs: Pairs = None,
    arguments: ArgumentsOption = None,
    timeout_s: Timeout = None,
    why: Why = None,
    expire: ExpireOption = None,
    *,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Propose it and exit; the proposal stays open.")
    ] = False,
) -> None:
    """Propose a tool call and wait for the outcome. Ctrl-C withdraws the proposal.

    Examples:
      mew propose files write_file path=notes.txt content="Hello"
      mew propose files delete_file path=old-notes.txt --no-wait
    """

    async def core(me: Client) -> tuple[str, Any]:
        given, problem = await arguments_for(me, participant, tool, pairs or [], arguments)
        if no_wait:
            payload = operation("tools/call", {"name": tool, "arguments": given})
            if said := "\n".join(filter(None, (why, problem))):
                payload["why"] = said
            if expire is not None:
                payload["expires_at"] = (datetime.now(UTC) + timedelta(seconds=expire)).isoformat()
            return (await me.send(Kind.MCP_PROPOSAL, payload, to=participant)).id, None
        proposal = await me.propose_call(
            participant,
            tool,
            given,
            timeout_s=timeout_s or expire or _PATIENCE_S,
            on_update=_tell,
            why=why,
            expires_in=expire,
        )
        return proposal.id, await proposal.value()

    proposal_id, value = session.run(core)
    if session.json:
        say_json({"proposal": proposal_id} if no_wait else {"proposal": proposal_id, "value": value})
    elif no_wait:
        say(f"proposed {short(proposal_id)}")
    else:
        say(shown_value(value))


async def offered(me: Client, participant: str | None) -> Mapping[str, Sequence[Tool] | None]:
    """The tools of one participant, or of everyone who is here; None for those who do not answer.

    Raises:
        MewError: the one who is named does not say.
    """
    if participant is not None:
        return {participant: await me.tools(participant)}
    listing = operation("tools/list", {})
    others = [who for who in me.participants if who != me.id]
    found: dict[str, Sequence[Tool] | None] = dict.fromkeys(others)

    async def look(who: str) -> None:
        with suppress(MewError):
            found[who] = await me.tools(who)

    async with asyncio.TaskGroup() as tasks:
        for who in others:
            if me.can_send(Kind.MCP_REQUEST, listing, to=who):
                tasks.create_task(look(who))
    return found


async def arguments_for(
    me: Client, participant: str, tool: str, pairs: list[str], whole: str | None
) -> tuple[dict[str, Any], str | None]:
    """Read arguments as typed, by the schema of the tool if it is known; return also how they do not match it.

    Raises:
        CommandError: they are not arguments, or there is no such tool.
    """
    if participant not in me.participants:
        note(f"{named(participant)} is not here; waiting a moment for it")
    if not me.can_send(Kind.MCP_REQUEST, operation("tools/list", {}), to=participant):
        return read_pairs(pairs, whole), None
    try:
        listed = await me.tools(participant)
    except Unanswered:
        return read_pairs(pairs, whole), None
    schema = next((one.input_schema for one in listed if one.name == tool), None)
    if tool not in {one.name for one in listed}:
        nearest = get_close_matches(tool, [one.name for one in listed], 1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"'mew tools {participant}' lists those it has"
        raise CommandError(f"{named(participant)} has no tool {tool!r}; {hint}")
    given = read_pairs(pairs, whole, schema)
    problem = mismatch(given, schema)
    if problem is not None:
        note(f"{problem}; 'mew tools {participant}' says what it takes")
    return given, problem


def _tell(stage: ProposalUpdate) -> None:
    """Where it failed, that is said at the end."""
    if stage.outcome is None or isinstance(stage.outcome, Fulfilled):
        note(f"{short(stage.proposal_id)}: {stage}")


def _progress(done: float, total: float | None, message: str | None) -> None:
    if sys.stderr.isatty():
        of = "" if total is None else f" of {total:g}"
        note(f"{done:g}{of}{'' if message is None else f': {message}'}")


_DESCRIPTION_CHARS: Final = 200
_PARAMETERS_MAX: Final = 24
_HINTS: Final = (
    ("readOnlyHint", True, "says it only reads", "dim"),
    ("destructiveHint", True, "says it may destroy", "red"),
)


def shown_offers(offers: Mapping[str, Sequence[Tool] | None]) -> Iterator[Text]:
    """A block for each participant that has any."""
    silent = [named(who) for who, listed in offers.items() if listed is None]
    for who, listed in offers.items():
        if listed:
            yield Text(named(who), f"bold {colour_of(who)}")
            for tool in listed:
                yield from _shown(tool)
    if not any(offers.values()):
        yield Text("nobody here offers tools")
    if silent:
        yield Text(f"did not say, or you may not ask: {', '.join(silent)}", "dim")


def _shown(tool: Tool) -> Iterator[Text]:
    called = Text.assemble("  ", (named(tool.name), "bold"))
    called.append(f"({', '.join(_parameters(tool.input_schema))})")
    for hint, value, text, style in _HINTS:
        if tool.hint(hint) is value:
            called.append("  ").append(text, style)
    yield called
    description = tool.description or tool.title
    if description is not None and description.strip():
        first = description.strip().split("\n\n")[0]
        yield Text(f"      {visible(cut(' '.join(first.split()), _DESCRIPTION_CHARS))}", "dim")


def _parameters(schema: Any) -> Iterator[str]:
    """`path`, `mode=...` for what may be left out, and of which type each is."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    ordered = sorted(properties, key=lambda name: name not in required)
    for name in ordered[:_PARAMETERS_MAX]:
        kind = properties[name].get("type") if isinstance(properties[name], dict) else None
        of = f": {visible(kind, 20)}" if isinstance(kind, str) and kind != "string" else ""
        shown = f"{named(name, 40)}{of}"
        yield shown if name in required else f"[{shown}]"
    if len(ordered) > _PARAMETERS_MAX:
        yield "…"
