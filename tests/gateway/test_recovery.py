"""A gateway that starts again: the same space, the same history, and what became of those who were connected."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.served import SPACE_YAML, Served
from tests.space.table import START, Table, capabilities

from mew.gateway.config import ConfigError, load_config
from mew.gateway.recovery import Milestones, record_of, recover
from mew.gateway.server import Gateway
from mew.gateway.settings import Limits
from mew.log.base import LogUnavailable, Mark, Past
from mew.log.memory import MemoryLog
from mew.log.sqlite import SqliteLog
from mew.protocol.envelope import ParticipantId
from mew.space import Deliver, Rules

Start = Callable[..., Awaitable[Served]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start a gateway with its file and journal in this folder."""
    async with AsyncExitStack() as stack:

        async def start(folder: Path, text: str = SPACE_YAML, **options: Any) -> Served:
            file = folder / "space.yaml"
            file.write_text(text)
            timeout = aiohttp.ClientTimeout(total=5)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            running = await stack.enter_async_context(AsyncExitStack())
            gateway = await running.enter_async_context(Gateway(load_config(file, {}), {}, **options))
            return Served(gateway, session, running.aclose)

        yield start


@pytest.fixture
def crashed(tmp_path: Path) -> Callable[[], Path]:
    """What is left of a gateway that is killed now, in a folder to start another in."""

    def crash() -> Path:
        (tmp_path / "crashed").mkdir()
        shutil.copytree(tmp_path / ".mew", tmp_path / "crashed" / ".mew")
        return tmp_path / "crashed"

    return crash


async def ids(served: Served, who: str = "ann") -> list[str]:
    answer = await served.caller(who).get("/spaces/demo/envelopes", limit=1000)
    return [said["id"] for said in answer.json["envelopes"]]


# The space.


async def test_what_was_shown_is_shown_again_in_the_same_order(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    for n in range(5):
        await before.ann.say(payload={"text": f"{n}"})
        await before.bot.say(payload={"text": f"{n}"})
    shown = await ids(before)
    after = await start(crashed())
    assert await ids(after) == shown
    said = await after.bot.say()
    assert await ids(after) == [*shown, said]


async def test_an_id_from_before_is_still_refused(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    said = await (await start(tmp_path)).ann.say()
    answer = await (await start(crashed())).bot.send({"kind": "chat", "id": said})
    assert answer.json["error"] == "duplicate_id"


async def test_invitations_grants_revocations_kicks_and_pauses_stay(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    ann = before.ann
    invited = await ann.send(
        {
            "kind": "space/invite",
            "payload": {"participant_id": "dan", "initial_capabilities": [{"kind": "chat"}]},
        }
    )
    token = invited.json["reply"]["payload"]["token"]
    grant = {"recipient": "bot", "capabilities": [{"kind": "mcp/request"}]}
    await ann.say("capability/grant", to=["bot"], payload=grant)
    revoked = {"recipient": "bot", "capabilities": [{"kind": "mcp/proposal"}]}
    await ann.say("capability/revoke", to=["bot"], payload=revoked)
    await ann.say("participant/pause", to=["bot"], payload={"timeout_seconds": 600})
    await ann.say("space/kick", payload={"participant_id": "eve"})
    roster = (await ann.get("/spaces/demo/participants")).json
    folder = crashed()
    assert token.encode() not in b"".join(
        path.read_bytes() for path in (folder / ".mew" / "journal" / "demo").iterdir()
    )
    after = await start(folder)
    assert (await after.ann.get("/spaces/demo/participants")).json == roster
    assert (await after.caller("dan", token).send({"kind": "chat"})).status == 200
    assert (await after.eve.send({"kind": "chat"})).json["error"] == "kicked"
    assert (await after.bot.send({"kind": "chat"})).json["error"] == "paused"
    await after.ann.say("participant/resume", to=["bot"])
    assert (await after.bot.send({"kind": "mcp/request"})).status == 200
    assert (await after.bot.send({"kind": "mcp/proposal"})).status == 403


async def test_a_pause_ends_on_time_though_the_gateway_was_started_anew(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    await before.ann.say("participant/pause", to=["bot"], payload={"timeout_seconds": 0.3})
    after = await start(crashed())
    room = after.gateway._node.rooms["demo"]
    async with asyncio.timeout(20):
        while room.space.state.paused:  # noqa: ASYNC110  # nobody is told that it ends
            await asyncio.sleep(0.01)
    assert (await after.bot.send({"kind": "chat"})).status == 200


async def test_what_the_file_says_now_counts(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    await before.ann.say()
    text = SPACE_YAML.replace("[chat, mcp/proposal]", "[mcp/request]").replace(
        "  eve: {tokens: [t-eve], capabilities: [chat, mcp/reject]}\n", ""
    )
    after = await start(crashed(), text)
    assert (await after.bot.send({"kind": "chat"})).status == 403
    assert (await after.bot.send({"kind": "mcp/request"})).status == 200
    assert (await after.eve.send({"kind": "chat"})).status == 401


async def test_a_history_from_before_keeps_to_the_bounds_of_now(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    said = [await before.ann.say() for _ in range(6)]
    after = await start(crashed(), SPACE_YAML + "limits: {history_envelopes: 2}\n")
    answer = await after.ann.messages()
    assert [one["id"] for one in answer.json["messages"]] == said[-2:]
    assert answer.json["complete"] is False


async def test_a_gateway_that_was_stopped_goes_on_too(tmp_path: Path, start: Start) -> None:
    before = await start(tmp_path)
    said = await before.ann.say()
    await before.stop()
    assert await ids(await start(tmp_path)) == [said]


# Those who were connected.


async def test_who_was_connected_left_and_their_streams_are_closed(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    socket = await before.ann.connect()
    opened = await before.ann.send({"kind": "stream/request", "payload": {"direction": "upload"}})
    stream = opened.json["reply"]["payload"]["stream_id"]
    after = await start(crashed())
    envelopes = (await after.ann.get("/spaces/demo/envelopes")).json["envelopes"]
    told = [(one["kind"], one["payload"]) for one in envelopes[-2:]]
    assert told == [
        ("system/presence", {"event": "leave", "participant": {"id": "ann"}}),
        ("stream/close", {"stream_id": stream, "reason": "owner_left"}),
    ]
    assert not after.gateway._node.rooms["demo"].space.state.connections
    await socket.close()


async def test_no_id_of_the_gateway_is_given_twice(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    """Not even for an entry with a number that was lost: each life signs by a name of its own."""
    before = await start(tmp_path)
    socket = await before.ann.connect()
    (joined,) = [one for one in await ids(before) if one.startswith("gw-")]
    after = await start(crashed())
    left = (await ids(after))[-1]
    assert left.startswith("gw-")
    assert left.split("-")[1] != joined.split("-")[1]
    await socket.close()


async def test_who_comes_back_is_shown_what_it_missed_its_own_leaving_too(
    tmp_path: Path, start: Start, crashed: Callable[[], Path]
) -> None:
    before = await start(tmp_path)
    socket = await before.ann.connect()
    last = await before.ann.say()
    missed = await before.bot.say()
    after = await start(crashed())
    url = f"{after.gateway.url}/ws?space=demo&after={last}"
    back = await after.session.ws_connect(url, headers=after.ann.headers)
    shown = [(await back.receive_json(timeout=5)) for _ in range(4)]
    assert shown[0]["payload"]["resumed"] is True
    assert shown[1]["id"] == missed
    assert [one["payload"]["event"] for one in shown[2:]] == ["leave", "join"]
    await back.close()
    await socket.close()


# What is kept, and where.


async def test_an_ephemeral_gateway_keeps_nothing(tmp_path: Path, start: Start) -> None:
    before = await start(tmp_path, ephemeral=True)
    await before.ann.say()
    await before.stop()
    assert not (tmp_path / ".mew" / "journal").exists()
    assert await ids(await start(tmp_path, ephemeral=True)) == []


async def test_a_file_may_turn_the_journal_off(tmp_path: Path, start: Start) -> None:
    before = await start(tmp_path, SPACE_YAML + "journal: off\n")
    await before.ann.say()
    assert not (tmp_path / ".mew").exists()


async def test_a_second_gateway_on_the_same_journal_is_one_clear_error(tmp_path: Path, start: Start) -> None:
    await start(tmp_path)
    with pytest.raises(ConfigError, match=r"journal: another process \(pid \d+\) keeps its journal here"):
        await start(tmp_path)


async def test_a_journal_that_cannot_be_opened_is_one_clear_error(tmp_path: Path, start: Start) -> None:
    before = await start(tmp_path)
    await before.ann.say()
    await before.stop()
    file = tmp_path / ".mew" / "journal" / "demo" / "entries.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match="written by a later version of mew"):
        await start(tmp_path)


async def test_a_space_that_cannot_be_opened_at_a_reload_fails_alone_and_opens_at_the_next(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await start(tmp_path)
    two = SPACE_YAML.replace(
        "space: {id: demo, name: Demo, description: A space to try}", "spaces: [{id: demo}, {id: other}]"
    )
    (tmp_path / "space.yaml").write_text(two)

    def broken(log: SqliteLog) -> None:
        raise LogUnavailable("the disk is away")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteLog, "recall", broken)
        served.gateway.reload()
    assert (await served.ann.send({"kind": "chat"}, space="other")).status == 503
    assert "other" in (await served.nobody.get("/ready")).body.decode()
    assert 'mew_space_up{space="other"} 0.0' in (await served.nobody.get("/metrics")).body.decode()
    assert (await served.ann.send({"kind": "chat"}, space="demo")).status == 200
    served.gateway.reload()
    assert (await served.ann.send({"kind": "chat"}, space="other")).status == 200
    assert (await served.nobody.get("/ready")).status == 200


async def test_a_reload_names_a_journal_that_changed_and_needs_a_restart(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    served = await start(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE_YAML + "journal: {fsync: power}\n")
    served.gateway.reload()
    assert [vars(record)["keys"] for record in caplog.records if "restart" in record.message] == ["journal"]


# Snapshots.


def rich(table: Table) -> Table:
    """Something of everything that a space can hold."""
    table.join("ann", "a1")
    table.join("bob", "b1")
    table.send("ann", "space/invite", {"participant_id": "dan", "initial_capabilities": ["chat"]})
    table.send("ann", "capability/grant", {"recipient": "bob", "capabilities": ["mcp/*"], "ttl_seconds": 99})
    table.send("bob", "stream/request", {"direction": "upload"}, connection="b1")
    table.send("ann", "participant/pause", {"timeout_seconds": 60}, to=["bob"])
    table.send("ann", "capability/revoke", {"recipient": "bob", "capabilities": ["chat"]})
    table.send("ann", "space/kick", {"participant_id": "dan"})
    table.leave("b1")
    for _ in range(20):
        table.send("ann", "chat", {"text": "hi"}, connection="a1")
    table.wait(61)
    return table


RULES = Rules(
    id="desk",
    profiles={ParticipantId("ann"): capabilities("*"), ParticipantId("bob"): capabilities(["chat"])},
)


@pytest.mark.parametrize("every", [1, 3, 7, 1000])
@pytest.mark.parametrize("kept", [0, 1, 5, 1000])
async def test_from_any_snapshot_on_the_space_and_its_history_are_the_same(
    tmp_path: Path, every: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.gateway.recovery._ENTRIES", every)
    limits = Limits(history_envelopes=kept)
    table = rich(Table(RULES))
    log = SqliteLog(tmp_path, "desk")
    space, history, _ = recover(log, limits, START)
    milestones = Milestones(space, history, log)
    for entry in table.entries:
        log.append(entry.at, entry.event)
        assert list(await anext(log.follow(space.seq))) == [entry]
        for decision in space.apply(entry):
            if isinstance(decision, Deliver):
                history.append(record_of(entry, decision))
        milestones.pass_by(entry)
        if log._saving is not None:
            await log._saving
    log.close()
    again = SqliteLog(tmp_path, "desk")
    found, shown, last_at = recover(again, limits, START)
    again.close()
    assert found.state == table.space.state
    assert last_at == table.entries[-1].at
    assert list(shown) == list(history)
    assert (shown.first, shown.end) == (history.first, history.end)
    assert shown.reaches_back_to(None) is history.reaches_back_to(None)


async def test_a_snapshot_of_another_version_is_one_clear_error() -> None:
    class Strange(MemoryLog):
        def recall(self) -> Past:
            return Past(Mark(1, START, 0, 0), b'{"seq":"one"}', iter(()))

    with pytest.raises(LogUnavailable, match="a snapshot is none that this version of mew knows"):
        recover(Strange(), Limits(), START)
