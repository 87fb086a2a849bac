"""The compiled part says what Python says: of every message, and of every byte in it."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mew.gateway import websocket
from mew.gateway.websocket import Message, Reader, WireError
from mew.protocol import codec
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import NESTING_MAX

_compiled = pytest.importorskip("mew._compiled", reason="no C compiler was found when mew was installed")

MASK = b"\x5a\xc3\x17\xe8"
BYTES_MAX = 1000

names = st.sampled_from(
    ["protocol", "id", "ts", "from", "to", "kind", "correlation_id", "context", "payload", "x"]
)
texts = st.one_of(
    st.text(max_size=12), st.sampled_from(['"', "\\", '\\"', "{", "]", "é", "\ud7ff", "\U0010ffff"])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
times = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00+0000",
        "2026-06-30T23:59:60Z",
        "Z",
        "",
    ]
)
HEADER = {"protocol": "mew/v0.4", "id": "e1", "from": "ann", "kind": "chat"}


def written(fields: list[tuple[str, object]], gap: str) -> bytes:
    """An object whose fields may occur twice, with what JSON allows between them."""
    pairs = (
        f"{gap}{msgspec.json.encode(name).decode()}{gap}:{gap}{msgspec.json.encode(value).decode()}{gap}"
        for name, value in fields
    )
    return ("{" + ",".join(pairs) + "}").encode()


envelopes = st.builds(
    lambda more, payload, ts, gap, order: written(
        order([*HEADER.items(), ("ts", ts), ("payload", payload), *more]), gap
    ),
    st.lists(st.tuples(names, values), max_size=2),
    st.one_of(values, st.dictionaries(texts, values, max_size=3)),
    times,
    st.sampled_from(["", " ", "\n\t\r "]),
    st.sampled_from([list, lambda fields: fields[::-1]]),
)


def spoilt(message: bytes, at: int, byte: int) -> bytes:
    at %= len(message)
    return message[:at] + bytes((byte,)) + message[at + 1 :]


messages = st.one_of(
    envelopes,
    st.builds(spoilt, envelopes, st.integers(0, 10_000), st.integers(0, 255)),
    st.binary(max_size=40),
)


def outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except ProtocolError as error:
        return error.refusal, str(error)


def test_it_is_used_where_it_is_there() -> None:
    assert vars(codec)["is_plain"] is _compiled.is_plain
    assert vars(websocket)["whole_frames"] is _compiled.whole_frames


def test_mew_does_without_it_when_told_to() -> None:
    code = "from mew import compiled; print(compiled.is_plain, compiled.whole_frames)"
    environment = {**os.environ, "MEW_PURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None None\n"


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
def test_what_it_calls_plain_needs_no_closer_look(message: bytes) -> None:
    if not _compiled.is_plain(message, NESTING_MAX):
        return
    message.decode()
    try:
        envelope = msgspec.json.decode(message, type=Envelope)
    except msgspec.DecodeError:
        return
    codec._look_closely(message, envelope)


def test_usual_envelopes_are_plain() -> None:
    usual = {
        **HEADER,
        "ts": "2026-01-01T00:00:00.5Z",
        "to": ["bob"],
        "payload": {"text": 'é "quoted" \\ {[', "n": [1]},
    }
    assert _compiled.is_plain(msgspec.json.encode(usual), NESTING_MAX)


@pytest.mark.parametrize("bracket", [b"[]", b"{}"])
def test_nesting_is_counted_outside_of_strings(bracket: bytes) -> None:
    def nested(levels: int) -> bytes:
        inner = bracket[:1] + (b'"a":' if bracket == b"{}" else b"")
        return b'{"payload":{"text":"[[[[","deep":' + inner * levels + b"1" + bracket[1:] * levels + b"}}"

    assert _compiled.is_plain(nested(NESTING_MAX - 2), NESTING_MAX)
    assert not _compiled.is_plain(nested(NESTING_MAX - 1), NESTING_MAX)


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
    for function in (_compiled.whole_frames, _compiled.is_plain):
        with pytest.raises(TypeError):
            function(*wrong)
