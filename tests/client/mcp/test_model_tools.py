"""Tools as language models are given them, and back."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

import mew

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def tool(participant: str, name: str, **fields: Any) -> mew.Tool:
    return mew.Tool(participant=participant, name=name, first_seen=datetime.now(UTC), **fields)


TOOLS = [
    tool("files", "write_file", description="Write a file.", input_schema=SCHEMA),
    tool("ann@work.example", "käse/" + "x" * 80),
]


def test_anthropic_is_given_name_description_and_schema() -> None:
    first, second = mew.anthropic_tools(TOOLS)
    assert first == {"name": "files__write_file", "description": "Write a file.", "input_schema": SCHEMA}
    assert NAME.fullmatch(second["name"])
    assert second["input_schema"] == {"type": "object", "properties": {}}


def test_openai_is_given_functions_with_descriptions_that_it_takes() -> None:
    wordy = tool("files", "read", description="x" * 5_000)
    first, last = mew.openai_tools([TOOLS[0], wordy])
    function = {"name": "files__write_file", "description": "Write a file.", "parameters": SCHEMA}
    assert first == {"type": "function", "function": function}
    assert len(last["function"]["description"]) <= 1024


@pytest.mark.parametrize("arguments", [{"path": "a"}, '{"path": "a"}'])
def test_a_models_call_finds_its_tool_again(arguments: Any) -> None:
    for meant, given in zip(TOOLS, mew.anthropic_tools(TOOLS), strict=True):
        found = mew.resolve_tool_call(TOOLS, given["name"], arguments)
        assert found == mew.ToolCall(meant.participant, meant.name, {"path": "a"})


def test_a_model_that_calls_a_tool_without_arguments_may_leave_them_empty() -> None:
    assert mew.resolve_tool_call(TOOLS, "files__write_file", "").arguments == {}


def test_a_name_that_no_tool_has_is_told_with_the_nearest() -> None:
    with pytest.raises(mew.UnknownTool, match="did you mean 'files__write_file'"):
        mew.resolve_tool_call(TOOLS, "files_write_file", {})


@pytest.mark.parametrize("arguments", ["[1]", "{", '"path"'])
def test_arguments_that_are_no_object_are_an_error(arguments: str) -> None:
    with pytest.raises(mew.InvalidArguments, match="the arguments are not"):
        mew.resolve_tool_call(TOOLS, "files__write_file", arguments)
