"""The record in tables for people, and as JSON for programs. Nothing that participants wrote acts on a terminal."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import typer
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from mew.audit.queries.proposals import ProposalStep
from mew.audit.record.facts import CONFIGURED, IDENTIFIED, Fact
from mew.journal.record import from_microseconds as when
from mew.protocol.envelope import GATEWAY
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind
from mew.protocol.visible import cut, named, visible

from .envelope import colour_of
from .ids import short

__all__ = [
    "CALL",
    "about",
    "clock",
    "console",
    "day",
    "fact_json",
    "is_narrow",
    "json_line",
    "lasting",
    "moment",
    "name",
    "names",
    "outcome",
    "put",
    "short_id",
    "table",
    "verb",
    "who_did",
    "whom",
]

_WIDE: Final = 400
_NARROW: Final = 100
_NAME_CHARS: Final = 24
_TEXT_CHARS: Final = 160
_NAMES_MAX: Final = 3
_UNSEEN: Final = re.compile("[^ -~]")
CALL: Final = "tools/call:"
_FAILED: Final = ("error ", "the tool failed")
_NOT_OFFERED: Final = "error -32601:"  # the answer to a probe for an optional method
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_OPERATOR: Final = "(operator)"  # in brackets: nobody can have such an id
_THE_GATEWAY: Final = "(gateway)"
_PRESENCE: Final = {"join": "joins", "leave": "leaves"}
_VERBS: Final = {
    Kind.MCP_REQUEST: "requests",
    Kind.MCP_RESPONSE: "responds",
    Kind.MCP_PROPOSAL: "proposes",
    Kind.MCP_REJECT: "rejects",
    Kind.MCP_WITHDRAW: "withdraws",
    Kind.GRANT: "grants",
    Kind.REVOKE: "revokes",
    Kind.GRANT_ACK: "takes grant",
    Kind.INVITE: "invites",
    Kind.KICK: "kicks",
    Kind.PAUSE: "pauses",
    Kind.RESUME: "resumes",
    Kind.REQUEST_STATUS: "asks status",
    Kind.FORGET: "lets forget",
    Kind.COMPACT: "lets compact",
    Kind.COMPACT_DONE: "compacted",
    Kind.CLEAR: "clears",
    Kind.RESTART: "restarts",
    Kind.SHUTDOWN: "shuts down",
    Kind.STREAM_REQUEST: "asks stream",
    Kind.STREAM_OPEN: "opens stream",
    Kind.STREAM_CLOSE: "closes stream",
    Kind.ERROR: "announces",
}
_OF_THE_GATEWAY: Final = {
    Kind.REVOKE: "takes back",
    CONFIGURED: "configures",
    IDENTIFIED: "vouches for",
}


def console() -> Console:
    """As wide as the terminal; where there is none, nothing is cut off or folded."""
    made = Console(highlight=False, markup=False, emoji=False)
    return made if made.is_terminal else Console(highlight=False, markup=False, emoji=False, width=_WIDE)


def table(out: Console, *columns: Column) -> Table:
    """Columns with nothing drawn between them, and little room where there is little."""
    between = 1 if is_narrow(out) else 2
    return Table(*columns, box=None, pad_edge=False, padding=(0, between, 0, 0), header_style="dim")


def put(out: Console, what: RenderableType = "") -> None:
    """Print it; where there is no terminal, without the blanks that fill up the lines of a table."""
    if out.is_terminal:
        out.print(what)
        return
    with out.capture() as captured:
        out.print(what)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip(), file=out.file)


def is_narrow(out: Console) -> bool:
    return out.width < _NARROW


def clock(at: datetime) -> str:
    """The time of day where this machine is."""
    return f"{at.astimezone():%H:%M:%S}"


def day(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d}"


def moment(at: datetime | None) -> str:
    return "" if at is None else f"{day(at)} {clock(at)}"


def name(who: str) -> Text:
    """A participant, always in the same colour."""
    if who == GATEWAY:
        return Text(_THE_GATEWAY, "dim")
    return Text(cut(named(who), _NAME_CHARS), colour_of(who))


def names(those: Iterable[str]) -> Text:
    listed = list(those)
    shown = Text(", ").join(map(name, listed[:_NAMES_MAX]))
    return shown.append(f" +{len(listed) - _NAMES_MAX}", "dim") if len(listed) > _NAMES_MAX else shown


def who_did(fact: Fact) -> Text:
    """Who comes or goes, where the gateway says so; the operator, where the gateway was told to."""
    if fact.who == GATEWAY and fact.kind == Kind.PRESENCE and fact.whom:
        return name(fact.whom[0])
    if fact.who == GATEWAY and fact.kind == CONFIGURED:
        return Text(_OPERATOR, "dim")
    return name(fact.who)


def verb(fact: Fact, step: ProposalStep | None = None) -> Text:
    """The kind in a word, where there is one for it; of a decision, what it decided: `approved 3f2a91c0`."""
    if step is not None and fact.kind != Kind.MCP_PROPOSAL:
        return Text.assemble(step.word, " ", (short(step.proposal_id), "dim"))
    if fact.who == GATEWAY and fact.kind == Kind.PRESENCE:
        word = _PRESENCE.get(fact.about)
    else:
        word = (_OF_THE_GATEWAY if fact.who == GATEWAY else {}).get(fact.kind, _VERBS.get(fact.kind))
    return Text(visible(fact.kind, 40), "italic") if word is None else Text(word)


def about(fact: Fact) -> Text:
    """What it is about: of a call, the tool."""
    if fact.kind == Kind.PRESENCE:
        return Text()
    return Text(visible(fact.about.removeprefix(CALL), _TEXT_CHARS))


def whom(fact: Fact) -> Text:
    return Text() if fact.kind == Kind.PRESENCE else names(fact.whom)


def outcome(fact: Fact, step: ProposalStep | None = None) -> Text:
    """Why it was refused; or what was said to it: a reason, an error. Of a proposal: until when, and what for."""
    if fact.refusal:
        return Text(f"refused: {visible(fact.refusal, 40)}", "red")
    if fact.kind == Kind.MCP_PROPOSAL:
        parts = [step.word if step is not None else _until(fact), f"why: {fact.note}" if fact.note else ""]
        return Text(visible("; ".join(filter(None, parts)), _TEXT_CHARS), "dim")
    failed = (
        fact.kind == Kind.MCP_RESPONSE
        and fact.note.startswith(_FAILED)
        and not fact.note.startswith(_NOT_OFFERED)
    )
    return Text(visible(fact.note, _TEXT_CHARS), "red" if failed else "dim")


def _until(fact: Fact) -> str:
    return f"expires {moment(when(fact.expires))}" if fact.expires else ""


def short_id(fact: Fact) -> Text:
    """As much of an id as is asked for; the gateway's own all begin alike."""
    return Text("" if fact.who == GATEWAY else short(fact.id), "dim")


def lasting(seconds: float) -> str:
    """About how long, in a number and a unit."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}" if seconds >= 10 * size else f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def fact_json(fact: Fact, step: ProposalStep | None = None) -> dict[str, Any]:
    """A fact as programs get it: every field, always; `proposal`: the one that it decided something about, and what."""
    return {
        "time": fact.time,
        "seq": fact.seq,
        "n": fact.n,
        "who": fact.who,
        "kind": fact.kind,
        "whom": fact.whom,
        "about": fact.about,
        "note": fact.note,
        "refusal": fact.refusal or None,
        "id": fact.id,
        "correlation_id": fact.causes,
        "context": fact.context or None,
        "expires_at": when(fact.expires) if fact.expires else None,
        "proposal": None if step is None else {"id": step.proposal_id, "decision": step.word},
    }


def json_line(value: Any) -> str:
    """JSON in one line of visible ASCII: a terminal takes some of what JSON allows for a command."""
    return _UNSEEN.sub(_escaped, encode_json(value).decode())


def _escaped(char: re.Match[str]) -> str:
    units = char[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
