"""What somebody means who types a capability."""

from typing import Any

import pytest

import mew
from mew.cli.commands.capability_argument import read_capabilities
from mew.cli.errors import CommandError
from mew.testing import Space

WHO: dict[str, list[Any]] = {"ann": ["*"], "files": [], "disk": []}


def offering(*names: str) -> mew.Participant:
    served = mew.Participant("files")
    for name in names:
        served.tool(name=name)(lambda: "done")
    return served


async def read(*written: str) -> list[Any]:
    async with (
        Space(WHO) as space,
        space.serving(offering("write_file", "read_file", "read_all", "shared"), "files"),
        space.serving(offering("shared"), "disk"),
        space.connect("ann") as ann,
    ):
        return await read_capabilities(ann, written)


async def test_the_name_of_a_tool_is_the_right_to_call_it_and_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await read("write_file") == ["mcp/request:tools/call:write_file"]
    assert capsys.readouterr().err == (
        "write_file is a tool of files: this is mcp/request:tools/call:write_file\n"
    )


async def test_a_pattern_that_tools_fit_is_the_right_to_call_them() -> None:
    assert await read("read_*") == ["mcp/request:tools/call:read_*"]


@pytest.mark.parametrize(
    "written", ["chat", "*", "mcp/*", "mcp/request:tools/call:anything", "mcp/proposal", "reasoning/*"]
)
async def test_a_kind_is_taken_as_it_is(written: str) -> None:
    assert await read(written) == [written]


async def test_json_is_taken_as_it_is() -> None:
    assert await read('{"kind": "own/kind"}') == [{"kind": "own/kind"}]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (
            "write_fil",
            "'write_fil' is neither a kind of envelope nor a tool known here; did you mean 'write_file'",
        ),
        ("mcp/requst", "did you mean 'mcp/request'"),
        ("zzz", "'mew tools' lists the tools"),
        (
            "shared",
            "is a tool of disk and of files; write 'mcp/request:tools/call:shared' for all of them, or for",
        ),
        ("{", "is no JSON"),
        ("/(/", "regular expression"),
    ],
)
async def test_what_would_be_of_no_use_is_not_granted(written: str, why: str) -> None:
    with pytest.raises(CommandError) as failed:
        await read(written)
    assert why in str(failed.value)
