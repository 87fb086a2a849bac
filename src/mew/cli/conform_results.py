"""What a run of the conformance kit came to: as a table with the evidence, as JSON, and as JUnit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mew.conform import requirements
from mew.conform.ledger import Level, Requirement, Side, Testable
from mew.conform.report import Verdict, as_document, as_junit, conforms, counts
from mew.conform.verdicts import Outcome, Result
from mew.protocol.json import encode_json
from mew.protocol.visible import cut, visible

from .where import Failed

__all__ = ["Junit", "Only", "requirements_about", "tell_results"]

Only = Annotated[
    str | None, typer.Option(help="Only this section and those below it, like 3.6, or one requirement.")
]
Junit = Annotated[Path | None, typer.Option(help="Write the results as JUnit XML to this file.")]

_COLOURS: Final = {
    Outcome.PASS: "green",
    Outcome.FAIL: "bold red",
    Outcome.NOT_OFFERED: "yellow",
    Outcome.NOT_RUN: "dim",
}
_EVIDENCE_CHARS_MAX: Final = 400
_QUOTES_MAX: Final = 3


def requirements_about(side: Side, only: str | None) -> list[Requirement]:
    """Those that bind this side, in a section or of an id where that is asked for.

    Raises:
        Failed: there are none.
    """
    found = [one for one in requirements() if one.side in (side, Side.BOTH) and _is_in(one, only)]
    if not found:
        raise Failed(f"--only {only}: no requirement about {side}s is there")
    return found


def _is_in(requirement: Requirement, only: str | None) -> bool:
    if only is None or only == requirement.id:
        return True
    sections = (requirement.section, *requirement.also)
    return any(f"{section}.".startswith(f"{only.rstrip('.')}.") for section in sections)


def tell_results(
    side: Side, name: str, found: Sequence[Verdict], junit: Path | None, *, as_json: bool
) -> None:
    """Show all, and write the file where one is wanted.

    Raises:
        Failed: it cannot be written.
        typer.Exit: with code 1, where something fails that must not.
    """
    if junit is not None:
        try:
            junit.write_bytes(as_junit(name, found))
        except OSError as error:
            raise Failed(f"--junit {junit}: {error.strerror}") from error
    if as_json:
        typer.echo(encode_json(as_document(name, found, side)))
    else:
        _show(name, found)
    if not conforms(found):
        raise typer.Exit(1)


def _show(name: str, found: Sequence[Verdict]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, title=f"mew/v0.4: {visible(name)}", title_justify="left")
    for column in ("§", "level", "requirement", "verdict"):
        table.add_column(column, overflow="fold")
    for one in found:
        required = one.requirement
        sentence = Text(required.sentence)
        if one.outcome is Outcome.NOT_RUN and required.testable is Testable.NOT_ON_THE_WIRE:
            sentence.append(f" ({required.why})", style="dim")
        table.add_row(required.section, required.level, sentence, Text(one.outcome, _COLOURS[one.outcome]))
    console.print(table)
    for one in found:
        for result in one.results if one.outcome is Outcome.FAIL else ():
            _explain(console, one.requirement, result)
    _sum_up(console, found)


def _explain(console: Console, requirement: Requirement, result: Result) -> None:
    if result.outcome is not Outcome.FAIL:
        return
    console.print(Text(f"\n§{requirement.section} {requirement.level} {requirement.id}", "bold red"))
    console.print(Text(f"  what is demanded:  {requirement.sentence}"), soft_wrap=True)
    for quote in requirement.quotes[:_QUOTES_MAX]:
        console.print(Text(f"  the document:      “{quote}”"), soft_wrap=True)
    if requirement.note is not None:
        console.print(Text(f"  our note:          {requirement.note}"), soft_wrap=True)
    console.print(Text(f"  what happened:     {_seen(result.why)} ({result.check})"), soft_wrap=True)
    for line in result.evidence:
        console.print(Text(f"    {_seen(line)}", "dim"), soft_wrap=True)


def _seen(text: str) -> str:
    """Fit for a terminal, and JSON still to be read as such: quotes hide nothing."""
    return "".join(char if char in '"\\' else visible(char) for char in cut(text, _EVIDENCE_CHARS_MAX))


def _sum_up(console: Console, found: Sequence[Verdict]) -> None:
    counted = counts(found)
    console.print()
    for level in Level:
        parts = [f"{counted[level, outcome]} {outcome}" for outcome in Outcome if counted[level, outcome]]
        if parts:
            console.print(f"{level:<11} {', '.join(parts)}")
