"""PURE. One member of a JSON text, set or removed: comments, order, spaces and all the rest stay as they are."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["InvalidJson", "JsonMember", "JsonValue", "member", "read", "with_member", "without_member"]

_BLANK = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\[\]{}\":/]+")
_BOM: Final = "\ufeff"
_DEPTH_MAX: Final = 200


class InvalidJson(ValueError):
    """The text is no JSON that could be edited; the message says where and why."""


@dataclass(frozen=True, slots=True)
class JsonMember:
    """One member of an object: where its key begins, its value, and where the comma after it is."""

    key: str
    start: int
    value: "JsonValue"
    comma: int | None


@dataclass(frozen=True, slots=True)
class JsonValue:
    """One value and where it stands; `members` are those of an object."""

    start: int
    end: int
    plain: Any
    members: tuple[JsonMember, ...] | None = None

    def member(self, key: str) -> JsonMember | None:
        """That of this name; of several, the last, as readers take it."""
        return next((one for one in reversed(self.members or ()) if one.key == key), None)


def read(text: str) -> JsonValue:
    """What the text says; an empty one is an empty object.

    Raises:
        NotJson: it is none.
    """
    return _Reader(text).root()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = len(_BOM) if text.startswith(_BOM) else 0

    def root(self) -> JsonValue:
        self._skip()
        if self._at == len(self._text):
            return JsonValue(self._at, self._at, {}, ())
        root = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise self._wrong("expected the end, there is more")
        return root

    def _value(self, depth: int) -> JsonValue:
        if depth > _DEPTH_MAX:
            raise self._wrong("nested too deeply")
        match self._next:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._token(_STRING, "a text")
            case _:
                return self._token(_SCALAR, "a value")

    def _object(self, depth: int) -> JsonValue:
        start, comma = self._at, None
        members: list[JsonMember] = []
        self._at += 1
        while not self._closes("}", is_next=not members or comma is not None):
            begun = self._at
            key = self._token(_STRING, "a name in quotes").plain
            self._skip()
            if not self._took(":"):
                raise self._wrong("expected a colon")
            self._skip()
            value = self._value(depth + 1)
            self._skip()
            comma = self._at - 1 if self._took(",") else None
            members.append(JsonMember(key, begun, value, comma))
        plain = {one.key: one.value.plain for one in members}
        return JsonValue(start, self._at, plain, tuple(members))

    def _array(self, depth: int) -> JsonValue:
        start, comma = self._at, False
        items: list[Any] = []
        self._at += 1
        while not self._closes("]", is_next=not items or comma):
            items.append(self._value(depth + 1).plain)
            self._skip()
            comma = self._took(",")
        return JsonValue(start, self._at, items)

    def _closes(self, bracket: str, *, is_next: bool) -> bool:
        """Whether it ends here; otherwise something must be next."""
        self._skip()
        if self._took(bracket):
            return True
        if not is_next:
            raise self._wrong(f"expected a comma or '{bracket}'")
        return False

    def _token(self, shape: re.Pattern[str], expected: str) -> JsonValue:
        found = shape.match(self._text, self._at)
        if found is None:
            raise self._wrong(f"expected {expected}")
        try:
            plain = json.loads(found[0])
        except ValueError:
            raise self._wrong(f"expected {expected}") from None
        self._at = found.end()
        return JsonValue(found.start(), found.end(), plain)

    @property
    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _took(self, character: str) -> bool:
        if self._next != character:
            return False
        self._at += 1
        return True

    def _skip(self) -> None:
        found = _BLANK.match(self._text, self._at)
        assert found is not None, "a pattern that fits nothing"
        self._at = found.end()

    def _wrong(self, what: str) -> InvalidJson:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        return InvalidJson(f"line {line}, column {column}: {what}")


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
        raise InvalidJson(f"{where}: expected an object, is another value")
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


def _shortened(text: str, at: JsonValue, last: JsonMember, gone: JsonMember) -> str:
    """Without the last member; whether there is a comma after the last stays as it is."""
    assert last.comma is not None, "one after another without a comma"
    end = gone.value.end if gone.comma is None else gone.comma + 1
    between = text[last.comma + 1 : gone.start]
    if "//" not in between or "\n" in text[end : at.end]:  # or the bracket would come to stand in a comment
        between = between.rstrip()
    comma = "" if gone.comma is None else ","
    return text[: last.comma] + comma + between + text[end:]


def _emptied(text: str, at: JsonValue, gone: JsonMember) -> str:
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

    def added(self, at: JsonValue, key: str, value: Any) -> str:
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
