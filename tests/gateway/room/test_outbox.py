"""What leaves for each connection: gathered, in order, bounded."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.room.outbox import Outbox, Outboxes
from mew.space import ConnectionId

A, B, C, D = map(ConnectionId, "abcd")
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
        self.dropped: list[Mapping[str, int]] = []
        self.outbox = Outbox(self.wire, bytes_max, self.overflow, self.dropped.append)

    def overflow(self) -> None:
        self.overflows += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("mew.gateway.room.outbox.asyncio.get_running_loop", lambda: clock)
    return clock


def readers(outboxes: Outboxes, *connections: ConnectionId) -> list[Wire]:
    wires = []
    for connection in connections:
        reader = Reader()
        outboxes.add(connection, reader.outbox, iter(()))
        wires.append(reader.wire)
    outboxes.flush()
    return wires


# One turn.


def test_nothing_leaves_before_the_flush_and_all_of_it_in_one_write() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.send(b"1")
    outboxes.send(b"2")
    outboxes.send(b"3")
    assert a.writes == b.writes == []
    outboxes.flush()
    assert a.writes == b.writes == [b"123"]
    outboxes.flush()
    assert a.writes == b.writes == [b"123"]


def test_private_and_shared_frames_keep_their_order() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.send(b"1")
    outboxes.send(b"a", [A])
    outboxes.send(b"2")
    outboxes.send(b"x", [B, A])
    outboxes.send(b"3")
    outboxes.flush()
    assert (a.writes, b.writes) == ([b"1a2x3"], [b"12x3"])


def test_a_private_frame_is_for_nobody_else() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.send(b"a", [A])
    outboxes.flush()
    assert (a.writes, b.writes) == ([b"a"], [])


def test_a_frame_for_all_but_some_is_kept_from_those_alone() -> None:
    outboxes = Outboxes()
    a, b, c = readers(outboxes, A, B, C)
    outboxes.send(b"1")
    outboxes.send(b"2", but=[A, B])
    outboxes.send(b"3", but=[B])
    outboxes.send(b"4")
    outboxes.flush()
    assert (a.writes, b.writes, c.writes) == ([b"134"], [b"14"], [b"1234"])


def test_a_frame_kept_from_the_only_one_there_is_sent_to_none() -> None:
    outboxes = Outboxes()
    (a,) = readers(outboxes, A)
    outboxes.send(b"1", but=[A])
    outboxes.flush()
    assert a.writes == []


def test_who_is_added_in_a_turn_gets_its_replay_and_what_comes_after() -> None:
    outboxes = Outboxes()
    (a,) = readers(outboxes, A)
    late = Reader()
    outboxes.send(b"1")
    outboxes.add(B, late.outbox, iter((b"welcome", b"missed")))
    outboxes.send(b"2")
    outboxes.flush()
    outboxes.send(b"3")
    outboxes.flush()
    assert (a.writes, late.wire.writes) == ([b"12", b"3"], [b"welcome", b"missed", b"2", b"3"])


def test_who_was_removed_gets_nothing_more_and_what_was_due_to_it_is_told() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.send(b"a", [A])
    outboxes.send(b"1")
    assert outboxes.remove(A) == b"a1"
    assert outboxes.remove(A) == b""
    outboxes.send(b"2")
    outboxes.flush()
    assert (a.writes, b.writes) == ([], [b"12"])


def test_frames_for_who_is_not_there_are_dropped() -> None:
    outboxes = Outboxes()
    a, b = readers(outboxes, A, B)
    outboxes.remove(A)
    outboxes.send(b"1", [A, C, B])
    outboxes.send(b"2", but=[A, C])
    outboxes.flush()
    assert (a.writes, b.writes) == ([], [b"12"])


def test_without_anyone_there_frames_are_not_kept() -> None:
    outboxes = Outboxes()
    outboxes.send(b"1")
    outboxes.flush()
    (a,) = readers(outboxes, A)
    assert a.writes == []


class Naive:
    """The simplest outboxes that could work: to each its own frames."""

    def __init__(self) -> None:
        self.due: dict[ConnectionId, list[bytes]] = {}
        self.written: dict[ConnectionId, bytes] = dict.fromkeys((A, B, C, D), b"")
        self._replays: list[tuple[ConnectionId, bytes]] = []

    def add(self, connection: ConnectionId, replay: bytes) -> None:
        self.due[connection] = []
        self._replays.append((connection, replay))

    def remove(self, connection: ConnectionId) -> bytes:
        return b"".join(self.due.pop(connection, ()))

    def send(self, frames: bytes, to: Collection[ConnectionId]) -> int:
        here = [connection for connection in to if connection in self.due]
        for connection in here:
            self.due[connection].append(frames)
        return len(here)

    def flush(self) -> None:
        for connection, replay in self._replays:
            self.written[connection] += replay
        self._replays.clear()
        for connection, frames in self.due.items():
            self.written[connection] += b"".join(frames)
            frames.clear()


everyone = st.sampled_from([A, B, C, D])


@given(
    st.lists(
        st.tuples(st.sampled_from(["but", "to", "flush", "add", "remove"]), st.sets(everyone)), max_size=25
    )
)
def test_each_gets_what_was_due_to_it_in_order_and_once(acts: list[tuple[str, set[ConnectionId]]]) -> None:
    outboxes, naive = Outboxes(), Naive()
    wires = {connection: Reader() for connection in (A, B, C, D)}
    for n, (act, who) in enumerate([*acts, ("flush", set[ConnectionId]())]):
        frame = b"<%d>" % n
        match act:
            case "but":
                assert outboxes.send(frame, but=who) == naive.send(frame, naive.due.keys() - who)
            case "to":
                assert outboxes.send(frame, who) == naive.send(frame, who)
            case "flush":
                outboxes.flush()
                naive.flush()
            case "add":
                for connection in who - naive.due.keys():
                    outboxes.add(connection, wires[connection].outbox, iter((b"hello ", frame)))
                    naive.add(connection, b"hello " + frame)
            case "remove":
                for connection in who:
                    assert outboxes.remove(connection) == naive.remove(connection)
        assert len(outboxes) == len(naive.due)
    assert {one: b"".join(reader.wire.writes) for one, reader in wires.items()} == naive.written


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
    outboxes.add(A, slow.outbox, iter(()))
    (b,) = readers(outboxes, B)
    for n in range(5):
        outboxes.send(b"%d" % n * 4)
        outboxes.flush()
    assert b.writes == [b"0000", b"1111", b"2222", b"3333", b"4444"]
    assert slow.overflows == 1


def test_a_reader_may_be_removed_by_its_own_overflow(clock: Clock) -> None:
    outboxes = Outboxes()

    def leave() -> None:
        outboxes.remove(A)
        outboxes.send(b"a left")

    wire = Wire()
    wire.stuck_bytes = MIB
    outboxes.add(A, Outbox(wire, 1, leave, lambda dropped: None), iter(()))
    (b,) = readers(outboxes, B)
    outboxes.send(b"12")
    outboxes.flush()
    outboxes.flush()
    assert b.writes == [b"12", b"a left"]


def test_a_flood_of_stream_frames_disconnects_nobody_and_a_slow_reader_is_told_what_it_lost(
    clock: Clock,
) -> None:
    outboxes, slow = Outboxes(), Reader(1000)
    outboxes.add(A, slow.outbox, iter(()))
    (fast,) = readers(outboxes, B)
    slow.wire.stuck_bytes = MIB
    for turn in range(50):
        outboxes.send_frame(b"f" * 100, "stream-1")
        outboxes.send_frame(b"g" * 30, "stream-2", [A])
        outboxes.send(b"e" * 2)
        outboxes.flush()
        assert fast.writes[-1] == b"f" * 100 + b"e" * 2, turn
    assert (slow.overflows, slow.dropped) == (0, [])
    slow.wire.stuck_bytes = 0
    clock.pass_time()
    written = b"".join(slow.wire.writes)
    assert written.count(b"ee") == 50, "no envelope is lost"
    (told,) = slow.dropped
    assert told == {"stream-1": 50 - written.count(b"f") // 100, "stream-2": 50 - written.count(b"g") // 30}
    assert written.count(b"f") + written.count(b"g") <= 500, "frames fill half of an outbox"
    outboxes.send_frame(b"f", "stream-1")
    outboxes.flush()
    assert slow.wire.writes[-1] == b"f"


def test_envelopes_that_nobody_reads_disconnect_as_before_amid_stream_frames(clock: Clock) -> None:
    outboxes, slow = Outboxes(), Reader(1000)
    outboxes.add(A, slow.outbox, iter(()))
    outboxes.flush()
    slow.wire.stuck_bytes = MIB
    for _ in range(11):
        outboxes.send_frame(b"f" * 100, "stream-1")
        outboxes.send(b"e" * 100)
        outboxes.flush()
    assert slow.overflows == 1
    slow.wire.stuck_bytes = 0
    clock.pass_time()
    assert (slow.wire.writes, slow.dropped) == ([], [])


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
    reader.outbox = Outbox(reader.wire, MIB, reader.overflow, reader.dropped.append)
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


def test_nothing_is_replayed_to_one_that_was_stopped() -> None:
    reader = Reader()
    reader.outbox.stop()
    reader.outbox.replay(iter([b"behind a close frame"]))
    assert reader.wire.writes == []
