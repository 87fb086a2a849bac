"""What can be written: the shorthand, the normal form, and what is refused with which sentence."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mew.protocol.capability import Capability, Repeated, short_form
from mew.protocol.errors import InvalidCapability


@pytest.mark.parametrize(
    ("shorthand", "source"),
    [
        ("chat", {"kind": "chat"}),
        ("mcp/*", {"kind": "mcp/*"}),
        ("mcp/response:*", {"kind": "mcp/response"}),
        ("mcp/request:*", {"kind": "mcp/request"}),
        ("mcp/request:tools/call", {"kind": "mcp/request", "payload": {"method": "tools/call"}}),
        ("mcp/request:tools/call:*", {"kind": "mcp/request", "payload": {"method": "tools/call"}}),
        ("mcp/request:tools/*", {"kind": "mcp/request", "payload": {"method": "tools/*"}}),
        (
            "mcp/proposal:tools/call:delete_file",
            {"kind": "mcp/proposal", "payload": {"method": "tools/call", "params": {"name": "delete_file"}}},
        ),
        (
            "mcp/request:resources/read:file:///a:b",
            {
                "kind": "mcp/request",
                "payload": {"method": "resources/read", "params": {"uri": "file:///a:b"}},
            },
        ),
        (
            "mcp/request:prompts/get:x",
            {"kind": "mcp/request", "payload": {"method": "prompts/get", "params": {"name": "x"}}},
        ),
        (
            "mcp/request:completion/complete:x",
            {"kind": "mcp/request", "payload": {"method": "completion/complete", "params": {"ref": "x"}}},
        ),
    ],
)
def test_the_shorthand_stands_for_an_object(shorthand: str, source: dict[str, Any]) -> None:
    capability = Capability.parse(shorthand)
    assert capability.source == source
    assert capability == Capability.parse(source)
    assert hash(capability) == hash(Capability.parse(source))


def nested(levels: int) -> Any:
    pattern: Any = "x"
    for _ in range(levels):
        pattern = {"a": pattern}
    return pattern


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (None, "a capability is an object or a string, this is a NoneType"),
        ({}, "no 'kind'"),
        ({"kind": "chat", "payloads": {}}, "the key 'payloads', allowed are kind, payload, to, except"),
        ({"kind": ""}, "kind must be a non-empty string"),
        ("", "empty part"),
        ({"kind": 1}, "kind must be a non-empty string"),
        ({"kind": []}, "kind is an empty array"),
        ({"kind": {"a": "b"}}, "kind must be a non-empty string"),
        ({"kind": "chat", "to": None}, "to must be a non-empty string"),
        ({"kind": "chat", "payload": "x"}, "payload must be an object"),
        ({"kind": "chat", "payload": None}, "payload must be an object"),
        ({"kind": "chat", "payload": {"a": b"x"}}, "payload.a is a bytes"),
        ({"kind": "chat", "payload": {"a": float("nan")}}, "payload.a is nan"),
        ({"kind": "chat", "payload": {1: "x"}}, "payload has the key 1, keys are strings"),
        ({"kind": "chat", "payload": {"a": "/(/"}}, "payload.a is not a regular expression of RE2: '/(/'"),
        ({"kind": "chat", "payload": {"a": "!/(/"}}, "payload.a is not a regular expression of RE2"),
        ({"kind": "chat", "payload": {"a": r"/(a)\1/"}}, "RE2"),
        ({"kind": "chat", "payload": {"a": "/\ud800/"}}, "not valid Unicode"),
        ({"kind": "chat", "payload": {"a": "//"}}, "empty regular expression, write '*'"),
        ({"kind": "chat", "payload": {"$.a[": 1}}, "the key '$.a[', which is not a JSONPath of RFC 9535"),
        ({"kind": "chat", "payload": {"$schema": 1}}, "$['$name']"),
        ({"kind": "chat", "payload": {"$[?match(@, '(')]": 1}}, "'(' is not a regular expression"),
        ({"kind": "chat", "payload": {"$[?match(@.a, $.b)]": 1}}, "written out"),
        ({"kind": "chat", "payload": {"$..*..*..*..*..x": 1}}, "too many nodes"),
        (
            {"kind": "chat", "payload": {"$" + "[?@" * 900 + "]" * 900: 1}},
            "a JSONPath of 3601 characters, 512 are allowed",
        ),
        ({"kind": "chat", "payload": {"a": "x" * 4_097}}, "4097 characters, 4096 are allowed"),
        ({"kind": "chat", "payload": {"a": ["x"] * 257}}, "257 alternatives, 256 are allowed"),
        ({"kind": "chat", "payload": {str(n): n for n in range(1_000)}}, "larger than 1000 parts"),
        ({"kind": "chat", "payload": nested(33)}, "nested deeper than 32"),
        ({"kind": "chat", "payload": {"a": "!" * 40}}, "more than 32 '!' in a row"),
        ({"kind": "chat", "payload": {"a": Repeated({"b": 1}, ["b"])}}, "payload.a has the key 'b' twice"),
        ({"kind": "chat", "except": {}}, "except must be an array"),
        ({"kind": "chat", "except": [{"kind": "chat", "except": []}]}, "'except' of its own"),
        ({"kind": "chat", "except": [{"kind": ""}]}, "in except: kind must be"),
        ({"kind": "chat", "except": ["x"] * 257}, "257 capabilities, 256 are allowed"),
        ("mcp/request:", "empty part"),
        ("chat:x", "only mcp/request and mcp/proposal have; write 'chat' alone"),
        ("mcp/response:tools/call", "write 'mcp/response' alone"),
        ("mcp/request:tools/list:x", "only these methods take: tools/call, resources/read"),
        ("x" * 5_000, "4096 are allowed"),
    ],
)
def test_what_does_not_compile_is_refused_with_its_reason(written: object, sentence: str) -> None:
    with pytest.raises(InvalidCapability) as refused:
        Capability.parse(written)
    assert sentence in str(refused.value)


def test_the_source_is_a_copy_and_lists_exceptions_only_if_there_are_some() -> None:
    capability = Capability.parse({"kind": "chat", "except": []})
    assert capability.source == {"kind": "chat"}
    capability.source["kind"] = "*"
    assert capability.source == {"kind": "chat"}
    assert Capability.parse({"kind": "*", "except": ["chat"]}).source == {
        "kind": "*",
        "except": [{"kind": "chat"}],
    }


def test_capabilities_that_differ_in_type_only_are_not_equal() -> None:
    assert Capability.parse({"kind": "x", "payload": {"a": 1}}) != Capability.parse(
        {"kind": "x", "payload": {"a": True}}
    )


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=3)
    | st.text(max_size=8)
    | st.text("!/*?.([$@)]{},+\\:a'", max_size=8),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "payload", "to", "except"])
            | st.text("$.[]*?@'a(),|&~", max_size=6)
            | st.integers(),
            parts,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    anything | st.fixed_dictionaries({"kind": anything}, optional={"payload": anything, "except": anything})
)
def test_parsing_raises_nothing_but_invalid_capability(written: object) -> None:
    try:
        capability = Capability.parse(written)
    except InvalidCapability:
        return
    assert Capability.parse(capability.source) == capability


@pytest.mark.parametrize(
    ("kind", "payload", "written"),
    [
        ("chat", {"text": "hi"}, "chat"),
        ("mcp/request", None, "mcp/request"),
        ("mcp/request", {"method": "tools/list"}, "mcp/request:tools/list"),
        ("mcp/request", {"method": 7}, "mcp/request"),
        ("mcp/proposal", {"method": "tools/call", "params": {"name": "a"}}, "mcp/proposal:tools/call:a"),
        (
            "mcp/request",
            {"method": "resources/read", "params": {"uri": "f:/x"}},
            "mcp/request:resources/read:f:/x",
        ),
        ("mcp/request", {"method": "tools/call", "params": {"name": ["a"]}}, "mcp/request:tools/call"),
    ],
)
def test_the_short_form_of_an_envelope_would_let_it_through(kind: str, payload: Any, written: str) -> None:
    assert short_form(kind, payload) == written
    assert Capability.parse(written).fits(kind, [], lambda: payload)
