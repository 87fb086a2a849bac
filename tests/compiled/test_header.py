"""The compiled part reads an envelope as Python does, or leaves it to Python."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.compiled.envelopes import HEADER, messages, usual, written

from mew.protocol import codec
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import NESTING_MAX

_compiled = pytest.importorskip("mew._compiled", reason="no C compiler was found when mew was installed")


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
        patch.setattr(codec, "is_plain", None)
        expected = read()
    assert read() == expected


@given(messages)
def test_what_it_calls_plain_is_an_envelope_and_needs_no_closer_look(message: bytes) -> None:
    if _compiled.is_plain(message):
        message.decode()
        codec._look_closely(message, msgspec.json.decode(message, type=Envelope))


def test_usual_envelopes_are_plain() -> None:
    usual = {
        **HEADER,
        "ts": "2026-01-01T00:00:00.5Z",
        "to": ["bob"],
        "payload": {"text": 'é "quoted" \\ {[', "n": [1]},
    }
    assert _compiled.is_plain(msgspec.json.encode(usual))


@pytest.mark.parametrize(
    "text", ["\\n", "\\u00e9", "\\ud83d\\ude00", "\\u0041\\\\\\/", "é", "\\uD83D\\uDE00!"]
)
def test_text_as_others_write_it_is_plain(text: str) -> None:
    message = written([*HEADER.items(), ("payload", msgspec.Raw(b'{"text":"%s"}' % text.encode()))], "")
    assert _compiled.is_plain(message)
    assert codec.decode(message).content


@pytest.mark.parametrize(
    "text", ["\\ud83d", "\\ude00\\ud83d", "\\ud83d\\u0041", "\\ud83d\\", "\\x41", "\\u00g0", "\n", "\\"]
)
def test_half_a_character_is_left_to_python(text: str) -> None:
    message = written([*HEADER.items(), ("payload", msgspec.Raw(b'{"text":"%s"}' % text.encode()))], "")
    assert not _compiled.is_plain(message)


def test_what_ends_in_the_middle_of_its_fields_leaves_nothing_behind() -> None:
    """One that is freed before it, with a field of the same length in the same place, was once compared with."""
    for size in range(200_000, 400_000, 20_000):
        long = written([("whatever", 1), *HEADER.items(), ("payload", {"text": "a" * size})], "")
        assert _compiled.is_plain(long)
        del long
        for rest in (b"5}", b"}", b'"', b'"\\u0061":1}', b'"":1}'):
            assert not _compiled.is_plain(b'{"protocox":"mew/v0.4",' + rest)


def test_something_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        _compiled.is_plain("text")


@pytest.mark.parametrize("bracket", [b"[]", b"{}"])
def test_nesting_is_counted_outside_of_strings(bracket: bytes) -> None:
    def nested(levels: int) -> bytes:
        inner = bracket[:1] + (b'"a":' if bracket == b"{}" else b"")
        payload = b'{"text":"[[[[","deep":' + inner * levels + b"1" + bracket[1:] * levels + b"}"
        return written([*HEADER.items(), ("payload", msgspec.Raw(payload))], "")

    assert _compiled.is_plain(nested(NESTING_MAX - 2))
    assert not _compiled.is_plain(nested(NESTING_MAX - 1))


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
    assert _compiled.is_plain(usual("ann", "e1", "chat", ts=ts))


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
    if _compiled.is_plain(message):
        codec.decode(message)
