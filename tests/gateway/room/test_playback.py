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
from tests.audit.kept import record_of
from tests.gateway.served import Caller
from tests.space.table import Table

from mew.gateway.auth.tokens import hash_token
from mew.gateway.room.playback import OBSERVER, Playback
from mew.journal.record import Record
from mew.space import Entry, Sent, Space
from mew.space.state import SpaceState

Open = Callable[..., Awaitable["Viewing"]]


class Viewing:
    """A recording that is played, and those who watch."""

    def __init__(self, playback: Playback, session: aiohttp.ClientSession, stack: AsyncExitStack) -> None:
        self.playback = playback
        self._session = session
        self._stack = stack

    @property
    def observer(self) -> Caller:
        return self.caller(OBSERVER, self.playback.token_file.read_text().strip())

    def caller(self, who: str, token: str) -> Caller:
        return Caller(self._session, self.playback.url, who, token)

    async def watch(self, **params: str) -> aiohttp.ClientWebSocketResponse:
        asked, headers = {"space": SPACE, **params}, self.observer.headers
        socket = await self._session.ws_connect(f"{self.playback.url}/ws", params=asked, headers=headers)
        self._stack.push_async_callback(socket.close)
        return socket

    def perform(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.playback.perform(entry)

    async def history(self) -> list[bytes]:
        answer = await self.observer.get(f"/spaces/{SPACE}/envelopes", limit=1000)
        return [compact(one) for one in answer.json["envelopes"]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def opened(past: list[Record], state: SpaceState | None = None) -> Viewing:
            playback = Playback(SPACE, state or SpaceState(), past, folder=tmp_path, port=0)
            await stack.enter_async_context(playback)
            timeout = aiohttp.ClientTimeout(total=5)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            return Viewing(playback, session, stack)

        yield opened


def records(table: Table, count: int | None = None) -> list[Record]:
    """What a journal has of the first entries of a table, or of all."""
    return [record_of(*one) for one in zip(table.entries, table.decided, strict=True)][:count]


def compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def expected(table: Table) -> list[bytes]:
    return [compact(json.loads(raw)) for raw in shown_by(table)]


async def received(socket: aiohttp.ClientWebSocketResponse, count: int) -> list[bytes]:
    return [(await socket.receive_str(timeout=5)).encode() for _ in range(count)]


async def test_who_watches_is_shown_to_the_byte_what_everyone_was_shown_then(opened: Open) -> None:
    table = conversation()
    viewing = await opened(records(table, 1))
    socket = await viewing.watch()
    welcome = json.loads(await socket.receive_str(timeout=5))
    assert welcome["payload"]["you"] == {"id": OBSERVER, "capabilities": []}
    assert welcome["payload"]["space"]["id"] == SPACE
    viewing.perform(table.entries[1:])
    assert await received(socket, len(shown_by(table))) == shown_by(table)


async def test_what_happened_before_is_in_the_history(opened: Open) -> None:
    table = conversation()
    viewing = await opened(records(table))
    assert await viewing.history() == expected(table)


async def test_who_comes_late_sees_who_is_there_and_gets_the_rest(opened: Open) -> None:
    table = conversation()
    viewing = await opened(records(table, 8))
    socket = await viewing.watch()
    welcome = json.loads(await socket.receive_str(timeout=5))
    assert [one["id"] for one in welcome["payload"]["participants"]] == ["ann", "bot", "files"]
    rest = shown_by(table, after=8)
    viewing.perform(table.entries[8:])
    assert await received(socket, len(rest)) == rest


async def test_who_comes_back_misses_nothing(opened: Open) -> None:
    table = conversation()
    viewing = await opened(records(table))
    socket = await viewing.watch(after="chat-1")
    assert json.loads(await socket.receive_str(timeout=5))["payload"]["resumed"] is True
    shown = shown_by(table)
    place = [json.loads(raw)["id"] for raw in shown].index("chat-1") + 1
    assert await received(socket, len(shown) - place) == shown[place:]


async def test_those_who_watch_leave_no_trace(opened: Open) -> None:
    table = conversation()
    viewing = await opened(records(table, 6))
    for _ in range(3):
        socket = await viewing.watch()
        await socket.receive_str(timeout=5)
        await socket.close()
    socket = await viewing.watch()
    await socket.receive_str(timeout=5)
    viewing.perform(table.entries[6:])
    await received(socket, len(shown_by(table, after=6)))
    assert await viewing.history() == expected(table)


async def test_an_observer_can_send_nothing(opened: Open) -> None:
    table = conversation()
    viewing = await opened(records(table))
    answer = await viewing.observer.send({"kind": "chat"})
    assert (answer.status, answer.json["error"]) == (403, "not_a_member")
    socket = await viewing.watch()
    await socket.receive_str(timeout=5)
    await socket.send_json({"protocol": "mew/v0.4", "id": "x-1", "from": OBSERVER, "kind": "mcp/response"})
    told = json.loads(await socket.receive_str(timeout=5))
    assert (told["kind"], told["correlation_id"]) == ("system/error", ["x-1"])
    await socket.send_str("#stream-1#data")
    assert json.loads(await socket.receive_str(timeout=5))["payload"]["error"] == "not_a_member"
    assert await viewing.history() == expected(table)


async def test_what_was_for_some_alone_is_shown_to_the_observer(opened: Open) -> None:
    table = conversation(replace(RULES, delivery="addressed"))
    viewing = await opened(records(table, 1))
    socket = await viewing.watch()
    await socket.receive_str(timeout=5)
    viewing.perform(table.entries[1:])
    assert await received(socket, len(shown_by(table))) == shown_by(table)


def invited_with(token: str, entry: Entry) -> Entry:
    """The same, but that whoever was invited got this token."""
    event = entry.event
    if isinstance(event, Sent) and event.token_hash:
        return replace(entry, event=replace(event, token_hash=hash_token(token)))
    return entry


async def test_nobody_of_the_recording_can_come_in(opened: Open) -> None:
    viewing = await opened(
        [
            replace(record, entry=invited_with("dans-token", record.entry))
            for record in records(conversation())
        ]
    )
    assert (await viewing.caller("dan", "dans-token").messages()).status == 401
    assert (await viewing.caller("ann", "t-ann").messages()).status == 401


async def test_from_a_snapshot_it_goes_on_as_it_did_and_lets_nobody_in(opened: Open) -> None:
    table, space = conversation(), Space()
    place = 1 + next(n for n, entry in enumerate(table.entries) if kind_of(entry) == "space/invite")
    for entry in table.entries[:place]:
        space.apply(invited_with("dans-token", entry))
    assert space.invited(hash_token("dans-token")) == "dan"
    viewing = await opened([], space.state)
    socket = await viewing.watch()
    await socket.receive_str(timeout=5)
    viewing.perform(table.entries[place:])
    rest = shown_by(table, after=table.entries[place - 1].last)
    assert await received(socket, len(rest)) == rest
    assert (await viewing.caller("dan", "dans-token").messages()).status == 401
    assert (await viewing.observer.get(f"/spaces/{SPACE}/envelopes")).json["complete"] is False


async def test_it_is_as_late_as_it_was_then(opened: Open) -> None:
    table = conversation()
    kinds = list(map(kind_of, table.entries))
    paused, invited = kinds.index("participant/pause"), kinds.index("space/invite")
    viewing = await opened(records(table, paused + 1))
    assert await pause_of(viewing, "bot") is not None
    socket = await viewing.watch()
    await socket.receive_str(timeout=5)
    viewing.perform(table.entries[paused + 1 : invited + 1])
    await received(socket, 2)
    assert await pause_of(viewing, "bot") is None


def kind_of(entry: Entry) -> str:
    return entry.event.envelopes.kinds[0] if isinstance(entry.event, Sent) else ""


async def pause_of(viewing: Viewing, who: str) -> Any:
    answer = await viewing.observer.get(f"/spaces/{SPACE}/participants")
    (found,) = [one["paused"] for one in answer.json["participants"] if one["id"] == who]
    return found


async def test_the_token_is_for_the_owner_alone(opened: Open) -> None:
    viewing = await opened(records(conversation()))
    assert viewing.playback.token_file.stat().st_mode & 0o777 == 0o600


async def test_it_is_served_to_this_machine_alone(opened: Open) -> None:
    viewing = await opened(records(conversation()))
    assert viewing.playback.url.startswith("http://127.0.0.1:")
