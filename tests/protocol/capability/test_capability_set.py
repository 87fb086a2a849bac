"""A set of capabilities: what it remembers, what it asks for, and that it answers as its members do."""

import gc
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mew.protocol.capability import AmbiguousPayload, Capability, CapabilitySet, PathWork, Repeated
from mew.protocol.capability.json_path import VISITS_MAX
from mew.protocol.json import encode_json
from mew.protocol.payload import Payload


def held(*written: object) -> CapabilitySet:
    return CapabilitySet(map(Capability.parse, written))


def never() -> object:
    pytest.fail("the payload was decoded")


def call(name: object, method: object = "tools/call") -> dict[str, Any]:
    return {"method": method, "params": {"name": name}}


def test_a_set_keeps_the_order_and_drops_duplicates() -> None:
    capabilities = held("chat", "mcp/*", {"kind": "chat"})
    assert [capability.source["kind"] for capability in capabilities] == ["chat", "mcp/*"]
    assert len(capabilities) == 2
    assert capabilities == held("chat", "mcp/*")
    assert capabilities != held("mcp/*", "chat")
    assert not held().fits("chat", [], never)


def test_a_kind_that_is_decided_needs_no_payload() -> None:
    capabilities = held(
        "chat", "mcp/request:tools/call:x", {"kind": "mcp/*"}, {"kind": "stream/*", "to": "ann"}
    )
    assert capabilities.fits("chat", [], never)
    assert capabilities.fits("mcp/request", [], never)
    assert not capabilities.fits("reasoning/start", [], never)
    assert capabilities.fits("stream/open", ["ann"], never)
    assert not capabilities.fits("stream/open", ["bob"], never)


def test_an_exception_for_a_whole_kind_decides_it() -> None:
    assert not held({"kind": "*", "except": ["chat"]}).fits("chat", [], never)
    assert held({"kind": "*", "except": ["chat"]}, "chat").fits("chat", [], never)


class Kind(str):
    """A kind whose end can be observed."""

    __slots__ = ("__weakref__",)


def test_what_is_remembered_of_kinds_is_bounded() -> None:
    capabilities = held("chat", "mcp/*")
    seen = []
    for n in range(5_000):
        kind = Kind(f"kind-{n}" if n % 2 else f"mcp/{n}" + "x" * 300)
        assert capabilities.fits(kind, [], never) is (n % 2 == 0)
        seen.append(weakref.ref(kind))
        del kind
    gc.collect()
    remembered = [left for ref in seen if (left := ref()) is not None]
    assert 0 < len(remembered) <= 1_024
    assert max(map(len, remembered)) <= 256


MANY: list[object] = [
    *(f"mcp/request:tools/call:tool_{n}" for n in range(20)),
    "mcp/request:tools/call:read_*",
    "mcp/request:prompts/*",
    {"kind": "mcp/request", "payload": {"params": {"name": "by_name"}}},
    {"kind": "mcp/request", "payload": {"id": 7}},
    {"kind": "mcp/request", "payload": [{"method": "one"}, {"method": "two"}]},
    {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "to_ann"}}, "to": "ann"},
    {"kind": "mcp/request", "to": "all", "except": ["mcp/request:tools/call:tool_30"]},
]


@pytest.mark.parametrize(
    ("payload", "to", "expected"),
    [
        (call("tool_7"), [], True),
        (call("tool_21"), [], False),
        (call("tool_21"), ["all"], True),
        (call("tool_30"), ["all"], False),
        (call("read_x"), [], True),
        (call("x", "prompts/get"), [], True),
        (call("by_name", "any"), [], True),
        (call("by_name", 5), [], True),
        (call("to_ann"), ["ann"], True),
        (call("to_ann"), ["bob"], False),
        ({"id": 7}, [], True),
        ({"method": "two", "params": []}, [], True),
        (call(["tool_7"]), [], False),
        (call({}, {}), [], False),
        (None, [], False),
        (["method"], [], False),
    ],
)
def test_many_rules_for_a_kind_answer_as_one_by_one(payload: Any, to: list[str], expected: object) -> None:
    capabilities = held(*MANY)
    assert capabilities.fits("mcp/request", to, lambda: payload) is expected
    assert any(capability.fits("mcp/request", to, lambda: payload) for capability in capabilities) is expected


def test_a_repeated_key_is_malformed_also_with_many_rules() -> None:
    with pytest.raises(AmbiguousPayload):
        held(*MANY).fits("mcp/request", [], lambda: Repeated({"method": "x"}, ["method"]))
    twice = {"method": "tools/call", "params": Repeated({"name": "tool_1"}, ["name"])}
    with pytest.raises(AmbiguousPayload):
        held(*MANY).fits("mcp/request", [], lambda: twice)


def test_a_payload_that_cannot_be_decoded_fits_nothing_that_looks_at_it() -> None:
    def broken() -> object:
        raise RecursionError

    assert not held("mcp/request:tools/call").fits("mcp/request", [], broken)


def plain_or_repeated(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["method", "params", "name", "id"])
    plain = st.dictionaries(names, parts, max_size=3)
    return plain | st.lists(parts, max_size=2) | st.builds(lambda d, r: Repeated(d, r), plain, st.sets(names))


texts = st.text(st.characters(), max_size=5) | st.sampled_from(["\ud800", "tools/call", "a/../b"])
payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts, plain_or_repeated, max_leaves=6
)
PATHS: list[object] = [
    {"kind": "*", "payload": {"$..[?search(@.name, 'a')]": "/x/"}},
    {"kind": "*", "payload": {"$.params[?@.name == 1 || !@.id].name": "!a*?"}},
]


@settings(max_examples=100, deadline=None)
@given(texts, st.lists(texts, max_size=2), payloads)
def test_fits_raises_nothing_but_ambiguous_payload(kind: str, to: list[str], payload: Any) -> None:
    capabilities = held(
        *PATHS, *MANY, {"kind": ["/^a/", "!?a*"], "to": ["/b/", "?*"], "payload": {"name": "*a?"}}
    )
    for target in (*capabilities, capabilities):
        for each in (kind, "mcp/request"):
            try:
                assert target.fits(each, to, lambda: payload) in (True, False)
            except AmbiguousPayload:
                continue


# What it costs.


def with_path(number: int, expected: object, to: str = "*") -> dict[str, Any]:
    return {"kind": "x", "to": to, "payload": {f"$..a{number}": expected}}


def test_all_paths_together_have_one_budget_for_an_envelope() -> None:
    capabilities = held(*(with_path(n, "never") for n in range(480)), with_path(480, 1))
    small, large = {"a480": 1}, {"a480": 1, "rest": list(range(2_000))}
    assert capabilities.fits("x", ["ann"], lambda: small)
    work = PathWork()
    assert not capabilities.fits("x", ["ann"], lambda: large, work)
    assert VISITS_MAX / 2 < work.spent <= VISITS_MAX
    assert held(with_path(480, 1)).fits("x", ["ann"], lambda: large)


def test_what_has_no_path_fits_however_many_paths_there_are() -> None:
    capabilities = held(*(with_path(n, "never") for n in range(480)), {"kind": "x", "payload": {"b": 1}})
    assert capabilities.fits("x", ["ann"], lambda: {"b": 1, "rest": list(range(9_000))})


def test_paths_for_other_addressees_cost_nothing() -> None:
    capabilities = held(*(with_path(n, "never", to="bob") for n in range(400)), with_path(400, 1))
    work = PathWork()
    assert capabilities.fits("x", ["ann"], lambda: {"a400": 1, "rest": list(range(2_000))}, work)
    assert work.spent < 5_000


def test_a_path_that_names_its_nodes_costs_little_however_large_the_payload() -> None:
    work = PathWork()
    capabilities = held({"kind": "x", "payload": {"$.a.b": 1}})
    assert capabilities.fits("x", (), lambda: {"a": {"b": 1}, "rest": list(range(5_000))}, work)
    assert work.spent < 1_000


def large_call(tool: str) -> Payload:
    payload = {"params": {"arguments": {"rows": [[]] * 50_000}, "name": tool}, "method": "tools/call"}
    envelope = {"protocol": "mew/v0.4", "id": "e", "from": "ann", "kind": "mcp/request", "payload": payload}
    return Payload(encode_json(envelope))


def test_a_large_payload_is_not_decoded_to_refuse_its_addressee_or_its_tool() -> None:
    header = large_call("write_file").header
    capabilities = held("mcp/request:tools/call:read_*", "mcp/request:resources/read")
    assert not capabilities.fits("mcp/request", ("files",), never, header=header)
    capabilities = held({"kind": "mcp/request", "to": "files", "payload": {"method": "tools/call"}})
    assert not capabilities.fits("mcp/request", ("shell",), never, header=header)
    assert not capabilities.fits("chat", ("files",), never, header=header)


def test_a_large_payload_that_may_fit_is_decoded() -> None:
    payload = large_call("write_file")
    capabilities = held({"kind": "mcp/request", "payload": call("write_*")})
    assert capabilities.fits("mcp/request", (), payload, header=payload.header)
