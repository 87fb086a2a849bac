"""`--help`: the page of a command on a terminal, in plain lines as wide as it."""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from .help_page import Entry, Page, page_of

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

__all__ = ["filled", "helpful", "write_help"]

_WIDTH_MIN: Final = 40
_WIDTH_MAX: Final = 100
_INDENT: Final = "  "
_NAMES_MAX: Final = 28
_NAMES_SHARE: Final = 3
_MORE: Final = (
    "'mew COMMAND --help' has examples. Exit codes: 0, it was done; 1, the answer is no; 2, it could not be tried;"
    " 70, mew itself failed; 130, interrupted."
)


def helpful(command: "Command") -> "Command":
    """The same, with help of this kind, for it and for the commands below it."""
    command.format_help = write_help  # type: ignore[method-assign, assignment]  # Typer takes no formatter from outside
    for one in getattr(command, "commands", {}).values():
        helpful(one)
    return command


def write_help(context: "Context", formatter: "HelpFormatter") -> None:
    """The page of the command of this context."""
    page = page_of(context)
    formatter.write("\n".join(_lines(page, _panels(context, page))) + "\n")


def filled(text: str, indent: str = "") -> str:
    """In lines as wide as the terminal; all but the first begin with `indent`."""
    return textwrap.fill(text, _width(), subsequent_indent=indent, break_on_hyphens=False)


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, _WIDTH_MIN), _WIDTH_MAX)


def _panels(context: "Context", page: Page) -> dict[str, list[Entry]]:
    """The commands below it, under the titles they have in the list of all."""
    commands: dict[str, Any] = getattr(context.command, "commands", {})
    panels: dict[str, list[Entry]] = {}
    for one in page.commands:
        title = getattr(commands[one.written], "rich_help_panel", None)
        panels.setdefault(title if isinstance(title, str) else "Commands", []).append(one)
    return panels


def _lines(page: Page, commands: dict[str, list[Entry]]) -> Iterator[str]:
    width = _width()
    yield filled(f"Usage: {page.synopsis}", " " * 7)
    for paragraph in page.paragraphs:
        yield ""
        yield filled(paragraph)
    if page.examples:
        yield from _title("Examples")
        yield from (f"{_INDENT}{line}" for line in page.examples)  # as they are, to be copied
    if page.arguments:
        yield from _title("Arguments")
        yield from _table(page.arguments, width)
    for title, entries in commands.items():
        yield from _title(title)
        yield from _table(entries, width)
    for title, entries in page.options.items():
        yield from _title(title)
        yield from _table(entries, width)
    if " " not in page.path:
        yield ""
        yield filled(_MORE)


def _title(text: str) -> Iterator[str]:
    yield ""
    yield typer.style(text, bold=True)


def _table(entries: Sequence[Entry], width: int) -> Iterator[str]:
    """Names left, what they do right; beneath a name that is too long."""
    names = [_name(one) for one in entries]
    most = min(max(map(len, names)), _NAMES_MAX, width // _NAMES_SHARE)
    left = " " * (len(_INDENT) + most + 2)
    for name, entry in zip(names, entries, strict=True):
        lines = textwrap.wrap(_said(entry), width - len(left), break_on_hyphens=False) or [""]
        if len(name) > most:
            yield f"{_INDENT}{name}"
        else:
            yield f"{_INDENT}{name.ljust(most)}  {lines.pop(0)}".rstrip()
        yield from (f"{left}{line}" for line in lines)


def _name(entry: Entry) -> str:
    """Long options stand under each other."""
    return f"    {entry.written}" if entry.written.startswith("--") else entry.written


def _said(entry: Entry) -> str:
    unsaid = [name for name in entry.variables if name not in entry.says]
    also = [f"default: {entry.default}"] if entry.default else []
    also += [f"else {', '.join(unsaid)}"] if unsaid else []
    return f"{entry.says} ({'; '.join(also)})" if also else entry.says
