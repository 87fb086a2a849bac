"""PURE. One member of a JSON text, set or removed: comments, order, spaces and all the rest stay as they are."""

import json
import re
from collections.abc import Sequence
from typing import Any

from .reading import Member, NotJson, Value, read

__all__ = ["member", "with_member", "without_member"]

_INDENT = re.compile(r"[{\[,][ \t]*\r?\n([ \t]+)")
_ASIDE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*(?=\r?\n))")


def member(text: str, path: Sequence[str]) -> Any:
    """The value there, as Python has it; None where there is none.

    Raises:
        NotJson: the text is none.
    """
    found = read(text)
    for key in path:
        if (below := found.member(key)) is None:
            return None
        found = below.value
    return found.plain


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value there; objects on the way are made. An empty text becomes an object.

    Raises:
        NotJson: the text is none, or something on the way is no object.
    """
    at, rest = read(text), list(path)
    if at.start == at.end:
        text += "{}\n" if text[-1:] in ("", "\n", "\ufeff") else "\n{}\n"  # it may end in a comment
        at = read(text)
    style = _Style(text)
    while (below := at.member(rest[0])) is not None:
        if len(rest) == 1:
            old = text[below.value.start : below.value.end]
            inline = isinstance(below.value.plain, list) and "\n" not in old
            written = _line(value) if inline else style.written(value, style.margin(below.start))
            return text[: below.value.start] + written + text[below.value.end :]
        at, rest = below.value, rest[1:]
    if at.members is None:
        where = ".".join(path[: len(path) - len(rest)]) or "the file"
        raise NotJson(f"{where}: expected an object, is another value")
    for key in reversed(rest[1:]):
        value = {key: value}
    return style.added(at, rest[0], value)


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without what is there; the same text where nothing is.

    Raises:
        NotJson: the text is none.
    """
    at = read(text)
    for key in path[:-1]:
        if (below := at.member(key)) is None:
            return text
        at = below.value
    gone = at.member(path[-1])
    if gone is None or at.members is None:
        return text
    place = at.members.index(gone)
    if place + 1 < len(at.members):
        assert gone.comma is not None, "one after another without a comma"
        return text[: gone.start] + text[gone.comma + 1 :].lstrip()
    if place > 0:
        return _shortened(text, at, at.members[place - 1], gone)
    return _emptied(text, at, gone)


def _shortened(text: str, at: Value, last: Member, gone: Member) -> str:
    """Without the last member; whether there is a comma after the last stays as it is."""
    assert last.comma is not None, "one after another without a comma"
    end = gone.value.end if gone.comma is None else gone.comma + 1
    between = text[last.comma + 1 : gone.start]
    if "//" not in between or "\n" in text[end : at.end]:  # or the bracket would come to stand in a comment
        between = between.rstrip()
    comma = "" if gone.comma is None else ","
    return text[: last.comma] + comma + between + text[end:]


def _emptied(text: str, at: Value, gone: Member) -> str:
    """An object without its only member: `{}`, unless there are comments in it."""
    end = gone.value.end if gone.comma is None else gone.comma + 1
    before, after = text[at.start + 1 : gone.start], text[end : at.end - 1]
    left = before + after if before.strip() or after.strip() else ""
    return text[: at.start + 1] + left + text[at.end - 1 :]


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Style:
    """How a text is laid out: its line ends, and by how much it is indented."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        found = _INDENT.search(text)
        self._unit = "  " if found is None else found[1]

    def margin(self, start: int) -> str:
        """The spaces that the line begins with on which something stands."""
        line = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def written(self, value: Any, margin: str) -> str:
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return (self._newline + margin).join(lines)

    def added(self, at: Value, key: str, value: Any) -> str:
        """With one more member at the end of an object, on a line of its own."""
        assert at.members is not None, "a member of what is no object"
        outer = self.margin(at.start)
        if not at.members:
            inner = outer + self._unit
            inside = self._text[at.start + 1 : at.end - 1].rstrip()
            made = f"{self._newline}{inner}{json.dumps(key)}: {self.written(value, inner)}"
            return (
                self._text[: at.start + 1] + inside + made + self._newline + outer + self._text[at.end - 1 :]
            )
        last = at.members[-1]
        if "\n" in self._text[at.start : last.start]:
            inner = self.margin(last.start)
            made = f"{self._newline}{inner}{json.dumps(key)}: {self.written(value, inner)}"
        else:
            made = f" {json.dumps(key)}: {_line(value)}"
        if last.comma is None:
            end = last.value.end
            return self._text[:end] + "," + self._after_aside(end, made)
        end = last.comma + 1
        return self._text[:end] + self._after_aside(end, made + ",")

    def _after_aside(self, end: int, made: str) -> str:
        """A comment on the line of the member before stays with it."""
        aside = _ASIDE.match(self._text, end)
        stop = end if aside is None or made[:1] == " " else aside.end()
        return self._text[end:stop] + made + self._text[stop:]
