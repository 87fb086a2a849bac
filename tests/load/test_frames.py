"""What the load sends is what a gateway reads, and what a gateway sends is taken apart however it is cut."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.websocket.frames import FrameReader, Opcode, binary_frame, close_frame, ping, text_frame
from mew.load import frames
from mew.load.frames import FILLING, SLOT, EnvelopeTemplate, chat, envelope, numbered
from mew.protocol.json import decode_json

READ = 1 << 20


def read(frame: bytes) -> tuple[int, bytes]:
    message, end = FrameReader(READ).feed(frame, 0)
    assert message is not None
    assert end == len(frame)
    return message


@given(st.binary(max_size=300))
def test_masked_frames_are_read_as_they_were(payload: bytes) -> None:
    assert read(frames.binary_frame(payload)) == (Opcode.BINARY, payload)


@pytest.mark.parametrize("size", [125, 126, 65_535, 65_536])
def test_frames_of_any_length_are_read(size: int) -> None:
    assert read(frames.text_frame(b"x" * size)) == (Opcode.TEXT, b"x" * size)
    assert read(frames.binary_frame(b"x" * size)) == (Opcode.BINARY, b"x" * size)


@given(st.integers(0, 99_999_999), st.integers(0, 40), st.integers(200, 600))
def test_an_envelope_has_its_number_wherever_it_is_to_stand(number: int, length: int, size: int) -> None:
    about = f"{'p' * length}-{SLOT}"
    template = envelope(
        f"run-{SLOT}", "ann", "mcp/request", {"text": FILLING}, to=["bob"], about=about, size=size
    )
    opcode, payload = read(template.frame(number))
    found = decode_json(payload)
    assert (opcode, len(payload), template.payload_bytes) == (Opcode.TEXT, len(payload), len(payload))
    assert found["id"] == f"run-{number:08d}"
    assert found["correlation_id"] == [f"{'p' * length}-{number:08d}"]
    assert (found["from"], found["to"], found["kind"]) == ("ann", ["bob"], "mcp/request")


@pytest.mark.parametrize("who", ["a", "ann", "somebody-with-a-name"])
def test_envelopes_have_the_length_they_should_whoever_sends_them(who: str) -> None:
    assert chat(f"run-{SLOT}", who, size=300).payload_bytes == 300


def test_no_two_envelopes_of_a_talker_have_the_same_id() -> None:
    templates = [chat(f"run-{name}-{SLOT}", "ann", size=300) for name in "ab"]
    sent = [decode_json(read(frame)[1])["id"] for frame in islice(numbered(templates), 30)]
    assert len(set(sent)) == 30
    assert sent[:3] == ["run-a-00000000", "run-b-00000001", "run-a-00000002"]


def test_a_template_without_a_number_is_a_frame() -> None:
    assert read(EnvelopeTemplate(b'{"a":1}' + SLOT.encode()).frame(7))[1].endswith(b"00000007")


SENT = [
    (frames.TEXT, b'{"a":1}', text_frame),
    (frames.BINARY, b"x" * 70_000, binary_frame),
    (frames.TEXT, b"y" * 300, text_frame),
]


@given(st.lists(st.integers(1, 80_000), max_size=8))
def test_frames_are_taken_apart_however_they_are_cut(cuts: list[int]) -> None:
    stream = b"".join(made(payload) for _, payload, made in SENT) + ping() + close_frame(4008, "slow")
    taken, reader, at = [], frames.FrameParser(), 0
    for size in (*cuts, len(stream)):
        taken += list(reader.feed(stream[at : at + size]))
        at += size
    assert [(first, payload) for first, payload, _ in taken[:3]] == [(one, two) for one, two, _ in SENT]
    assert [first for first, _, _ in taken[3:]] == [frames.PING, frames.CLOSE]
    assert frames.read_close(taken[-1][1]) == (4008, "slow")
    assert sum(size for _, _, size in taken) == len(stream)
    assert reader.rest == b""


def test_fragments_are_put_together_and_what_comes_between_is_not_lost() -> None:
    stream = b"\x01\x02ab" + b"\x89\x00" + b"\x80\x01c"
    taken = list(frames.FrameParser().feed(stream))
    assert [(first, payload) for first, payload, _ in taken if first] == [
        (frames.PING, b""),
        (frames.TEXT, b"abc"),
    ]
    assert sum(size for _, _, size in taken) == len(stream)


def test_a_close_without_a_code_has_none() -> None:
    assert frames.read_close(b"") == (1005, "")
