"""The server's side of RFC 6455 after the handshake: every rule, and that no split of the bytes matters."""

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.websocket import frames
from mew.gateway.websocket.frames import (
    FrameReader,
    Message,
    Opcode,
    WireError,
    binary_frame,
    close_frame,
    ping,
    pong,
    text_frame,
)
from mew.speedups import TWINS

FIN = 0x80
MASK = b"\x11\xa2\x33\xc4"
LIMIT = 70_000


Parse = Callable[[bytes, int, int, int], tuple[list[bytes], int]]
NOTHING: Parse = lambda data, start, bytes_max, messages_max: ([], start)  # noqa: E731
parse: Parse = NOTHING


@pytest.fixture(autouse=True, scope="module", params=["compiled", "in Python", "by the reader alone"])
def as_built(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds however the usual frames are read."""
    ways = {"compiled": frames.parse_frames, "in Python": TWINS["parse_frames"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "parse", ways.get(request.param, NOTHING))
        yield


def feed(reader: FrameReader, data: bytes) -> list[Message]:
    """As a wire reads: the usual frames at once, the others one by one."""
    came: list[Message] = []
    feed_to(reader, data, came)
    return came


def feed_to(reader: FrameReader, data: bytes, came: list[Message]) -> None:
    at = 0
    while at < len(data):
        if not reader.has_part:
            texts, at = parse(data, at, reader.bytes_max, 1 << 20)
            came += [(Opcode.TEXT, one) for one in texts]
        if at < len(data):
            message, at = reader.feed(data, at)
            came += [] if message is None else [message]


def frame(first: int, payload: bytes, *, mask: bytes | None = MASK, length: bytes | None = None) -> bytes:
    """A client's frame; `length` is put in place of the proper one, as the bytes after the first."""
    masked = 0 if mask is None else 0x80
    if length is None:
        size = len(payload)
        if size < 126:
            length = bytes((masked | size,))
        elif size < 65_536:
            length = struct.pack("!BH", masked | 126, size)
        else:
            length = struct.pack("!BQ", masked | 127, size)
    return bytes((first,)) + length + (mask or b"") + masked_with(mask or bytes(4), payload)


def masked_with(mask: bytes, data: bytes) -> bytes:
    """RFC 6455 §5.3, four bytes at a time."""
    table = [bytes(b ^ key for b in range(256)) for key in mask]
    hidden = bytearray(len(data))
    for n in range(4):
        hidden[n::4] = data[n::4].translate(table[n])
    return bytes(hidden)


def text(payload: str) -> bytes:
    return frame(FIN | Opcode.TEXT, payload.encode())


def fragments(opcode: int, *parts: bytes) -> list[bytes]:
    last = len(parts) - 1
    return [
        frame((FIN if n == last else 0) | (opcode if n == 0 else Opcode.CONTINUATION), part)
        for n, part in enumerate(parts)
    ]


def read(*sent: bytes, limit: int = LIMIT) -> list[Message]:
    return feed(FrameReader(limit), b"".join(sent))


def refused(*sent: bytes, limit: int = LIMIT) -> int:
    reader = FrameReader(limit)
    *good, last = sent
    for one in good:
        feed(reader, one)
    with pytest.raises(WireError) as caught:
        feed(reader, last)
    return caught.value.code


# Whole messages (§5.2, §5.6).


def test_text_binary_and_empty_messages_are_read() -> None:
    assert read(text("hé"), frame(FIN | Opcode.BINARY, b"\x00\xff"), text("")) == [
        (Opcode.TEXT, "hé".encode()),
        (Opcode.BINARY, b"\x00\xff"),
        (Opcode.TEXT, b""),
    ]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, LIMIT])
def test_lengths_of_7_16_and_64_bits_are_read(size: int) -> None:
    assert read(frame(FIN | Opcode.BINARY, b"x" * size)) == [(Opcode.BINARY, b"x" * size)]


@pytest.mark.parametrize("opcode", list(Opcode))
def test_a_frame_without_a_mask_is_refused(opcode: Opcode) -> None:  # §5.1
    assert refused(frame(FIN | opcode, b"", mask=None)) == 1002


@pytest.mark.parametrize("bit", [0x40, 0x20, 0x10])
@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.BINARY, Opcode.PING])
def test_reserved_bits_are_refused_where_no_extension_was_agreed_on(bit: int, opcode: int) -> None:  # §5.2
    assert refused(frame(FIN | bit | opcode, b"x")) == 1002


def test_reserved_bits_are_refused_in_a_continuation_too() -> None:
    assert refused(frame(Opcode.TEXT, b"x"), frame(FIN | 0x40, b"y")) == 1002


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF])
def test_an_unknown_opcode_is_refused(opcode: int) -> None:
    assert refused(frame(FIN | opcode, b"")) == 1002


# Fragments (§5.4).


def test_fragments_are_put_together() -> None:
    assert read(*fragments(Opcode.TEXT, b"a", b"", b"b", b"c")) == [(Opcode.TEXT, b"abc")]


def test_control_frames_may_stand_between_fragments_and_come_first() -> None:
    first, second, last = fragments(Opcode.BINARY, b"1", b"2", b"3")
    assert read(
        first, frame(FIN | Opcode.PING, b"p"), second, frame(FIN | Opcode.PONG, b""), last, text("next")
    ) == [
        (Opcode.PING, b"p"),
        (Opcode.PONG, b""),
        (Opcode.BINARY, b"123"),
        (Opcode.TEXT, b"next"),
    ]


def test_a_continuation_of_nothing_is_refused() -> None:
    assert refused(frame(FIN | Opcode.CONTINUATION, b"x")) == 1002
    assert refused(*fragments(Opcode.TEXT, b"a", b"b"), frame(FIN | Opcode.CONTINUATION, b"x")) == 1002


@pytest.mark.parametrize("second", [FIN | Opcode.TEXT, FIN | Opcode.BINARY, Opcode.TEXT])
def test_a_new_message_before_the_last_fragment_is_refused(second: int) -> None:
    assert refused(frame(Opcode.TEXT, b"a"), frame(second, b"b")) == 1002


# Control frames (§5.5).


@pytest.mark.parametrize("opcode", [Opcode.CLOSE, Opcode.PING, Opcode.PONG])
def test_a_control_frame_in_fragments_is_refused(opcode: int) -> None:
    assert refused(frame(opcode, b"")) == 1002


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
def test_a_control_frame_has_at_most_125_bytes(opcode: int) -> None:
    assert read(frame(FIN | opcode, b"x" * 125)) == [(opcode, b"x" * 125)]
    assert refused(frame(FIN | opcode, b"x" * 126)) == 1002


@pytest.mark.parametrize(
    "code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]
)
def test_a_close_code_that_may_be_sent_is_read(code: int) -> None:  # §7.4
    data = struct.pack("!H", code) + "später".encode()
    assert read(frame(FIN | Opcode.CLOSE, data)) == [(Opcode.CLOSE, data)]
    assert frames.close_code(data) == code


def test_a_close_without_a_code_is_read_as_1005() -> None:
    assert read(frame(FIN | Opcode.CLOSE, b"")) == [(Opcode.CLOSE, b"")]
    assert frames.close_code(b"") == 1005


@pytest.mark.parametrize("code", [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65_535])
def test_a_close_code_that_may_not_be_sent_is_refused(code: int) -> None:
    assert refused(frame(FIN | Opcode.CLOSE, struct.pack("!H", code))) == 1002


def test_half_a_close_code_is_refused() -> None:
    assert refused(frame(FIN | Opcode.CLOSE, b"\x03")) == 1002


def test_a_close_reason_that_is_not_utf8_is_refused() -> None:
    assert refused(frame(FIN | Opcode.CLOSE, b"\x03\xe8\xff")) == 1007


# UTF-8 (§8.1).


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"\xff", id="never a byte of UTF-8"),
        pytest.param(b"\xc3", id="cut off"),
        pytest.param(b"\xc0\xaf", id="longer than needed"),
        pytest.param(b"\xed\xa0\x80", id="a surrogate"),
        pytest.param(b"\xf4\x90\x80\x80", id="past the last code point"),
    ],
)
def test_text_that_is_not_utf8_is_refused_whole_or_in_fragments(bad: bytes) -> None:
    assert refused(frame(FIN | Opcode.TEXT, b"ok" + bad)) == 1007
    assert refused(*fragments(Opcode.TEXT, b"ok", bad)) == 1007
    assert read(frame(FIN | Opcode.BINARY, bad)) == [(Opcode.BINARY, bad)]


def test_a_character_may_be_cut_by_the_border_of_two_fragments() -> None:
    whole = "a😀b".encode()
    for at in range(len(whole) + 1):
        assert read(*fragments(Opcode.TEXT, whole[:at], whole[at:])) == [(Opcode.TEXT, whole)]


# Limits.


def test_a_message_over_the_limit_is_refused_by_its_header_alone() -> None:
    head = frame(FIN | Opcode.TEXT, b"", length=struct.pack("!BQ", 0xFF, LIMIT + 1))
    assert refused(head) == 1009


@pytest.mark.parametrize("size", [1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("first", [FIN | Opcode.BINARY, Opcode.TEXT])
def test_an_absurd_length_is_refused(size: int, first: int) -> None:
    assert refused(frame(first, b"", length=struct.pack("!BQ", 0xFF, size))) in (1002, 1009)


@pytest.mark.parametrize("size", [1 << 32, 1 << 63])
def test_an_absurd_length_of_a_control_frame_is_refused(size: int) -> None:
    assert refused(frame(FIN | Opcode.PING, b"", length=struct.pack("!BQ", 0xFF, size))) == 1002


def test_the_limit_counts_all_fragments_of_a_message() -> None:
    assert read(*fragments(Opcode.BINARY, b"x" * 6, b"y" * 4), limit=10) == [
        (Opcode.BINARY, b"x" * 6 + b"y" * 4)
    ]
    assert refused(*fragments(Opcode.BINARY, b"x" * 6, b"y" * 5), limit=10) == 1009


def test_the_limit_starts_anew_with_each_message_and_leaves_control_frames_alone() -> None:
    one = fragments(Opcode.BINARY, b"x" * 6, b"y" * 4)
    assert len(read(*one, *one, text("z" * 10), limit=10)) == 3
    first, last = one
    assert len(read(first, frame(FIN | Opcode.PING, b"p" * 10), last, limit=10)) == 2


def test_a_message_begun_under_a_higher_limit_is_refused_and_not_kept() -> None:
    reader = FrameReader(LIMIT)
    assert feed(reader, frame(FIN | Opcode.BINARY, bytes(LIMIT))[:1000]) == []
    reader.bytes_max = 1000
    with pytest.raises(WireError) as caught:
        feed(reader, bytes(10))
    assert caught.value.code == 1009
    assert feed(reader, frame(FIN | Opcode.CLOSE, b"")) == [(Opcode.CLOSE, b"")]


def test_fragments_without_data_do_not_pile_up() -> None:
    reader = FrameReader(LIMIT)
    feed(reader, frame(Opcode.TEXT, b""))
    empty = frame(Opcode.CONTINUATION, b"") * 10_000
    feed(reader, empty)
    before = held_bytes(reader)
    for _ in range(20):
        assert feed(reader, empty) == []
    assert held_bytes(reader) <= before + 1024
    assert feed(reader, frame(FIN | Opcode.CONTINUATION, b"end")) == [(Opcode.TEXT, b"end")]


def held_bytes(reader: FrameReader) -> int:
    """What the reader keeps, of whatever kind."""
    return sum(getattr(reader, name).__sizeof__() for name in FrameReader.__slots__)


# Any split of the stream.

payloads = st.one_of(st.binary(max_size=200), st.binary(min_size=65_530, max_size=65_540))
controls = st.builds(
    lambda opcode, data: (frame(FIN | opcode, data), (opcode, data)),
    st.sampled_from([Opcode.PING, Opcode.PONG]),
    st.binary(max_size=125),
)
wholes = st.one_of(
    st.builds(lambda data: (frame(FIN | Opcode.BINARY, data), (Opcode.BINARY, data)), payloads),
    st.builds(lambda said: (text(said), (Opcode.TEXT, said.encode())), st.text(max_size=300)),
)


@st.composite
def fragmented(draw: st.DrawFn) -> tuple[bytes, list[Message]]:
    parts = draw(st.lists(st.binary(max_size=40), min_size=2, max_size=5))
    out, came = b"", []
    for one in fragments(Opcode.BINARY, *parts):
        for control, message in draw(st.lists(controls, max_size=1)):
            out += control
            came.append(message)
        out += one
    return out, [*came, (Opcode.BINARY, b"".join(parts))]


streams = st.lists(
    st.one_of(
        wholes.map(lambda one: (one[0], [one[1]])), controls.map(lambda one: (one[0], [one[1]])), fragmented()
    ),
    max_size=6,
)


def split(sent: bytes, cuts: list[int]) -> list[bytes]:
    borders = sorted({0, len(sent), *(cut % (len(sent) + 1) for cut in cuts)})
    return [sent[a:b] for a, b in pairwise(borders)]


@pytest.mark.slow
@given(streams, st.lists(st.integers(min_value=0), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_messages(
    made: list[tuple[bytes, list[Message]]], cuts: list[int]
) -> None:
    sent = b"".join(one for one, _ in made)
    expected = [message for _, messages in made for message in messages]
    assert read(sent) == expected
    reader = FrameReader(LIMIT)
    assert [message for piece in split(sent, cuts) for message in feed(reader, piece)] == expected


def test_one_byte_at_a_time_gives_the_same_messages() -> None:
    sent = (
        text("é" * 70) + b"".join(fragments(Opcode.TEXT, b"a", b"b" * 200)) + frame(FIN | Opcode.PING, b"p")
    )
    reader = FrameReader(LIMIT)
    one_by_one = [message for n in range(len(sent)) for message in feed(reader, sent[n : n + 1])]
    assert one_by_one == read(sent)
    assert len(one_by_one) == 3


@given(st.binary(max_size=400), st.lists(st.integers(min_value=0), max_size=8))
def test_random_bytes_raise_nothing_but_a_wire_error_and_the_same_at_any_split(
    noise: bytes, cuts: list[int]
) -> None:
    assert outcome([noise]) == outcome(split(noise, cuts))


@pytest.mark.slow
@given(streams, st.binary(min_size=2, max_size=40), st.lists(st.integers(min_value=0), max_size=8))
def test_what_was_whole_before_a_broken_frame_is_read_at_any_split(
    made: list[tuple[bytes, list[Message]]], noise: bytes, cuts: list[int]
) -> None:
    sent = b"".join(one for one, _ in made) + noise
    assert outcome([sent]) == outcome(split(sent, cuts))


def outcome(pieces: list[bytes]) -> tuple[list[Message], int | None]:
    reader, came = FrameReader(LIMIT), list[Message]()
    try:
        for piece in pieces:
            feed_to(reader, piece, came)
    except WireError as error:
        return came, error.code
    return came, None


# Masking.


@given(st.binary(min_size=4, max_size=4), st.binary(max_size=5000))
def test_unmasking_in_python_and_in_c_give_the_same(mask: bytes, data: bytes) -> None:
    expected = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
    assert masked_with(mask, data) == expected
    assert frames.unmask_in_python(mask, data) == expected
    assert frames.unmask(mask, data) == expected


# What we send.


@pytest.mark.parametrize(("size", "head"), [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)])
def test_frames_we_send_have_the_shortest_header_and_no_mask(size: int, head: int) -> None:
    data = b"x" * size
    for made, first in ((text_frame(data), 0x81), (binary_frame(data), 0x82)):
        assert len(made) == head + size
        assert made[0] == first
        assert made[1] < 0x80
        assert made[head:] == data


def test_a_close_frame_cuts_its_reason_between_characters() -> None:
    made = close_frame(4001, "ü" * 100)
    assert made[:4] == bytes((0x88, 2 + 122)) + struct.pack("!H", 4001)
    assert made[4:].decode() == "ü" * 61


def test_ping_and_pong_carry_their_data() -> None:
    assert ping() == b"\x89\x00"
    assert pong(b"abc") == b"\x8a\x03abc"


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_frames_that_are_joined_are_those_of_each_message(messages: list[bytes]) -> None:
    expected = b"".join(map(text_frame, messages))
    assert frames.join_frames(tuple(messages)) == TWINS["join_frames"](tuple(messages)) == expected


# The usual frames, at once.


@pytest.mark.parametrize("parse", [frames.parse_frames, TWINS["parse_frames"]], ids=["as built", "in Python"])
def test_the_usual_frames_are_parsed_up_to_a_number_a_size_and_the_first_other_one(parse: Parse) -> None:
    one, large, other = text("one"), text("x" * 11), frame(FIN | Opcode.PING, b"")
    assert parse(one * 5, len(one), 10, 3) == ([b"one"] * 3, 4 * len(one))
    assert parse(one + large + one, 0, 10, 100) == ([b"one"], len(one))
    assert parse(one + other + one, 0, 10, 100) == ([b"one"], len(one))
    assert parse(one + one[:-1], 0, 10, 100) == ([b"one"], len(one))
    assert parse(one, 0, 10, 0) == ([], 0)
