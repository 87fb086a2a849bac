"""What is on its way: in order, none lost, none twice."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.envelopes import envelope

from mew.client.connection.outgoing import Outgoing
from mew.protocol.envelope import EnvelopeId
from mew.protocol.kinds import Kind

INF = float("inf")


def added(*names: str, kind: str = Kind.CHAT) -> Outgoing:
    outgoing = Outgoing()
    for name in names:
        outgoing.add(envelope(kind, "bot", id=name), name.encode())
    return outgoing


def sent(outgoing: Outgoing, now_s: float = 0.0) -> list[str]:
    """Everything that may be sent now."""
    messages = []
    while (message := outgoing.next(now_s)) is not None:
        messages.append(message.decode())
    return messages


def test_what_is_added_is_sent_in_that_order() -> None:
    assert sent(added("a", "b", "c")) == ["a", "b", "c"]


def test_it_is_done_with_its_echo() -> None:
    outgoing = added("a", "b")
    sent(outgoing)
    assert outgoing.accepted(EnvelopeId("a"))
    assert not outgoing.accepted(EnvelopeId("a"))
    assert len(outgoing) == 1


def test_what_was_sent_over_a_lost_connection_goes_first_over_the_next() -> None:
    outgoing = added("a", "b")
    sent(outgoing)
    outgoing.accepted(EnvelopeId("a"))
    outgoing.add(envelope(Kind.CHAT, "bot", id="c"), b"c")
    assert outgoing.lost() == ("b",)
    assert sent(outgoing) == ["b", "c"]


def test_only_what_was_sent_before_may_be_a_duplicate_of_itself() -> None:
    outgoing = added("a")
    sent(outgoing)
    assert not outgoing.repeated(EnvelopeId("a"))
    outgoing.lost()
    sent(outgoing)
    assert outgoing.repeated(EnvelopeId("a"))


def test_the_replay_settles_what_waits_to_be_sent_again() -> None:
    outgoing = added("a", "b")
    sent(outgoing)
    outgoing.lost()
    assert outgoing.accepted(EnvelopeId("a"))
    assert sent(outgoing) == ["b"]


def test_what_came_too_fast_goes_out_again_in_its_place() -> None:
    outgoing = added("a", "b", "c")
    sent(outgoing)
    outgoing.too_fast(EnvelopeId("b"), now_s=4.5, wait_s=0.5)
    outgoing.too_fast(EnvelopeId("a"), now_s=4.5, wait_s=0.25)
    outgoing.add(envelope(Kind.CHAT, "bot", id="d"), b"d")
    assert sent(outgoing, 4.9) == []
    assert outgoing.due_s() == 5.0
    assert [*sent(outgoing, 5.0), *sent(outgoing, 6.0), *sent(outgoing, 7.0)] == ["a", "b", "d"]


def test_who_was_too_fast_once_leaves_time_between_any_two_and_tries_to_be_faster_again() -> None:
    outgoing = added("first")
    sent(outgoing)
    outgoing.too_fast(EnvelopeId("first"), now_s=0.0, wait_s=0.005)
    for n in range(1_000):
        outgoing.add(envelope(Kind.CHAT, "bot", id=str(n)), str(n).encode())
    times, now_s = [], 0.005
    while outgoing.waiting:
        if outgoing.next(now_s) is not None:
            times.append(now_s)
        now_s = max(now_s, outgoing.due_s() or 0.0)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps[0] == pytest.approx(0.005)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == 0.0


def test_while_paused_only_acknowledgements_cancellations_and_status_go_out() -> None:  # §3.9.1
    outgoing = added("chat")
    outgoing.add(envelope(Kind.STATUS, "bot", id="status"), b"status")
    outgoing.add(envelope(Kind.REASONING_CANCEL, "bot", id="cancel"), b"cancel")
    outgoing.paused_until = 10.0
    assert sent(outgoing, 1.0) == ["status", "cancel"]
    assert outgoing.due_s() == 10.0
    assert sent(outgoing, 10.0) == ["chat"]


def test_a_resume_lets_everything_go() -> None:  # §3.9.2
    outgoing = added("chat")
    outgoing.paused_until = INF
    assert sent(outgoing, 1e9) == []
    outgoing.resumed()
    assert sent(outgoing) == ["chat"]


def test_a_refusal_because_of_a_pause_that_we_did_not_see_is_tried_again_later() -> None:
    outgoing = added("resume", kind=Kind.RESUME)
    sent(outgoing)
    outgoing.paused(EnvelopeId("resume"), now_s=1.0)
    assert sent(outgoing, 1.0) == []  # at once would be refused again, and again
    due_s = outgoing.due_s()
    assert due_s is not None
    assert sent(outgoing, due_s) == ["resume"]


def test_what_is_given_up_is_not_sent() -> None:
    outgoing = added("a", "b")
    outgoing.next(0)
    assert outgoing.give_up(EnvelopeId("a"))
    assert outgoing.give_up(EnvelopeId("b"))
    assert not outgoing.give_up(EnvelopeId("b"))
    assert sent(outgoing) == []
    assert outgoing.due_s() is None


class Gateway:
    """As much of one as counts here: it takes what it does not know yet."""

    def __init__(self) -> None:
        self.accepted: list[str] = []

    def take(self, message: str) -> None:
        if message not in self.accepted:
            self.accepted.append(message)


@given(st.lists(st.sampled_from(["add", "send", "arrive", "echo", "lose"]), max_size=80))
def test_whenever_the_connection_is_lost_all_arrive_once_and_in_order(steps: list[str]) -> None:
    outgoing, gateway = Outgoing(), Gateway()
    added_, wire, echoes = 0, list[str](), list[str]()
    for step in steps:
        if step == "add":
            outgoing.add(envelope(Kind.CHAT, "bot", id=f"{added_:03}"), f"{added_:03}".encode())
            added_ += 1
        elif step == "send" and (message := outgoing.next(0)) is not None:
            wire.append(message.decode())
        elif step == "arrive" and wire:
            gateway.take(wire[0])
            echoes.append(wire.pop(0))
        elif step == "echo" and echoes:
            outgoing.accepted(EnvelopeId(echoes.pop(0)))
        elif step == "lose":
            outgoing.lost()
            wire.clear()
            echoes.clear()
    outgoing.lost()
    for message_ in sent(outgoing):
        gateway.take(message_)
    assert gateway.accepted == [f"{n:03}" for n in range(added_)]


def test_what_comes_back_as_it_was_sent_need_not_be_read() -> None:
    outgoing = added("a", "b")
    sent(outgoing)
    echo = outgoing.echoed(b"a")
    assert echo is not None
    assert echo.id == "a"
    assert outgoing.echoed(b"a") is None
    outgoing.accepted(EnvelopeId("b"))
    assert outgoing.echoed(b"b") is None
    assert len(outgoing) == 0


def test_what_has_not_left_can_be_taken_back_and_nothing_else() -> None:
    outgoing = added("a", "b", "c")
    outgoing.next(0.0)
    assert [outgoing.take_back(EnvelopeId(name)) for name in "abx"] == [False, True, False]
    assert sent(outgoing) == ["c"]
    outgoing.lost()  # the gateway may have taken what was sent over it
    assert not outgoing.take_back(EnvelopeId("a"))
