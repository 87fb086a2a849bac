"""A recording that happens again: the same space, the same envelopes, and nobody in it but who was."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace
from tests.audit.conversation import RULES, SPACE, conversation, shown_by
from tests.gateway.served import Caller
from tests.space.table import Table

from mew.gateway.replayed import OBSERVER, Stage
from mew.gateway.tokens import hash_token
from mew.space import Entry, Sent, Space
from mew.space.state import SpaceState

Open = Callable[..., Awaitable["Theatre"]]


class Theatre:
    """A stage, and those before it."""

    def __init__(self, stage: Stage, session: aiohttp.ClientSession, stack: AsyncExitStack) -> None:
        self.stage = stage
        self._session = session
        self._stack = stack

    @property
    def observer(self) -> Caller:
        return self.caller(OBSERVER, self.stage.token_file.read_text().strip())

    def caller(self, who: str, token: str) -> Caller:
        return Caller(self._session, self.stage.url, who, token)

    async def watch(self, **params: str) -> aiohttp.ClientWebSocketResponse:
        asked, headers = {"space": SPACE, **params}, self.observer.headers
        socket = await self._session.ws_connect(f"{self.stage.url}/ws", params=asked, headers=headers)
        self._stack.push_async_callback(socket.close)
        return socket

    def perform(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.stage.perform(entry)

    async def history(self) -> list[bytes]:
        answer = await self.observer.get(f"/spaces/{SPACE}/envelopes", limit=1000)
        return [compact(one) for one in answer.json["envelopes"]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def opened(past: list[Entry], state: SpaceState | None = None) -> Theatre:
            stage = Stage(SPACE, state or SpaceState(), past, folder=tmp_path, port=0)
            await stack.enter_async_context(stage)
            timeout = aiohttp.ClientTimeout(total=5)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            return Theatre(stage, session, stack)

        yield opened


def compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def expected(table: Table) -> list[bytes]:
    return [compact(json.loads(raw)) for raw in shown_by(table)]


async def received(socket: aiohttp.ClientWebSocketResponse, count: int) -> list[bytes]:
    return [(await socket.receive_str(timeout=5)).encode() for _ in range(count)]


async def test_who_watches_is_shown_to_the_byte_what_everyone_was_shown_then(opened: Open) -> None:
    table = conversation()
    theatre = await opened(table.entries[:1])
    socket = await theatre.watch()
    welcome = json.loads(await socket.receive_str(timeout=5))
    assert welcome["payload"]["you"] == {"id": OBSERVER, "capabilities": []}
    assert welcome["payload"]["space"]["id"] == SPACE
    theatre.perform(table.entries[1:])
    assert await received(socket, len(shown_by(table))) == shown_by(table)


async def test_what_happened_before_is_in_the_history(opened: Open) -> None:
    table = conversation()
    theatre = await opened(table.entries)
    assert await theatre.history() == expected(table)


async def test_who_comes_late_sees_who_is_there_and_gets_the_rest(opened: Open) -> None:
    table = conversation()
    theatre = await opened(table.entries[:8])
    socket = await theatre.watch()
    welcome = json.loads(await socket.receive_str(timeout=5))
    assert [one["id"] for one in welcome["payload"]["participants"]] == ["ann", "bot", "files"]
    rest = shown_by(table, after=8)
    theatre.perform(table.entries[8:])
    assert await received(socket, len(rest)) == rest


async def test_who_comes_back_misses_nothing(opened: Open) -> None:
    table = conversation()
    theatre = await opened(table.entries)
    socket = await theatre.watch(after="chat-1")
    assert json.loads(await socket.receive_str(timeout=5))["payload"]["resumed"] is True
    shown = shown_by(table)
    place = [json.loads(raw)["id"] for raw in shown].index("chat-1") + 1
    assert await received(socket, len(shown) - place) == shown[place:]


async def test_those_who_watch_leave_no_trace(opened: Open) -> None:
    table = conversation()
    theatre = await opened(table.entries[:6])
    for _ in range(3):
        socket = await theatre.watch()
        await socket.receive_str(timeout=5)
        await socket.close()
    socket = await theatre.watch()
    await socket.receive_str(timeout=5)
    theatre.perform(table.entries[6:])
    await received(socket, len(shown_by(table, after=6)))
    assert await theatre.history() == expected(table)


async def test_an_observer_can_send_nothing(opened: Open) -> None:
    table = conversation()
    theatre = await opened(table.entries)
    answer = await theatre.observer.send({"kind": "chat"})
    assert (answer.status, answer.json["error"]) == (403, "not_a_member")
    socket = await theatre.watch()
    await socket.receive_str(timeout=5)
    await socket.send_json({"protocol": "mew/v0.4", "id": "x-1", "from": OBSERVER, "kind": "mcp/response"})
    told = json.loads(await socket.receive_str(timeout=5))
    assert (told["kind"], told["correlation_id"]) == ("system/error", ["x-1"])
    await socket.send_str("#stream-1#data")
    assert json.loads(await socket.receive_str(timeout=5))["payload"]["error"] == "not_a_member"
    assert await theatre.history() == expected(table)


async def test_what_was_for_some_alone_is_shown_to_the_observer(opened: Open) -> None:
    table = conversation(replace(RULES, delivery="addressed"))
    theatre = await opened(table.entries[:1])
    socket = await theatre.watch()
    await socket.receive_str(timeout=5)
    theatre.perform(table.entries[1:])
    assert await received(socket, len(shown_by(table))) == shown_by(table)


def invited_with(token: str, entries: list[Entry]) -> list[Entry]:
    """The same, where whoever was invited got this token."""

    def changed(entry: Entry) -> Entry:
        event = entry.event
        if isinstance(event, Sent) and event.token_hash:
            return replace(entry, event=replace(event, token_hash=hash_token(token)))
        return entry

    return [changed(entry) for entry in entries]


async def test_nobody_of_the_recording_can_come_in(opened: Open) -> None:
    theatre = await opened(invited_with("dans-token", conversation().entries))
    assert (await theatre.caller("dan", "dans-token").messages()).status == 401
    assert (await theatre.caller("ann", "t-ann").messages()).status == 401


async def test_from_a_snapshot_it_goes_on_as_it_did_and_lets_nobody_in(opened: Open) -> None:
    table, place, space = conversation(), 19, Space()
    for entry in invited_with("dans-token", table.entries[:place]):
        space.apply(entry)
    assert space.invited(hash_token("dans-token")) == "dan"
    theatre = await opened([], space.state)
    socket = await theatre.watch()
    await socket.receive_str(timeout=5)
    theatre.perform(table.entries[place:])
    rest = shown_by(table, after=place)
    assert await received(socket, len(rest)) == rest
    assert (await theatre.caller("dan", "dans-token").messages()).status == 401
    assert (await theatre.observer.get(f"/spaces/{SPACE}/envelopes")).json["complete"] is False


async def test_it_is_as_late_as_it_was_then(opened: Open) -> None:
    table = conversation()
    kinds = [entry.event.envelope.kind if isinstance(entry.event, Sent) else "" for entry in table.entries]
    paused, invited = kinds.index("participant/pause"), kinds.index("space/invite")
    theatre = await opened(table.entries[: paused + 1])
    assert await pause_of(theatre, "bot") is not None
    socket = await theatre.watch()
    await socket.receive_str(timeout=5)
    theatre.perform(table.entries[paused + 1 : invited + 1])
    await received(socket, len(shown_by(table, after=paused + 1)[:2]))
    assert await pause_of(theatre, "bot") is None


async def pause_of(theatre: Theatre, who: str) -> Any:
    answer = await theatre.observer.get(f"/spaces/{SPACE}/participants")
    (found,) = [one["paused"] for one in answer.json["participants"] if one["id"] == who]
    return found


async def test_the_token_is_for_the_owner_alone(opened: Open) -> None:
    theatre = await opened(conversation().entries)
    assert theatre.stage.token_file.stat().st_mode & 0o777 == 0o600


async def test_it_is_served_to_this_machine_alone(opened: Open) -> None:
    theatre = await opened(conversation().entries)
    assert theatre.stage.url.startswith("http://127.0.0.1:")
