"""Two that ask for the same have the same digest, however they are written; any others have not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.audit.sameness import digest_of
from mew.protocol.differences import same

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def digest(params: object, **how: object) -> str:
    return digest_of("tools/call", json.dumps(params, **how).encode())  # type: ignore[arg-type]


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
        (b"", b"{}"),
    ],
)
def test_how_it_is_written_does_not_matter(one: bytes, other: bytes) -> None:
    assert digest_of("m", one) == digest_of("m", other)


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
    assert digest_of("m", one) != digest_of("m", other)


def test_so_does_the_method() -> None:
    assert digest_of("tools/call", b"{}") != digest_of("tools/list", b"{}")


def test_where_a_key_occurs_twice_it_is_like_nothing_but_itself() -> None:
    twice = b'{"path":"/etc/passwd","path":"/tmp/a"}'
    assert digest_of("m", twice) == digest_of("m", twice)
    assert digest_of("m", twice) not in (
        digest_of("m", b'{"path":"/tmp/a"}'),
        digest_of("m", b'{"path":"/etc/passwd"}'),
    )


def test_what_is_no_json_has_one_too() -> None:
    assert digest_of("m", b"{") != digest_of("m", b"[")


@given(VALUES, VALUES)
def test_two_values_have_the_same_digest_if_nothing_differs(one: object, other: object) -> None:
    assert (digest(one) == digest(other)) == same(one, other)
    assert digest(one) == digest(one, indent=1, sort_keys=True)
