"""What the load says to each server, as bytes: frames of one length, each with an envelope of its own."""

import itertools
import json

import pytest
from bench.dialects import DIALECTS, Seat, delivery_bytes, due_to, frames_of, masked, template
from bench.workloads import WORKLOADS, Kind, Workload

SPACES = Workload(name="spaces", kind=Kind.SPACES, spaces=12, members=3, senders=3)
ADDRESSED = Workload(name="addressed", kind=Kind.ADDRESSED, spaces=60, members=2, senders=2, bytes=4096)


def seats(workload: Workload) -> list[Seat]:
    return [
        Seat(workload, space, member)
        for space in range(workload.spaces)
        for member in range(workload.members)
    ]


def envelope_in(dialect: str, frame: bytes, envelope_bytes: int) -> bytes:
    """Undo what a client does to an envelope, in the plainest way."""
    if dialect == "nats":
        head, _, rest = frame.partition(b"\r\n")
        assert head.split()[0] == b"PUB"
        assert int(head.split()[2]) == envelope_bytes == len(rest) - 2
        return rest[:-2]
    assert frame[0] == 0x81
    assert frame[1] == 0x80 | 126
    payload = masked(frame[8:], frame[4:8])
    assert int.from_bytes(frame[2:4]) == len(payload)
    if dialect == "socket.io":
        assert payload.startswith(b'42["e",')
        assert payload.endswith(b"]")
        return payload[len(b'42["e",') : -1]
    return payload


@pytest.mark.parametrize("workload", [SPACES, ADDRESSED], ids=lambda workload: workload.name)
@pytest.mark.parametrize("name", DIALECTS)
def test_every_frame_holds_another_envelope_as_long_as_the_workload_says(
    name: str, workload: Workload
) -> None:
    seen = set()
    for seat in (Seat(workload, 0, 0), Seat(workload, workload.spaces - 1, 1)):
        for frame in itertools.islice(frames_of(DIALECTS[name], seat), 3):
            written = envelope_in(name, frame, workload.bytes)
            envelope = json.loads(written)
            assert len(written) == workload.bytes
            assert envelope["from"] == f"p{seat.number}"
            assert envelope["kind"] == "chat"
            assert envelope.get("to") == (None if seat.peer is None else [f"p{seat.peer}"])
            seen.add(envelope["id"])
    assert len(seen) == 6


@pytest.mark.parametrize("workload", [SPACES, ADDRESSED, *WORKLOADS.values()], ids=lambda one: one.name)
@pytest.mark.parametrize("name", DIALECTS)
def test_frames_and_deliveries_have_one_length_for_all_of_a_workload(name: str, workload: Workload) -> None:
    dialect = DIALECTS[name]
    some = seats(workload)
    some = [*some[:12], *some[-12:]]
    templates = [template(dialect, seat) for seat in some]
    assert len({(len(one.frame), one.number_at) for one in templates}) == 1
    assert {len(delivery) for delivery in due_to(dialect, some)} == {delivery_bytes(dialect, workload)}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_template_with_its_number_is_the_first_frame(name: str) -> None:
    seat = Seat(SPACES, 11, 2)
    assert template(DIALECTS[name], seat).frame == next(frames_of(DIALECTS[name], seat))


def test_those_of_a_pair_write_to_each_other() -> None:
    for seat in seats(ADDRESSED):
        [peer] = [one for one in seats(ADDRESSED) if one.number == seat.peer]
        assert peer.space == seat.space
        assert peer.peer == seat.number


def test_a_delivery_of_nats_names_its_subject_and_length() -> None:
    [delivery] = due_to(DIALECTS["nats"], [Seat(SPACES, 3, 0)])
    assert delivery.startswith(b"MSG bench003 1 300\r\n{")
    assert delivery.endswith(b"}\r\n")
