"""`mew audit list`, `chain`, `grants`, `violations` and `stats`: what the record says."""

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
from mew.cli.errors import told
from mew.cli.locate.journal import Config, Failed, Journal, SpaceName
from mew.cli.locate.record import AsJson, Limit, Since, Until, Who, asking, plain
from mew.cli.render.table import console, fact_json, written_json
from mew.cli.render.times import read_time

from .chain import chain_json, show_chain
from .facts import attempt_json, show_attempts, show_candidates, show_facts, show_refusals
from .grants import given_json, holder_json, show_given, show_holders
from .statistics import show_statistics

__all__ = ["chain", "grants", "list_facts", "stats", "violations"]

_REFUSED_MAX: Final = 20_000
_AT_MOST: Final = "of what is refused, at most 20 a second are recorded"
_OUTCOMES: Final = {None: OutcomeFilter.ANY, True: OutcomeFilter.REFUSED, False: OutcomeFilter.ACCEPTED}


@told()
def list_facts(
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    who: Who = None,
    whom: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only what concerned this participant, or was addressed to it."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only kinds like this: mcp/request, or mcp/*.")
    ] = None,
    about: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only what is about this: tools/call:write_*.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    *,
    refused: Annotated[
        bool | None, typer.Option("--refused/--accepted", help="Only what was refused, or accepted.")
    ] = None,
    management: Annotated[
        bool,
        typer.Option(
            "--management",
            help="Only grants, invitations, kicks, pauses and the like, and what the operator set.",
        ),
    ] = False,
    oldest: Annotated[bool, typer.Option("--oldest", help="The first ones, not the last.")] = False,
    json: AsJson = False,
) -> None:
    """Who did what, the newest last. What was merely said is not in the record: chat, reasoning, status.

    Example: mew audit list --who agent --about 'tools/call:write_*' --since 2h
    """
    now = datetime.now(UTC)
    filters = FactFilter(
        who=plain("--who", who),
        whom=plain("--whom", whom),
        kind=plain("--kind", kind),
        about=plain("--about", about),
        since=read_time("--since", since, now),
        until=read_time("--until", until, now),
        outcome=_OUTCOMES[refused],
        management=management,
    )
    with asking(config, journal, space) as asked:
        facts, more = select_facts(asked.record, filters, limit=limit, oldest=oldest)
        steps = proposal_steps(asked.record, facts, datetime.now(UTC))
        lines = [fact_json(fact, steps.get(fact.key)) for fact in facts]
        _answer(lines, lambda out: show_facts(facts, steps, out), json=json)
        if more and not json:
            _remark(f"there are {'newer' if oldest else 'older'} ones: --limit {limit * 4}")


@told()
def chain(
    envelope: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help=f"An envelope: its id, {PART_CHARS_MIN} characters of either end of it, or its entry: 7, or '#7'.",
        ),
    ],
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    *,
    json: AsJson = False,
) -> None:
    """What led to an envelope, and what came of it: proposal, decision, request, response, and what was changed.

    Example (the id is one that 'mew audit list' shows):
      mew audit chain 3f2a9c1b
    """
    written = plain("ID", envelope) or ""
    with asking(config, journal, space) as asked:
        found = find_facts(asked.record, written)
        if not found:
            raise Failed(_not_found(written))
        if len(found) > 1:
            _show_candidates(found, json=json)
            raise Failed(
                f"{written!r} may be any of these; write more of the id, or the entry: '#{found[-1].seq}'"
            )
        built = in_full(chain_of(asked.record, found[0]), JournalEnvelopes(asked.journal).envelope)
        steps = proposal_steps(asked.record, built.facts, datetime.now(UTC))
        if json:
            typer.echo(written_json(chain_json(built, steps)))
        else:
            show_chain(built, steps, console())


@told()
def grants(
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    participant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this participant holds.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="As it was then: 2026-01-31, 2026-01-31T12:30:00Z, or 2h for so long ago.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Of the history, the last so many.")
    ] = 50,
    *,
    history: Annotated[
        bool, typer.Option("--history", help="Every grant there was, and what became of it.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Who holds what, from whom, through which chain, and until when.

    Examples:
      mew audit grants --participant agent
      mew audit grants --history
    """
    now = datetime.now(UTC)
    only, moment = plain("--participant", participant), read_time("--at", at, now) or now
    with asking(config, journal, space) as asked:
        state = state_at(asked.journal, asked.record, moment)
        if history:
            facts = facts_of_grants(asked.record, 0, last_before(asked.record, moment))
            found = [one for one in grant_history(facts, state.grants) if only in (None, one.recipient)]
            given = found[-limit:]
            _answer(list(map(given_json, given)), lambda out: show_given(given, out), json=json)
            if len(found) > limit and not json:
                _remark(f"there are older ones: --limit {limit * 4}")
        else:
            held = effective_capabilities(state, only)
            _answer(list(map(holder_json, held)), lambda out: show_holders(held, moment, out), json=json)


@told()
def violations(
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    who: Who = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only attempts at kinds like this.")
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            metavar="CODE", help="Only what was refused with this code, such as capability_violation."
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    *,
    summary: Annotated[bool, typer.Option("--summary", help="How often each participant, by code.")] = False,
    json: AsJson = False,
) -> None:
    """What was refused: who tried what, why not, and how often in a row.

    Example: mew audit violations --since 1d --summary
    """
    now = datetime.now(UTC)
    filters = FactFilter(
        who=plain("--who", who),
        kind=plain("--kind", kind),
        refusal=plain("--code", code),
        since=read_time("--since", since, now),
        until=read_time("--until", until, now),
        outcome=OutcomeFilter.REFUSED,
    )
    with asking(config, journal, space) as asked:
        if summary:
            counted = count_refusals(asked.record, filters)
            _answer([one._asdict() for one in counted], lambda out: show_refusals(counted, out), json=json)
        else:
            page = select_facts(asked.record, filters, limit=_REFUSED_MAX)
            tried = repeated_refusals(page.facts)[-limit:]
            _answer(list(map(attempt_json, tried)), lambda out: show_attempts(tried, out), json=json)
            if page.more:  # also beside JSON: the times in it are too few
                _remark(
                    f"counted are the last {len(page.facts):,}; there are older ones, which --summary counts too"
                )
        if not json:
            _remark(_AT_MOST)


@told()
def stats(
    config: Config = Path("space.yaml"),
    journal: Journal = None,
    space: SpaceName = None,
    since: Since = None,
    *,
    json: AsJson = False,
) -> None:
    """The space in numbers: what was done by whom, what became of proposals and how soon, what was refused.

    Example: mew audit stats --since 7d
    """
    begin = read_time("--since", since, datetime.now(UTC))
    with asking(config, journal, space) as asked:
        numbers = statistics_of(asked.journal, asked.record, datetime.now(UTC), begin)
        if json:
            typer.echo(written_json(numbers))
        else:
            show_statistics(numbers, console())


def _answer(lines: Sequence[Any], show: Callable[[Console], None], *, json: bool) -> None:
    """A line of JSON for each, or a table of all, if there are any."""
    if json:
        for line in lines:
            typer.echo(written_json(line))
    elif lines:
        show(console())
    else:
        _remark("the record has nothing of that")


def _show_candidates(found: Sequence[Fact], *, json: bool) -> None:
    for fact in found if json else ():
        typer.echo(written_json(fact_json(fact)))
    if not json:
        show_candidates(found, console())


def _not_found(written: str) -> str:
    if len(written) < PART_CHARS_MIN:
        return f"the record has no envelope {written!r}; write at least {PART_CHARS_MIN} characters of its id"
    return f"the record has no envelope whose id begins or ends with {written!r}; chat and reasoning are not in it"


def _remark(text: str) -> None:
    Console(stderr=True, highlight=False).print(Text(text, "dim"), soft_wrap=True)
