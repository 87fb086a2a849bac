"""Two that ask for the same have the same digest, however they are written; any others have not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.audit.record.digest import AMBIGUOUS, payload_digest
from mew.proposals.differences import same

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def of_call(method: str, params: bytes) -> str:
    return payload_digest(b'{"method":"%b","params":%b}' % (method.encode(), params))


def digest(params: object, **how: object) -> str:
    return of_call("tools/call", json.dumps(params, **how).encode())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"b":{"c":2,"d":3}}', b'{ "b": {"d":3, "c":2},\n"a": 1 }'),
        (b'{"a":1}', b'{"a":1.0}'),
        (b'{"a":-0.0}', b'{"a":0}'),
        (b'{"a":100}', b'{"a":1e2}'),
        (b'{"a":100000000000000000000}', b'{"a":1e20}'),
        (b'{"a":1e308}', b'{"a":1.0E+308}'),
        ('{"a":"ü"}'.encode(), b'{"a":"\\u00fc"}'),
    ],
)
def test_how_it_is_written_does_not_matter(one: bytes, other: bytes) -> None:
    assert of_call("m", one) == of_call("m", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1}', b'{"a":2}'),
        (b'{"a":1}', b'{"a":true}'),
        (b'{"a":1}', b'{"a":"1"}'),
        (b'{"a":[1,2]}', b'{"a":[2,1]}'),
        (b'{"a":null}', b"{}"),
        (b'{"a":1.5}', b'{"a":1}'),
    ],
)
def test_what_is_asked_for_does(one: bytes, other: bytes) -> None:
    assert of_call("m", one) != of_call("m", other)


def test_so_does_the_method() -> None:
    assert of_call("tools/call", b"{}") != of_call("tools/list", b"{}")


def test_where_a_key_occurs_twice_it_is_like_nothing_but_itself() -> None:
    twice = b'{"path":"/etc/passwd","path":"/tmp/a"}'
    assert of_call("m", twice) == of_call("m", twice)
    assert of_call("m", twice) not in (
        of_call("m", b'{"path":"/tmp/a"}'),
        of_call("m", b'{"path":"/etc/passwd"}'),
    )


def test_no_params_are_as_good_as_empty_ones() -> None:
    assert payload_digest(b'{"method":"m"}') == of_call("m", b"{}")
    assert payload_digest(b'{"method":"m","id":7}') == of_call("m", b"{}")


@pytest.mark.parametrize("twice", [b'"params":{"a":1},"params":{"a":2}', b'"params":{"a":2},"id":1,"id":2'])
def test_a_key_twice_around_the_params_is_marked(twice: bytes) -> None:
    payload = b'{"method":"m",%b}' % twice
    assert payload_digest(payload).startswith(AMBIGUOUS)
    assert payload_digest(payload) == payload_digest(payload)
    assert payload_digest(payload) != payload_digest(payload + b" ")
    assert not of_call("m", b'{"a":2}').startswith(AMBIGUOUS)


def test_so_is_a_number_too_long_for_most() -> None:
    one, other = (of_call("m", b"[%b]" % (digit * 5000)) for digit in (b"1", b"2"))
    assert one.startswith(AMBIGUOUS)
    assert one != other


@pytest.mark.parametrize("payload", [b"{}", b"[]", b'{"method":["tools/call"]}', b'{"params":{}}'])
def test_what_names_no_method_has_none(payload: bytes) -> None:
    assert payload_digest(payload) == ""


@given(VALUES, VALUES)
def test_two_values_have_the_same_digest_if_nothing_differs(one: object, other: object) -> None:
    assert (digest(one) == digest(other)) == same(one, other)
    assert digest(one) == digest(one, indent=1, sort_keys=True)
