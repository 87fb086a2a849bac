"""The compiled part reads and writes frames as Python does."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway import deliveries, websocket
from mew.gateway.pages import Record
from mew.gateway.websocket import Message, Reader, WireError
from mew.protocol.envelope import ParticipantId
from mew.space import Connection

_compiled = pytest.importorskip("mew._compiled", reason="no C compiler was found when mew was installed")

AT = datetime(2026, 1, 1, tzinfo=UTC)
MASK = b"\x5a\xc3\x17\xe8"
BYTES_MAX = 1000
ANN = ParticipantId("ann")
BYTES = Record(AT, "e", "ann", "chat", 0, (), "no bytes", None)  # type: ignore[arg-type]


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
    reader, seen = Reader(BYTES_MAX), []
    for chunk in chunks:
        try:
            seen += reader.feed(chunk)
        except WireError as error:
            return seen + error.before, (error.code, str(error))
    return seen, None


@given(st.lists(frames, max_size=6), st.lists(st.integers(0, 2000), max_size=4))
def test_frames_are_read_the_same_at_any_split(sent: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(sent)
    places = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    chunks = [whole[start:end] for start, end in itertools.pairwise(places)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(websocket, "whole_frames", None)
        expected = read_all(chunks)
    assert read_all(chunks) == expected


@given(st.lists(frames, max_size=6), st.integers(0, 7))
def test_what_is_heard_is_what_is_read(sent: list[bytes], most: int) -> None:
    data, guest, heard = b"".join(sent), object(), [("before", 1, b"")]
    messages, _ = _compiled.whole_frames(data, BYTES_MAX)
    end = _compiled.hear_frames(data, BYTES_MAX, most, guest, heard)
    assert heard == [("before", 1, b""), *((guest, *message) for message in messages[:most])]
    assert _compiled.whole_frames(data[end:], BYTES_MAX)[0] == messages[most:]


@pytest.mark.parametrize(
    "wrong",
    [
        (b"", 1, 1, None),
        (b"", 1, 1, None, ()),
        ("", 1, 1, None, []),
        (b"", "1", 1, None, []),
        (b"", 1, "1", None, []),
    ],
)
def test_to_hear_something_else_is_a_type_error(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _compiled.hear_frames(*wrong)


def test_every_beginning_of_a_character_is_judged_as_python_does() -> None:
    for lead in itertools.product(range(0x7E, 0x100), (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)):
        for rest in (b"", b"\x80", b"\xbf", b"\x80\x80", b"\x80\xc0", b"\x41"):
            text = b"ascii..." + bytes(lead) + rest
            taken, _ = _compiled.whole_frames(frame(0x81, text), BYTES_MAX)
            assert bool(taken) == _is_utf8(text), text


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 9, 125, 126, 65_535, 65_536, 70_000])
def test_frames_of_every_size_are_unmasked(size: int) -> None:
    payload = bytes(at % 251 for at in range(size))
    length = bytes((0xFF,)) + size.to_bytes(8, "big")
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))
    sent = frame(0x82, payload) if size < 65_536 else b"\x82" + length + MASK + masked
    assert _compiled.whole_frames(sent, size) == ([(2, payload)], len(sent))
    assert _compiled.whole_frames(sent[:-1], size) == ([], 0) or size == 0


def test_a_length_beyond_all_bounds_is_left_to_python() -> None:
    assert _compiled.whole_frames(b"\x82\xff" + b"\xff" * 8 + MASK + b"x" * 20, 1 << 40) == ([], 0)


@pytest.mark.parametrize("wrong", [("text", 1), (b"", "1"), (b"",), (bytearray(), 1)])
def test_other_arguments_are_type_errors(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _compiled.whole_frames(*wrong)


# Frames that go out.

connections = st.sampled_from([Connection(f"c{number}") for number in range(5)])
records = st.builds(
    lambda message, only: Record(AT, "e", "ann", "chat", 0, (), message, only),
    st.sampled_from([b"", b"x" * 125, b"x" * 126, b"x" * 65_535, b"x" * 65_536]) | st.binary(max_size=20),
    st.none() | st.lists(st.sampled_from(["ann", "bob", "nobody"]), max_size=3, unique=True).map(tuple),
)


@given(
    st.lists(records, max_size=8),
    st.dictionaries(
        st.sampled_from(["ann", "bob"]), st.lists(connections, max_size=3, unique=True).map(tuple)
    ),
    st.sets(connections),
    st.lists(st.binary(max_size=3), max_size=2),
    st.dictionaries(connections, st.lists(st.binary(max_size=3), max_size=2)),
)
def test_the_same_is_gathered_for_the_same(
    shown: list[Record],
    connected: dict[ParticipantId, tuple[Connection, ...]],
    boxes: set[Connection],
    shared: list[bytes],
    apart: dict[Connection, list[bytes]],
) -> None:
    def gathered(hand_out: Callable[..., int]) -> object:
        mine, theirs = list(shared), {one: list(due) for one, due in apart.items()}
        return hand_out(shown, connected, dict.fromkeys(boxes), mine, theirs), mine, theirs

    assert gathered(_compiled.hand_out) == gathered(deliveries.hand_out_in_python)
    assert _compiled.text_frames(shown) == deliveries.text_frames_in_python(shown)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (([], {}, {}, []), TypeError),
        (([b""], {}, {}, [], {}), AttributeError),
        (([Record(AT, "e", "ann", "chat", 0, (), b"", "ann")], {}, {}, [], {}), TypeError),  # type: ignore[arg-type]
        (([Record(AT, "e", "ann", "chat", 0, (), b"", (ANN,))], {"ann": ["c"]}, {}, [], {}), TypeError),
    ],
)
def test_to_hand_out_something_else_is_an_error(wrong: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        _compiled.hand_out(*wrong)


@pytest.mark.parametrize(("wrong", "error"), [((), TypeError), ([b""], AttributeError), ([BYTES], TypeError)])
def test_frames_of_something_else_are_an_error(wrong: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        _compiled.text_frames(wrong)
