"""What a run of the conformance kit came to: as a table with the evidence, as JSON, and as JUnit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mew.cli.errors import CommandError
from mew.conform.ledger import Requirement, RequirementLevel, Side, Testable
from mew.conform.outcome import CheckOutcome, CheckResult
from mew.conform.report import RequirementVerdict, as_document, as_junit, conforms, counts, folded
from mew.protocol.json import encode_json
from mew.protocol.visible import cut, visible

from .selection import sections_named

__all__ = ["Junit", "Shown", "tell_results"]

Junit = Annotated[Path | None, typer.Option(help="Write the results as JUnit XML to this file.")]

_COLOURS: Final = {
    CheckOutcome.PASS: "green",
    CheckOutcome.FAIL: "bold red",
    CheckOutcome.BLOCKED: "magenta",
    CheckOutcome.NOT_OFFERED: "yellow",
    CheckOutcome.NOT_RUN: "dim",
}
_EVIDENCE_CHARS_MAX: Final = 400
_WHY_CHARS_MAX: Final = 2_000
_QUOTES_MAX: Final = 3
_TABLE_COLUMNS_MIN: Final = 80
_IDS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Shown:
    """How the results are wanted. `only` is what was asked for, if not all."""

    only: Sequence[str] | None = None
    junit: Path | None = None
    as_json: bool = False


def tell_results(side: Side, name: str, found: Sequence[RequirementVerdict], shown: Shown) -> None:
    """Show all, and write the file where one is wanted.

    Raises:
        CommandError: it cannot be written.
        typer.Exit: with code 1, where something fails that must not.
    """
    if shown.junit is not None:
        try:
            shown.junit.write_bytes(as_junit(name, found))
        except OSError as error:
            raise CommandError(f"--junit {shown.junit}: {error.strerror}") from error
    if shown.as_json:
        typer.echo(encode_json(as_document(name, found, side, only=shown.only)))
    else:
        _show(name, found, shown.only)
    if not conforms(found):
        raise typer.Exit(1)


def _show(name: str, found: Sequence[RequirementVerdict], only: Sequence[str] | None) -> None:
    console = Console(highlight=False)
    if console.width < _TABLE_COLUMNS_MIN:
        _list(console, name, found, only)
    else:
        console.print(_table(name, found, only))
    for one in found:
        for result in one.results if one.outcome is CheckOutcome.FAIL else ():
            _explain(console, one.requirement, result)
    _say_why_not(console, found)
    _sum_up(console, found, only)


def _table(name: str, found: Sequence[RequirementVerdict], only: Sequence[str] | None) -> Table:
    table = Table(box=None, pad_edge=False, title=f"mew/v0.4: {visible(name)}", title_justify="left")
    for column in ("§", "level", "requirement", "verdict"):
        table.add_column(column, overflow="fold")
    for one in found:
        required = one.requirement
        verdict = Text(one.outcome, _COLOURS[one.outcome])
        table.add_row(sections_named(required, only), required.level, _sentence(one), verdict)
    return table


def _list(
    console: Console, name: str, found: Sequence[RequirementVerdict], only: Sequence[str] | None
) -> None:
    """Where four columns would be too narrow to read."""
    console.print(Text(f"mew/v0.4: {visible(name)}"))
    for one in found:
        required = one.requirement
        line = Text(one.outcome, _COLOURS[one.outcome])
        line.append(f" §{sections_named(required, only)} {required.level} {required.id}", style="default")
        console.print(line)
        console.print(_sentence(one))


def _sentence(one: RequirementVerdict) -> Text:
    sentence = Text(one.requirement.sentence)
    if one.outcome is CheckOutcome.NOT_RUN and one.requirement.testable is Testable.NOT_ON_THE_WIRE:
        sentence.append(f" ({one.requirement.why})", style="dim")
    return sentence


def _explain(console: Console, requirement: Requirement, result: CheckResult) -> None:
    if result.outcome is not CheckOutcome.FAIL:
        return
    console.print(Text(f"\n§{requirement.section} {requirement.level} {requirement.id}", "bold red"))
    console.print(Text(f"  what is demanded:  {requirement.sentence}"), soft_wrap=True)
    for quote in requirement.quotes[:_QUOTES_MAX]:
        console.print(Text(f"  the document:      “{quote}”"), soft_wrap=True)
    if requirement.note is not None:
        console.print(Text(f"  our note:          {requirement.note}"), soft_wrap=True)
    why = _seen(result.why, _WHY_CHARS_MAX)
    console.print(Text(f"  what happened:     {why} ({result.check})"), soft_wrap=True)
    lines = folded(result.why, result.evidence)
    for line in lines:
        style = "default" if line.startswith("▶") else "dim"
        console.print(Text(f"  {_seen(line, _EVIDENCE_CHARS_MAX)}", style), soft_wrap=True)
    if lines != [f"  {line}" for line in result.evidence] or any(
        len(one) > _EVIDENCE_CHARS_MAX for one in lines
    ):
        console.print(Text("  (▶: what this is about; --json has every line in full)", "dim"), soft_wrap=True)


def _seen(text: str, chars_max: int) -> str:
    """Fit for a terminal, and JSON still to be read as such: quotes hide nothing."""
    return "".join(char if char in '"\\' else visible(char) for char in cut(text, chars_max))


def _say_why_not(console: Console, found: Sequence[RequirementVerdict]) -> None:
    """Why something is blocked or not offered: once for all that it concerns."""
    for outcome in (CheckOutcome.BLOCKED, CheckOutcome.NOT_OFFERED):
        reasons: dict[str, list[str]] = {}
        for one in found:
            if one.outcome is outcome:
                result = next(result for result in one.results if result.outcome is outcome)
                why = f"by {result.blocked_by}: {result.why}" if result.blocked_by else result.why
                reasons.setdefault(why, []).append(one.requirement.id)
        if reasons:
            console.print(Text(f"\n{outcome}:", _COLOURS[outcome]))
        for why, ids in reasons.items():
            more = f" and {len(ids) - _IDS_MAX} more" if len(ids) > _IDS_MAX else ""
            told = f"  {', '.join(ids[:_IDS_MAX])}{more}: {_seen(why, _WHY_CHARS_MAX)}"
            console.print(Text(told), soft_wrap=True)


def _sum_up(console: Console, found: Sequence[RequirementVerdict], only: Sequence[str] | None) -> None:
    counted = counts(found)
    console.print()
    if only:
        console.print(
            f"only {', '.join(map(visible, only))}: {len(found)} requirements, a part of all there are"
        )
    for level in RequirementLevel:
        parts = [
            f"{counted[level, outcome]} {outcome}" for outcome in CheckOutcome if counted[level, outcome]
        ]
        if parts:
            console.print(f"{level:<11} {', '.join(parts)}")
