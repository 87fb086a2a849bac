"""Covering, being disjoint, revoking: examples, then the properties that everything rests on."""

import re
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mew.protocol.capability import Capability, CapabilitySet

parse = Capability.parse


def allows(target: Capability | CapabilitySet, kind: str, to: list[str], payload: object) -> bool:
    return target.fits(kind, to, lambda: payload)


def on_x(pattern: object) -> dict[str, Any]:
    return {"kind": "k", "payload": {"x": pattern}}


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("*", "chat", True),
        ("*", "mcp/**", True),
        ("mcp/*", "mcp/request:tools/call:read_*", True),
        ("mcp/*", "mcp/**", False),
        ("mcp/**", "mcp/*", True),
        ("mcp/request:tools/call", "mcp/request:tools/call:x", True),
        ("mcp/request:tools/call:x", "mcp/request:tools/call", False),
        ("mcp/request:tools/call:read_*", "mcp/request:tools/call:read_*", True),
        ("mcp/request:tools/call:*_file", "mcp/request:tools/call:read_*", False),
        ({"kind": ["chat", "mcp/*"]}, {"kind": ["mcp/request", "chat"]}, True),
        ({"kind": "chat"}, {"kind": "chat", "to": "ann"}, True),
        ({"kind": "chat", "to": "ann"}, {"kind": "chat"}, False),
        ({"kind": "chat", "to": "a*"}, {"kind": "chat", "to": ["ann", "abe"]}, True),
        ({"kind": "*", "except": ["chat"]}, {"kind": "mcp/*"}, True),
        ({"kind": "*", "except": ["chat"]}, {"kind": "c*"}, False),
        ({"kind": "*", "except": ["chat"]}, {"kind": "c*", "except": ["ch*"]}, True),
        ({"kind": "*"}, {"kind": "*", "except": ["chat"]}, True),
        (on_x("a*b*"), on_x("ab*b"), True),
        (on_x("a**"), on_x("a?*/?"), True),
        (on_x("a?*"), on_x("a*"), False),
        (on_x("**a**"), on_x("*a*"), True),
        (on_x("/a/**"), on_x("/a/../b"), False),
        (on_x("*"), on_x("/^a/"), True),
        (on_x("*"), on_x("!a"), True),
        (on_x("*"), on_x({"y": 1}), True),
        (on_x("/^a/"), on_x("/^a/"), True),
        (on_x("/^a/"), on_x("abc"), True),
        (on_x("/^a/"), on_x("a*"), False),
        (on_x("!/etc/**"), on_x("/home/**"), True),
        (on_x("!/etc/**"), on_x("!/etc/*"), False),
        (on_x("!/etc/*"), on_x("!/etc/**"), True),
        (on_x("/a/**"), on_x("/a/./b"), False),
        (on_x("/a/**"), on_x("/a/%2e%2e/b"), False),
        (on_x(1), on_x(1.0), True),
        (on_x(1), on_x([True]), False),
        (on_x({"$.y": "a*"}), on_x({"$.y": "ab"}), True),
        (on_x({"$.y": "a*"}), on_x({"y": "ab"}), False),
        (on_x([1, "a*"]), on_x(["ab", 1]), True),
        (on_x({}), {"kind": "k"}, False),
    ],
)
def test_covering_is_decided(wide: object, narrow: object, expected: object) -> None:
    assert parse(wide).covers(parse(narrow)) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("chat", "mcp/*", True),
        ("m*", "*p", False),
        ("mcp/request:tools/call:read_*", "mcp/request:tools/call:write_*", True),
        ("mcp/request:tools/call:read_*", "mcp/request:tools/call:*_file", False),
        ({"kind": "chat", "to": "ann"}, {"kind": "chat", "to": "bob"}, True),
        ({"kind": "chat", "to": "ann"}, {"kind": "chat"}, False),
        ({"kind": "*", "except": ["c*"]}, "chat", True),
        ({**on_x("*"), "except": [on_x("/a/b")]}, on_x("/a/./b"), False),
        (on_x("!a*"), on_x("ab*"), True),
        (on_x("/a/**"), on_x("/a/../b"), True),
        (on_x(1), on_x("1"), True),
        (on_x({"y": 1}), on_x({"y": 2}), True),
        (on_x({"$.y": 1}), on_x({"$.y": 2}), True),
        (on_x({"$.y": 1}), on_x({"y": 2}), False),
        (on_x("/a/"), on_x("b*"), False),
        (on_x({"y": 1}), on_x("*"), False),
        (on_x({"y": 1}), on_x("a*"), True),
    ],
)
def test_having_nothing_in_common_is_decided(left: object, right: object, expected: object) -> None:
    assert parse(left).disjoint(parse(right)) is expected
    assert parse(right).disjoint(parse(left)) is expected


def test_a_proof_that_takes_too_long_is_not_found() -> None:
    hard = parse(on_x("*a?" * 30)), parse(on_x("*b?a" * 30))
    assert not hard[0].covers(hard[1])
    assert not hard[0].disjoint(hard[1])


def test_revoking_takes_what_is_inside_and_carves_the_rest() -> None:
    everything = parse("mcp/*")
    assert everything.without(parse("mcp/**")) is None
    assert everything.without(parse("chat")) is everything
    carved = everything.without(parse("mcp/request:tools/call:delete_*"))
    assert carved is not None
    assert carved.source["except"] == [parse("mcp/request:tools/call:delete_*").source]
    assert carved.without(parse("mcp/request:tools/call:delete_all")) is carved
    wider = carved.without(parse("mcp/request:tools/*"))
    assert wider is not None
    assert wider.source["except"] == [parse("mcp/request:tools/*").source]
    assert parse(wider.source) == wider


def test_revoking_with_exceptions_takes_more_rather_than_less() -> None:
    pattern = parse({"kind": "mcp/*", "except": ["mcp/response"]})
    assert parse("mcp/response").without(pattern) == parse("mcp/response")
    assert parse("mcp/*").without(pattern) is None


def test_past_256_exceptions_a_capability_goes_altogether() -> None:
    left: Capability | None = parse("*")
    for n in range(256):
        assert left is not None
        left = left.without(parse(f"kind-{n}"))
    assert left is not None
    assert left.without(parse("kind-255")) is left
    assert left.without(parse("one-more")) is None


@pytest.mark.parametrize(
    ("held", "asked", "expected"),
    [
        (["chat", "mcp/proposal"], {"kind": ["chat", "mcp/proposal"]}, True),
        (["chat"], {"kind": ["chat", "mcp/proposal"]}, False),
        (
            ["mcp/request:tools/list", "mcp/request:tools/call"],
            {"kind": "mcp/request", "payload": {"method": ["tools/list", "tools/call"]}},
            True,
        ),
        (
            ["mcp/request:tools/call:a", "mcp/request:tools/call:b*"],
            {
                "kind": "mcp/request",
                "payload": {"method": "tools/call", "params": {"name": ["a", "b", "bc"]}},
            },
            True,
        ),
        (
            [{"kind": "chat", "to": "ann"}, {"kind": "chat", "to": "bob"}],
            {"kind": "chat", "to": ["ann", "bob"]},
            False,
        ),
        ([], "chat", False),
    ],
)
def test_a_set_covers_alternatives_by_different_members(
    held: list[object], asked: object, expected: object
) -> None:
    assert CapabilitySet(map(parse, held)).covers(parse(asked)) is expected


# The properties.

texts = st.text("ab/.\\", max_size=6) | st.sampled_from(
    ["..", "a/..", "../a", "/a/../b", "a\\..\\b", "a", "b", "ab", "a%2fb", "%61", "./a", "/a%5Cb", "a://b//a"]
)
globs = st.lists(
    st.sampled_from(["a", "b", "/", ".", "..", "\\", "*", "**", "?"]), min_size=1, max_size=6
).map("".join)
plain_globs = globs.filter(lambda text: len(text) < 2 or not (text[0] == text[-1] == "/"))
regexes = st.sampled_from(["/a/", "/^a*$/", "/b$/", "/[.]/", "/^[^a]/", r"/^\.\.$/"])
positive = (
    texts.filter(lambda text: len(text) < 2 or not (text[0] == text[-1] == "/")) | plain_globs | regexes
)
strings = positive | positive.map(lambda text: "!" + text)
scalars = st.sampled_from([0, 1, 1.0, True, False, None])
leaves = strings | scalars | st.just("*")
NAMES = ("x", "y")


def objects(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    keys = st.sampled_from([*NAMES, "$.x", "$..y", "$.y[*]"])
    return st.dictionaries(keys, parts, max_size=2)


patterns = st.recursive(
    leaves, lambda parts: st.lists(parts, min_size=1, max_size=3) | objects(parts), max_leaves=4
)
values = st.recursive(
    texts | scalars,
    lambda parts: st.lists(parts, max_size=2) | st.dictionaries(st.sampled_from(NAMES), parts, max_size=2),
    max_leaves=4,
)
kinds = st.sampled_from(["a", "b", "a/b", "*", "a*", "a/*", "?", "!a", ["a", "b"], "**b", "/a/"])
addressees = st.sampled_from(["a", "b", "*", "!b", ["a", "b"], "?"])
clauses = st.fixed_dictionaries({"kind": kinds}, optional={"payload": objects(patterns), "to": addressees})
capabilities = st.builds(
    lambda clause, excepted: parse(clause | {"except": excepted}), clauses, st.lists(clauses, max_size=2)
)
payloads = st.none() | st.dictionaries(st.sampled_from(NAMES), values, max_size=2)

SHORT_TEXTS = ["".join(chars) for size in range(6) for chars in product("ab/.", repeat=size)] + [
    "".join(chars) for size in range(5) for chars in product(["a", "\\", ".", "x", "%2e", "%2F"], repeat=size)
]
SMALL_TEXTS = ["".join(chars) for size in range(6) for chars in product("a/.\\z", repeat=size)]
small_globs = (
    st.lists(st.sampled_from(["a", "/", ".", "\\", "*", "**", "?"]), min_size=1, max_size=3)
    .map("".join)
    .filter(lambda glob: "*" in glob or "?" in glob)
)
ENVELOPES = list(product(["a", "b", "a/b", "c", "..", "ab"], [[], ["a"], ["b"], ["a", "b"], ["c"]]))


@st.composite
def related(draw: st.DrawFn) -> tuple[Capability, Capability]:
    """Two capabilities that are likely to have something to do with each other."""
    first = draw(capabilities)
    source = first.source
    for key, choice in (("kind", kinds), ("to", addressees), ("payload", objects(patterns))):
        if draw(st.booleans()):
            source[key] = draw(choice)
        elif key != "kind" and draw(st.booleans()):
            source.pop(key, None)
    if draw(st.booleans()):
        source["except"] = [*source.get("except", []), draw(clauses)][-2:]
    second = parse(source)
    return draw(st.sampled_from([(first, second), (second, first)]))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(related(), st.lists(payloads, min_size=4, max_size=12))
def test_what_is_proven_holds_for_every_envelope(
    pair: tuple[Capability, Capability], found: list[Any]
) -> None:
    a, b = pair
    covers, disjoint = a.covers(b), a.disjoint(b)
    assume(covers or disjoint)
    for (kind, to), payload in product(ENVELOPES, [None, *found]):
        in_a, in_b = allows(a, kind, to, payload), allows(b, kind, to, payload)
        assert not (covers and in_b and not in_a), f"{a} covers {b}, but not {kind, to, payload}"
        assert not (disjoint and in_a and in_b), (
            f"{a} and {b} are disjoint, but both have {kind, to, payload}"
        )


@cache
def short_texts(pattern: str) -> frozenset[str]:
    """Those that fit it."""
    wanted = parse(on_x(pattern))
    return frozenset(text for text in SHORT_TEXTS if allows(wanted, "k", [], {"x": text}))


@cache
def small_texts(glob: str) -> frozenset[str]:
    """Those that it describes."""
    parts = re.findall(r"\*\*+|.", glob)
    described = "".join(
        ".*" if part.startswith("**") else {"*": r"[^/\\]*", "?": r"[^/\\]"}.get(part, re.escape(part))
        for part in parts
    )
    return frozenset(text for text in SMALL_TEXTS if re.fullmatch(described, "z/" + text))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(strings, strings)
def test_what_is_proven_of_strings_holds_for_every_short_string(left: str, right: str) -> None:
    a, b = parse(on_x(left)), parse(on_x(right))
    fit_a, fit_b = short_texts(left), short_texts(right)
    if a.covers(b):
        assert fit_b <= fit_a
    if b.covers(a):
        assert fit_a <= fit_b
    if a.disjoint(b):
        assert not fit_a & fit_b


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(small_globs, small_globs)
def test_globs_are_decided_both_ways(left: str, right: str) -> None:
    """Not only sound: what no short string speaks against is proven, irregular ones included."""
    a, b = parse(on_x("z/" + left)), parse(on_x("z/" + right))
    fit_a, fit_b = small_texts("z/" + left), small_texts("z/" + right)
    assert a.covers(b) or not fit_b <= fit_a
    assert a.disjoint(b) or fit_a & fit_b


@settings(max_examples=100, deadline=None)
@given(related(), st.lists(payloads, min_size=2, max_size=8))
def test_without_is_what_fits_and_does_not_fit_the_pattern(
    pair: tuple[Capability, Capability], found: list[Any]
) -> None:
    held, pattern = pair[0], parse({key: item for key, item in pair[1].source.items() if key != "except"})
    left, rest = held.without(pattern), parse({"kind": "**", "except": [pattern.source]})
    for (kind, to), payload in product(ENVELOPES, [None, *found]):
        expected = allows(held, kind, to, payload) and allows(rest, kind, to, payload)
        assert (left is not None and allows(left, kind, to, payload)) is expected


@settings(max_examples=80, deadline=None)
@given(st.lists(capabilities, max_size=4), capabilities, st.lists(payloads, min_size=2, max_size=6))
def test_a_set_fits_what_a_member_fits_and_covers_no_more(
    members: list[Capability], asked: Capability, found: list[Any]
) -> None:
    held = CapabilitySet(members)
    covers = held.covers(asked)
    for (kind, to), payload in product(ENVELOPES, [None, *found]):
        fits = allows(held, kind, to, payload)
        assert fits == any(allows(member, kind, to, payload) for member in members)
        assert fits or not covers or not allows(asked, kind, to, payload)
