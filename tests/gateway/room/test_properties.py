"""Whatever happens in a room, and however long its commits take: each gets what is for it, in one order, once."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.room.rooms import (
    Clock,
    HeldStorage,
    Visitor,
    chat,
    envelope,
    grant,
    kick,
    node_with,
    passes,
)

from mew.gateway.room.room import Room
from mew.protocol.codec import encode
from mew.protocol.envelope import ParticipantId
from mew.space import ConnectionId, Decision, Deliver, Disconnect, Event, Left, Reply, Space
from mew.space.state import StreamId

WHO = ("ann", "bob", "cat")


class Play:
    """A room and those who are in it."""

    def __init__(self, room: Room, storage: HeldStorage, clock: Clock, burst: float) -> None:
        self.room = room
        self.storage = storage
        self.clock = clock
        self.burst = burst
        self.visitors: list[Visitor] = []
        self.gone: set[ConnectionId] = set()
        self.sent: Counter[tuple[ConnectionId, str]] = Counter()
        self.under_way: list[asyncio.Future[Any]] = []

    def newest(self, who: str) -> Visitor | None:
        here = [one for one in self.visitors if one.who == who and not self.is_over(one)]
        return here[-1] if here else None

    def is_over(self, visitor: Visitor) -> bool:
        return visitor.id in self.gone or visitor.closed is not None

    def say(self, who: str, *said: tuple[str, bytes]) -> None:
        """Over its newest connection, if it may speak already."""
        visitor = self.newest(who)
        if visitor is not None and visitor.log:
            self.sent.update((visitor.id, name) for name, _ in said if name)
            visitor.send(*(text for _, text in said))


Act = Callable[[Play, str], None]


def say(who: str, to: list[str], count: int) -> Act:
    def act(play: Play, name: str) -> None:
        names = [f"{name}.{n}" for n in range(count)]
        play.say(who, *((one, chat(who, one, **({"to": to} if to else {}))) for one in names))

    return act


def say_twice(who: str) -> Act:
    return lambda play, name: play.say(who, (name, chat(who, name)), (name, chat(who, name)))


def say_in_anothers_name(who: str) -> Act:
    return lambda play, name: play.say(who, (name, chat("zoe", name)), (f"{name}!", chat(who, f"{name}!")))


def ask(who: str, kind: str) -> Act:
    return lambda play, name: play.say(who, (name, envelope(who, name, kind, to=["ann"])))


def open_stream(who: str) -> Act:
    asked = {"direction": "upload"}
    return lambda play, name: play.say(
        who, (name, envelope(who, name, "stream/request", asked, to=["gateway"]))
    )


def write(who: str, which: int) -> Act:
    def act(play: Play, name: str) -> None:
        streams = [*play.room.space.state.streams] or [StreamId("none")]
        play.say(who, ("", f"#{streams[which % len(streams)]}#{name}".encode()))

    return act


def give(seconds: int | None) -> Act:
    fields = {} if seconds is None else {"ttl_seconds": seconds}
    return lambda play, name: play.say("ann", (name, grant("ann", name, "bob", "foo", **fields)))


def silence(kind: str, whom: str) -> Act:
    return lambda play, name: play.say(
        "ann", (name, envelope("ann", name, kind, {"timeout_seconds": 2}, to=[whom]))
    )


def remove(whom: str) -> Act:
    return lambda play, name: play.say("ann", (name, kick("ann", name, whom)))


def join(who: str, lenient: bool, after: int | None) -> Act:  # noqa: FBT001
    def act(play: Play, name: str) -> None:
        shown = [one.id for one in play.room.history]
        known = None if after is None or not shown else shown[after % len(shown)]
        visitor = Visitor(play.room, who, lenient=lenient, after=known, burst=play.burst)
        play.visitors.append(visitor)
        play.under_way.append(asyncio.ensure_future(visitor.enter()))

    return act


def leave(who: str) -> Act:
    def act(play: Play, name: str) -> None:
        visitor = play.newest(who)
        if visitor is not None:
            play.gone.add(visitor.id)
            visitor.leave()

    return act


def post(who: str) -> Act:
    def act(play: Play, name: str) -> None:
        play.under_way.append(asyncio.ensure_future(play.room.post(ParticipantId(who), chat(who, name))))

    return act


def wait(seconds: int) -> Act:
    return lambda play, name: play.clock.advance(seconds)


def hold() -> Act:
    def act(play: Play, name: str) -> None:
        play.storage.is_held = True

    return act


def commit() -> Act:
    return lambda play, name: play.storage.release()


names = st.sampled_from(WHO)
saying = st.builds(say, names, st.sampled_from([[], [], ["bob"], ["ann", "cat"]]), st.integers(1, 3))
silencing = st.sampled_from(["participant/pause", "participant/resume", "participant/shutdown"])
acts = st.one_of(
    saying,
    saying,
    saying,
    st.builds(say_twice, names),
    st.builds(say_in_anothers_name, names),
    st.builds(ask, names, st.sampled_from(["mcp/proposal", "mcp/request", "foo", "system/x"])),
    st.builds(open_stream, names),
    st.builds(write, names, st.integers(0, 3)),
    st.builds(give, st.sampled_from([None, 1, 2])),
    st.builds(silence, silencing, st.sampled_from(["bob", "cat"])),
    st.builds(remove, st.sampled_from(["bob", "cat"])),
    st.builds(join, names, st.booleans(), st.none() | st.integers(0, 20)),
    st.builds(leave, names),
    st.builds(post, names),
    st.builds(wait, st.integers(1, 3)),
    st.builds(hold),
    st.builds(commit),
)


async def play_out(folder: Path, script: list[tuple[Act, int]], more: str, burst: float) -> None:
    storage, clock = HeldStorage(), Clock()
    async with node_with(storage, folder, more, clock) as node:
        play = Play(node.rooms["desk"], storage, clock, burst)
        for who in WHO:
            join(who, lenient=False, after=None)(play, "")
        await passes()
        for number, (act, turns) in enumerate(script):
            act(play, f"e{number}")
            await passes(turns)
        storage.release()
        await asyncio.gather(*play.under_way)
        await passes()
        assert node.failed == {}
        check(play)


def check(play: Play) -> None:
    model = Model({visitor.id: visitor.after for visitor in play.visitors})
    for space, entry, decisions in play.storage.log:
        if space == "desk":
            model.happen(entry.event, decisions)
    for visitor in play.visitors:
        got = [one for one in visitor.log if isinstance(one, dict) and one["kind"] != "system/error"]
        due = model.due.get(visitor.id, [])
        if visitor.id in play.gone:
            assert got == due[: len(got)]
        else:
            assert got == due
            assert visitor.closed is None or visitor.log[-1] == ("closed", visitor.closed)
    every_message_is_delivered_or_refused(play)
    replica = Space()
    for space, entry, _ in play.storage.log:
        if space == "desk":
            replica.apply(entry)
    assert replica.state == play.room.space.state


class Model:
    """What each connection is to get, by what was decided: said as simply as it can be."""

    def __init__(self, after: dict[ConnectionId, str | None]) -> None:
        self.due: dict[ConnectionId, list[Any]] = {}
        self._after = after
        self._here: dict[ConnectionId, str] = {}
        self._shown: list[tuple[Any, tuple[str, ...] | None]] = []

    def happen(self, event: Event, decisions: Sequence[Decision]) -> None:
        if isinstance(event, Left):
            self._here.pop(event.connection, None)
        for decision in decisions:
            if isinstance(decision, Deliver):
                only = decision.only or (None,) * len(decision.envelopes)
                for raw, audience in zip(decision.envelopes.raws, only, strict=True):
                    self._deliver(json.loads(raw), audience)
            elif isinstance(decision, Disconnect):
                for connection in decision.connections:
                    self._here.pop(connection, None)
            elif isinstance(decision, Reply):
                self._answer(json.loads(encode(decision.envelope)), decision)

    def _deliver(self, said: Any, only: tuple[str, ...] | None) -> None:
        self._shown.append((said, only))
        for connection, who in self._here.items():
            if only is None or who in only:
                self.due[connection].append(said)

    def _answer(self, told: Any, answer: Reply) -> None:
        if answer.connection is None:
            for connection, who in self._here.items():
                if who == answer.who:
                    self.due[connection].append(told)
        else:
            self._here[answer.connection] = answer.who
            self.due[answer.connection] = [told, *self._missed(self._after[answer.connection], answer.who)]

    def _missed(self, after: str | None, who: str) -> list[Any]:
        if after is None:
            return []
        first = [said["id"] for said, _ in self._shown].index(after) + 1
        return [said for said, only in self._shown[first:] if only is None or who in only]


def every_message_is_delivered_or_refused(play: Play) -> None:
    accepted = Counter(name for ids in play.storage.batches() for name in ids)
    for visitor in play.visitors:
        if play.is_over(visitor):
            continue  # it may not have been heard, and is not told
        refused = Counter(error["id"] for error in visitor.errors)
        for (connection, name), times in play.sent.items():
            if connection == visitor.id:
                assert accepted[name] + refused[name] == times, name


scripts = st.lists(st.tuples(acts, st.sampled_from([0, 0, 1, 2, 6])), max_size=40)
rules = st.sampled_from(["", "delivery: addressed\n"])
bursts = st.sampled_from([1e6, 6])


@given(scripts, rules, bursts)
@settings(max_examples=50, deadline=None)
def test_each_gets_what_is_for_it_in_the_order_of_the_journal_and_everything_is_answered(
    tmp_path_factory: pytest.TempPathFactory, script: list[tuple[Act, int]], more: str, burst: float
) -> None:
    asyncio.run(play_out(tmp_path_factory.mktemp("rooms"), script, more, burst))


@pytest.mark.slow
@given(scripts, rules, bursts)
@settings(max_examples=500, deadline=None)
def test_it_does_however_often_one_tries(
    tmp_path_factory: pytest.TempPathFactory, script: list[tuple[Act, int]], more: str, burst: float
) -> None:
    asyncio.run(play_out(tmp_path_factory.mktemp("rooms"), script, more, burst))
