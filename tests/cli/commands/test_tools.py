"""What others offer."""

from datetime import UTC, datetime
from typing import Any

import pytest

import mew
from mew.cli.commands.tools import arguments_for, offered, shown_offers
from mew.cli.errors import CommandError
from mew.cli.render.escape import escape_lines
from mew.cli.render.text import shown_value
from mew.cli.render.times import seconds_of
from mew.proposals.catalogue import Tool
from mew.testing import Space

WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "bob": ["chat", "mcp/proposal"],
    "calc": ["mcp/response"],
}


def calculator() -> mew.Participant:
    served = mew.Participant("calculator")

    @served.tool(read_only=True)
    def add(a: int, b: float = 1.5) -> float:
        """Add two numbers."""
        return a + b

    return served


async def test_everyone_who_is_here_is_asked_and_the_silent_are_named() -> None:
    async with (
        Space(WHO) as space,
        space.serving(calculator(), "calc"),
        space.connect("bob"),
        space.connect("ann") as ann,
    ):
        found = await offered(ann, "calc")
        lines = [line.plain for line in shown_offers({**found, "bob": None})]
    assert lines == [
        "calc",
        "  add(a: integer, [b: number])  says it only reads",
        "      Add two numbers.",
        "did not say, or you may not ask: bob",
    ]


async def test_who_may_ask_nobody_gets_no_tools() -> None:
    async with Space(WHO) as space, space.serving(calculator(), "calc"), space.connect("bob") as bob:
        found = await offered(bob, None)
    assert found == {"calc": None}
    assert next(line.plain for line in shown_offers(found)) == "nobody here offers tools"


async def test_arguments_are_read_and_checked_by_the_schema_of_the_tool() -> None:
    async with Space(WHO) as space, space.serving(calculator(), "calc"), space.connect("ann") as ann:
        assert await arguments_for(ann, "calc", "add", ["a=2"], None) == ({"a": 2}, None)
        given, problem = await arguments_for(ann, "calc", "add", ["a=2", "c=1"], None)
        assert given == {"a": 2, "c": 1}
        assert problem is not None
        assert problem.endswith("schema: unknown argument 'c', expected: 'a', 'b'")


async def test_a_tool_that_is_not_there_is_said_with_the_nearest() -> None:
    async with Space(WHO) as space, space.serving(calculator(), "calc"), space.connect("ann") as ann:
        with pytest.raises(CommandError, match="calc has no tool 'ad'; did you mean 'add'"):
            await arguments_for(ann, "calc", "ad", [], None)
        with pytest.raises(CommandError, match="calc has no tool 'zzz'; 'mew tools calc' lists those it has"):
            await arguments_for(ann, "calc", "zzz", [], None)


async def test_who_may_not_see_the_schema_gives_arguments_all_the_same() -> None:
    async with Space(WHO) as space, space.serving(calculator(), "calc"), space.connect("bob") as bob:
        assert await arguments_for(bob, "calc", "add", ["a=2", "x=y"], None) == ({"a": 2, "x": "y"}, None)


def test_whatever_a_participant_lists_cannot_act_on_the_terminal() -> None:
    hostile = {"name": "\x1b[2J", "description": "\x1b]0;x\x07", "inputSchema": {"properties": {"\x1b": 1}}}
    tool = Tool.read("fs\x1b", hostile, datetime.now(UTC))
    assert tool is not None
    assert all(line.plain.isprintable() for line in shown_offers({"fs\x1b": [tool]}))


# What a tool returns.


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "(nothing)"),
        ("one\ntwo\x1b[31m", "one\ntwo\\u001b[31m"),
        ('say "hi" \\ there', 'say "hi" \\ there'),
        ({"a": ["ö", "\u202e"]}, '{\n  "a": [\n    "ö",\n    "\\u202e"\n  ]\n}'),
        (7, "7"),
        (
            [{"type": "text", "text": "hi"}, {"type": "image", "data": "A" * 4096, "mimeType": "image/png"}],
            "hi\n[image, image/png, 3.0 KiB]",
        ),
        ([{"type": "resource_link", "uri": "file:///a"}], "[file:///a]"),
    ],
)
def test_a_value_is_shown_so_that_nothing_in_it_acts(value: Any, shown: str) -> None:
    assert shown_value(value) == shown


def test_tabs_are_blanks() -> None:
    assert escape_lines("a\tb") == "a       b"


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7_200), ("1d", 86_400), ("5min", 300)],
)
def test_a_time_is_read_as_people_write_it(written: str, seconds: float) -> None:
    assert seconds_of(written) == seconds


def test_what_is_no_time_is_said() -> None:
    with pytest.raises(CommandError, match="--for 'soon' is no time; write 90s, 15m, 2h or 1d"):
        seconds_of("soon")
