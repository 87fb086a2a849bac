"""A room's turn: the order of what it received, who gets what, and what is refused to whom."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.gateway.room.rooms import (
    Clock,
    HeldStorage,
    Visitor,
    chat,
    envelope,
    grant,
    ids_in,
    kick,
    node_with,
    passes,
)
from tests.space.table import capabilities

from mew.gateway.config.loader import load_config
from mew.gateway.config.settings import Limits
from mew.gateway.node import Node
from mew.gateway.room.ports import AcceptedPost, RoomEnvironment
from mew.gateway.room.room import Room
from mew.gateway.room.turns import Turns
from mew.gateway.trace import Trace
from mew.journal.memory import MemoryStorage
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import Identified, Left, RefusalDetails, Rules, Sent, TimePassed, Violated

ANN, BOB = ParticipantId("ann"), ParticipantId("bob")


# Order.


async def test_all_that_a_room_receives_in_one_turn_keeps_its_order(storage: HeldStorage, desk: Room) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    before, rules = len(storage.events()), desk.space.state.rules
    storage.is_held = True
    ann.send(chat("ann", "e0"))
    await passes()  # what follows is one turn
    cat = Visitor(desk, "cat")
    held = capabilities(["chat"])
    acts = [
        partial(ann.send, chat("ann", "e1")),
        partial(bob.send, chat("bob", "e2"), chat("bob", "e3")),
        partial(desk.identify, ParticipantId("zoe"), held),
        partial(ann.send, chat("ann", "e4")),
        partial(asyncio.ensure_future, desk.post(BOB, chat("bob", "e5"))),
        partial(asyncio.ensure_future, cat.enter()),
        partial(ann.send, envelope("ann", "e6", "nonsense/of-hers"), chat("ann", "e7")),
        partial(desk.configure, replace(rules, name="Other"), desk.limits),
        partial(bob.send, envelope("bob", "e8", "mcp/request"), chat("bob", "e9")),
        partial(bob.leave),
        partial(desk.identify, ParticipantId("zoe"), held),
        partial(desk.identify, ParticipantId("zoe"), None),
        partial(ann.send, chat("ann", "e10")),
    ]
    for act in acts:
        act()
        await asyncio.sleep(0)
    storage.release()
    await passes()
    happened = [_short(event) for event in storage.events()[before:]]
    assert happened == [
        ("e0",),
        ("e1", "e2", "e3"),
        "Identified",
        ("e4",),
        ("e5",),
        "Joined",
        ("e6", "e7"),
        "Configured",
        "Violated",
        ("e9",),
        "Left",
        "Identified",
        ("e10",),
    ]
    assert ann.seen == [f"e{n}" for n in range(11) if n != 8]
    assert cat.seen == ["e6", "e7", "e9", "e10"]
    assert bob.seen == ["e0"], "it left before the rest was committed"


def _short(event: Any) -> Any:
    return event.envelopes.ids if isinstance(event, Sent) else type(event).__name__


async def test_a_grant_that_has_ended_by_a_turn_ends_before_anything_in_it(
    storage: HeldStorage, desk: Room, clock: Clock
) -> None:
    ann, cat = await Visitor(desk, "ann").enter(), await Visitor(desk, "cat").enter()
    ends = {"expires_at": clock.time.replace(minute=5).isoformat()}
    ann.send(grant("ann", "g1", "cat", "reasoning/*", **ends), grant("ann", "g2", "cat", "stream/*"))
    await passes()
    cat.send(envelope("cat", "e1", "reasoning/start"))
    await passes()
    clock.advance(3600)
    cat.send(envelope("cat", "e2", "reasoning/start"), chat("cat", "e3"))
    await passes()
    *_, passed, violated, sent = storage.events()
    assert [type(event) for event in (passed, violated, sent)] == [TimePassed, Violated, Sent]
    assert [error["id"] for error in cat.errors] == ["e2"]
    assert ann.seen == ["g1", "g2", "e1", "e3"]


async def test_what_is_due_later_happens_by_itself(storage: HeldStorage, node: Node, desk: Room) -> None:
    ann = await Visitor(desk, "ann").enter()
    ann.send(envelope("ann", "e1", "participant/pause", {"timeout_seconds": 0.001}, to=["bob"]))
    async with asyncio.timeout(20):
        while not any(isinstance(event, TimePassed) for event in storage.events()):  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_times_in_a_journal_never_go_back(storage: HeldStorage, desk: Room, clock: Clock) -> None:
    ann = await Visitor(desk, "ann").enter()
    for seconds in (10, -100, 5, 200):
        clock.advance(seconds)
        ann.send(chat("ann", f"e{seconds}"))
        await passes()
    times = [entry.at for space, entry, _ in storage.log if space == "desk"]
    assert times == sorted(times)
    assert times[-1] == clock.time


async def test_a_batch_never_has_more_than_16_mib(storage: HeldStorage, desk: Room) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    large = {"text": "x" * 900_000}
    for n in range(20):
        ann.send(envelope("ann", f"a{n}", payload=large), chat("ann", f"b{n}"))
        bob.send(chat("bob", f"c{n}"))
    await passes()
    batches = [event.envelopes for event in storage.events() if isinstance(event, Sent)]
    assert len(batches) == 2
    assert max(sum(map(len, batch.raws)) for batch in batches) <= 16 << 20
    assert ann.seen == bob.seen == [f"{who}{n}" for n in range(20) for who in "abc"]


async def test_one_read_that_is_larger_than_a_batch_may_be_is_one_of_its_own(
    storage: HeldStorage, desk: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.gateway.room.room._BATCH_BYTES", 1000)
    ann = await Visitor(desk, "ann").enter()
    ann.send(chat("ann", "e1"))
    ann.send(envelope("ann", "e2", payload={"text": "x" * 2000}))
    ann.send(chat("ann", "e3"))
    await passes()
    assert storage.batches() == [("e1",), ("e2",), ("e3",)]


# Coming back.


async def test_who_comes_back_gets_what_it_missed_before_anything_live(
    storage: HeldStorage, desk: Room
) -> None:
    ann = await Visitor(desk, "ann").enter()
    ann.send(*(chat("ann", f"e{n}") for n in range(5)))
    await passes()
    back = Visitor(desk, "bob", after="e2")
    entering = asyncio.ensure_future(back.enter())
    ann.send(chat("ann", "in the same turn"))
    await asyncio.sleep(0)
    ann.send(chat("ann", "behind its join"))
    await entering
    ann.send(chat("ann", "live"))
    await passes()
    welcome, *rest = back.log
    assert (welcome["kind"], welcome["payload"]["resumed"]) == ("system/welcome", True)
    assert ids_in(rest) == ["e3", "e4", "in the same turn", "behind its join", "live"]
    joined = [one["payload"]["participant"]["id"] for one in rest if one["kind"] == "system/presence"]
    assert joined == ["bob"]


async def test_the_oldest_envelope_with_an_id_counts_for_who_comes_back(desk: Room) -> None:
    old = await Visitor(desk, "cat", lenient=True).enter()
    for n in range(6):
        old.send(envelope("cat", f"envelope-{n % 2}", payload={"n": n}))
    await passes()
    back = await Visitor(desk, "bob", after="envelope-1").enter()
    missed = [one["payload"]["n"] for one in back.log if one["kind"] == "chat"]
    assert missed == [2, 3, 4, 5]


async def test_who_comes_back_with_an_id_that_nobody_knows_is_told_so(desk: Room) -> None:
    back = await Visitor(desk, "bob", after="never seen").enter()
    assert back.log[0]["payload"]["resumed"] is False


async def test_who_comes_back_does_not_get_what_was_for_others(storage: HeldStorage, tmp_path: Path) -> None:
    async with node_with(storage, tmp_path, "delivery: addressed\n") as node:
        desk = node.rooms["desk"]
        ann = await Visitor(desk, "ann").enter()
        ann.send(chat("ann", "e1"), chat("ann", "e2", to=["cat"]), chat("ann", "e3", to=["bob"]))
        await passes()
        back = await Visitor(desk, "bob", after="e1").enter()
        assert back.seen == ["e3"]
        assert ann.seen == ["e1", "e2", "e3"]


# Who is closed.


async def test_a_kicked_connection_gets_what_came_before_and_is_not_heard_after(
    storage: HeldStorage, desk: Room
) -> None:
    ann, cat = await Visitor(desk, "ann").enter(), await Visitor(desk, "cat").enter()
    other = await Visitor(desk, "cat").enter()
    ann.send(chat("ann", "e1"))
    cat.send(chat("cat", "e2"))
    ann.send(kick("ann", "e3", "cat"))
    cat.send(chat("cat", "e4"), b"nonsense")
    other.send(chat("cat", "e5"))
    ann.send(chat("ann", "e6"))
    desk.receive_binary(cat, b"neither")
    desk.receive_error(cat, 1002, "nor this")
    await passes()
    assert ann.seen == ["e1", "e2", "e3", "e6"]
    for closed in (cat, other):
        assert closed.seen == ["e1", "e2", "e3"]
        assert closed.errors == []
        assert closed.log[-1] == ("closed", CloseCode.KICKED)
        closed.leave()  # its socket has ended
    await passes()
    assert not any(isinstance(event, Left) for event in storage.events()), "it had left when it was kicked"
    assert desk.connections.keys() == {ann.id}


async def test_a_kicked_connection_is_not_heard_while_the_commit_of_that_is_under_way(
    storage: HeldStorage, desk: Room
) -> None:
    ann, cat = await Visitor(desk, "ann").enter(), await Visitor(desk, "cat").enter()
    storage.is_held = True
    ann.send(kick("ann", "e1", "cat"))
    await passes()
    cat.send(chat("cat", "e2"))
    ann.send(chat("ann", "e3"))
    storage.release()
    await passes()
    assert storage.batches() == [("e1",), ("e3",)]
    assert (cat.seen, cat.errors) == (["e1"], [])
    assert not any(isinstance(event, Violated) for event in storage.events())


async def test_who_joins_and_is_kicked_in_one_turn_is_welcomed_and_closed(desk: Room) -> None:
    ann = await Visitor(desk, "ann").enter()
    cat = Visitor(desk, "cat")
    entering = asyncio.ensure_future(cat.enter())
    await asyncio.sleep(0)
    ann.send(chat("ann", "e1"), kick("ann", "e2", "cat"))
    await entering
    assert cat.log[0]["kind"] == "system/welcome"
    assert cat.seen == ["e1", "e2"]
    assert cat.log[-1] == ("closed", CloseCode.KICKED)
    again = await Visitor(desk, "cat").enter()
    assert again.log == [("closed", CloseCode.KICKED)]


async def test_who_floods_with_what_is_refused_is_told_so_often_and_closed(
    storage: HeldStorage, desk: Room
) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob", refusals=3).enter()
    ann.send(chat("ann", "e0"))
    bob.send(chat("bob", "e1"), *(chat("ann", f"false {n}") for n in range(10)), chat("bob", "e2"))
    ann.send(chat("ann", "e3"))
    await passes()
    assert ann.seen == ["e0", "e1", "e3"]
    assert bob.seen == ["e0", "e1"]
    assert [error["id"] for error in bob.errors] == [f"false {n}" for n in range(4)]
    assert bob.log[-1] == ("closed", CloseCode.FLOODING)
    bob.leave()
    await passes()
    assert isinstance(storage.events()[-1], Left)


async def test_who_floods_is_not_heard_while_the_commit_of_that_is_under_way(
    storage: HeldStorage, desk: Room
) -> None:
    bob = await Visitor(desk, "bob", refusals=1).enter()
    storage.is_held = True
    bob.send(b"one", b"two", b"three")
    await passes()
    bob.send(chat("bob", "e1"))
    desk.receive_binary(bob, b"four")
    storage.release()
    await passes()
    assert len(bob.errors) == 2
    assert bob.log[-1] == ("closed", CloseCode.FLOODING)
    assert storage.batches() == []


async def test_a_protocol_error_is_told_in_our_words_and_closed(storage: HeldStorage, desk: Room) -> None:
    bob = await Visitor(desk, "bob").enter()
    bob.send(chat("bob", "e1"))
    desk.receive_error(bob, 1002, "a client's frames are masked")
    bob.send(chat("bob", "e2"))
    desk.receive_error(bob, 1002, "and once more")
    await passes()
    assert bob.seen == ["e1"]
    assert [(error["error"], error["message"]) for error in bob.errors] == [
        ("malformed", "a client's frames are masked")
    ]
    assert bob.log[-1] == ("closed", 1002)
    assert storage.batches() == [("e1",)]


async def test_who_left_gets_nothing_more(desk: Room) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    bob.send(chat("bob", "e1"))
    bob.leave()
    bob.leave()
    ann.send(chat("ann", "e2"))
    await passes()
    assert bob.seen == []
    assert ann.seen == ["e1", "e2"]
    left = [one for one in ann.log if one["kind"] == "system/presence" and one["payload"]["event"] == "leave"]
    assert len(left) == 1


# What is refused.


async def test_what_is_refused_holds_up_nobody_and_the_rest_keeps_its_order(desk: Room) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    bob.send(
        chat("bob", "e1"),
        chat("ann", "as another"),
        chat("bob", "e2"),
        b"nonsense",
        envelope("bob", "e3", "mcp/request"),
        chat("bob", "e1"),
        chat("bob", "e4", ts="2026-01-01T00:00:00+02:00"),  # one that needs a closer look
        chat("bob", "gw-abab-1.0"),
        envelope("bob", "e5", payload={"text": "x" * (2 << 20)}),
        chat("bob", "e6"),
    )
    ann.send(chat("ann", "e7"))
    await passes()
    assert ann.seen == bob.seen == ["e1", "e2", "e4", "e6", "e7"]
    assert [(error["error"], error["id"]) for error in bob.errors] == [
        ("wrong_sender", "as another"),
        ("malformed", None),
        ("capability_violation", "e3"),
        ("duplicate_id", "e1"),
        ("reserved_id", "gw-abab-1.0"),
        ("too_large", "e5"),
    ]
    assert ann.errors == []
    assert (desk.counters.received, desk.counters.refused) == (11, 6)


@pytest.mark.parametrize(
    "unusual",
    [
        chat("bob", "e1", ts="2026-01-01T00:00:00+02:00"),
        chat("bob", "e1", ts="2026-01-01T00:00:00.12345678Z"),
        chat("bob", "e1", to=[f"p{number}" for number in range(20)]),
        chat("bob", "e1", context=""),
        chat("bob", "e1").replace(b'"e1"', b'"\\u00651"'),
        chat("bob", "e1").replace(b"mew/v", b"mew\\/v"),
        b"  " + chat("bob", "e1") + b"\n",
    ],
)
async def test_an_unusual_envelope_is_delivered_as_it_came_and_holds_up_nobody(
    storage: HeldStorage, desk: Room, unusual: bytes
) -> None:
    bob = await Visitor(desk, "bob").enter()
    bob.send(chat("bob", "e0"), unusual, chat("bob", "e2"))
    await passes()
    assert bob.seen == ["e0", "e1", "e2"]
    raws = [raw for event in storage.events() if isinstance(event, Sent) for raw in event.envelopes.raws]
    assert raws[1] == unusual


@pytest.mark.parametrize("kind", ["system/welcome", "system/join", "system/", "system/anything/else"])
async def test_the_gateways_kinds_are_its_own(desk: Room, kind: str) -> None:
    ann = await Visitor(desk, "ann").enter()
    ann.send(envelope("ann", "e1", kind), chat("ann", "e2"))
    await passes()
    assert ann.seen == ["e2"]
    assert [(error["error"], error["attempted_kind"]) for error in ann.errors] == [("reserved_kind", kind)]
    outcome = await desk.post(ANN, envelope("ann", "e3", kind))
    assert isinstance(outcome, RefusalDetails)
    assert outcome.refusal == "reserved_kind"


async def test_a_refused_post_is_reported_on_the_connections_of_its_sender_alone(desk: Room) -> None:
    ann, again = await Visitor(desk, "ann").enter(), await Visitor(desk, "ann").enter()
    bob = await Visitor(desk, "bob").enter()
    await desk.post(ANN, envelope("ann", "e1", "system/register"))
    await passes()
    assert [error["message"] for error in (*ann.errors, *again.errors)] == [
        "system/register is reserved for the gateway"
    ] * 2
    assert not bob.errors


@pytest.mark.parametrize("kind", ["system", "systems/x", "System/welcome", "x/system/y"])
async def test_other_kinds_are_not(desk: Room, kind: str) -> None:
    ann = await Visitor(desk, "ann").enter()
    ann.send(envelope("ann", "e1", kind))
    await passes()
    assert ann.seen == ["e1"]


async def test_the_rest_of_a_read_is_refused_by_the_rate_limit_with_how_long_to_wait(
    storage: HeldStorage, desk: Room
) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob", burst=3).enter()
    bob.send(*(chat("bob", f"e{n}") for n in range(5)))
    bob.send(chat("bob", "e5"), b"nonsense")
    ann.send(chat("ann", "e6"))
    await passes()
    assert ann.seen == bob.seen == ["e0", "e1", "e2", "e6"]
    assert [(error["error"], error["id"]) for error in bob.errors] == [
        ("rate_limited", "e3"),
        ("rate_limited", "e4"),
        ("rate_limited", "e5"),
        ("rate_limited", None),
    ]
    assert all(error["retry_after_s"] > 0 for error in bob.errors)
    assert [error.get("attempted_kind") for error in bob.errors] == ["chat", "chat", "chat", None]
    assert not any(isinstance(event, Violated) for event in storage.events()), "those are not worth an entry"
    assert (desk.counters.received, desk.counters.refused) == (8, 4)


async def test_a_lenient_connection_may_use_its_own_ids_again_and_nobody_elses(desk: Room) -> None:
    ann, old = await Visitor(desk, "ann").enter(), await Visitor(desk, "cat", lenient=True).enter()
    new = await Visitor(desk, "cat").enter()
    old.send(chat("cat", "x"), chat("cat", "x"))
    ann.send(chat("ann", "y"))
    old.send(chat("cat", "x"), chat("cat", "y"), chat("cat", "z"))
    ann.send(chat("ann", "x"))
    new.send(chat("cat", "x"))
    await passes()
    assert ann.seen == ["x", "x", "y", "x", "z"]
    for one, refused in ((ann, "x"), (old, "y"), (new, "x")):
        assert [(error["error"], error["id"]) for error in one.errors] == [("duplicate_id", refused)]


async def test_a_lenient_connection_has_a_rate_limit_too(desk: Room) -> None:
    old = await Visitor(desk, "cat", lenient=True, burst=2).enter()
    old.send(*(chat("cat", "again") for _ in range(4)))
    await passes()
    assert old.seen == ["again", "again"]
    assert [error["error"] for error in old.errors] == ["rate_limited"] * 2


async def test_what_is_posted_is_judged_in_its_turn_by_the_same_rules(
    storage: HeldStorage, desk: Room
) -> None:
    ann = await Visitor(desk, "ann").enter()
    posts = [
        desk.post(BOB, chat("bob", "e1")),
        desk.post(BOB, chat("bob", "e1")),
        desk.post(BOB, chat("ann", "e2")),
        desk.post(BOB, envelope("bob", "e3", "mcp/request")),
        desk.post(BOB, b"nonsense"),
        desk.post(ANN, envelope("ann", "e4", "space/invite", {"participant_id": "dan"})),
        desk.post(BOB, envelope("bob", "e5", "stream/request", {"direction": "upload"}, to=["gateway"])),
    ]
    first, *refused, invited, opened = await asyncio.gather(*posts)
    assert isinstance(first, AcceptedPost)
    assert [one.refusal for one in refused if isinstance(one, RefusalDetails)] == [
        "duplicate_id",
        "wrong_sender",
        "capability_violation",
        "malformed",
    ]
    assert isinstance(invited, AcceptedPost)
    assert invited.reply is not None
    assert desk.space.state.invited.keys() == {"dan"}
    assert invited.reply.content["token"]
    assert isinstance(opened, AcceptedPost)
    assert opened.reply is not None
    assert opened.reply.kind == "stream/open"
    assert ann.seen == ["e1", "e4", "e5"]
    assert str(ann.log).count(invited.reply.content["token"]) == 1  # in the acknowledgement, for ann alone


# Stream frames.


async def open_stream(visitor: Visitor) -> str:
    visitor.send(envelope(visitor.who, "open", "stream/request", {"direction": "upload"}, to=["gateway"]))
    await passes()
    (opened,) = [one for one in visitor.log if isinstance(one, dict) and one["kind"] == "stream/open"]
    return str(opened["payload"]["stream_id"])


async def test_frames_keep_their_order_with_the_envelopes_around_them(desk: Room) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob").enter()
    stream = await open_stream(bob)
    ann.log.clear()
    bob.log.clear()
    bob.send(chat("bob", "e1"), f"#{stream}#1".encode(), chat("bob", "e2"))
    desk.receive_binary(bob, f"#{stream}#2".encode())
    bob.send(chat("bob", "e3"))
    await passes()
    told = [one if isinstance(one, bytes) else one["id"] for one in ann.log]
    assert told == ["e1", f"#{stream}#1".encode(), "e2", f"#{stream}#2".encode(), "e3"]
    assert bob.seen == ["e1", "e2", "e3"]
    assert not any(isinstance(one, bytes) for one in bob.log), "whoever writes need not read it"
    assert desk.counters.frames == 2


async def test_frames_are_not_counted_by_the_rate_limit_of_envelopes(desk: Room) -> None:
    ann, bob = await Visitor(desk, "ann").enter(), await Visitor(desk, "bob", burst=4).enter()
    stream = await open_stream(bob)
    frame = f"#{stream}#x".encode()
    ann.log.clear()
    bob.send(*[frame] * 10, chat("bob", "e1"), *[frame] * 10, chat("bob", "e2"))
    bob.send(*[frame] * 10, chat("bob", "e3"), chat("bob", "e4"), frame)
    await passes()
    assert ann.log.count(frame) == 31
    assert ann.seen == ["e1", "e2", "e3"]
    assert [(error["error"], error["id"]) for error in bob.errors] == [("rate_limited", "e4")]


@pytest.mark.parametrize(
    ("data", "error"), [(b"neither envelope nor frame", "malformed"), (b"#none#frame", "unknown_stream")]
)
async def test_a_binary_message_that_goes_nowhere_is_refused(desk: Room, data: bytes, error: str) -> None:
    bob = await Visitor(desk, "bob").enter()
    desk.receive_binary(bob, data)
    await passes()
    assert [one["error"] for one in bob.errors] == [error]


async def test_a_lenient_writer_hears_itself(desk: Room) -> None:
    old = await Visitor(desk, "bob", lenient=True).enter()
    other = await Visitor(desk, "bob").enter()
    stream = await open_stream(old)
    old.send(f"#{stream}#1".encode())
    await passes()
    assert old.log[-1] == f"#{stream}#1".encode()
    assert not any(isinstance(one, bytes) for one in other.log)


# Who is known, and by what rules.


async def test_what_an_authenticator_said_last_counts(storage: HeldStorage, desk: Room) -> None:
    zoe, held = ParticipantId("zoe"), capabilities(["chat"])
    desk.identify(zoe, held)
    await passes()
    desk.identify(zoe, capabilities(["mcp/*"]))
    desk.identify(zoe, held)
    await passes()
    assert desk.space.state.identities[zoe] == held
    known = [event for event in storage.events() if isinstance(event, Identified)]
    desk.identify(zoe, held)
    await passes()
    assert [event for event in storage.events() if isinstance(event, Identified)] == known, "no news"


async def test_new_limits_hold_from_the_next_message_on(desk: Room) -> None:
    ann = await Visitor(desk, "ann").enter()
    rules = desk.space.state.rules
    desk.configure(rules, Limits(envelope_bytes=1024, history_envelopes=1))
    ann.send(envelope("ann", "e1", payload={"text": "x" * 1024}), chat("ann", "e2"), chat("ann", "e3"))
    await passes()
    assert ann.seen == ["e2", "e3"]
    assert [error["error"] for error in ann.errors] == ["too_large"]
    assert len(desk.history) == 2, "one batch"


# What is told beside.


async def test_who_waits_for_news_is_woken_by_what_is_delivered_and_by_nothing_else(desk: Room) -> None:
    ann = await Visitor(desk, "ann").enter()
    waiting = asyncio.ensure_future(desk.news())
    await passes()
    ann.send(chat("bob", "of another"), b"#none#frame")
    await passes()
    assert len(ann.errors) == 2
    assert not waiting.done()
    ann.send(chat("ann", "e1"))
    await waiting
    again = asyncio.ensure_future(desk.news())
    await passes()
    assert not again.done()
    desk.begin_shutdown()
    await again
    await desk.news()


async def test_a_trace_tells_of_each_envelope_once(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace.jsonl")

    def open_room(rules: Rules, limits: Limits, turns: Turns, world: RoomEnvironment) -> Room:
        return Room(rules, limits, turns, world, trace)

    file = tmp_path / "space.yaml"
    file.write_text(
        "space: {id: desk}\nparticipants: {ann: {tokens: [t], capabilities: [chat, capability/*]}}\n"
    )
    async with Node(load_config(file, {}), "ws://here", MemoryStorage(), open_room) as node:
        desk = node.rooms["desk"]
        ann = await Visitor(desk, "ann", burst=5).enter()
        ann.send(
            chat("ann", "e1"),
            envelope("ann", "e2", "mcp/request"),
            grant("ann", "e3", "ann", "chat"),
            chat("ann", "e1"),
            chat("ann", "e4"),
            chat("ann", "e5"),
        )
        await passes()
    trace.close()
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_bytes().splitlines()]
    told = [(line["event"], line["id"]) for line in lines if line["sender"] == "ann"]
    assert [one for event, one in told if event == "received"] == ["e1", "e2", "e3", "e1", "e4", "e5"]
    assert [one for event, one in told if event == "refused"] == ["e2", "e1", "e5"]
    assert [one for event, one in told if event == "delivered"] == ["e1", "e3", "e4"]


async def test_nothing_is_written_behind_the_goodbye_to_one_who_is_on_the_way_in(
    desk: Room, node: Node
) -> None:
    bob = Visitor(desk, "bob")
    entering = asyncio.ensure_future(bob.enter())
    await asyncio.sleep(0)
    node.begin_shutdown(CloseCode.SHUTDOWN, "going")
    await entering
    assert bob.log == [("closed", CloseCode.SHUTDOWN)]
