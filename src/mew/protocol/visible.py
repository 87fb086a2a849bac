"""PURE. Text of others made fit for a terminal: short, in one line, and nothing in it that hides, moves or rewrites.

Control characters, bidirectional overrides, and what is drawn as nothing are shown as escapes.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["cut", "literal", "named", "visible"]

_STRING_CHARS_MAX: Final = 200
_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@/:-]*", re.ASCII)
# Letters and marks that fonts draw as nothing: what Unicode calls printable is not always to be seen.
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)


def cut(text: str, most: int) -> str:
    """The text, or its beginning with a mark that it goes on."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def visible(text: str, most: int = _STRING_CHARS_MAX) -> str:
    """At most so many characters of a text, each of which is seen; a mark and the length where it was longer."""
    shown = "".join(map(_shown, text[:most]))
    return shown if len(text) <= most else f"{shown}… ({len(text):,} characters)"


def named(name: str, most: int = 80) -> str:
    """A name as it is if it could not be mistaken for anything else, in quotes if it could."""
    return name if len(name) <= most and _NAME.fullmatch(name) else _quoted(name, most)


def literal(value: Any, most: int = _STRING_CHARS_MAX) -> str:
    """A JSON value in one line of about so many characters, with a mark where it goes on."""
    text = ""
    for piece in _pieces(value, most):
        if len(text) + len(piece) > most and text:
            return f"{text}…"
        text += piece
    return text


def _pieces(value: Any, most: int) -> Iterator[str]:
    match value:
        case str():
            yield _quoted(value, most)
        case dict():
            yield "{"
            for place, (name, item) in enumerate(value.items()):
                yield f"{', ' if place else ''}{named(name)}: "
                yield from _pieces(item, most)
            yield "}"
        case list() | tuple():
            yield "["
            for place, item in enumerate(value):
                if place:
                    yield ", "
                yield from _pieces(item, most)
            yield "]"
        case None | bool():
            yield {None: "null", True: "true", False: "false"}[value]
        case _:
            yield visible(repr(value), most)


def _quoted(text: str, most: int) -> str:
    shown = "".join(map(_shown, text[:most]))
    return f'"{shown}"' if len(text) <= most else f'"{shown}…" ({len(text):,} characters)'


def _shown(char: str) -> str:
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if char.isprintable() and char not in _BLANK:
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
