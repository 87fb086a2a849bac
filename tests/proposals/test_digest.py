"""Canonical JSON as RFC 8785 has it, and the digest of what a proposal would do (design §5)."""

import struct
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.proposals.differences import same
from mew.proposals.digest import NotCanonical, canonical, digest
from mew.protocol.json import decode_json

# RFC 8785, Appendix B.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]

# The RFC's own examples (§3.2.2, §3.2.3), and the test data of its author.
TEXTS = [
    (
        rb"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}""",
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    (
        rb"""{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
             "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
             "\u00f6": "Latin Small Letter O With Diaeresis"}""",
        '{"\\r":"Carriage Return","1":"One","\x80":"Control","ö":"Latin Small Letter O With Diaeresis",'
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
    (b'[56, {"d": true, "10": null, "1": [ ]}]', '[56,{"1":[],"10":null,"d":true}]'),
    (
        rb'{"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty", "a": { }, "111": [ { } ], "A": { }}',
        '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}}',
    ),
    (rb'{"Unnormalized Unicode":"A\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'),
    (rb'"\u007f\u2028</script>"', '"\x7f\u2028</script>"'),
    (
        rb'"\u0000\u0001\u0007\b\t\n\u000b\f\r\u000e\u001f"',
        r'"\u0000\u0001\u0007\b\t\n\u000b\f\r\u000e\u001f"',
    ),
]

# Numbers as a wire has them: what JavaScript sends is an integer to Python.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECT = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), JSON, max_size=5)


@pytest.mark.parametrize(("bits", "written"), NUMBERS)
def test_a_double_is_written_as_ecmascript_does(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == written.encode()


@pytest.mark.parametrize(("text", "written"), TEXTS)
def test_a_text_of_the_rfc_is_written_as_the_rfc_writes_it(text: bytes, written: str) -> None:
    assert canonical(decode_json(text)) == written.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(number: float) -> None:
    with pytest.raises(NotCanonical):
        canonical([number])


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", {"\udc00": 1}, [{"a": "\udead"}]])
def test_a_lone_surrogate_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical(value)


@pytest.mark.parametrize("value", [{1: 2}, {1, 2}, b"bytes", object()])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical(value)


def test_what_is_nested_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotCanonical):
        canonical(endless)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (2**53 - 1, "9007199254740991"),
        (-(2**53), "-9007199254740992"),
        (295147905179352830000, "295147905179352830000"),
        (10**21, "1e+21"),
        (10**308, "1e+308"),
    ],
)
def test_an_integer_that_javascript_could_have_sent_is_taken(number: int, written: str) -> None:
    assert canonical(number) == written.encode()


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**60, 2**68, 2**1024 - 1, 2**1024, 10**400])
def test_an_integer_that_a_reader_of_doubles_takes_for_another_is_refused(number: int) -> None:
    with pytest.raises(NotCanonical):
        canonical(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_written_and_read_is_the_same_double(number: float) -> None:
    assert float(canonical(number)) == number


@given(JSON)
def test_a_canonical_text_read_again_gives_itself(value: Any) -> None:
    assert canonical(decode_json(canonical(value))) == canonical(value)


@given(JSON, JSON)
def test_only_the_same_values_have_the_same_form(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == same(one, other)


def test_a_digest_is_sha_256_over_target_method_params_and_schema() -> None:
    whole = b'{"method":"tools/call","params":{"name":"add"},"schema":{"type":"object"},"target":"calc"}'
    assert digest("calc", "tools/call", {"name": "add"}, {"type": "object"}) == sha256(whole).hexdigest()


def test_what_is_absent_is_null_or_empty() -> None:
    whole = b'{"method":"ping","params":{},"schema":null,"target":null}'
    assert digest(None, "ping", None, None) == sha256(whole).hexdigest()


def test_several_targets_are_a_set() -> None:
    assert digest(["b", "a", "b"], "ping") == digest(("a", "b"), "ping")
    assert digest(["a"], "ping") != digest("a", "ping")


@pytest.mark.slow
@given(OBJECT, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(params: dict[str, Any], chance: Any) -> None:
    assert digest("a", "m", shuffled(params, chance)) == digest("a", "m", params)


@pytest.mark.slow
@given(OBJECT, OBJECT)
def test_different_params_have_different_digests(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (digest("a", "m", one) == digest("a", "m", other)) == same(one, other)


def test_each_part_counts() -> None:
    of = {
        digest("a", "m", {"x": 1}, {"s": 1}),
        digest("b", "m", {"x": 1}, {"s": 1}),
        digest("a", "n", {"x": 1}, {"s": 1}),
        digest("a", "m", {"x": 2}, {"s": 1}),
        digest("a", "m", {"x": 1}, {"s": 2}),
        digest("a", "m", {"x": True}, {"s": 1}),
    }
    assert len(of) == 6


def shuffled(value: Any, chance: Any) -> Any:
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value
