"""What leaves for each connection: gathered, in order, bounded."""

import asyncio
from collections.abc import Callable, Collection, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.outbox import Outbox, Outboxes
from mew.gateway.websocket import binary_frame, text_frame
from mew.space import Connection

A, B, C, D = map(Connection, "abcd")
MIB = 1 << 20


class Wire(asyncio.WriteTransport):
    """A transport that keeps what it was given; `stuck_bytes` are what its reader has not read."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.stuck_bytes = 0
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.stuck_bytes

    def is_closing(self) -> bool:
        return self.closing


class Clock:
    """A loop in which time passes when the test says so."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def call_later(self, delay_s: float, act: Callable[[], None]) -> None:
        assert 0 < delay_s < 1
        self.due.append(act)

    def pass_time(self) -> None:
        due, self.due = self.due, []
        for act in due:
            act()


class Reader:
    """A connection with its wire, its outbox, and how often it overflowed."""

    def __init__(self, bytes_max: int = MIB) -> None:
        self.wire = Wire()
        self.overflows = 0
        self.outbox = Outbox(self.wire, bytes_max, self.overflow)

    def overflow(self) -> None:
        self.overflows += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("mew.gateway.outbox.asyncio.get_running_loop", lambda: clock)
    return clock


def readers(outboxes: Outboxes, *connections: Connection) -> list[Wire]:
    wires = []
    for connection in connections:
        reader = Reader()
        outboxes.add(connection, reader.outbox)
        wires.append(reader.wire)
    outboxes.flush()
    return wires


# Frames.


@pytest.mark.parametrize(
    ("length", "header"),
    [
        (0, "00"),
        (1, "01"),
        (125, "7d"),
        (126, "7e 007e"),
        (65_535, "7e ffff"),
        (65_536, "7f 0000000000010000"),
        (1 << 20, "7f 0000000000100000"),
    ],
)
def test_a_frame_has_the_header_of_rfc_6455(length: int, header: str) -> None:
    data = b"x" * length
    assert text_frame(data) == b"\x81" + bytes.fromhex(header) + data
    assert binary_frame(data) == b"\x82" + bytes.fromhex(header) + data


# One turn of the loop.


def test_nothing_leaves_before_the_flush_and_all_of_it_in_one_write() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.to_all(b"1")
    outboxes.to_all(b"2")
    outboxes.to_all(b"3")
    assert a.writes == b.writes == []
    outboxes.flush()
    assert a.writes == b.writes == [b"123"]
    outboxes.flush()
    assert a.writes == b.writes == [b"123"]


def test_private_and_shared_frames_keep_their_order() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.to_all(b"1")
    outboxes.to([A], b"a")
    outboxes.to_all(b"2")
    outboxes.to([B, A], b"x")
    outboxes.to_all(b"3")
    outboxes.flush()
    assert (a.writes, b.writes) == ([b"1a2x3"], [b"12x3"])


def test_a_private_frame_is_for_nobody_else() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.to([A], b"a")
    outboxes.flush()
    assert (a.writes, b.writes) == ([b"a"], [])


def test_a_frame_for_all_but_some_is_kept_from_those_alone() -> None:
    outboxes = Outboxes()
    a, b, c = readers(outboxes, A, B, C)
    outboxes.to_all(b"1")
    outboxes.to_all_but([A, B], b"2")
    outboxes.to_all_but([B], b"3")
    outboxes.to_all(b"4")
    outboxes.flush()
    assert (a.writes, b.writes, c.writes) == ([b"134"], [b"14"], [b"1234"])


def test_a_frame_kept_from_the_only_one_there_is_sent_to_none() -> None:
    outboxes = Outboxes()
    (a,) = readers(outboxes, A)
    outboxes.to_all_but([A], b"1")
    outboxes.flush()
    assert a.writes == []


def test_who_is_added_in_a_turn_misses_what_was_before() -> None:
    outboxes = Outboxes()
    (a,) = readers(outboxes, A)
    late = Reader()
    outboxes.to_all(b"1")
    outboxes.add(B, late.outbox)
    outboxes.to([B], b"welcome")
    outboxes.to_all(b"2")
    outboxes.flush()
    outboxes.to_all(b"3")
    outboxes.flush()
    assert (a.writes, late.wire.writes) == ([b"12", b"3"], [b"welcome2", b"3"])


def test_who_was_removed_gets_nothing_more() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.to([A], b"a")
    outboxes.to_all(b"1")
    outboxes.remove(A)
    outboxes.remove(A)
    outboxes.to_all(b"2")
    outboxes.flush()
    assert (a.writes, b.writes) == ([], [b"12"])


def test_frames_for_who_is_not_there_are_dropped() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.remove(A)
    outboxes.to([A, C, B], b"1")
    outboxes.to_all_but([A, C], b"2")
    outboxes.flush()
    assert (a.writes, b.writes) == ([], [b"12"])


def test_without_anyone_there_frames_are_not_kept() -> None:
    outboxes = Outboxes()
    outboxes.to_all(b"1")
    outboxes.flush()
    (a,) = readers(outboxes, A)
    assert a.writes == []


class Plain:
    """The simplest outboxes that could work: to each its own frames, one write a flush."""

    def __init__(self) -> None:
        self.due: dict[Connection, list[bytes]] = {}
        self.writes: dict[Connection, list[bytes]] = {A: [], B: [], C: [], D: []}

    def put(self, connections: Collection[Connection], frame: bytes) -> None:
        for connection in connections:
            if connection in self.due:
                self.due[connection].append(frame)

    def flush(self) -> None:
        for connection, frames in self.due.items():
            if frames:
                self.writes[connection].append(b"".join(frames))
            frames.clear()


everyone = st.sampled_from([A, B, C, D])


@given(
    st.lists(
        st.tuples(st.sampled_from(["all", "to", "flush", "add", "remove"]), st.sets(everyone)), max_size=25
    )
)
def test_each_gets_what_was_due_to_it_in_order_and_once(acts: list[tuple[str, set[Connection]]]) -> None:
    outboxes, plain = Outboxes(), Plain()
    wires = {connection: Reader() for connection in (A, B, C, D)}
    for n, (act, who) in enumerate([*acts, ("flush", set[Connection]())]):
        frame = b"<%d>" % n
        match act:
            case "all":
                outboxes.to_all_but(who, frame)
                plain.put(plain.due.keys() - who, frame)
            case "to":
                outboxes.to(who, frame)
                plain.put(who, frame)
            case "flush":
                outboxes.flush()
                plain.flush()
            case "add":
                for connection in who - plain.due.keys():
                    outboxes.add(connection, wires[connection].outbox)
                    plain.due[connection] = []
            case "remove":
                for connection in who:
                    outboxes.remove(connection)
                    plain.due.pop(connection, None)
    assert {connection: reader.wire.writes for connection, reader in wires.items()} == plain.writes


# Slow readers.


def test_a_reader_that_is_behind_is_held_and_gets_the_rest_when_it_catches_up(clock: Clock) -> None:
    reader = Reader()
    reader.wire.stuck_bytes = MIB
    for data in (b"1", b"2", b"3"):
        reader.outbox.write(data)
    clock.pass_time()
    assert reader.wire.writes == []
    assert reader.outbox.waiting_bytes == MIB + 3
    reader.wire.stuck_bytes = 0
    reader.outbox.write(b"4")  # not past those that wait
    clock.pass_time()
    assert reader.wire.writes == [b"1", b"2", b"3", b"4"]
    assert reader.outbox.waiting_bytes == 0
    reader.outbox.write(b"5")
    assert reader.wire.writes[-1] == b"5"
    assert clock.due == []


def test_one_timer_at_a_time_waits_for_a_slow_reader(clock: Clock) -> None:
    reader = Reader()
    reader.wire.stuck_bytes = MIB
    for _ in range(100):
        reader.outbox.write(b"x")
        assert len(clock.due) == 1
    clock.pass_time()
    assert len(clock.due) == 1


def test_past_the_bound_it_overflows_once_and_nothing_follows(clock: Clock) -> None:
    reader = Reader(bytes_max=10)
    reader.wire.stuck_bytes = MIB
    reader.outbox.write(b"x" * 10)
    assert reader.overflows == 0
    reader.outbox.write(b"y")
    assert reader.overflows == 1
    for _ in range(3):
        reader.outbox.write(b"z" * 100)
    reader.wire.stuck_bytes = 0
    clock.pass_time()
    reader.outbox.write(b"z")
    assert reader.overflows == 1
    assert reader.wire.writes == []
    assert reader.outbox.waiting_bytes == 0
    assert clock.due == []


def test_a_slow_reader_costs_the_others_nothing(clock: Clock) -> None:
    outboxes = Outboxes()
    slow = Reader(bytes_max=10)
    slow.wire.stuck_bytes = MIB
    outboxes.add(A, slow.outbox)
    (b,) = readers(outboxes, B)
    for n in range(5):
        outboxes.to_all(b"%d" % n * 4)
        outboxes.flush()
    assert b.writes == [b"0000", b"1111", b"2222", b"3333", b"4444"]
    assert slow.overflows == 1


def test_a_reader_may_be_removed_by_its_own_overflow(clock: Clock) -> None:
    outboxes = Outboxes()

    def leave() -> None:
        outboxes.remove(A)
        outboxes.to_all(b"a left")

    wire = Wire()
    wire.stuck_bytes = MIB
    outboxes.add(A, Outbox(wire, 1, leave))
    (b,) = readers(outboxes, B)
    outboxes.to_all(b"12")
    outboxes.flush()
    outboxes.flush()
    assert b.writes == [b"12", b"a left"]


def test_what_waits_for_a_connection_that_closes_is_dropped(clock: Clock) -> None:
    reader = Reader()
    reader.wire.stuck_bytes = MIB
    reader.outbox.write(b"1")
    reader.wire.closing = True
    clock.pass_time()
    reader.wire.stuck_bytes = 0
    reader.outbox.write(b"2")
    assert reader.wire.writes == []
    assert clock.due == []
    assert reader.overflows == 0


def test_after_stop_nothing_is_written(clock: Clock) -> None:
    reader = Reader()
    reader.outbox.write(b"1" * MIB)
    reader.wire.stuck_bytes = MIB
    reader.outbox.write(b"2")
    reader.outbox.stop()
    reader.outbox.write(b"3")
    reader.wire.stuck_bytes = 0
    clock.pass_time()
    assert reader.wire.writes == [b"1" * MIB]
    assert clock.due == []


def test_the_transport_is_asked_how_much_waits_only_when_it_may_be_full() -> None:
    reader = Reader()
    asked = 0

    def count() -> int:
        nonlocal asked
        asked += 1
        return sum(map(len, reader.wire.writes))

    reader.wire.get_write_buffer_size = count  # type: ignore[method-assign]
    reader.outbox = Outbox(reader.wire, MIB, reader.overflow)
    for _ in range(255):
        reader.outbox.write(b"x" * 1024)
    assert asked == 1
    assert sum(map(len, reader.wire.writes)) == 255 * 1024


def test_nothing_is_written_behind_a_goodbye() -> None:
    reader = Reader()
    reader.outbox.write(b"1")
    reader.wire.closing = True
    reader.outbox.write(b"2")
    assert reader.wire.writes == [b"1"]


# Replay.


def test_a_replay_goes_first_and_only_as_fast_as_it_is_read(clock: Clock) -> None:
    reader = Reader(bytes_max=10)
    taken: list[int] = []

    def frames() -> Iterator[bytes]:
        for n in range(3):
            taken.append(n)
            reader.wire.stuck_bytes = MIB  # each fills the transport
            yield b"missed %d" % n

    reader.outbox.replay(frames())
    reader.outbox.write(b"live")
    assert (taken, reader.wire.writes) == ([0], [b"missed 0"])
    for n in (1, 2):
        reader.wire.stuck_bytes = 0
        clock.pass_time()
        assert taken[-1] == n
    reader.wire.stuck_bytes = 0
    clock.pass_time()
    assert reader.wire.writes == [b"missed 0", b"missed 1", b"missed 2", b"live"]
    assert reader.overflows == 0


def test_who_reads_nothing_of_its_replay_falls_behind_what_is_live(clock: Clock) -> None:
    reader = Reader(bytes_max=10)
    reader.wire.stuck_bytes = MIB
    reader.outbox.replay(iter([b"missed"] * 1000))
    reader.outbox.write(b"x" * 11)
    assert reader.overflows == 1
    assert reader.wire.writes == []


def test_a_replay_goes_before_what_comes_after_it_also_to_one_who_was_written_to_before(clock: Clock) -> None:
    reader = Reader()
    reader.outbox.write(b"before")

    def frames() -> Iterator[bytes]:
        for n in range(2):
            reader.wire.stuck_bytes = MIB
            yield b"missed %d" % n

    reader.outbox.replay(frames())
    reader.outbox.write(b"live")
    for _ in range(2):
        reader.wire.stuck_bytes = 0
        clock.pass_time()
    assert reader.wire.writes == [b"before", b"missed 0", b"missed 1", b"live"]
