"""docs/reference/cli.md says what the commands say, and what they say is true."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from scripts.cli_page import Page
from scripts.cli_reference import FILE, document, pages
from typer.main import get_command
from typer.testing import CliRunner

from mew.cli.errors import ExitCode
from mew.cli.main import app
from mew.cli.registry import COMMANDS

PAGES = pages()
EXAMPLES = [(page.path, line) for page in PAGES for line in page.examples if not line.startswith("#")]
ENDS = re.compile(r"&&|\||<\(|\$\(")


def test_the_reference_is_what_the_commands_say_of_themselves() -> None:
    assert FILE.read_text(encoding="utf-8") == document(), "run scripts/cli_reference.py"


def test_the_reference_has_every_command_and_every_exit_code() -> None:
    text = document()
    for page in PAGES:
        assert re.search(rf"^###+ {page.path}$", text, re.MULTILINE), page.path
    for code in ExitCode:
        assert f"| {int(code)} | {code.meaning[:20]}" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_each_command_has_an_example_of_itself(page: Page) -> None:
    assert any(line.split("mew ", 1)[-1].startswith(page.path.split()[1]) for line in page.examples)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_everything_that_can_be_typed_is_explained(page: Page) -> None:
    for entry in (*page.arguments, *(one for entries in page.options.values() for one in entries)):
        assert entry.says.endswith("."), f"{page.path} {entry.written}: {entry.says!r}"


@pytest.mark.parametrize(("path", "line"), EXAMPLES)
def test_each_example_is_understood(path: str, line: str) -> None:
    commands = list(typed(line))
    assert commands, line
    for words in commands:
        context: Any = get_command(app).make_context("mew", words)
        while rest := [*context._protected_args, *context.args]:
            if not hasattr(context.command, "commands"):
                break
            name, command, rest = context.command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)


def typed(line: str) -> Iterator[list[str]]:
    """The words after each `mew` in a line for a shell."""
    for part in ENDS.split(line):
        words = shlex.split(part.split(" > ")[0].partition(")")[0])
        if words and words[0] == "mew":
            yield words[1:]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_help_leaves_examples_as_they_are(width: int) -> None:
    for page in PAGES:
        words = page.path.split()[1:]
        said = CliRunner(env={"COLUMNS": str(width)}).invoke(app, [*words, "--help"]).stdout
        own = [line for line in page.examples if not line.startswith("#")]
        assert all(line in said for line in own if f"mew {' '.join(words)}" in line and not page.commands), (
            page.path
        )


def test_every_command_is_in_one_group() -> None:
    assert {page.path.split()[1] for page in PAGES} == set(COMMANDS)
