"""Stream frames (§3.10.3): where the id ends and the data begins."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import MARK, join, split, stream_of

stream_ids = st.text(st.characters(max_codepoint=127, exclude_characters="#"), min_size=1, max_size=128)


@given(stream_ids, st.binary(max_size=64))
def test_what_is_joined_splits_again(stream_id: str, data: bytes) -> None:
    frame = join(stream_id, data)
    assert frame.startswith(MARK)
    assert stream_of(frame) == stream_id
    assert split(frame) == (stream_id, data)


@given(st.binary(max_size=32) | st.binary(max_size=32).map(lambda rest: b"#" + rest))
def test_random_bytes_split_or_raise_protocol_error(received: bytes) -> None:
    with suppress(ProtocolError):
        assert join(*split(received)) == received


@pytest.mark.parametrize(
    ("frame", "stream_id", "data"),
    [
        (b"#stream-42#hello", "stream-42", b"hello"),
        (b"#s#", "s", b""),
        (b"#s##", "s", b"#"),
        (b"#s#a#b#", "s", b"a#b#"),
        (b"#s#\x00\xff\n", "s", b"\x00\xff\n"),
        (b"# #x", " ", b"x"),
        (b"#" + b"x" * 128 + b"#d", "x" * 128, b"d"),
        (b'#s#{"kind":"chat"}', "s", b'{"kind":"chat"}'),
    ],
)
def test_the_second_mark_ends_the_id(frame: bytes, stream_id: str, data: bytes) -> None:
    assert split(frame) == (stream_id, data)


@pytest.mark.parametrize(
    "received",
    [
        b"",
        b"#",
        b"##",
        b"##data",
        b"###",
        b"#a",
        b"#no mark",
        b"stream#data#",
        b" #s#data",
        b"#" + b"x" * 129 + b"#data",
        b"#" + b"x" * 1_000_000,
        "#strøm#data".encode(),
        b"#\xff#data",
        b'{"kind":"chat"}',
    ],
)
def test_a_frame_without_an_id_is_malformed(received: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        stream_of(received)
    assert caught.value.refusal is Refusal.MALFORMED


@pytest.mark.parametrize("stream_id", ["", "a#b", "x" * 129])
def test_an_id_that_would_not_split_again_is_our_bug(stream_id: str) -> None:
    with pytest.raises((AssertionError, ProtocolError)):
        join(stream_id, b"data")


@pytest.mark.parametrize("received", [b'{"kind":"chat"}', b""])
def test_an_envelope_is_no_frame(received: bytes) -> None:
    with pytest.raises(ProtocolError):
        stream_of(received)
