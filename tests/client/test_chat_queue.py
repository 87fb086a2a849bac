"""The queue of chat awaiting acknowledgement (§3.4.1, §3.4.2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.envelopes import envelope

from mew.client.chat import ChatQueue
from mew.protocol.envelope import Envelope


def chat(id: str, by: str = "ann", to: Any = (), text: str = "hi") -> Envelope:
    return envelope("chat", by, {"text": text}, id=id, to=to)


def acknowledged(id: str, *chats: str, by: str = "me", status: str | None = "read") -> Envelope:
    return envelope(
        "chat/acknowledge", by, {} if status is None else {"status": status}, id=id, correlation_id=chats
    )


def cancelled(id: str, *chats: str, by: str = "ann", to: Any = ()) -> Envelope:
    return envelope("chat/cancel", by, {"reason": "handled_elsewhere"}, id=id, to=to, correlation_id=chats)


def queue(*envelopes: Envelope, **bounds: int) -> ChatQueue:
    fed = ChatQueue("me", **bounds)
    for one in envelopes:
        fed.apply(one)
    return fed


def waiting(of: ChatQueue) -> list[str]:
    return [chat.id for chat in of.waiting]


def test_chat_to_all_or_to_me_waits_and_my_own_and_what_is_for_others_does_not() -> None:
    fed = queue(
        chat("1"), chat("2", to="me"), chat("3", to="bob"), chat("4", by="me"), chat("5", to=["bob", "me"])
    )
    assert waiting(fed) == ["1", "2", "5"]


def test_it_waits_until_i_acknowledge_it() -> None:
    """§3.4.1: an acknowledgement names the chat; one may name several."""
    fed = queue(chat("1"), chat("2"), chat("3"))
    assert not fed.apply(acknowledged("a", "1", by="bob"))
    assert fed.apply(acknowledged("b", "1", "3"))
    assert waiting(fed) == ["2"]
    assert not fed.apply(acknowledged("c", "1"))


def test_it_waits_until_it_is_cancelled() -> None:
    """§3.4.2: by its author or anybody the gateway lets; said to all, or to me."""
    fed = queue(chat("1"), chat("2"), chat("3"), chat("4"))
    assert fed.apply(cancelled("a", "1"))
    assert fed.apply(cancelled("b", "2", by="bob", to="me"))
    assert not fed.apply(cancelled("c", "3", to="bob"))
    assert fed.apply(cancelled("d", "4", by="me", to="bob"))
    assert waiting(fed) == ["3"]


def test_who_acknowledged_my_chat_is_known_with_the_status_given_last() -> None:
    fed = queue(chat("1", by="me"), chat("2"))
    assert fed.apply(acknowledged("a", "1", by="bob", status="received"))
    assert fed.apply(acknowledged("b", "1", by="bob", status="read"))
    assert fed.apply(acknowledged("c", "1", "2", by="eve", status=None))
    assert fed.acknowledgements("1") == {"bob": "read", "eve": None}
    assert fed.acknowledgements("2") == {}


@pytest.mark.parametrize(
    "payload", [{}, {"text": 1}, {"text": "x", "format": "html"}, b'{"text":"a","text":"b"}']
)
def test_a_chat_that_does_not_decode_is_ignored(payload: Any) -> None:
    """§4.3."""
    assert waiting(queue(envelope("chat", "ann", payload, id="1"))) == []


def test_a_chat_seen_again_does_not_wait_again() -> None:
    fed = queue(chat("1"), acknowledged("a", "1"))
    assert not fed.apply(chat("1"))
    assert waiting(fed) == []


def test_whoever_talks_without_end_pushes_out_nobody_else() -> None:
    fed = queue(chat("mine", by="bob"), *(chat(f"{number}", by="eve") for number in range(50)), waiting_max=4)
    assert waiting(fed) == ["mine", "47", "48", "49"]
    long = [chat(f"{number}", by="eve", text="x" * 1000) for number in range(9)]
    fed = queue(chat("mine", by="bob"), *long, bytes_max=3000)
    assert waiting(fed) == ["mine", "7", "8"]


def test_only_so_many_chats_of_mine_are_remembered() -> None:
    fed = queue(*(chat(f"{number}", by="me") for number in range(5)), mine_max=2)
    assert not fed.apply(acknowledged("a", "0", by="bob"))
    assert fed.apply(acknowledged("b", "4", by="bob"))


NAMES = st.sampled_from(["me", "ann", "bob"])
TO = st.sampled_from(["", "me", "bob"]).map(lambda name: name or ())
IDS = st.integers(0, 5).map(str)
MOVES = st.one_of(
    st.builds(chat, IDS, NAMES, TO),
    st.builds(lambda id, about, by: acknowledged(f"a{id}", about, by=by), IDS, IDS, NAMES),
    st.builds(lambda id, about, by, to: cancelled(f"c{id}", about, by=by, to=to), IDS, IDS, NAMES, TO),
)


@given(st.lists(MOVES, max_size=20), st.data())
def test_seeing_envelopes_twice_is_seeing_them_once(moves: list[Envelope], data: st.DataObject) -> None:
    once, twice = ChatQueue("me"), ChatQueue("me")
    for number, move in enumerate(moves):
        assert once.apply(move) == twice.apply(move)
        assert not twice.apply(moves[data.draw(st.integers(0, number))])
        assert once.waiting == twice.waiting
    for id in map(str, range(6)):
        assert once.acknowledgements(id) == twice.acknowledgements(id)
