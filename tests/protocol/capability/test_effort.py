"""Proofs end: hard patterns take a counted number of steps, and what runs out of them is not proven."""

from itertools import product
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.capability import test_containment as usual
from tests.protocol.capability.test_containment import ENVELOPES, allows, on_x, parse, payloads, related

from mew.protocol.capability import Capability, CapabilitySet, ProofBudget
from mew.protocol.errors import InvalidCapability
from mew.protocol.json import encode_json

HARD = (
    "*a?" * 30,
    "*b?a" * 30,
    "*?" * 30 + "a",
    "**a" + "?" * 40,
    "**" + "?" * 41,
    "*" + "a" * 500,
    "*" + "a" * 400 + "*",
    "**/a" * 40 + "*",
    "**.." * 30 + "*b",
)
CPU_S_MAX = 2.0  # generous: these take some 100 ms


@pytest.mark.parametrize(("left", "right"), list(product(HARD, repeat=2)))
def test_no_question_takes_more_than_its_steps(left: str, right: str) -> None:
    a, b = parse(on_x(left)), parse(on_x(right))
    effort = ProofBudget(10_000_000)
    a.covers(b, effort=effort)
    assert 10_000_000 - effort.left < 25_000
    before = effort.left
    a.disjoint(b, effort=effort)
    assert before - effort.left < 25_000


def test_many_hard_questions_share_one_effort() -> None:
    held = CapabilitySet(parse(on_x(f"*b?a{n}" * 15)) for n in range(100))
    wanted = [parse(on_x("*a?" * 30 + str(n))) for n in range(100)]
    effort, started = ProofBudget(100_000), process_time()
    assert not any(held.covers(capability, effort=effort) for capability in wanted)
    assert process_time() - started < CPU_S_MAX
    assert effort.left > -1_000


def test_with_no_effort_left_nothing_is_proven() -> None:
    spent = ProofBudget(0)
    assert not parse("*").covers(parse("chat"), effort=spent)
    assert not parse("chat").disjoint(parse("mcp/*"), effort=spent)
    assert not CapabilitySet([parse("*")]).covers(parse("chat"), effort=spent)
    assert parse("chat").without(parse("mcp/*"), effort=spent) is None


def test_what_is_held_as_it_is_written_needs_no_proof() -> None:
    hard = parse(on_x(HARD[0]))
    assert CapabilitySet([parse("chat"), hard]).covers(parse(on_x(HARD[0])), effort=ProofBudget(0))


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("/srv/ann/projects/**/*.py", "/srv/ann/projects/mew/src/**/test_*.py"),
        (
            "https://*.example.com/**/api/*/v?/**",
            "https://docs.example.com/internal/**/api/users/v1/**/detail*",
        ),
        ("**/a/**/b/**/c/*", "/x/**/a/y/**/b/**/c/d*"),
        ("/very/long/path" * 16 + "/**", "/very/long/path" * 16 + "/**/*.txt"),
        ("*_*_*_*", "a_*_b_*_c_*_d"),
    ],
)
def test_real_patterns_are_proven_with_steps_to_spare(wide: str, narrow: str) -> None:
    assert parse(on_x(wide)).covers(parse(on_x(narrow)))


def test_revoking_hard_patterns_is_bounded() -> None:
    left = [parse(on_x("*a?" * 20 + f"{n}*")) for n in range(200)]
    effort, started = ProofBudget(100_000), process_time()
    for n in range(32):
        pattern = parse(on_x("*b?a" * 15 + f"{n}*"))
        left = [rest for c in left if (rest := c.without(pattern, effort=effort)) is not None]
    assert process_time() - started < CPU_S_MAX


def test_an_any_of_with_many_combinations_is_bounded() -> None:
    wide = {f"f{n}": ["a*", "b*", "c*", "d*"] for n in range(60)}
    held = CapabilitySet(parse({"kind": "k", "payload": {**wide, "x": str(n)}}) for n in range(50))
    effort, started = ProofBudget(100_000), process_time()
    for _ in range(20):
        assert not held.covers(parse({"kind": "k", "payload": wide}), effort=effort)
    assert process_time() - started < CPU_S_MAX


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            {"kind": "k", "payload": {f"f{n}": "x" * 100 for n in range(90)}},
            "bytes as JSON, 8192 are allowed",
        ),
        ({"kind": "k", "except": [{"kind": "x" * 500}] * 17}, "bytes as JSON, 8192 are allowed"),
        ({"kind": "*?" * 33}, "kind has 66 wildcards, 64 are allowed"),
        (on_x("/" + "a" * 600 + "/"), "payload.x is too long a regular expression"),
        (on_x("/" + r"\pL" * 10 + "/"), "payload.x is too long a regular expression"),
        (on_x(r"/\pL{100}/"), "not a regular expression of RE2"),
        ({"kind": "k", "payload": {"$" + ".a" * 300: 1}}, "a JSONPath of 601 characters, 512 are allowed"),
    ],
)
def test_what_is_large_or_slow_to_compile_is_refused_at_once(written: Any, sentence: str) -> None:
    started = process_time()
    with pytest.raises(InvalidCapability) as refused:
        parse(written)
    assert sentence in str(refused.value)
    assert process_time() - started < CPU_S_MAX


@given(st.text(max_size=20) | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_the_size_is_at_least_nearly_that_of_the_json(value: Any) -> None:
    capability = parse(
        {"kind": "k", "payload": {"x": [value] if not isinstance(value, str) else [f"={value}"]}}
    )
    try:
        written = encode_json(capability.source)
    except (UnicodeEncodeError, OverflowError):
        return
    assert capability.size >= len(written) - 2


def test_past_8_kib_of_exceptions_a_capability_goes_altogether() -> None:
    left: Capability | None = parse("*")
    for n in range(9):
        assert left is not None
        assert left.size <= 8_192
        assert parse(left.source) == left, "a snapshot can be read again"
        left = left.without(parse(f"{n}" + "x" * 1_000))
    assert left is None


@settings(max_examples=100, deadline=None)
@given(related(), st.lists(payloads, min_size=2, max_size=6), st.integers(0, 60))
def test_with_little_effort_less_is_proven_and_more_is_taken(
    pair: tuple[Capability, Capability], found: list[Any], steps: int
) -> None:
    a, b = pair
    assert a.covers(b) or not a.covers(b, effort=ProofBudget(steps))
    assert a.disjoint(b) or not a.disjoint(b, effort=ProofBudget(steps))
    left = a.without(b, effort=ProofBudget(steps))
    for (kind, to), payload in product(ENVELOPES, [None, *found]):
        if left is not None and allows(left, kind, to, payload):
            assert allows(a, kind, to, payload)
            assert not allows(b, kind, to, payload)


# The usual properties, for longer.


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(related(), st.lists(payloads, min_size=4, max_size=12))
def test_what_is_proven_holds_for_every_envelope_at_length(
    pair: tuple[Capability, Capability], found: list[Any]
) -> None:
    _inner(usual.test_what_is_proven_holds_for_every_envelope)(pair, found)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(usual.strings, usual.strings)
def test_what_is_proven_of_strings_holds_at_length(left: str, right: str) -> None:
    _inner(usual.test_what_is_proven_of_strings_holds_for_every_short_string)(left, right)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(usual.small_globs, usual.small_globs)
def test_globs_are_decided_both_ways_at_length(left: str, right: str) -> None:
    _inner(usual.test_globs_are_decided_both_ways)(left, right)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(related(), st.lists(payloads, min_size=2, max_size=8))
def test_without_is_exact_at_length(pair: tuple[Capability, Capability], found: list[Any]) -> None:
    _inner(usual.test_without_is_what_fits_and_does_not_fit_the_pattern)(pair, found)


def _inner(test: Any) -> Any:
    return test.hypothesis.inner_test
