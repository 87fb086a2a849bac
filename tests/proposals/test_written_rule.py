"""Rules about calls, as people write them."""

from typing import Any

import pytest

from mew.proposals.written_rule import CallFacts, CallRule, WrittenRule
from mew.protocol.errors import InvalidCapability


def call(name: str, arguments: dict[str, Any] | None = None, **said: bool) -> CallFacts:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return CallFacts(proposer="coder", target=["files"], method="tools/call", params=params, annotations=said)


def test_a_text_and_an_object_say_the_same() -> None:
    for rule in (CallRule("tools/call:read_*"), CallRule(WrittenRule(tool="read_*"))):
        assert rule.allows(call("read_file", {"path": "a"}))
        assert rule.forbids(call("read_file"))
        assert not rule.allows(call("write_file"))
        assert (rule.method, rule.name) == ("tools/call", "read_*")


def test_a_rule_with_arguments_allows_no_others() -> None:
    rule = CallRule(WrittenRule(tool="read_file", arguments={"path": "docs/**"}))
    assert rule.allows(call("read_file", {"path": "docs/a/b"}))
    assert not rule.allows(call("read_file", {"path": "docs/a", "follow": True}))
    assert not rule.allows(call("read_file", {"path": "src/a"}))
    assert not rule.allows(call("read_file", {"path": "docs/../src/a"}))
    assert not rule.allows(call("read_file"))


def test_what_is_forbidden_is_found_behind_a_detour_and_with_other_arguments() -> None:
    rule = CallRule(WrittenRule(tool="write_file", arguments={"path": "/etc/**"}))
    assert rule.forbids(call("write_file", {"path": "/etc/passwd", "text": "x"}))
    assert rule.forbids(call("write_file", {"path": "/home/../etc/passwd"}))
    assert not rule.forbids(call("write_file", {"path": "/home/ann"}))


def test_proposer_target_and_annotation_must_fit() -> None:
    rule = CallRule(WrittenRule(proposer="coder", target="files", annotation={"readOnlyHint": True}))
    assert rule.allows(call("read_file", readOnlyHint=True))
    assert not rule.allows(call("read_file"))
    assert not CallRule(WrittenRule(proposer="bob")).allows(call("read_file"))
    assert not CallRule(WrittenRule(target="web")).forbids(call("read_file"))
    assert str(rule) == "`tools/call` readOnlyHint `true` by `coder` of `files`"


def test_a_name_without_its_method_is_refused_instead_of_fitting_nothing() -> None:
    with pytest.raises(InvalidCapability, match="write 'tools/call:delete_\\*'"):
        CallRule("delete_*")
    with pytest.raises(InvalidCapability, match=r"."):
        CallRule("tools/call:/(/")
    assert CallRule("**").forbids(call("anything"))
