"""Who holds what, and what became of every grant, in tables and as JSON."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Column
from rich.text import Text

from mew.audit.queries.effective_capabilities import (
    CapabilityOrigin,
    DelegationStep,
    EffectiveCapability,
    ParticipantCapabilities,
)
from mew.audit.queries.grant_history import GrantEnd, GrantRecord
from mew.cli.render.ids import short
from mew.cli.render.table import (
    about,
    clock,
    day,
    fact_json,
    lasting,
    moment,
    name,
    names,
    put,
    short_id,
    table,
    who_did,
)
from mew.protocol.capability import short_text
from mew.protocol.visible import visible

__all__ = ["given_json", "holder_json", "show_given", "show_holders"]

_CAPABILITY_CHARS_MAX: Final = 200
_ENDS: Final = {
    GrantEnd.IN_FORCE: ("in force", "green"),
    GrantEnd.REVOKED: ("revoked by ", "yellow"),
    GrantEnd.EXPIRED: ("expired", "dim"),
    GrantEnd.TAKEN_BACK: ("taken back: its giver lost it", "yellow"),
    GrantEnd.REMOVED: ("its holder was removed by ", "yellow"),
    GrantEnd.CUT: ("cut by a pattern of ", "yellow"),
    GrantEnd.UNKNOWN: ("ended, the record does not say how", "dim"),
}
_SAYS_BY_WHOM: Final = frozenset({GrantEnd.REVOKED, GrantEnd.REMOVED, GrantEnd.CUT})


def show_holders(holders: Iterable[ParticipantCapabilities], at: datetime, out: Console) -> None:
    """Who holds what at that time, from whom, and until when: a row for each grant, and for what came without one."""
    rows = table(
        out,
        Column("who", no_wrap=True),
        Column("may", overflow="fold"),
        Column("from", overflow="fold"),
        Column("until", overflow="fold"),
        Column("grant", no_wrap=True),
    )
    for holder in holders:
        who = name(holder.participant)
        if not holder.held:
            rows.add_row(who, Text("nothing", "dim"))
        for _, same in groupby(holder.held, key=lambda held: (held.origin, held.narrowed, held.grant_id)):
            some = list(same)
            rows.add_row(who, Text(", ").join(map(_capability, some)), *_from(some[0], at))
            who = Text()
    put(out, rows)


def show_given(given: Iterable[GrantRecord], out: Console) -> None:
    """Every grant there was, the oldest first, and what became of it."""
    rows = table(
        out,
        Column("given", no_wrap=True),
        Column("by", no_wrap=True),
        Column("to", no_wrap=True),
        Column("what", overflow="fold"),
        Column("grant", no_wrap=True),
        Column("and then", overflow="fold"),
    )
    for one in given:
        fact = one.fact
        gift = name(fact.who), names(fact.whom), about(fact), short_id(fact)
        rows.add_row(moment(fact.time), *gift, _end(one))
    put(out, rows)


def holder_json(holder: ParticipantCapabilities) -> Any:
    return msgspec.to_builtins(holder, builtin_types=(datetime,))


def given_json(given: GrantRecord) -> dict[str, Any]:
    ended = None if given.ended is None else fact_json(given.ended)
    return {"grant": fact_json(given.fact), "end": given.end, "ended": ended}


def _capability(held: EffectiveCapability) -> Text:
    return Text(visible(short_text(held.capability), _CAPABILITY_CHARS_MAX))


def _from(held: EffectiveCapability, at: datetime) -> tuple[Text, ...]:
    if held.origin is not CapabilityOrigin.GRANT:
        return (Text(f"{held.origin}, some of it revoked" if held.narrowed else held.origin, "dim"),)
    until = Text() if held.until is None else _until(held.until, at)
    return _chain(held.chain), until, Text(short(held.grant_id or ""), "dim")


def _chain(chain: Sequence[DelegationStep]) -> Text:
    """`bob ← ann`: bob gave it, and had it from ann, who held it of herself."""
    text = Text()
    for place, step in enumerate(chain):
        text.append(" ← " if place else "").append_text(name(step.giver))
        if step.others:
            text.append(f" and {step.others:,} more", "dim")
        if not step.in_force:
            text.append(" ← a grant that has ended", "dim")
    return text


def _until(until: datetime, at: datetime) -> Text:
    return Text.assemble(moment(until), (f" (in {lasting((until - at).total_seconds())})", "dim"))


def _end(given: GrantRecord) -> Text:
    word, style = _ENDS[given.end]
    if given.ended is None:
        return Text(word, style)
    by = who_did(given.ended) if given.end in _SAYS_BY_WHOM else Text()
    same_day = day(given.ended.time) == day(given.fact.time)
    when = clock(given.ended.time) if same_day else moment(given.ended.time)
    return Text.assemble((word, style), by, (f", {when}", "dim"))
