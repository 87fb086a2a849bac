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
from tests.gateway.history.life import SPACE, Life
from tests.gateway.served import SPACE_YAML, Served
from tests.space.table import START, Table, capabilities, envelope_of

from mew.gateway.config.loader import ConfigError, load_config
from mew.gateway.config.settings import Limits
from mew.gateway.history.recovery import recover
from mew.gateway.server import Gateway
from mew.journal.files.database import FILE
from mew.journal.files.folder import space_folder
from mew.journal.files.snapshots import Snapshots
from mew.journal.port import Delivered, JournalContents, JournalUnavailable, RetentionPolicy
from mew.journal.sqlite import SqliteStorage
from mew.protocol.envelope import ParticipantId
from mew.space import Rules

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
        path.read_bytes() for path in (folder / ".mew" / "journal").rglob("*") if path.is_file()
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


# What is lost.


async def test_history_with_a_loss_is_not_complete_and_nobody_is_told_that_it_was_resumed(
    tmp_path: Path, start: Start
) -> None:
    file = tmp_path / ".mew" / "journal" / FILE
    before = await start(tmp_path)
    first = await before.ann.say()
    await before.stop()
    shutil.copy(file, tmp_path / "older")
    before = await start(tmp_path)
    lost = await before.ann.say()
    await before.stop()
    shutil.copy(tmp_path / "older", file)

    after = await start(tmp_path)
    said = await after.ann.say()
    for _ in range(2):
        shown = await after.ann.get("/spaces/demo/envelopes", kind="chat")
        assert [one["id"] for one in shown.json["envelopes"]] == [first, said]
        assert shown.json["complete"] is False
        assert await is_complete(after, after=first) is False
        assert await is_complete(after, after=said) is True
        assert await is_complete(after, before=first) is True
        assert await is_complete(after, until="2026-01-01T00:00:00Z") is True
        assert await is_complete(after, since="2100-01-01T00:00:00Z") is True
        assert (await after.ann.get("/spaces/demo/proposals")).json["complete"] is False
        assert (await after.ann.messages(after=first)).json["complete"] is False
        assert [await is_resumed(after, one) for one in (first, lost, said)] == [False, False, True]
        await after.stop()
        after = await start(tmp_path)


async def is_complete(served: Served, **query: str) -> object:
    return (await served.ann.get("/spaces/demo/envelopes", **query)).json["complete"]


async def is_resumed(served: Served, after: str) -> object:
    url = f"{served.gateway.url}/ws?space=demo&after={after}"
    async with served.session.ws_connect(url, headers=served.bot.headers) as socket:
        return (await socket.receive_json(timeout=5))["payload"]["resumed"]


async def test_history_that_is_read_from_the_journal_is_not_complete_either(
    tmp_path: Path, start: Start
) -> None:
    text = SPACE_YAML + "limits: {history_envelopes: 1}\n"
    file = tmp_path / ".mew" / "journal" / FILE
    before = await start(tmp_path, text)
    first = await before.ann.say()
    await before.stop()
    shutil.copy(file, tmp_path / "older")
    before = await start(tmp_path, text)
    await before.ann.say()
    await before.stop()
    shutil.copy(tmp_path / "older", file)
    after = await start(tmp_path, text)
    said = [await after.ann.say() for _ in range(3)]
    shown = (await after.ann.get("/spaces/demo/envelopes")).json
    assert [one["id"] for one in shown["envelopes"]] == [first, *said]
    assert shown["complete"] is False
    newest = (await after.ann.get("/spaces/demo/envelopes", order="desc", limit=1)).json
    assert newest["complete"] is False
    assert await is_complete(after, since="2100-01-01T00:00:00Z") is True


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
    file = tmp_path / ".mew" / "journal" / FILE
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

    def broken(*args: object) -> None:
        raise JournalUnavailable("the disk is away")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStorage, "open", broken)
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
    monkeypatch.setattr("mew.gateway.history.recovery._ENTRIES", every)
    table = rich(Table(RULES))
    life = Life(tmp_path, Limits(history_envelopes=kept))
    await life.live(table)
    history = life.history
    life.end()
    assert len(Snapshots(space_folder(tmp_path, SPACE)).good()) == min(2, (len(table.entries) - 1) // every)
    again = Life(tmp_path, Limits(history_envelopes=kept))
    again.end()
    assert again.space.state == table.space.state
    assert again.last_at == table.entries[-1].at
    assert (again.history.evicted, again.history.end) == (history.evicted, history.end)
    # an entry comes back with all that it delivered, also if some of that had been evicted
    first = next(iter(history), None)
    assert list(again.history) == [one for one in life.shown if first and one.cursor.seq >= first.cursor.seq]
    assert again.history.reaches_back_to(None) is history.reaches_back_to(None)


def test_of_a_past_with_large_entries_the_newest_are_taken() -> None:
    def delivered(seq: int, size: int) -> Delivered:
        _, raw = envelope_of("ann", "chat", {"text": "x" * size}, id=f"e{seq}")
        return Delivered(seq, START, (f"e{seq}",), (raw,))

    newest_first = [delivered(4, 10), delivered(3, 10), delivered(2, 5_000), delivered(1, 10)]
    past = JournalContents(delivered=iter(newest_first))
    _, history = recover(past, Limits(history_bytes=2_000), RetentionPolicy(), START)
    assert [one.id for one in history] == ["e3", "e4"]
    assert history.evicted == 2


def test_a_snapshot_of_another_version_is_one_clear_error() -> None:
    with pytest.raises(JournalUnavailable, match="a snapshot is none that this version of mew knows"):
        recover(JournalContents(state=b'{"seq":"one"}'), Limits(), RetentionPolicy(), START)
