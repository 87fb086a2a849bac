"""Whether a call needs approval, said before its arguments are known."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mew.mcp_bridge.policy.permits import Permit, Permits
from mew.protocol.capability import Capability, CapabilitySet

CALL = "tools/call"


def held(*capabilities: Any) -> CapabilitySet:
    return CapabilitySet(map(Capability.parse, capabilities))


def permit(capabilities: CapabilitySet, participant: str, method: str, name: str | None) -> Permit:
    return Permits(capabilities).of(participant, method, name)


def within(kind: str, **arguments: Any) -> dict[str, Any]:
    return {"kind": kind, "payload": {"method": CALL, "params": {"arguments": arguments}}}


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (["mcp/request"], Permit.DIRECT),
        (["*"], Permit.DIRECT),
        (["mcp/request:tools/call:read_*", "mcp/proposal"], Permit.DIRECT),
        (["mcp/request:tools/call:write_*", "mcp/proposal"], Permit.PROPOSED),
        (["mcp/proposal:tools/call:read_file"], Permit.PROPOSED),
        (["mcp/proposal:tools/call:write_*"], Permit.NONE),
        (["chat", "mcp/request:tools/list"], Permit.NONE),
        ([], Permit.NONE),
    ],
)
def test_what_may_be_called_may_be_shown(capabilities: list[Any], expected: Permit) -> None:
    assert permit(held(*capabilities), "files", CALL, "read_file") is expected


def test_a_pattern_that_looks_into_arguments_makes_some_calls_possible() -> None:
    public = within("mcp/request", path="/public/**")

    assert permit(held(public), "files", CALL, "read_file") is Permit.SOME
    assert permit(held(public, "mcp/proposal"), "files", CALL, "read_file") is Permit.MIXED
    assert (
        permit(held(within("mcp/proposal", path="/public/**")), "files", CALL, "read_file") is Permit.PROPOSED
    )


def test_a_right_against_another_participant_is_none_against_this_one() -> None:
    capability = {"kind": "mcp/request", "to": "notes"}

    assert permit(held(capability), "notes", CALL, "read_file") is Permit.DIRECT
    assert permit(held(capability), "files", CALL, "read_file") is Permit.NONE


def test_an_exception_takes_away_what_it_covers() -> None:
    capability = {"kind": "mcp/request", "except": ["mcp/request:tools/call:delete_*"]}

    assert permit(held(capability), "files", CALL, "read_file") is Permit.DIRECT
    assert permit(held(capability), "files", CALL, "delete_file") is Permit.NONE


def test_a_template_may_be_read_where_one_of_its_uris_may() -> None:
    capability = held("mcp/request:resources/read:file:///public/**")

    assert permit(capability, "files", "resources/read", "file:///{+path}") is Permit.SOME
    assert permit(capability, "files", "resources/read", "file:///public/{name}") is Permit.DIRECT
    assert permit(capability, "files", "resources/read", "db://{table}") is Permit.NONE


@pytest.mark.parametrize("name", ["a*", "?", "!read", "/(/", "x" * 5_000, "//"])
def test_a_name_that_looks_like_a_pattern_is_shown_in_doubt_and_never_said_to_be_free(name: str) -> None:
    assert permit(held("mcp/proposal"), "files", CALL, name) is Permit.PROPOSED
    assert permit(held("mcp/request"), "files", CALL, name) is Permit.DIRECT
    assert permit(held("mcp/request:tools/call:b"), "files", CALL, name) is not Permit.DIRECT


def test_what_needs_approval_says_so() -> None:
    assert Permit.PROPOSED.note == "needs approval"
    assert Permit.DIRECT.note == ""


def test_three_lines_make_reading_direct_and_everything_else_proposed() -> None:
    page = (Path(__file__).parents[3] / "docs/howto/use-a-space-from-an-mcp-host.md").read_text(
        encoding="utf-8"
    )
    lines = re.findall(r"^      - (\S+)$", page, re.MULTILINE)

    held_by_host = held(*lines)

    assert len(lines) == 3
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        assert held_by_host.fits("mcp/request", ["files"], partial(dict, method=method))
    assert permit(held_by_host, "files", CALL, "read_file") is Permit.DIRECT
    assert permit(held_by_host, "files", CALL, "write_file") is Permit.PROPOSED


def test_what_goes_for_any_tool_is_said_without_a_name() -> None:
    assert permit(held("mcp/request:tools/call:read_*", "mcp/proposal"), "files", CALL, None) is Permit.MIXED
    assert permit(held("chat"), "files", CALL, None) is Permit.NONE
