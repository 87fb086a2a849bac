"""PURE. Make text that others wrote safe to print: everything is visible, and nothing acts on a terminal."""

import re
from typing import Final

from mew.protocol.visible import visible

__all__ = ["escape_json", "escape_lines"]

_LINE: Final = re.compile(r'[^"\\\n]+')
_NOT_ASCII: Final = re.compile("[^ -~]")
_ALL: Final = 1 << 30


def escape_lines(text: str, chars_max: int = _ALL) -> str:
    """Escape what is invisible in a text, and keep its line breaks; mark where it was cut."""
    shown = _LINE.sub(lambda part: visible(part[0], len(part[0])), text[:chars_max].expandtabs())
    return shown if len(text) <= chars_max else f"{shown}… ({len(text):,} characters)"


def escape_json(text: str, *, ascii_only: bool = True) -> str:
    """Write JSON in visible characters, in one line if these are to be ASCII alone.

    Whatever is not printable outside of strings is white space.
    """
    if ascii_only:
        return _NOT_ASCII.sub(lambda char: " " if char[0] in "\t\n\r" else _escape(char[0]), text)
    return "".join(
        char
        if char == "\n" or (char.isprintable() and visible(char) in (char, f"\\{char}"))
        else _escape(char)
        for char in text
    )


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
