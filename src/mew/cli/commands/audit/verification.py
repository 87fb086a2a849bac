"""What `mew audit verify` says: some lines for people, or a JSON document."""

from collections.abc import Iterator
from typing import Any

import msgspec
import typer

from mew.audit.proof.export_lines import encode_line
from mew.audit.proof.verification_result import VerificationResult
from mew.cli.render.times import show_moment
from mew.protocol.visible import named, visible

__all__ = ["result_json", "show_result"]

_WHY_CHARS_MAX = 1_000


def result_json(verdict: VerificationResult) -> bytes:
    """All of it, and first whether it is sound."""
    fields: dict[str, Any] = msgspec.to_builtins(verdict)
    return encode_line({"sound": verdict.is_sound, **fields})


def show_result(verdict: VerificationResult) -> None:
    space = f"space {named(verdict.space)}" if verdict.space else "this file"
    if verdict.is_sound:
        typer.secho(f"{space} is sound", fg=typer.colors.GREEN)
    else:
        typer.secho(f"{space} is NOT sound", fg=typer.colors.RED, bold=True)
    broken = verdict.broken
    if broken is not None:
        _line("broken", broken.why)
    for loss in verdict.lost:
        missing = f"entries {loss.after + 1:,} to {loss.last:,}, as they were counted then"
        _line("lost", f"{missing}: committed, and missing at the start of {show_moment(loss.noticed)}")
    _line("entries" if broken is None else "sound so far", _entries(verdict))
    if verdict.after is not None and not verdict.begins:
        _line("begins", f"after entry {verdict.after.seq:,}: what came before is not here")
    for name, line in _checkpoints(verdict):
        _line(name, line)
    for wrong in verdict.checkpoints.wrong:
        _line("wrong", wrong)
    for note in verdict.notes:
        _line("note", note)


def _line(name: str, text: str) -> None:
    typer.echo(f"  {name:<13} {visible(text, _WHY_CHARS_MAX)}")


def _entries(verdict: VerificationResult) -> str:
    first, last = verdict.first, verdict.last
    if first is None or last is None:
        return "none"
    return (
        f"{verdict.entries:,}, from {first.seq:,} ({show_moment(first.at)})"
        f" to {last.seq:,} ({show_moment(last.at)})"
    )


def _checkpoints(verdict: VerificationResult) -> Iterator[tuple[str, str]]:
    seen, last = verdict.checkpoints, verdict.last
    if seen.last is not None:
        yield (
            "checkpoints",
            f"{seen.fit:,} fit, the last after entry {seen.last.seq:,} ({show_moment(seen.last.at)})",
        )
        if last is not None and last.seq > seen.last.seq:
            yield "", f"none covers the last {last.seq - seen.last.seq:,} entries"
        if not seen.checked:
            yield "", "who signed them was not checked: --key FILE does"
    if seen.before:
        yield "older", f"{seen.before:,} checkpoints could not be compared: their entries are not here"
    if seen.checked:
        yield from (("signed with", key) for key in seen.keys)
