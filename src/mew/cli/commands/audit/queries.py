"""`mew audit list`, `chain`, `grants`, `violations` and `stats`: query the journal."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from mew.audit.queries.chain import JournalEnvelopes, chain_of
from mew.audit.queries.chain import annotated as in_full
from mew.audit.queries.effective_capabilities import effective_capabilities, state_at
from mew.audit.queries.grant_history import grant_history
from mew.audit.queries.search import (
    PART_CHARS_MIN,
    FactFilter,
    OutcomeFilter,
    count_refusals,
    facts_of_grants,
    find_facts,
    last_before,
    proposal_steps,
    repeated_refusals,
    select_facts,
)
from mew.audit.queries.statistics import statistics_of
from mew.audit.record.facts import Fact
from mew.cli import completion
from mew.cli.errors import CommandError
from mew.cli.locate.journal import ConfigOption, JournalOption, open_journal
from mew.cli.locate.login import SpaceOption
from mew.cli.render.table import console, fact_json, json_line
from mew.cli.render.text import note, say_json
from mew.cli.render.times import SinceOption, UntilOption, read_time
from mew.cli.session import JsonOption

from .chain import chain_json, show_chain
from .facts import attempt_json, show_attempts, show_candidates, show_facts, show_refusals
from .grants import given_json, holder_json, show_given, show_holders
from .statistics import show_statistics

__all__ = ["SPACE_FILE", "chain", "grants", "list_facts", "stats", "violations"]

SPACE_FILE: Final = Path("space.yaml")
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="Show at most this many, the newest.")
]
WhoOption = Annotated[
    str | None,
    typer.Option(
        "--who",
        metavar="NAME",
        help="Only what this participant did.",
        autocompletion=completion.configured_participants,
    ),
]

_REFUSED_MAX: Final = 20_000
_OUTCOMES: Final = {None: OutcomeFilter.ANY, True: OutcomeFilter.REFUSED, False: OutcomeFilter.ACCEPTED}


def list_facts(
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    who: WhoOption = None,
    whom: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only what concerned this participant, or was addressed to it."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Only this kind, such as mcp/request or mcp/*.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    about: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only this subject, such as tools/call:write_*.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 50,
    *,
    refused: Annotated[
        bool | None,
        typer.Option("--refused/--accepted", help="Only what was refused, or only what was accepted."),
    ] = None,
    management: Annotated[
        bool,
        typer.Option(
            "--management",
            help="Only grants, invitations, kicks, pauses and the like, and configuration changes.",
        ),
    ] = False,
    oldest: Annotated[bool, typer.Option("--oldest", help="Show the oldest instead of the newest.")] = False,
    json: JsonOption = False,
) -> None:
    """List who did what, newest last. Chat, reasoning and status are in the journal, but not in this list.

    Example: mew audit list --who agent --about 'tools/call:write_*' --since 2h
    """
    now = datetime.now(UTC)
    filters = FactFilter(
        who=_text("--who", who),
        whom=_text("--whom", whom),
        kind=_text("--kind", kind),
        about=_text("--about", about),
        since=read_time("--since", since, now),
        until=read_time("--until", until, now),
        outcome=_OUTCOMES[refused],
        management=management,
    )
    with open_journal(config, journal, space) as opened:
        facts, more = select_facts(opened.index, filters, limit=limit, oldest=oldest)
        steps = proposal_steps(opened.index, facts, datetime.now(UTC))
        lines = [fact_json(fact, steps.get(fact.key)) for fact in facts]
        _answer(lines, lambda out: show_facts(facts, steps, out), json=json)
        if more and not json:
            _remark(f"there are {'newer' if oldest else 'older'} ones: use --limit {limit * 4}")


def chain(
    envelope: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help=f"An envelope: its id, the first or last {PART_CHARS_MIN} characters of it or more, or its entry,"
            " such as 7 or '#7'.",
        ),
    ],
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    *,
    json: JsonOption = False,
) -> None:
    """Show what led to an envelope and what came of it: proposal, decision, request, response, and any edits.

    Example (the id is one that 'mew audit list' shows):
      mew audit chain 3f2a9c1b
    """
    written = _text("ID", envelope) or ""
    with open_journal(config, journal, space) as opened:
        found = find_facts(opened.index, written)
        if not found:
            raise CommandError(_not_found(written))
        if len(found) > 1:
            _show_candidates(found, json=json)
            raise CommandError(
                f"{written!r} could be any of these; write more of the id, or the entry: '#{found[-1].seq}'"
            )
        built = in_full(chain_of(opened.index, found[0]), JournalEnvelopes(opened.reader).envelope)
        steps = proposal_steps(opened.index, built.facts, datetime.now(UTC))
        if json:
            say_json(chain_json(built, steps))
        else:
            show_chain(built, steps, console())


def grants(
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    participant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only what this participant holds.",
            autocompletion=completion.configured_participants,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="As of this time: 2026-01-31, 2026-01-31T12:30:00Z, or 2h for 2 hours ago.",
        ),
    ] = None,
    limit: LimitOption = 50,
    *,
    history: Annotated[
        bool, typer.Option("--history", help="Every grant there ever was, and what became of it.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show who holds which capabilities, who granted them, and until when.

    Examples:
      mew audit grants --participant agent
      mew audit grants --history
    """
    now = datetime.now(UTC)
    only, moment = _text("--participant", participant), read_time("--at", at, now) or now
    with open_journal(config, journal, space) as opened:
        state = state_at(opened.reader, opened.index, moment)
        if history:
            facts = facts_of_grants(opened.index, 0, last_before(opened.index, moment))
            found = [one for one in grant_history(facts, state.grants) if only in (None, one.recipient)]
            given = found[-limit:]
            _answer(list(map(given_json, given)), lambda out: show_given(given, out), json=json)
            if len(found) > limit and not json:
                _remark(f"there are older ones: use --limit {limit * 4}")
        else:
            held = effective_capabilities(state, only)
            _answer(list(map(holder_json, held)), lambda out: show_holders(held, moment, out), json=json)


def violations(
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    who: WhoOption = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only attempts at this kind.", autocompletion=completion.kinds),
    ] = None,
    code: Annotated[
        str | None, typer.Option(metavar="CODE", help="Only this error code, such as capability_violation.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 50,
    *,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count refusals by participant and code.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List what was refused: who tried what, why it was refused, and how often in a row.

    The gateway records at most 20 refusals per second.

    Example: mew audit violations --since 1d --summary
    """
    now = datetime.now(UTC)
    filters = FactFilter(
        who=_text("--who", who),
        kind=_text("--kind", kind),
        refusal=_text("--code", code),
        since=read_time("--since", since, now),
        until=read_time("--until", until, now),
        outcome=OutcomeFilter.REFUSED,
    )
    with open_journal(config, journal, space) as opened:
        if summary:
            counted = count_refusals(opened.index, filters)
            _answer([one._asdict() for one in counted], lambda out: show_refusals(counted, out), json=json)
            return
        page = select_facts(opened.index, filters, limit=_REFUSED_MAX)
        tried = repeated_refusals(page.facts)[-limit:]
        _answer(list(map(attempt_json, tried)), lambda out: show_attempts(tried, out), json=json)
        if page.more:  # also with JSON: the counts in it are too low
            _remark(f"only the newest {len(page.facts):,} refusals are counted; --summary counts all of them")


def stats(
    config: ConfigOption = SPACE_FILE,
    journal: JournalOption = None,
    space: SpaceOption = None,
    since: SinceOption = None,
    *,
    json: JsonOption = False,
) -> None:
    """Count what happened: envelopes by kind and participant, outcomes of proposals and how long they took, refusals.

    Example: mew audit stats --since 7d
    """
    begin = read_time("--since", since, datetime.now(UTC))
    with open_journal(config, journal, space) as opened:
        numbers = statistics_of(opened.reader, opened.index, datetime.now(UTC), begin)
        if json:
            say_json(numbers)
        else:
            show_statistics(numbers, console())


def _answer(lines: Sequence[Any], show: Callable[[Console], None], *, json: bool) -> None:
    """Print each as a line of JSON, or all as a table."""
    if json:
        for line in lines:
            say_json(line)
    elif lines:
        show(console())
    else:
        _remark("nothing found")


def _show_candidates(found: Sequence[Fact], *, json: bool) -> None:
    if json:
        typer.echo("\n".join(json_line(fact_json(fact)) for fact in found))
    else:
        show_candidates(found, console())


def _not_found(written: str) -> str:
    if len(written) < PART_CHARS_MIN:
        return f"there is no envelope {written!r}; write at least {PART_CHARS_MIN} characters of its id"
    return (
        f"there is no envelope whose id begins or ends with {written!r}; chat and reasoning are not indexed"
    )


def _text(option: str, written: str | None) -> str | None:
    """Return the value of an option if it is text: a shell may pass any bytes.

    Raises:
        CommandError: it is not.
    """
    try:
        if written is not None:
            written.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"{option} is not UTF-8 text") from error
    return written


def _remark(text: str) -> None:
    note(Text(text, "dim"))
