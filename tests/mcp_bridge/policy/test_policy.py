"""The policy of a wrapped server: what becomes of calls, and what the gateway enforces of it."""

from pathlib import Path
from typing import Any

import pytest

from mew.gateway.config.value import ConfigError
from mew.mcp_bridge.policy.permits import Permit
from mew.mcp_bridge.policy.policy import CallPolicy, PolicyAction, PolicySettings
from mew.mcp_bridge.policy.policy_file import parse_policy, read_policy
from mew.mcp_bridge.policy.scan import proposed_policy
from mew.protocol.capability import Capability, CapabilitySet

POLICY = """
hide: ["tools/call:debug_*"]
deny: ["tools/call:delete_*", {tool: write_file, arguments: {path: "/etc/**"}}]
ask: [{annotation: {destructiveHint: true}}]
allow:
  - {tool: read_file, arguments: {path: "docs/**"}}
  - {annotation: {readOnlyHint: true}}
  - tools/call:write_file
limits:
  - {tool: search, calls: 2, per: minute}
"""


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def policy(text: str = POLICY, clock: Clock | None = None) -> CallPolicy:
    return CallPolicy(parse_policy(text, "policy.yaml"), host="host", server="files", clock=clock or Clock())


def decide(one: CallPolicy, tool: str, arguments: dict[str, Any] | None = None, **said: bool) -> PolicyAction:
    return one.decide("tools/call", {"name": tool, "arguments": arguments or {}}, said).action


@pytest.mark.parametrize(
    ("tool", "arguments", "said", "action"),
    [
        ("debug_dump", {}, {"readOnlyHint": True}, "hide"),
        ("delete_file", {}, {"readOnlyHint": True}, "deny"),
        ("write_file", {"path": "/etc/passwd"}, {}, "deny"),
        ("write_file", {"path": "/home/../etc/passwd"}, {}, "deny"),
        ("write_file", {"path": "/home/a"}, {}, "allow"),
        ("write_file", {"path": "/home/a"}, {"destructiveHint": True}, "ask"),
        ("read_file", {"path": "docs/a"}, {}, "allow"),
        ("read_file", {"path": "docs/a", "raw": True}, {}, "ask"),
        ("stat", {}, {"readOnlyHint": True}, "allow"),
        ("move", {}, {}, "ask"),
    ],
)
def test_the_first_list_with_a_rule_for_a_call_decides(
    tool: str, arguments: dict[str, Any], said: dict[str, bool], action: str
) -> None:
    assert decide(policy(), tool, arguments, **said) is PolicyAction(action)


def test_a_limit_denies_what_is_beyond_it_until_time_has_passed() -> None:
    clock = Clock()
    limited = policy(clock=clock)
    assert [decide(limited, "search") for _ in range(3)] == ["ask", "ask", "deny"]
    why = limited.decide("tools/call", {"name": "search"}, {}).why
    assert why == "the limit of 2 calls of `search` per minute is used up; try again in 60 s"
    clock.now_s = 61.0
    assert decide(limited, "search") is PolicyAction.ASK


def test_a_limit_may_ask_instead() -> None:
    limited = policy("allow: ['tools/call:*']\nlimits: [{tool: '*', calls: 1, then: ask}]")
    assert [decide(limited, "a"), decide(limited, "b")] == ["allow", "ask"]


def test_other_rules_come_into_force_and_counts_stay() -> None:
    heard: list[str] = []
    one = policy("limits: [{tool: a, calls: 1}]")
    one.on_change(lambda: heard.append("changed"))
    decide(one, "a")
    one.use(parse_policy("limits: [{tool: a, calls: 1}]\ndeny: ['tools/call:b']", "p"))
    assert heard == ["changed"]
    assert [decide(one, "a"), decide(one, "b")] == ["deny", "deny"]


def test_the_gateway_enforces_what_capabilities_can_say() -> None:
    held = CapabilitySet([Capability.parse(one) for one in policy().capabilities()])

    def may(kind: str, tool: str, **arguments: Any) -> bool:
        payload = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return held.fits(kind, ["files"], lambda: payload)

    assert may("mcp/request", "write_file", path="/home/a")
    assert not may("mcp/request", "write_file", path="/etc/passwd")
    assert not may("mcp/proposal", "write_file", path="/etc/passwd")
    assert not may("mcp/proposal", "delete_file")
    assert not may("mcp/proposal", "debug_dump")
    assert may("mcp/proposal", "move")


def test_hosts_see_what_is_denied_and_not_what_is_hidden() -> None:
    one = policy()
    assert one.hides("tools/call", "debug_dump", None)
    assert not one.hides("tools/call", "delete_file", None)
    assert one.permit("tools/call", "delete_file", None) is Permit.NONE
    assert one.permit("tools/call", "stat", {"readOnlyHint": True}) is Permit.DIRECT
    assert one.permit("tools/call", "stat", None) is Permit.PROPOSED
    assert one.permit("tools/call", "write_file", None) is Permit.MIXED
    assert one.tool_patterns == ["read_file", "*", "write_file"]


def test_a_default_of_hide_leaves_what_is_listed() -> None:
    one = policy("default: hide\nallow: ['tools/call:read_*']\nask: ['tools/call:write_*']")
    assert [decide(one, name) for name in ("read_a", "write_a", "else")] == ["allow", "ask", "hide"]
    assert [one.hides("tools/call", name, None) for name in ("read_a", "write_a", "else")] == [
        False,
        False,
        True,
    ]


def test_a_rule_for_another_server_says_nothing() -> None:
    one = policy("deny: [{tool: a, target: web}, {tool: b, target: 'fil*'}]")
    assert [decide(one, "a"), decide(one, "b")] == ["ask", "deny"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alow: []", "policy.yaml:1: unknown key 'alow', did you mean 'allow'"),
        ("deny:\n  - delete_*", "policy.yaml:2: deny[0]: 'delete_*' names no method"),
        ("deny:\n  - {tol: x}", "policy.yaml:2: deny[0]: Object contains unknown field `tol`"),
        ("hide:\n  - {tool: x, arguments: {a: b}}", "policy.yaml:2: hide[0]: a tool is hidden whatever"),
        ("limits:\n  - {tool: x}", "policy.yaml:2: limits[0]: Object missing required field `calls`"),
        ("default: maybe", "policy.yaml:1: default"),
    ],
)
def test_what_is_wrong_in_a_policy_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_policy(text, "policy.yaml")
    assert str(raised.value).startswith(message)


def test_an_empty_policy_asks_about_everything() -> None:
    assert parse_policy("# nothing\n", "p") == PolicySettings()


def test_a_scan_allows_what_says_that_it_only_reads() -> None:
    tools: list[dict[str, Any]] = [
        {"name": "read", "annotations": {"readOnlyHint": True}, "description": "Reads.\nMore."},
        {"name": "fetch", "annotations": {"readOnlyHint": True, "openWorldHint": True}},
        {"name": "drop", "annotations": {"destructiveHint": True}},
        {"name": "say: # no", "description": "x\n- tools/call:drop"},
    ]
    text = proposed_policy("files", tools)
    settings = parse_policy(text, "p")
    assert settings.allow == ("tools/call:read",)
    assert settings.ask == ("tools/call:fetch", "tools/call:drop", "tools/call:say: # no")
    assert "# reads; Reads." in text


def test_the_policy_in_the_guide_is_one() -> None:
    example = Path(__file__).with_name("policy.yaml")
    guide = Path(__file__).parents[3] / "docs" / "howto" / "wrap-an-mcp-server.md"
    assert f"```yaml\n{example.read_text()}```" in guide.read_text()
    assert read_policy(example).limits[0].calls == 100
