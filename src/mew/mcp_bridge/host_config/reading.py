"""PURE. A JSON text read with the places where everything stands, so that one part of it can be changed.

Comments and commas before a closing bracket are taken as they come: hosts that read them have them in their files.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Member", "NotJson", "Value", "read"]

_BLANK = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\[\]{}\":/]+")
_BOM: Final = "\ufeff"
_DEPTH_MAX: Final = 200


class NotJson(ValueError):
    """The text is no JSON that could be edited; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: where its key begins, its value, and where the comma after it is."""

    key: str
    start: int
    value: "Value"
    comma: int | None


@dataclass(frozen=True, slots=True)
class Value:
    """One value and where it stands; `members` are those of an object."""

    start: int
    end: int
    plain: Any
    members: tuple[Member, ...] | None = None

    def member(self, key: str) -> Member | None:
        """That of this name; of several, the last, as readers take it."""
        return next((one for one in reversed(self.members or ()) if one.key == key), None)


def read(text: str) -> Value:
    """What the text says; an empty one is an empty object.

    Raises:
        NotJson: it is none.
    """
    return _Reader(text).root()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = len(_BOM) if text.startswith(_BOM) else 0

    def root(self) -> Value:
        self._skip()
        if self._at == len(self._text):
            return Value(self._at, self._at, {}, ())
        root = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise self._wrong("expected the end, there is more")
        return root

    def _value(self, depth: int) -> Value:
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

    def _object(self, depth: int) -> Value:
        start, comma = self._at, None
        members: list[Member] = []
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
            members.append(Member(key, begun, value, comma))
        plain = {one.key: one.value.plain for one in members}
        return Value(start, self._at, plain, tuple(members))

    def _array(self, depth: int) -> Value:
        start, comma = self._at, False
        items: list[Any] = []
        self._at += 1
        while not self._closes("]", is_next=not items or comma):
            items.append(self._value(depth + 1).plain)
            self._skip()
            comma = self._took(",")
        return Value(start, self._at, items)

    def _closes(self, bracket: str, *, is_next: bool) -> bool:
        """Whether it ends here; otherwise something must be next."""
        self._skip()
        if self._took(bracket):
            return True
        if not is_next:
            raise self._wrong(f"expected a comma or '{bracket}'")
        return False

    def _token(self, shape: re.Pattern[str], expected: str) -> Value:
        found = shape.match(self._text, self._at)
        if found is None:
            raise self._wrong(f"expected {expected}")
        try:
            plain = json.loads(found[0])
        except ValueError:
            raise self._wrong(f"expected {expected}") from None
        self._at = found.end()
        return Value(found.start(), found.end(), plain)

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

    def _wrong(self, what: str) -> NotJson:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        return NotJson(f"line {line}, column {column}: {what}")
