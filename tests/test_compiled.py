"""The compiled part says what Python says: of every message, and of every byte in it."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mew.gateway import deliveries, plain, rate, websocket
from mew.gateway.pages import Record
from mew.gateway.websocket import Message, Reader, WireError
from mew.protocol import codec
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import ProtocolError
from mew.protocol.json import NESTING_MAX
from mew.space import Connection
from mew.space.space import Standing

_compiled = pytest.importorskip("mew._compiled", reason="no C compiler was found when mew was installed")

Said: TypeAlias = tuple[str, int, bytes]

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
    assert vars(plain)["plain_run"] is _compiled.plain_run
    assert vars(deliveries)["text_frames"] is _compiled.text_frames
    assert vars(deliveries)["hand_out"] is _compiled.hand_out
    assert vars(rate)["Bucket"] is _compiled.Bucket


def test_mew_does_without_it_when_told_to() -> None:
    code = "from mew import compiled; print(*{getattr(compiled, name) for name in compiled.__all__})"
    environment = {**os.environ, "MEW_PURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"


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
    if _compiled.is_plain(message, NESTING_MAX):
        message.decode()
        codec._look_closely(message, msgspec.json.decode(message, type=Envelope))


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
        payload = b'{"text":"[[[[","deep":' + inner * levels + b"1" + bracket[1:] * levels + b"}"
        return written([*HEADER.items(), ("payload", msgspec.Raw(payload))], "")

    assert _compiled.is_plain(nested(NESTING_MAX - 2), NESTING_MAX)
    assert not _compiled.is_plain(nested(NESTING_MAX - 1), NESTING_MAX)


# A run of envelopes that are plain.

AT = datetime(2026, 1, 1, tzinfo=UTC)
OFTEN = ["chat", "mcp/request", "x/é"]


class Speaker:
    """Who says something, as far as it counts here."""

    def __init__(self, who: str, bucket: type[rate.Bucket], tokens: int, **more: bool) -> None:
        self.id = Connection(f"c-{who}")
        self.who = ParticipantId(who)
        self.bucket = bucket(1.0, tokens)
        self.lenient = more.get("lenient", False)
        self.closed = more.get("closed", False)


def standing(*, addressed: bool = False) -> Standing:
    return Standing(
        free={"ann": {"chat", "x/é"}, "bob": {"mcp/request"}, "éva": {"chat"}},
        recent={"old": "ann"},
        connections={Connection(f"c-{who}"): ParticipantId(who) for who in ("ann", "bob", "éva", "old")},
        addressed=addressed,
    )


def run(
    run_of: Callable[..., Any],
    bucket: type[rate.Bucket],
    script: list[Said],
    addressed: bool,  # noqa: FBT001
) -> tuple[list[Record], dict[str, str], int]:
    speakers = {
        "ann": Speaker("ann", bucket, 5),
        "bob": Speaker("bob", bucket, 2),
        "éva": Speaker("éva", bucket, 9),
        "gone": Speaker("gone", bucket, 9),
        "closed": Speaker("closed", bucket, 9, closed=True),
        "lenient": Speaker("ann", bucket, 9, lenient=True),
    }
    heard = [(speakers[who], opcode, message) for who, opcode, message in script]
    found: tuple[list[Record], dict[str, str], int] = run_of(
        heard, 0, standing(addressed=addressed), Record, 7, AT, 1000.0, BYTES_MAX, NESTING_MAX
    )
    return found


def usual(sender: str, envelope_id: str, kind: str, **more: object) -> bytes:
    fields = {"protocol": "mew/v0.4", "id": envelope_id, "from": sender, "kind": kind, "payload": {"n": 1}}
    return msgspec.json.encode(fields | more)


some_names = st.lists(st.sampled_from(["ann", "bob", "éva", "x"]), max_size=4)
plain_ones = st.builds(
    usual,
    st.sampled_from(["ann", "bob", "éva"]),
    st.one_of(st.sampled_from(["a", "b", "old", "gw-1", "é"]), st.uuids().map(str)),
    st.sampled_from(OFTEN),
    to=some_names,
    correlation_id=some_names,
    context=st.sampled_from(["c", "c/d"]),
)
said = st.one_of(
    st.tuples(st.sampled_from(["ann", "bob", "éva"]), st.just(1), plain_ones),
    st.tuples(
        st.sampled_from(["ann", "bob", "éva", "gone", "closed", "lenient"]),
        st.sampled_from([1, 1, 1, 2]),
        st.one_of(plain_ones, messages),
    ),
)


@given(st.lists(said, max_size=12), st.booleans())
def test_what_it_takes_at_once_python_takes_the_same(script: list[Said], addressed: bool) -> None:  # noqa: FBT001
    records, ids, end = run(_compiled.plain_run, _compiled.Bucket, script, addressed)
    whole = run(plain.plain_run_in_python, rate.BucketInPython, script[:end], addressed)
    assert whole == (records, ids, end)
    assert _compiled.text_frames(records) == deliveries.text_frames_in_python(records)


@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "éva"]), st.just(1), plain_ones), max_size=12),
    st.booleans(),
)
def test_of_what_is_usual_it_leaves_nothing_to_python(script: list[Said], addressed: bool) -> None:  # noqa: FBT001
    assert run(_compiled.plain_run, _compiled.Bucket, script, addressed) == run(
        plain.plain_run_in_python, rate.BucketInPython, script, addressed
    )


@pytest.mark.parametrize(
    "ts",
    [
        "2026-01-01T00:00:00Z",
        "2024-02-29T23:59:59.123456Z",
        "2000-02-29T00:00:00.0Z",
        "1900-02-28T00:00:00Z",
        "2026-12-31T23:59:59.9Z",
    ],
)
def test_a_moment_is_read(ts: str) -> None:
    assert _compiled.is_plain(usual("ann", "e1", "chat", ts=ts), NESTING_MAX)


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
    if _compiled.is_plain(message, NESTING_MAX):
        codec.decode(message)


@given(
    st.floats(0.1, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 3), max_size=40),
)
def test_a_bucket_gives_as_much_as_in_python(per_second: float, burst: int, waits: list[float]) -> None:
    one, other, now_s = _compiled.Bucket(per_second, burst), rate.BucketInPython(per_second, burst), 5.0
    for wait_s in waits:
        now_s += wait_s
        assert one.take(now_s) == other.take(now_s)


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
    "wrong",
    [
        (),
        ([], 0, standing(), Record, 1, AT, 1.0, 1),
        ((), 0, standing(), Record, 1, AT, 1.0, 1, 1),
        ([], -1, standing(), Record, 1, AT, 1.0, 1, 1),
        ([], "0", standing(), Record, 1, AT, 1.0, 1, 1),
        ([], 0, ({}, {}, {}), Record, 1, AT, 1.0, 1, 1),
        ([], 0, ([], {}, {}, False), Record, 1, AT, 1.0, 1, 1),
        ([], 0, standing(), Record, 1, AT, "now", 1, 1),
        ([None], 0, standing(), Record, 1, AT, 1.0, 1, 1),
        ([(None, 1, "text")], 0, standing(), Record, 1, AT, 1.0, 1, 1),
    ],
)
def test_a_run_of_something_else_is_a_type_error(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        _compiled.plain_run(*wrong)


def test_what_fails_in_a_guest_is_raised() -> None:
    with pytest.raises(AttributeError, match="closed"):
        _compiled.plain_run([(object(), 1, b"{}")], 0, standing(), Record, 1, AT, 1.0, 1, 1)
    with pytest.raises(TypeError, match="list of records"):
        _compiled.text_frames((b"",))
    with pytest.raises(AttributeError, match="raw"):
        _compiled.text_frames([b""])
    with pytest.raises(TypeError, match="deliveries"):
        _compiled.hand_out([], {}, {}, [])
    with pytest.raises(AttributeError, match="only"):
        _compiled.hand_out([b""], {}, {}, [], {})


# Frames.


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
