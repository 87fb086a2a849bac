"""The compiled functions read and write frames as Python does."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.websocket import frames as frames_module
from mew.gateway.websocket.frames import FrameReader, Message, Opcode, WireError
from mew.speedups import TWINS

_speedups = pytest.importorskip("mew._speedups", reason="no C compiler was found when mew was installed")

MASK = b"\x5a\xc3\x17\xe8"
BYTES_MAX = 1000
MOST = 1 << 20


def frame(first: int, payload: bytes, *, mask: bytes = MASK, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    head = bytes((first, 0x80 | size)) if size < 126 else bytes((first, 0x80 | 126)) + size.to_bytes(2, "big")
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


payloads = st.one_of(st.binary(max_size=200), st.text(max_size=80).map(str.encode))
frames = st.builds(
    frame,
    st.one_of(st.sampled_from([0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8A]), st.integers(0, 255)),
    payloads,
    mask=st.binary(min_size=4, max_size=4),
    length=st.one_of(st.none(), st.none(), st.integers(0, 2000)),
)


def read_all(chunks: list[bytes]) -> tuple[list[Message], tuple[int, str] | None]:
    """As a wire reads: text frames in one go, and one by one what is not as most are."""
    reader, seen = FrameReader(BYTES_MAX), []
    for chunk in chunks:
        at = 0
        while at < len(chunk):
            if not reader.has_part:
                texts, at = frames_module.parse_frames(chunk, at, BYTES_MAX, MOST)
                seen += [(int(Opcode.TEXT), text) for text in texts]
                if at == len(chunk):
                    break
            try:
                message, at = reader.feed(chunk, at)
            except WireError as error:
                return seen, (error.code, str(error))
            seen += [] if message is None else [message]
    return seen, None


@given(st.lists(frames, max_size=6), st.lists(st.integers(0, 2000), max_size=4))
def test_frames_are_read_the_same_at_any_split(sent: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(sent)
    places = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    chunks = [whole[start:end] for start, end in itertools.pairwise(places)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "parse_frames", lambda data, start, *_: ([], start))
        expected = read_all(chunks)
        patch.setattr(frames_module, "parse_frames", TWINS["parse_frames"])
        assert read_all(chunks) == expected
    assert read_all(chunks) == expected


@given(st.lists(frames, max_size=6), st.integers(0, 50), st.integers(0, 7))
def test_text_frames_are_parsed_as_python_parses_them(sent: list[bytes], start: int, most: int) -> None:
    data = b"".join(sent)
    asked = (data, min(start, len(data)), BYTES_MAX, most)
    assert _speedups.parse_frames(*asked) == TWINS["parse_frames"](*asked)


def test_every_beginning_of_a_character_is_judged_as_python_does() -> None:
    for lead in itertools.product(range(0x7E, 0x100), (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)):
        for rest in (b"", b"\x80", b"\xbf", b"\x80\x80", b"\x80\xc0", b"\x41"):
            text = b"ascii..." + bytes(lead) + rest
            taken, _ = _speedups.parse_frames(frame(0x81, text), 0, BYTES_MAX, MOST)
            assert bool(taken) == _is_utf8(text), text


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 9, 125, 126, 65_535, 65_536, 70_000])
def test_frames_of_every_size_are_unmasked(size: int) -> None:
    payload = bytes(at % 120 for at in range(size))
    length = bytes((0xFF,)) + size.to_bytes(8, "big")
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))
    sent = frame(0x81, payload) if size < 65_536 else b"\x81" + length + MASK + masked
    assert _speedups.parse_frames(sent, 0, size, MOST) == ([payload], len(sent))
    assert _speedups.parse_frames(b"#" + sent, 1, size, MOST) == ([payload], len(sent) + 1)
    assert _speedups.parse_frames(sent[:-1], 0, size, MOST) == ([], 0)


def test_a_length_beyond_all_bounds_is_left_to_python() -> None:
    assert _speedups.parse_frames(b"\x81\xff" + b"\xff" * 8 + MASK + b"x" * 20, 0, 1 << 40, 9) == ([], 0)


@pytest.mark.parametrize(
    "wrong", [("text", 0, 1, 1), (b"", "0", 1, 1), (b"", 0, "1", 1), (b"", 0, 1), (bytearray(), 0, 1, 1)]
)
def test_other_arguments_are_type_errors(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _speedups.parse_frames(*wrong)


# Frames that go out.


@given(
    st.lists(st.binary(max_size=300) | st.sampled_from([b"x" * 125, b"x" * 126, b"x" * 65_536]), max_size=8)
)
def test_frames_are_joined_as_python_joins_them(messages: list[bytes]) -> None:
    assert _speedups.join_frames(tuple(messages)) == TWINS["join_frames"](tuple(messages))


@pytest.mark.parametrize("wrong", [[b""], ("text",), (None,), b""])
def test_to_join_something_else_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError):
        _speedups.join_frames(wrong)
