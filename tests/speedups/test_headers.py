"""The compiled readers of envelopes read as Python does, or leave it to Python."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.speedups.envelopes import HEADER, messages, usual, written

from mew.protocol import codec
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import NESTING_MAX
from mew.speedups import TWINS

_speedups = pytest.importorskip("mew._speedups", reason="no C compiler was found when mew was installed")


def outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except ProtocolError as error:
        return error.refusal, str(error)


@given(messages)
@example(written([*HEADER.items(), ("payload", {})], ""))
@example(written([*HEADER.items(), ("id", "e2")], ""))
@example(b'{"protocol":"mew/v0.4","id":"e1","\\u0069d":"e2","from":"ann","kind":"chat"}')
def test_an_envelope_is_read_the_same(message: bytes) -> None:
    def read() -> object:
        return outcome(lambda: codec.decode(message))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "is_plain", TWINS["is_plain"])
        expected = read()
    assert read() == expected


@given(messages)
def test_what_it_calls_plain_is_an_envelope_and_needs_no_closer_look(message: bytes) -> None:
    if _speedups.is_plain(message):
        message.decode()
        codec._look_closely(message, msgspec.json.decode(message, type=Envelope))


def test_usual_envelopes_are_plain() -> None:
    usual = {
        **HEADER,
        "ts": "2026-01-01T00:00:00.5Z",
        "to": ["bob"],
        "payload": {"text": 'é "quoted" \\ {[', "n": [1]},
    }
    assert _speedups.is_plain(msgspec.json.encode(usual))


@pytest.mark.parametrize(
    "text", ["\\n", "\\u00e9", "\\ud83d\\ude00", "\\u0041\\\\\\/", "é", "\\uD83D\\uDE00!"]
)
def test_text_as_others_write_it_is_plain(text: str) -> None:
    message = written([*HEADER.items(), ("payload", msgspec.Raw(b'{"text":"%s"}' % text.encode()))], "")
    assert _speedups.is_plain(message)
    assert codec.decode(message).content


@pytest.mark.parametrize(
    "text", ["\\ud83d", "\\ude00\\ud83d", "\\ud83d\\u0041", "\\ud83d\\", "\\x41", "\\u00g0", "\n", "\\"]
)
def test_half_a_character_is_left_to_python(text: str) -> None:
    message = written([*HEADER.items(), ("payload", msgspec.Raw(b'{"text":"%s"}' % text.encode()))], "")
    assert not _speedups.is_plain(message)


def test_what_ends_in_the_middle_of_its_fields_leaves_nothing_behind() -> None:
    """One that is freed before it, with a field of the same length in the same place, was once compared with."""
    for size in range(200_000, 400_000, 20_000):
        long = written([("whatever", 1), *HEADER.items(), ("payload", {"text": "a" * size})], "")
        assert _speedups.is_plain(long)
        del long
        for rest in (b"5}", b"}", b'"', b'"\\u0061":1}', b'"":1}'):
            assert not _speedups.is_plain(b'{"protocox":"mew/v0.4",' + rest)


def test_something_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        _speedups.is_plain("text")


@pytest.mark.parametrize("bracket", [b"[]", b"{}"])
def test_nesting_is_counted_outside_of_strings(bracket: bytes) -> None:
    def nested(levels: int) -> bytes:
        inner = bracket[:1] + (b'"a":' if bracket == b"{}" else b"")
        payload = b'{"text":"[[[[","deep":' + inner * levels + b"1" + bracket[1:] * levels + b"}"
        return written([*HEADER.items(), ("payload", msgspec.Raw(payload))], "")

    assert _speedups.is_plain(nested(NESTING_MAX - 2))
    assert not _speedups.is_plain(nested(NESTING_MAX - 1))


@pytest.mark.parametrize(
    "ts",
    [
        "2026-01-01T00:00:00Z",
        "2024-02-29T23:59:59.123456Z",
        "2000-02-29T00:00:00.0Z",
        "1900-02-28T00:00:00Z",
        "2026-12-31T23:59:59.9Z",
        "2026-12-31T23:59:59+00:00",
        "2026-12-31T23:59:59.123456+00:00",
    ],
)
def test_a_moment_is_read(ts: str) -> None:
    assert _speedups.is_plain(usual("ann", "e1", "chat", ts=ts))


@given(
    st.from_regex(
        r"[0-9]{4}-[0-3][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,8})?Z", fullmatch=True
    )
)
@example("1900-02-29T00:00:00Z")
@example("2026-04-31T00:00:00Z")
@example("0000-01-01T00:00:00Z")
@example("2026-01-01T24:00:00Z")
@example("2026-01-01T00:00:00.Z")
def test_no_moment_is_read_that_python_does_not_read(ts: str) -> None:
    message = usual("ann", "e1", "chat", ts=ts)
    if _speedups.is_plain(message):
        codec.decode(message)


# Several at once.


@given(
    st.lists(
        messages
        | st.builds(usual, st.sampled_from(["ann", "éva"]), st.text("ab", min_size=1), st.just("chat")),
        max_size=6,
    ),
    st.integers(0, 6),
    st.sampled_from([60, 1000]),
)
def test_headers_are_read_as_python_reads_them_up_to_where_it_stops(
    several: list[bytes], start: int, bytes_max: int
) -> None:
    start = min(start, len(several))
    compiled = _speedups.read_headers(tuple(several), start, bytes_max)
    in_python = TWINS["read_headers"](tuple(several), start, bytes_max)
    count = len(compiled[0])
    assert tuple(column[:count] for column in in_python) == compiled
    assert all(len(column) == count for column in compiled)


def test_usual_envelopes_are_all_read() -> None:
    sent = [
        usual("ann", f"e{n}", "chat", to=["bob", "cid"], correlation_id=[f"e{n - 1}"]) for n in range(200)
    ]
    ids, senders, kinds, to, correlation_ids = _speedups.read_headers(tuple(sent), 0, 1000)
    assert ids == tuple(f"e{n}" for n in range(200))
    assert set(senders) == {"ann"}
    assert set(kinds) == {"chat"}
    assert set(to) == {("bob", "cid")}
    assert correlation_ids == tuple((f"e{n - 1}",) for n in range(200))


@pytest.mark.parametrize(
    "wrong",
    [((), 0), ([], 0, 1), ((b"",), "0", 1), ((b"",), 0, None), (("text",), 0, 10), ((object(),), 0, 10)],
)
def test_other_arguments_are_type_errors(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _speedups.read_headers(*wrong)


@pytest.mark.parametrize("start", [-1, 2])
def test_to_start_outside_of_the_messages_is_a_value_error(start: int) -> None:
    with pytest.raises(ValueError, match="start"):
        _speedups.read_headers((b"",), start, 10)
