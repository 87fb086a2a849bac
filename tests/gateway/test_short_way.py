"""What is plain is shown at once where nothing is kept: nobody can tell, but for the time it takes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mew.gateway import plain
from mew.gateway.outbox import Outbox
from mew.gateway.rate import Bucket
from mew.gateway.room import Room
from mew.gateway.settings import Limits
from mew.gateway.websocket import Opcode
from mew.log.memory import MemoryLog
from mew.protocol.capability import Capability
from mew.protocol.envelope import PROTOCOL, Envelope, EnvelopeId, ParticipantId
from mew.protocol.json import encode_json
from mew.space import Connection, Rules
from mew.space.state import StreamId

HELD: Final = {
    "ann": ("*",),
    "bob": ("chat", "stream/*", "mcp/proposal"),
    "cat": ("chat", "mcp/*"),
    "dan": ("chat", "capability/*", "participant/*", "space/kick"),
}
WHO: Final = tuple(HELD)
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
PLACE: Final = r"(?<=\bstream-)\d+|(?<=\bgw-abababab-)\d+"


class Placing(MemoryLog):
    """Counts what took the short way."""

    def __init__(self) -> None:
        super().__init__()
        self.placed = 0

    def place(self, count: int) -> int:
        self.placed += count
        return super().place(count)


class NeverPlacing(MemoryLog):
    @property
    def is_at_rest(self) -> bool:
        return False


class World:
    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        return self.at

    def sends_mail(self) -> bool:
        return False

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        raise AssertionError(f"no mail is sent from here, not to {to}")

    def connection_url(self, space: str) -> str:
        return f"memory://{space}"


class Pipe(asyncio.WriteTransport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def messages(self) -> list[bytes]:
        found, at = [], 0
        while at < len(self.written):
            size, at = self.written[at + 1] & 0x7F, at + 2
            if size == 126:
                size, at = int.from_bytes(self.written[at : at + 2], "big"), at + 2
            found.append(bytes(self.written[at : at + size]))
            at += size
        return found


class Member:
    """One connection, as the room sees it."""

    after: EnvelopeId | None = None

    def __init__(self, who: str, number: int, burst: float, *, lenient: bool = False) -> None:
        self.id = Connection(f"c{number}")
        self.who = ParticipantId(who)
        self.lenient = lenient
        self.closed = False
        self.code = 0
        self.pipe = Pipe()
        self.outbox = Outbox(self.pipe, 1 << 30, lambda: None)
        self.bucket = Bucket(1e-6, burst)  # no more, however long it takes
        self.patience = Bucket(
            1e6, 1e6
        )  # it is tried by what is refused at the door, not at its place in the order
        self.known_by = None if lenient else (self.id, self.who, self.bucket)

    def close(self, code: int, reason: str) -> None:
        self.closed, self.code = True, code
        self.outbox.stop()

    @property
    def seen(self) -> list[Any]:
        """What it was shown: each envelope, and frames as they are."""
        return [message if message[:1] == b"#" else json.loads(message) for message in self.pipe.messages()]


class Play:
    """A room and who is in it."""

    def __init__(self, log: MemoryLog, burst: float, **rules: Any) -> None:
        self.world = World()
        self.burst = burst
        profiles = {ParticipantId(who): tuple(map(Capability.parse, held)) for who, held in HELD.items()}
        self.room = Room(Rules(id="desk", profiles=profiles, **rules), Limits(), log, self.world)
        self.members: list[Member] = []
        self._under_way: list[asyncio.Future[Any]] = []

    async def join(self, who: str, *, lenient: bool = False) -> Member:
        member = Member(who, len(self.members), self.burst, lenient=lenient)
        self.members.append(member)
        self._under_way.append(asyncio.ensure_future(self.room.enter(member)))
        await asyncio.sleep(0)
        return member

    def post(self, who: str, message: bytes) -> None:
        self._under_way.append(asyncio.ensure_future(self.room.inject(ParticipantId(who), message)))

    def leave(self, who: str) -> None:
        if (member := self.newest(who)) is not None:
            member.closed = True
            self.room.depart(member)

    def newest(self, who: str) -> Member | None:
        here = self.room.space.state.connections
        return next(
            (m for m in reversed(self.members) if m.who == who and m.id in here and not m.closed), None
        )

    def hear(self, who: str, *messages: bytes) -> None:
        if (member := self.newest(who)) is not None:
            self.room.inbox.put(member, [(int(Opcode.TEXT), message) for message in messages])

    async def rest(self, turns: int = 10) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        for member in self.members:
            if member.closed and member.id in self.room.guests:
                self.room.depart(member)

    async def over(self) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)


@asynccontextmanager
async def played(log: MemoryLog, burst: float = 1e6, **rules: Any) -> AsyncIterator[Play]:
    """`burst`: so many may each of them say."""
    with patch("secrets.token_hex", lambda size: "ab" * size):
        play = Play(log, burst, **rules)
    running = asyncio.ensure_future(play.room.run())
    for who in WHO:
        await play.join(who)
    await play.rest()
    try:
        yield play
    finally:
        play.room.close()
        async with asyncio.timeout(20):
            with suppress(Broken):
                await running
            await play.over()


class Broken(Exception):
    """A bug."""


def envelope(who: str, envelope_id: str, kind: str = "chat", payload: Any = None, **more: Any) -> bytes:
    fields = {"protocol": PROTOCOL, "id": envelope_id, "from": who, "kind": kind, "payload": payload or {}}
    return encode_json(fields | more)


# The same, whichever way it goes.

Act = tuple[Callable[..., Awaitable[None] | None], tuple[Any, ...]]


def say(play: Play, one: str, who: str, to: list[str]) -> None:
    play.hear(who, envelope(who, one, to=to))


def say_twice(play: Play, one: str, who: str) -> None:
    play.hear(who, envelope(who, one), envelope(who, one))


def ask(play: Play, one: str, who: str, kind: str) -> None:
    play.hear(who, envelope(who, one, kind, to=["ann"]))


def open_stream(play: Play, one: str, who: str) -> None:
    play.hear(who, envelope(who, one, "stream/request", {"direction": "upload"}, to=["gateway"]))


def write(play: Play, one: str, who: str, which: int) -> None:
    streams = [*play.room.space.state.streams] or [StreamId("none")]
    play.hear(who, f"#{streams[which % len(streams)]}#{one}".encode())


def grant(play: Play, one: str, ends_s: int | None) -> None:
    ends = {} if ends_s is None else {"expires_at": play.world.at + timedelta(seconds=ends_s)}
    asked = {"recipient": "bob", "capabilities": [{"kind": "foo"}], **ends}
    play.hear("ann", envelope("ann", one, "capability/grant", asked, to=["bob"]))


def revoke(play: Play, one: str) -> None:
    asked = {"recipient": "bob", "capabilities": [{"kind": "foo"}]}
    play.hear("ann", envelope("ann", one, "capability/revoke", asked, to=["bob"]))


def silence(play: Play, one: str, kind: str, whom: str) -> None:
    play.hear("ann", envelope("ann", one, kind, {"timeout_seconds": 2}, to=[whom]))


def kick(play: Play, one: str) -> None:
    play.hear("ann", envelope("ann", one, "space/kick", {"participant_id": "cat"}))


async def join(play: Play, one: str, who: str, lenient: bool) -> None:  # noqa: FBT001
    await play.join(who, lenient=lenient)


def leave(play: Play, one: str, who: str) -> None:
    play.leave(who)


def post(play: Play, one: str, who: str) -> None:
    play.post(who, envelope(who, one))


def wait(play: Play, one: str, seconds: int) -> None:
    play.world.at += timedelta(seconds=seconds)


async def rest(play: Play, one: str, turns: int) -> None:
    await play.rest(turns)


def act(
    does: Callable[..., Awaitable[None] | None], *given: st.SearchStrategy[Any]
) -> st.SearchStrategy[Act]:
    return st.tuples(st.just(does), st.tuples(*given))


names = st.sampled_from(WHO)
silencing = st.sampled_from(["participant/pause", "participant/resume", "participant/shutdown"])
saying = act(say, names, st.sampled_from([[], [], ["bob"], ["ann", "cat"]]))
acts = st.one_of(
    saying,
    saying,
    saying,
    act(say_twice, names),
    act(ask, names, st.sampled_from(["mcp/proposal", "mcp/request", "foo", "system/x"])),
    act(open_stream, names),
    act(write, names, st.integers(0, 3)),
    act(grant, st.sampled_from([None, 1, 2])),
    act(revoke),
    act(silence, silencing, st.sampled_from(["bob", "cat"])),
    act(kick),
    act(join, names, st.booleans()),
    act(leave, names),
    act(post, names),
    act(wait, st.integers(1, 3)),
    act(rest, st.sampled_from([1, 2, 6])),
)


async def became(log: MemoryLog, script: Sequence[Act], **rules: Any) -> dict[str, Any]:
    async with played(log, **rules) as play:
        for number, (does, given) in enumerate(script):
            doing = does(play, f"e{number}", *given)
            if doing is not None:
                await doing
        await play.rest(30)
        here = [member for member in play.members if member.id in play.room.guests]
        became = {
            "shown": [(one.id, one.sender, one.kind, one.only) for one in play.room.history],
            "state": {**json.loads(play.room.space.state.snapshot()), "seq": None},
            "seen": {member.id: [one for one in member.seen if not is_error(one)] for member in here},
            "errors": {member.id: sorted(map(error, filter(is_error, member.seen))) for member in here},
            "closed": {member.id: member.code for member in play.members},
            # not to how many: who leaves at once with it may have it still, or no longer
            "counts": [getattr(play.room.counts, name) for name in ("received", "refused", "frames")],
        }
        return {name: without_places(value) for name, value in became.items()}


def without_places(value: Any) -> str:
    """As text, each place in the order but for its number.

    A repetition is refused at the door once the first has been shown and at its place in the order before
    that: it takes up a place or none.
    """
    text = encode_json(value).decode()
    numbers = sorted({int(number) for number in re.findall(PLACE, text)})
    return re.sub(PLACE, lambda found: f"place {numbers.index(int(found[0]))}", text)


def is_error(one: Any) -> bool:
    return isinstance(one, dict) and one["kind"] == "system/error"


def error(one: Any) -> str:
    """Its own id and time are its own, and how long one has to wait."""
    told = {name: value for name, value in one["payload"].items() if name not in ("message", "retry_after_s")}
    return json.dumps([told, one.get("correlation_id")], sort_keys=True)


@given(
    script=st.lists(acts, max_size=40),
    delivery=st.sampled_from(["everyone", "addressed"]),
    announced=st.booleans(),
    burst=st.sampled_from([1e6, 6]),
)
@example(
    script=[(say_twice, ("bob",)), (rest, (1,)), (say_twice, ("bob",)), (open_stream, ("bob",))],
    delivery="everyone",
    announced=False,
    burst=1e6,
)
@settings(max_examples=60, deadline=None)
def test_whichever_way_it_goes_the_same_is_shown_to_the_same_in_the_same_order(
    script: list[Act],
    delivery: str,
    announced: bool,  # noqa: FBT001
    burst: float,
) -> None:
    rules = {"delivery": delivery, "announce_violations": announced, "burst": burst}
    short = asyncio.run(became(Placing(), script, **rules))
    whole = asyncio.run(became(NeverPlacing(), script, **rules))
    for name in whole:
        assert short[name] == whole[name], name


# What the short way is taken for, and what not.


async def placed(*messages: bytes, prepare: Callable[[Play], None] | None = None) -> int:
    log = Placing()
    async with played(log) as play:
        play.hear("ann", envelope("ann", "first"))  # from here on her chats need no second look
        await play.rest()
        before = log.placed
        if prepare is not None:
            prepare(play)
            await play.rest()
        play.hear("ann", *messages)
        await play.rest()
        return log.placed - before


async def test_what_is_plain_takes_it() -> None:
    assert await placed(envelope("ann", "e1"), envelope("ann", "e2", to=["bob"])) == 2


@pytest.mark.parametrize(
    "message",
    [
        envelope("ann", "e1", ts="2026-01-01T00:00:00+02:00"),
        envelope("ann", "e1", ts="2026-01-01T00:00:00.12345678Z"),
        envelope("ann", "e1", to=[f"p{number}" for number in range(20)]),
        envelope("ann", "e1", context=""),
        envelope("ann", "e1").replace(b'"e1"', b'"\\u0065"'),
        envelope("ann", "e1").replace(b"mew/v", b"mew\\/v"),
    ],
)
async def test_what_c_leaves_to_python_takes_it_too_and_holds_up_nobody(message: bytes) -> None:
    assert await placed(message, envelope("ann", "e2"), envelope("ann", "e3")) == 3


async def test_a_grant_that_ends_later_keeps_nobody_from_it() -> None:
    asked = {"recipient": "bob", "capabilities": [{"kind": "foo"}], "expires_at": START + timedelta(hours=1)}

    def prepare(play: Play) -> None:
        play.hear(
            "ann", envelope("ann", "g", "capability/grant", asked, to=["bob"]), envelope("ann", "second")
        )

    assert await placed(envelope("ann", "e1"), prepare=prepare) == 1


@pytest.mark.parametrize(
    "message",
    [
        envelope("ann", "first"),
        envelope("ann", "gw-abababab-1.0"),
        envelope("ann", "e1", "mcp/proposal"),
        envelope("ann", "e1", "space/kick", {"participant_id": "cat"}),
    ],
    ids=[
        "an id that was used",
        "an id of the gateway's",
        "a kind that was not seen",
        "what changes the space",
    ],
)
async def test_what_is_not_plain_does_not_take_it(message: bytes) -> None:
    assert await placed(message) == 0


async def test_nothing_takes_it_past_what_is_on_its_way() -> None:
    kick = envelope("ann", "k", "space/kick", {"participant_id": "cat"})
    assert await placed(envelope("ann", "e1"), kick, envelope("ann", "e2")) == 1


# What is told of it.


async def test_who_waits_for_news_is_woken_by_what_is_shown_and_by_nothing_else() -> None:
    async with played(Placing()) as play:
        woken = 0

        async def wait() -> None:
            nonlocal woken
            while True:
                await play.room.news.wait()
                woken += 1

        waiting = asyncio.ensure_future(wait())
        await play.rest()
        play.hear("ann", envelope("bob", "of another"))
        await play.rest()
        play.hear("ann", b"#none#frame")
        await play.rest()
        assert woken == 0
        play.hear("ann", envelope("ann", "e1"), envelope("ann", "e2"))
        await play.rest()
        assert woken == 1
        waiting.cancel()


@pytest.mark.skipif(plain.plain_run is None, reason="there is no compiled part")
async def test_a_bug_met_in_a_run_stops_the_space() -> None:
    async with played(Placing()) as play:
        with patch.object(plain, "plain_run", side_effect=Broken()):
            play.hear("ann", envelope("ann", "e1"))
            await play.rest()
        assert play.room.news.is_set(), "it has closed"


async def test_a_bug_met_while_it_is_sent_stops_the_space() -> None:
    log = Placing()
    async with played(log) as play:
        play.hear("ann", envelope("ann", "e1"))
        await play.rest()
        with patch.object(play.room._outboxes, "flush", side_effect=Broken()):
            play.hear("ann", envelope("ann", "e2"))
            await play.rest()
        assert log.placed == 1
        assert play.room.news.is_set(), "it has closed"
