"""What a command says: lines for people, JSON for programs. Nothing that participants wrote acts on a terminal."""

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from mew.protocol.json import decode_json, encode_json
from mew.protocol.visible import visible

from .escape import escape_lines
from .table import console, json_line, put

__all__ = ["folded", "is_terminal", "note", "say", "say_json", "shown_value"]

_KIB: Final = 1024
_FURTHER_IN: Final = " " * 6
_WIDTH_MIN: Final = 20


def say(what: RenderableType = "") -> None:
    """To stdout. Lines are as long as they are; tables as wide as the terminal."""
    if isinstance(what, str):
        typer.echo(what)
        return
    out = console()
    put(out, folded(what, out) if isinstance(what, Text) and out.is_terminal else what)


def say_json(value: Any) -> None:
    """To stdout: one line of visible ASCII."""
    typer.echo(json_line(value))


def note(text: str | Text) -> None:
    """Beside the answer: to stderr."""
    if isinstance(text, Text):
        out = Console(stderr=True, highlight=False, markup=False, emoji=False)
        text = folded(text, out) if out.is_terminal else text
    typer.echo(escape_lines(str(text)), err=True)


def folded(text: Text, out: Console) -> Text:
    """Lines that are too long go on further in than any other begins: what they say cannot pass for a line of ours."""
    width = max(out.width - len(_FURTHER_IN), _WIDTH_MIN)
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        first, *rest = [line] if line.cell_len <= out.width else line.wrap(out, width, overflow="fold")
        lines += [first, *(Text.assemble(_FURTHER_IN, part) for part in rest)]
    return Text("\n").join(lines)


def is_terminal() -> bool:
    """Whether somebody can be asked: both what they read and what they type is a terminal."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty())


def shown_value(value: Any) -> str:
    """What a tool returned, as people read it: its text, or JSON in several lines."""
    match value:
        case None:
            return "(nothing)"
        case str():
            return escape_lines(value)
        case [*blocks] if blocks and all(_is_block(block) for block in blocks):
            return "\n".join(map(_shown_block, blocks))
        case _:
            return "\n".join(_indented(value))


def _indented(value: Any) -> Iterator[str]:
    plain = decode_json(encode_json(value))
    for line in json.dumps(plain, indent=2, ensure_ascii=False).split("\n"):
        yield _visible_json(line)


def _visible_json(line: str) -> str:
    """JSON in which whatever is not seen is escaped as JSON does; what is seen, in any script, stays."""
    return "".join(
        char if char.isprintable() and visible(char) in (char, f"\\{char}") else _escaped(char)
        for char in line
    )


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def _shown_block(block: dict[str, Any]) -> str:
    """A block of MCP's content: text as it is, of anything else what it is."""
    match block:
        case {"type": "text", "text": str(text)}:
            return escape_lines(text)
        case {"type": str(kind), "data": str(data), "mimeType": str(mime)}:
            return f"[{visible(kind)}, {visible(mime)}, {len(data) * 3 // 4 / _KIB:.1f} KiB]"
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[{visible(uri)}]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return escape_lines(text)
        case _:
            return "\n".join(_indented(block))
