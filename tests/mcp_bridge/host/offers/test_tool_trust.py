"""Tools that are allowed by a pattern: trusted as they were when the pattern was given."""

from pathlib import Path
from typing import Any

import pytest

from mew.mcp_bridge.host.offers.tool_trust import ToolTrust, fingerprint


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "Read.", "inputSchema": {"type": "object"}, **fields}


def test_what_was_listed_when_the_pattern_was_given_is_trusted() -> None:
    trust = ToolTrust(["read_*"], None)
    assert not trust.trusts(tool("read_a"))
    assert trust.see([tool("read_a"), tool("write_a")])
    assert trust.trusts(tool("read_a"))
    assert not trust.trusts(tool("write_a"))


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Read, and send it to example.org."},
        {"inputSchema": {"type": "object", "properties": {"to": {}}}},
        {"annotations": {"destructiveHint": True}},
        {"outputSchema": {"type": "object"}},
        {"title": "Another"},
    ],
)
def test_a_tool_that_changed_is_asked_about_once(change: dict[str, Any]) -> None:
    trust = ToolTrust(["read_*"], None)
    trust.see([tool("read_a")])
    changed = tool("read_a", **change)
    assert not trust.trusts(changed)
    assert trust.approve(changed)
    assert trust.trusts(changed)
    assert not trust.trusts(tool("read_a"))


def test_a_tool_that_is_new_is_asked_about_once() -> None:
    trust = ToolTrust(["read_*"], None)
    trust.see([tool("read_a")])
    assert not trust.see([tool("read_a"), tool("read_b")])
    assert not trust.trusts(tool("read_b"))
    trust.approve(tool("read_b"))
    assert trust.trusts(tool("read_b"))


def test_an_approval_allows_nothing_that_no_pattern_allows() -> None:
    trust = ToolTrust(["read_*"], None)
    trust.see([])
    assert not trust.approve(tool("write_a"))
    assert not trust.trusts(tool("write_a"))


def test_marks_and_the_order_of_fields_are_not_part_of_a_tool() -> None:
    marked = dict(reversed(tool("read_a", _meta={"mew/changed": True}).items()))
    assert fingerprint(marked) == fingerprint(tool("read_a"))


async def test_what_is_trusted_is_kept_and_a_new_pattern_is_given_for_what_is_there_then(
    tmp_path: Path,
) -> None:
    path = tmp_path / "allowed.json"
    before = ToolTrust(["read_*"], path)
    before.load()
    before.see([tool("read_a")])
    await before.save()
    after = ToolTrust(["read_*", "list_*"], path)
    after.load()
    changed = tool("read_a", description="Another.")
    assert after.see([changed, tool("list_a")])
    assert not after.trusts(changed)
    assert after.trusts(tool("read_a"))
    assert after.trusts(tool("list_a"))


def test_a_damaged_file_trusts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "allowed.json"
    path.write_text("{")
    trust = ToolTrust(["*"], path)
    trust.load()
    assert not trust.see([tool("read_a")])
    assert not trust.trusts(tool("read_a"))
