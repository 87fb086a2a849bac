"""Envelopes one below the other: the time, who, and what. For people in colours and lines, for programs as JSON."""

import re
from datetime import date, datetime, tzinfo
from typing import Final, Protocol

import typer
from rich.console import Console
from rich.text import Text

from mew.protocol.envelope import Envelope
from mew.protocol.json import encode_json
from mew.protocol.visible import cut, named

from .envelope import colour_of, line_of

__all__ = ["EnvelopeOutput", "JsonLines", "Screen"]

_WHO_CHARS: Final = 12
_INDENT: Final = len("12:30:00  ") + _WHO_CHARS + 2
_WHAT_CHARS_MIN: Final = 20
_UNSEEN: Final = re.compile("[^ -~]")


class EnvelopeOutput(Protocol):
    """Where a space is shown."""

    def show(self, seq: int, at: datetime, envelope: Envelope, raw: bytes) -> None: ...

    def remark(self, text: str) -> None:
        """Something that is not of the space."""


class Screen:
    """For people. Lines are folded to the width of a terminal; where there is none, they are as long as they are."""

    def __init__(self, console: Console, zone: tzinfo | None = None) -> None:
        """Times are those of the zone; None: of this machine."""
        self._console = console
        self._zone = zone
        self._day: date | None = None

    def show(self, seq: int, at: datetime, envelope: Envelope, raw: bytes) -> None:
        there = at.astimezone(self._zone)
        if there.date() != self._day:
            self._day = there.date()
            self.remark(f"{there:%A}, {there.day} {there:%B %Y} ({there.tzname()})")
        who, what = line_of(envelope)
        name = cut(named(who), _WHO_CHARS)
        begin = Text.assemble(
            (f"{there:%H:%M:%S}  ", "dim"), (name, colour_of(who)), " " * (_WHO_CHARS - len(name) + 2)
        )
        for line in self._folded(what):
            self._put(begin.append_text(line))
            begin = Text(" " * _INDENT)

    def remark(self, text: str) -> None:
        self._put(Text(text, style="dim italic"))

    def _folded(self, what: Text) -> list[Text]:
        if not self._console.is_terminal:
            return list(what.split("\n", allow_blank=True))
        width = max(self._console.width - _INDENT, _WHAT_CHARS_MIN)
        return list(what.wrap(self._console, width, overflow="fold"))

    def _put(self, line: Text) -> None:
        if self._console.is_terminal:
            self._console.print(line, soft_wrap=True)
        else:
            typer.echo(line.plain, file=self._console.file)  # at once, and much faster


class JsonLines:
    """For programs: `{"seq": …, "at": …, "envelope": {…}}` a line. Remarks go to stderr."""

    def show(self, seq: int, at: datetime, envelope: Envelope, raw: bytes) -> None:
        typer.echo(f'{{"seq":{seq},"at":{encode_json(at).decode()},"envelope":{_in_one_line(raw)}}}')

    def remark(self, text: str) -> None:
        typer.echo(text, err=True)


def _in_one_line(raw: bytes) -> str:
    """The same JSON in visible ASCII: outside of strings, whatever is not that is white space."""
    text = raw.decode()
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_escaped, text)


def _escaped(char: re.Match[str]) -> str:
    if char[0] in "\t\n\r":
        return " "
    units = char[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
