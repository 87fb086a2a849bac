"""What the record says, in tables: who did what, and what was refused."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from mew.audit.queries.proposals import ProposalStep
from mew.audit.queries.search import RefusalCount, RepeatedRefusal
from mew.audit.record.facts import Fact, FactKey
from mew.cli.render.table import (
    about,
    clock,
    day,
    fact_json,
    is_narrow,
    moment,
    name,
    outcome,
    put,
    short_id,
    table,
    verb,
    who_did,
    whom,
)
from mew.protocol.visible import visible

__all__ = ["attempt_json", "show_attempts", "show_candidates", "show_facts", "show_refusals"]

_OUTCOME_CHARS: Final = 20  # the longest code
_KIND_CHARS_MAX: Final = 60


def show_facts(facts: Sequence[Fact], steps: Mapping[FactKey, ProposalStep], out: Console) -> None:
    """Who did what. On a narrow terminal ids are left out: the number of an entry is as good."""
    narrow = is_narrow(out)
    about_whom = (
        [Column("about", overflow="fold")] if narrow else [Column("about", overflow="fold"), Column("whom")]
    )
    rows = table(
        out,
        Column("time", no_wrap=True),
        Column("entry", justify="right", no_wrap=True),
        Column("who", no_wrap=True),
        Column("what", no_wrap=True),
        *about_whom,
        Column("outcome", overflow="fold", min_width=_OUTCOME_CHARS),
        *([] if narrow else [Column("id", no_wrap=True)]),
    )
    before: datetime | None = None
    for fact in facts:
        before = _begin_day(rows, fact.time, before)
        step = steps.get(fact.key)
        did = clock(fact.time), str(fact.seq), who_did(fact), verb(fact, step)
        if narrow:
            rows.add_row(*did, _about_whom(fact), outcome(fact, step))
        else:
            rows.add_row(*did, about(fact), whom(fact), outcome(fact, step), short_id(fact))
    put(out, rows)


def show_candidates(facts: Sequence[Fact], out: Console) -> None:
    """Those that an id may mean."""
    rows = table(
        out,
        Column("time"),
        Column("entry", justify="right"),
        Column("who"),
        Column("what"),
        Column("id", overflow="fold"),
    )
    for fact in facts:
        rows.add_row(moment(fact.time), str(fact.seq), who_did(fact), verb(fact), Text(visible(fact.id)))
    put(out, rows)


def _about_whom(fact: Fact) -> Text:
    parts = about(fact), whom(fact)
    return Text.assemble(parts[0], " → " if parts[0] and parts[1] else "", parts[1])


def show_attempts(attempts: Sequence[RepeatedRefusal], out: Console) -> None:
    """What was refused; the time and the number are those of the last of each."""
    rows = table(
        out,
        Column("time", no_wrap=True),
        Column("entry", justify="right", no_wrap=True),
        Column("who", no_wrap=True),
        Column("tried", overflow="fold"),
        Column("about", overflow="fold"),
        Column("refused with", overflow="fold"),
        Column("times", justify="right", no_wrap=True),
    )
    before: datetime | None = None
    for attempt in attempts:
        fact = attempt.last
        before = _begin_day(rows, fact.time, before)
        tried, refusal = Text(visible(fact.kind, _KIND_CHARS_MAX)), _code(fact.refusal)
        rows.add_row(
            clock(fact.time), str(fact.seq), name(fact.who), tried, about(fact), refusal, f"{attempt.times:,}"
        )
    put(out, rows)


def attempt_json(attempt: RepeatedRefusal) -> dict[str, Any]:
    """The last of them, with how often it was tried, and since when."""
    return fact_json(attempt.last) | {"times": attempt.times, "first": attempt.first.time}


def show_refusals(refusals: Sequence[RefusalCount], out: Console) -> None:
    """How often each was refused, and why."""
    rows = table(
        out,
        Column("who", no_wrap=True),
        Column("refused with", overflow="fold"),
        Column("times", justify="right", no_wrap=True),
        Column("first", no_wrap=True),
        Column("last", no_wrap=True),
    )
    for one in refusals:
        rows.add_row(name(one.who), _code(one.refusal), f"{one.times:,}", moment(one.first), moment(one.last))
    put(out, rows)


def _begin_day(rows: Table, at: datetime, before: datetime | None) -> datetime:
    if before is None or day(before) != day(at):
        rows.add_row(Text(day(at), "dim"))
    return at


def _code(refusal: str) -> Text:
    return Text(visible(refusal, _KIND_CHARS_MAX), "red")
