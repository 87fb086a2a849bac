"""Search the audit record with SQL: one scan over the facts, or an index lookup.

A walk over a million facts takes a fifth of a second, and ends as soon as enough is found. So filters are not left to
the planner: with an index in another order all that fits would be looked up and sorted first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from mew.audit.record.facts import CONFIGURED, IDENTIFIED, Fact, FactKey
from mew.audit.record.index import Index
from mew.journal.record import from_microseconds, to_microseconds
from mew.protocol.envelope import GATEWAY
from mew.protocol.kinds import Kind

from .proposals import ProposalStep, records_of, steps_of

__all__ = [
    "PART_CHARS_MIN",
    "FactFilter",
    "OutcomeFilter",
    "RefusalCount",
    "RepeatedRefusal",
    "count_refusals",
    "facts_about",
    "facts_of_grants",
    "find_facts",
    "first_and_last",
    "first_since",
    "last_before",
    "proposal_facts",
    "proposal_of",
    "proposal_steps",
    "repeated_refusals",
    "select_facts",
    "tally",
    "tally_refused",
]

PART_CHARS_MIN: Final = 3
_CAUSES_MAX: Final = 8
_CANDIDATES_MAX: Final = 21
_DIGITS_MAX: Final = 18
_LAST_CHARACTER: Final = "\U0010ffff"
_GATEWAY_IN_SHORT: Final = "gateway"
_OPERATORS: Final = f"+kind IN ('{CONFIGURED}', '{IDENTIFIED}') AND +who = '{GATEWAY}'"
_MANAGEMENT: Final = f"""(
    +kind GLOB 'capability/*' OR +kind GLOB 'space/*' OR +kind GLOB 'participant/*' OR ({_OPERATORS})
)"""
_DID: Final = f"(+who = ? OR (+kind = '{Kind.PRESENCE}' AND whom = ?))"
# Few of the texts have it in them, and only those are read.
_CONCERNED: Final = (
    "instr(whom, ?) > 0 AND EXISTS (SELECT 1 FROM json_each(facts.whom) AS one WHERE one.value = ?)"
)
_BEYOND_ALL: Final = 1 << 62
_GIVING_KINDS: Final = (Kind.GRANT, Kind.REVOKE, Kind.INVITE, Kind.KICK, CONFIGURED, IDENTIFIED)
_DECIDING_KINDS: Final = (Kind.MCP_REQUEST, Kind.MCP_REJECT, Kind.MCP_WITHDRAW)


class OutcomeFilter(StrEnum):
    """What came of it."""

    ANY = "any"
    ACCEPTED = "accepted"
    REFUSED = "refused"


_OUTCOMES: Final = {
    OutcomeFilter.ANY: "TRUE",
    OutcomeFilter.ACCEPTED: "+refusal = ''",
    OutcomeFilter.REFUSED: "+refusal <> ''",
}


class FactFilter(Struct, frozen=True, kw_only=True):
    """What is asked for. `kind` and `about` are patterns with `*` and `?`; `until` itself is no longer in it.

    `about` without a colon also fits what stands behind one: the name of a tool will do.

    `who` did it, or came or went; `whom` it concerned, or was addressed to.
    """

    who: str | None = None
    whom: str | None = None
    kind: str | None = None
    about: str | None = None
    refusal: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    outcome: OutcomeFilter = OutcomeFilter.ANY
    management: bool = False


class FactPage(NamedTuple):
    """Facts, the oldest first. `more`: others fit too, older ones, or newer ones where the oldest were asked for."""

    facts: list[Fact]
    more: bool


class RefusalCount(NamedTuple):
    """One participant, refused so many times with one code, first and last at these times."""

    who: str
    refusal: str
    times: int
    first: datetime
    last: datetime


def select_facts(index: Index, filters: FactFilter, *, limit: int, oldest: bool = False) -> FactPage:
    """The newest facts that fit, or the oldest; one walk at most."""
    where, values = _condition(filters)
    order = "" if oldest else "DESC"
    tail = f"ORDER BY seq {order}, n {order} LIMIT {int(limit) + 1}"
    found = index.select(where, values, tail=tail)
    facts = found[:limit]
    return FactPage(facts if oldest else facts[::-1], more=len(found) > limit)


def find_facts(index: Index, written: str) -> list[Fact]:
    """What somebody may mean: an id, the beginning or the end of one, or the number of an entry, with or without a `#`.

    Participants choose their ids. So everything is found that it may mean, and nothing stands for something else; with
    a `#` it is an entry first.
    """
    bare = written.removeprefix("#")
    found: list[Fact] = []
    if bare.isascii() and bare.isdigit() and len(bare) <= _DIGITS_MAX:
        found = index.select("seq = ?", (int(bare),), tail="ORDER BY abs(n), n LIMIT 1")
        if found and bare != written:
            return found
    written = bare
    tail = f"ORDER BY seq DESC, n DESC LIMIT {_CANDIDATES_MAX}"
    found += index.select("id = ? AND refusal = ''", (written,), tail=tail)[::-1]
    if len(written) >= PART_CHARS_MIN:
        found += _with_part(index, written)
    return list({(fact.seq, fact.n): fact for fact in found}.values())


def last_before(index: Index, at: datetime) -> int:
    """The last entry up to this time that the record knows; 0 if there is none."""
    ((seq,),) = index.rows("SELECT max(seq) FROM facts WHERE at <= ?", (to_microseconds(at),))
    return seq or 0


def first_since(index: Index, since: datetime | None) -> int:
    """The first entry from this time on that the record knows; one beyond all if there is none."""
    if since is None:
        return 0
    ((seq,),) = index.rows("SELECT min(seq) FROM facts WHERE at >= ?", (to_microseconds(since),))
    return _BEYOND_ALL if seq is None else int(seq)


def facts_of_grants(index: Index, after: int, until: int) -> list[Fact]:
    """Everything that was accepted after one entry, up to and with another, and may change who holds what."""
    marks = ", ".join("?" * len(_GIVING_KINDS))
    where = f"kind IN ({marks}) AND seq > ? AND seq <= ? AND refusal = ''"
    return index.select(where, (*_GIVING_KINDS, after, until), tail="ORDER BY +seq, n")


def count_refusals(index: Index, filters: FactFilter) -> list[RefusalCount]:
    """How often each participant was refused, and why; the most frequent first."""
    where, values = _condition(filters)
    query = f"""
        SELECT who, refusal, count(*) AS times, min(at), max(at) FROM facts
        WHERE refusal <> '' AND {where} GROUP BY who, refusal ORDER BY times DESC, who, refusal
    """
    found = index.rows(query, values)
    return [
        RefusalCount._make((*one, from_microseconds(first), from_microseconds(last)))
        for *one, first, last in found
    ]


def tally(index: Index, column: Literal["kind", "who"], first: int = 0) -> dict[str, int]:
    """How many facts there are from an entry on, by kind or by who did it."""
    # Without the plus it would look up in the table what the index has.
    query = f"SELECT {column}, count(*) FROM facts WHERE +seq >= ? GROUP BY {column} ORDER BY count(*) DESC, {column}"
    return dict(index.rows(query, (first,)))


def tally_refused(index: Index, first: int = 0) -> list[tuple[str, str, str, int]]:
    """How many were refused from an entry on, by kind, who and code."""
    query = """
        SELECT kind, who, refusal, count(*) FROM facts
        WHERE refusal <> '' AND +seq >= ? GROUP BY kind, who, refusal
    """
    return [(kind, who, refusal, times) for kind, who, refusal, times in index.rows(query, (first,))]


def first_and_last(index: Index, first: int = 0) -> tuple[datetime, datetime] | None:
    """When the first fact from an entry on was, and the last of all."""
    ends = [f"SELECT at FROM facts WHERE seq >= ? ORDER BY seq {order} LIMIT 1" for order in ("", "DESC")]
    found = [index.rows(query, (first,)) for query in ends]
    return (from_microseconds(found[0][0][0]), from_microseconds(found[1][0][0])) if all(found) else None


def proposal_facts(index: Index, first: int = 0) -> list[Fact]:
    """The proposals from an entry on and what concerns them, in order: requests, rejections, withdrawals, responses."""
    begun = "kind = 'mcp/proposal' AND refusal = '' AND seq >= ?"
    naming = f"""
        (seq, n) IN (
            SELECT causes.seq, causes.n
            FROM (SELECT id, min(seq) AS seq FROM facts WHERE {begun} GROUP BY id) AS proposed
            CROSS JOIN causes ON causes.cause = proposed.id AND causes.seq > proposed.seq
        ) AND kind IN (?, ?, ?) AND refusal = ''
    """
    found = index.select(begun, (first,)) + index.select(naming, (first, *_DECIDING_KINDS))
    return _with_responses(index, found)


def facts_about(index: Index, proposal: Fact) -> list[Fact]:
    """A proposal and what concerns it, in order; of what names it, the first 1,000."""
    naming = [fact for fact in index.naming(proposal.id, after=proposal.key) if fact.kind in _DECIDING_KINDS]
    return _with_responses(index, [proposal, *naming])


def proposal_of(index: Index, fact: Fact) -> Fact | None:
    """The proposal that a fact concerns: itself, the one it names, or the one that the request names it answers."""
    if fact.kind == Kind.MCP_PROPOSAL or fact.refusal:
        return None if fact.refusal else fact
    if fact.kind not in (*_DECIDING_KINDS, Kind.MCP_RESPONSE):
        return None
    named = [index.with_id(cause, fact.key) for cause in fact.causes[:_CAUSES_MAX]]
    if fact.kind == Kind.MCP_RESPONSE:
        requests = [one for one in named if one is not None and one.kind == Kind.MCP_REQUEST]
        return next((found for one in requests if (found := proposal_of(index, one)) is not None), None)
    return next((one for one in named if one is not None and one.kind == Kind.MCP_PROPOSAL), None)


def proposal_steps(index: Index, facts: Iterable[Fact], now: datetime) -> dict[FactKey, ProposalStep]:
    """Say of each of these facts what it did to the proposal that it concerns, if it did anything."""
    facts = list(facts)
    concerned = (proposal_of(index, fact) for fact in facts)
    steps: dict[FactKey, ProposalStep] = {}
    for proposal in {one.key: one for one in concerned if one is not None}.values():
        for fact, record in records_of(facts_about(index, proposal)):
            if fact.key == proposal.key:
                steps |= steps_of(facts, record, now)
    return steps


def _with_responses(index: Index, facts: list[Fact]) -> list[Fact]:
    asked = list({fact.id for fact in facts if fact.kind == Kind.MCP_REQUEST})
    answers = """
        kind = 'mcp/response' AND refusal = '' AND (seq, n) IN (
            SELECT causes.seq, causes.n FROM json_each(?) AS asked CROSS JOIN causes ON causes.cause = asked.value
        )
    """
    found = [*facts, *(index.select(answers, (_json(asked),)) if asked else ())]
    return sorted(found, key=lambda fact: fact.key)


def _condition(filters: FactFilter) -> tuple[str, Sequence[Any]]:
    who = GATEWAY if filters.who == _GATEWAY_IN_SHORT else filters.who
    since = None if filters.since is None else to_microseconds(filters.since)
    until = None if filters.until is None else to_microseconds(filters.until)
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (_DID, (who, _json([who]))),
        (_CONCERNED, (_json(filters.whom), filters.whom)),
        ("+kind GLOB ?", (_glob(filters.kind),)),
        ("(+about GLOB ? OR about GLOB ?)", _subject(filters.about)),
        ("+refusal = ?", (filters.refusal,)),
        ("at >= ?", (since,)),
        ("at < ?", (until,)),
    ]
    asked = [(condition, values) for condition, values in asked if values[-1] not in (None, "[null]")]
    asked.append((_OUTCOMES[filters.outcome], ()))
    if filters.management:
        asked.append((_MANAGEMENT, ()))
    return " AND ".join(condition for condition, _ in asked), [one for _, values in asked for one in values]


def _subject(about: str | None) -> tuple[str | None, str | None]:
    whole = _glob(about)
    return whole, whole if whole is None or ":" in whole else f"*:{whole}"


def _with_part(index: Index, part: str) -> list[Fact]:
    begins, beginning = "id >= ? AND id < ?", (part, part + _LAST_CHARACTER)
    ends, end = "substr(id, ?) = ?", (-len(part), part)
    tail = f"ORDER BY id, seq, n LIMIT {_CANDIDATES_MAX}"
    found = index.select(f"{begins} AND refusal = ''", beginning, tail=tail)
    also = index.select(f"{ends} AND refusal = ''", end, tail=tail)
    found += [fact for fact in also if not fact.id.startswith(part)]
    if found:
        return found
    # what was refused may have taken another's id, so that one comes first
    found = index.select(f"({begins} OR {ends}) AND refusal <> ''", (*beginning, *end), tail=tail)
    return list({fact.id: fact for fact in reversed(found)}.values())[::-1]


def _glob(pattern: str | None) -> str | None:
    """With `*` and `?`, and brackets as they are: names have them."""
    return pattern and pattern.replace("[", "[[]")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@dataclass(slots=True)
class RepeatedRefusal:
    """The same, tried so many times without anything else of that participant's being refused in between."""

    first: Fact
    last: Fact
    times: int = 1


def repeated_refusals(refused: Iterable[Fact]) -> list[RepeatedRefusal]:
    """What these come to, by when each was tried last; they come in order."""
    found: list[RepeatedRefusal] = []
    latest: dict[str, RepeatedRefusal] = {}
    for fact in refused:
        attempt = latest.get(fact.who)
        if attempt is not None and _tried(attempt.last) == _tried(fact):
            attempt.last, attempt.times = fact, attempt.times + 1
        else:
            latest[fact.who] = attempt = RepeatedRefusal(fact, fact)
            found.append(attempt)
    return sorted(found, key=lambda attempt: (attempt.last.seq, attempt.last.n))


def _tried(fact: Fact) -> tuple[str, ...]:
    return fact.kind, fact.about, fact.refusal
