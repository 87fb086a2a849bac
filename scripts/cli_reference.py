"""Write docs/reference/cli.md: every command, as the commands declare themselves."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from scripts.cli_page import Entry, Page, page_of
from typer.main import get_command

from mew.cli.errors import ExitCode
from mew.cli.main import app
from mew.cli.registry import COMMANDS

__all__ = ["FILE", "document", "pages"]

FILE: Final = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"

_SAYS_CODE: Final = re.compile(r"[Ee]xit code [01]")
_SHARED: Final = "Connection"
_SHARED_LINK: Final = "the [connection options](#connection)"
_HEAD: Final = """\
# The command line

<!-- Made by scripts/cli_reference.py from the commands themselves: change them, and run it again. -->

`mew COMMAND --help` shows the page of a command with its examples; this is all of them. `mew` alone lists the
commands and says what to do next. `mew --install-completion` lets your shell complete commands, options, names and
ids.

A command prints its answer to stdout and everything else to stderr. With `--json`, stdout is JSON and nothing else.
Colours are used on terminals only; `NO_COLOR` turns them off. An error is one sentence on stderr that begins with the
command; `--debug` adds the traceback. Text that participants wrote is escaped, so that it cannot control the terminal.
"""
_WHERE: Final = """\
In the folder of a `space.yaml` and below it, commands find the gateway, the space and the token by themselves. Options
take precedence over the environment, and the environment over the file. A token is sent to another machine only if the
same source names both the token and the gateway, or if you typed the token.
"""
_ENVIRONMENT: Final = """\
What the commands read; what a gateway reads is in [configuration](configuration.md).
"""
_EXIT: Final = """\
The codes are the same for all commands. Each command says what 1 means in its case.
"""


_VARIABLES: Final = (
    ("`MEW_GATEWAY`", "where the gateway is, as `--gateway` says it"),
    ("`MEW_SPACE`", "the space, as `--space` says it"),
    ("`MEW_AS`", "who to be there, as `--as` says it"),
    ("`MEW_TOKEN`, `MEW_TOKEN_FILE`", "the token, or the file that holds it"),
    (
        "`MEW_TOKEN_NAME`",
        "the token of participant `name`: its id in capitals, `_` for what is neither letter nor digit",
    ),
    ("`MEW_REDIS`", "the Redis that `mew gateway` shares with other nodes, as `--redis` says it"),
    ("`MEW_DEBUG`", "`1`: as `--debug`"),
    ("`NO_COLOR`", "no colours, whatever it is set to"),
    ("`VISUAL`, `EDITOR`", "what `mew approve --edit` opens"),
)
"""What is read by the commands; what a gateway reads is in configuration.md."""
_FOR_CHILDREN: Final = {"MEW_URL"}


def pages() -> list[Page]:
    """Of every command and every command below one, in the order in which they are listed."""
    context = _root()
    found: list[Page] = []
    for name in COMMANDS:
        _, command, _ = context.command.resolve_command(context, [name])
        found += _pages(command.make_context(name, [], parent=context, resilient_parsing=True))
    return found


def _root() -> Any:
    return get_command(app).make_context("mew", [], resilient_parsing=True)


def _pages(context: Any) -> Iterator[Page]:
    yield page_of(context)
    for name, command in getattr(context.command, "commands", {}).items():
        if not command.hidden:
            yield from _pages(command.make_context(name, [], parent=context, resilient_parsing=True))


def document() -> str:
    """The text of the page."""
    found = pages()
    panels: dict[str, list[str]] = {}
    for name, listed in COMMANDS.items():
        panels.setdefault(listed.panel, []).append(name)
    parts = [
        _HEAD,
        *_contents(panels),
        "## Before the command\n",
        _options(page_of(_root()).options["Options"]),
        "## Exit codes\n",
        _EXIT,
        _exit_codes(),
        "## Environment\n",
        _ENVIRONMENT,
    ]
    parts += [_environment(found), f"## {_SHARED}\n", _WHERE, _shared(found)]
    for panel, names in panels.items():
        parts.append(f"## {panel}\n")
        for page in found:
            if page.path.split()[1] in names:
                parts += _section(page)
    return "\n".join(parts)


def _contents(panels: dict[str, list[str]]) -> Iterator[str]:
    yield "\n".join(
        f"- **{panel}**: {', '.join(f'[{name}](#mew-{name})' for name in names)}"
        for panel, names in panels.items()
    )
    yield ""


def _exit_codes() -> str:
    return _table(("code", "means"), ((str(int(one)), f"{one.meaning}") for one in ExitCode))


def _environment(found: Iterable[Page]) -> str:
    named = {
        variable
        for page in found
        for entries in page.options.values()
        for entry in entries
        for variable in entry.variables
    }
    unsaid = named - {word.strip("`,") for row in _VARIABLES for word in row[0].split()} - _FOR_CHILDREN
    assert not unsaid, f"say what {sorted(unsaid)} do in _VARIABLES"
    return _table(("variable", ""), _VARIABLES)


def _shared(found: Iterable[Page]) -> str:
    return _options(next(page.options[_SHARED] for page in found if _SHARED in page.options))


def _section(page: Page) -> Iterator[str]:
    depth = "###" if page.path.count(" ") == 1 else "####"
    yield f"{depth} {page.path}\n"
    yield f"```\n{page.synopsis}\n```\n"
    for paragraph in page.paragraphs:
        yield f"{_text(paragraph)}\n"
    if page.arguments:
        yield _table(("argument", ""), ((_code(one.written), _said(one)) for one in page.arguments))
    for entries in (entries for title, entries in page.options.items() if title != _SHARED):
        own = [one for one in entries if one.written != "--help"]
        if own:
            yield _options(own)
    if _SHARED in page.options:
        yield f"And {_SHARED_LINK}.\n"
    if page.commands:
        yield "Its commands: " + ", ".join(_link(page, one) for one in page.commands) + ".\n"
    if page.examples:
        yield "```sh\n" + "\n".join(page.examples) + "\n```\n"
    no = "" if page.path.count(" ") > 1 else COMMANDS[page.path.split()[1]].no
    is_said = any(_SAYS_CODE.search(paragraph) for paragraph in page.paragraphs)
    yield "[Exit codes](#exit-codes)" + (f"; 1: {no}.\n" if no and not is_said else ".\n")


def _link(page: Page, below: Entry) -> str:
    return f"[{below.written}](#{page.path.replace(' ', '-')}-{below.written})"


def _options(entries: Iterable[Entry]) -> str:
    return _table(("option", ""), ((_code(one.written), _said(one)) for one in entries))


def _said(entry: Entry) -> str:
    also = [f"Default: `{entry.default}`."] if entry.default else []
    also += ["Needed."] if entry.is_required and entry.written.startswith("-") else []
    unsaid = [name for name in entry.variables if name not in entry.says]
    also += [f"Else {', '.join(f'`{name}`' for name in unsaid)}."] if unsaid else []
    return " ".join([_text(entry.says), *also])


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    lines += [
        f"| {left.replace('|', chr(92) + '|')} | {right.replace('|', chr(92) + '|')} |"
        for left, right in rows
    ]
    return "\n".join(lines) + "\n"


def _code(written: str) -> str:
    return f"`{written}`"


def _text(prose: str) -> str:
    """As Markdown, in which stars and angle brackets would be taken for something else."""
    return prose.replace("*", r"\*").replace("<", "&lt;")


def main() -> None:
    FILE.write_text(document(), encoding="utf-8")
    sys.stdout.write(f"{FILE.relative_to(FILE.parents[2])} written\n")


if __name__ == "__main__":
    main()
