"""What a space need not keep: it is shown to nobody, it goes from the journal, and what the space is stays."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.history.life import SPACE, Life, settled
from tests.gateway.served import SPACE_YAML, Caller, Served
from tests.space.table import START, Table, capabilities

from mew.audit.record.index import Index, catch_up
from mew.gateway.config.loader import load_config
from mew.gateway.config.settings import Limits
from mew.gateway.history.recovery import bounds
from mew.gateway.server import Gateway
from mew.journal.files.database import FILE
from mew.journal.files.locator import open_index
from mew.journal.port import RetentionPolicy
from mew.journal.reader import JournalReader
from mew.journal.record import ChainLink, find_break, from_microseconds
from mew.journal.sqlite import SqliteStorage
from mew.protocol.envelope import ParticipantId
from mew.space import Rules

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
ONE_DAY = SPACE_YAML + "journal: {keep_days: 1}\n"


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


Start = Callable[..., Awaitable[Served]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def start(clock: Clock) -> AsyncIterator[Start]:
    """Start a gateway with its file and journal in this folder, where it is as late as the clock shows."""
    async with AsyncExitStack() as stack:

        async def start(folder: Path, text: str = ONE_DAY, **options: Any) -> Served:
            file = folder / "space.yaml"
            file.write_text(text)
            timeout = aiohttp.ClientTimeout(total=5)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            running = await stack.enter_async_context(AsyncExitStack())
            gateway = Gateway(load_config(file, {}), {}, now=clock, **options)
            return Served(await running.enter_async_context(gateway), session, running.aclose)

        yield start


async def forget(served: Served, folder: Path) -> None:
    """A minute is over, and the index was written meanwhile: nothing goes before."""
    index(folder / ".mew" / "journal")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))  # so that `settled` comes last
    served.gateway._node.rooms["demo"].forget()
    storage = served.gateway._storage.journals
    assert isinstance(storage, SqliteStorage)
    await settled(storage.retention)


def index(folder: Path) -> None:
    with open_index(folder) as locator:
        catch_up(locator)


def crash(folder: Path, name: str = "crashed") -> Path:
    """What is left of a gateway that is killed now, in a folder to start another in."""
    (folder / name).mkdir()
    shutil.copytree(folder / ".mew", folder / name / ".mew")
    return folder / name


def journal(folder: Path) -> tuple[int, int, list[datetime]]:
    """Where the journal begins and ends, and when its entries were made; it must be whole."""
    with open_index(folder / ".mew" / "journal") as locator, JournalReader(locator, "demo") as reader:
        return check(reader)


def check(reader: JournalReader) -> tuple[int, int, list[datetime]]:
    link, times = reader.begin, []
    for row in reader.rows(link.seq):
        assert find_break(row, link) is None
        link = ChainLink(row.last, row.hash)
        times.append(from_microseconds(row.at))
    return reader.begin.seq, reader.last, times


async def shown(caller: Caller, **query: Any) -> tuple[list[str], bool]:
    answer = await caller.get("/spaces/demo/envelopes", limit=1000, **query)
    return [said["id"] for said in answer.json["envelopes"]], answer.json["complete"]


# By age.


async def test_a_space_in_which_nothing_happens_forgets_all_that_is_too_old(
    tmp_path: Path, start: Start, clock: Clock
) -> None:
    served = await start(tmp_path)
    said = [await served.ann.say() for _ in range(5)]
    clock.time += DAY
    await forget(served, tmp_path)
    assert await shown(served.ann) == (said, True)
    clock.time += timedelta(seconds=1)
    await forget(served, tmp_path)
    assert await shown(served.ann) == ([], False)
    clock.time += DAY / 20
    await forget(served, tmp_path)
    begin, last, _ = journal(tmp_path)
    assert begin == last > 5
    assert all(
        one.encode() not in path.read_bytes()
        for one in said
        for path in (tmp_path / ".mew" / "journal").glob(f"{FILE}*")
    )
    again = await start(crash(tmp_path))
    assert await shown(again.ann) == ([], False)
    fresh = await again.ann.say()
    assert await shown(again.ann) == ([fresh], False)


async def test_what_is_asked_for_since_then_is_complete(tmp_path: Path, start: Start, clock: Clock) -> None:
    served = await start(tmp_path)
    await served.ann.say()
    clock.time += HOUR
    fresh = await served.ann.say()
    since = clock.time.isoformat()
    clock.time += DAY
    await forget(served, tmp_path)
    for one in (served, await start(crash(tmp_path))):
        assert await shown(one.ann) == ([fresh], False)
        assert await shown(one.ann, since=since) == ([fresh], True)


async def test_who_comes_back_with_what_is_forgotten_is_told_that_something_is_missing(
    tmp_path: Path, start: Start, clock: Clock
) -> None:
    served = await start(tmp_path)
    last = await served.ann.say()
    await served.bot.say()
    clock.time += 2 * DAY
    await forget(served, tmp_path)
    url = f"{served.gateway.url}/ws?space=demo&after={last}"
    back = await served.session.ws_connect(url, headers=served.ann.headers)
    welcome = await back.receive_json(timeout=5)
    assert welcome["payload"]["resumed"] is False
    await back.close()


async def test_what_the_space_is_stays(tmp_path: Path, start: Start, clock: Clock) -> None:
    served = await start(tmp_path)
    ann = served.ann
    invited = await ann.send({"kind": "space/invite", "payload": {"participant_id": "dan"}})
    token = invited.json["reply"]["payload"]["token"]
    granted = {"recipient": "dan", "capabilities": [{"kind": "chat"}]}
    await ann.say("capability/grant", to=["dan"], payload=granted)
    revoked = {"recipient": "bot", "capabilities": [{"kind": "mcp/proposal"}]}
    await ann.say("capability/revoke", to=["bot"], payload=revoked)
    await ann.say("space/kick", payload={"participant_id": "eve"})
    said = await ann.say()
    roster = (await ann.get("/spaces/demo/participants")).json
    clock.time += 40 * DAY
    await forget(served, tmp_path)  # the last but one snapshot is kept, and what came after it
    clock.time += DAY / 20
    await forget(served, tmp_path)
    begin, last, _ = journal(tmp_path)
    assert begin == last
    after = await start(crash(tmp_path))
    assert (await after.ann.get("/spaces/demo/participants")).json == roster
    assert (await after.caller("dan", token).send({"kind": "chat"})).status == 200
    assert (await after.bot.send({"kind": "mcp/proposal"})).status == 403
    assert (await after.eve.send({"kind": "chat"})).json["error"] == "kicked"
    assert (await after.ann.send({"kind": "chat", "id": said})).json["error"] == "duplicate_id"


async def test_what_was_never_shown_goes_too(tmp_path: Path, start: Start, clock: Clock) -> None:
    served = await start(tmp_path)
    await served.ann.say()
    clock.time += 2 * DAY
    await forget(served, tmp_path)
    gone = journal(tmp_path)[1]
    assert (await served.bot.send({"kind": "mcp/request"})).status == 403
    clock.time += 2 * HOUR
    await forget(served, tmp_path)
    assert journal(tmp_path)[:2] == (gone, gone + 1)
    clock.time += DAY
    await forget(served, tmp_path)
    assert journal(tmp_path)[:2] == (gone + 1, gone + 1)


async def test_where_something_happens_now_and_then_the_file_forgets_a_tenth_later_at_most(
    tmp_path: Path, start: Start, clock: Clock
) -> None:
    served = await start(tmp_path)
    at: dict[str, datetime] = {}
    begin, ids = 0, [""]
    for hour in range(60):
        at[await served.ann.say()] = clock.time
        await forget(served, tmp_path)
        ids, complete = await shown(served.ann)
        assert ids == [one for one, then in at.items() if then >= clock.time - DAY]
        assert complete is (hour <= 24)
        begin, _, times = journal(tmp_path)
        assert times[0] >= clock.time - 1.1 * DAY - HOUR
        clock.time += HOUR
    assert begin > 20
    clock.time -= HOUR
    assert await shown((await start(crash(tmp_path))).ann) == (ids, False)


async def test_the_gateway_looks_at_the_clock_by_itself(
    tmp_path: Path, start: Start, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.gateway.node._ROUND_S", 0.01)
    served = await start(tmp_path)
    await served.ann.say()
    clock.time += 2 * DAY
    async with asyncio.timeout(5):
        while await shown(served.ann) != ([], False):
            pass


# At a reload.


async def test_a_reload_changes_what_is_kept(
    tmp_path: Path, start: Start, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    served = await start(tmp_path, SPACE_YAML)
    await served.ann.say()
    clock.time += 2 * DAY
    await forget(served, tmp_path)
    assert (await shown(served.ann))[1] is True
    (tmp_path / "space.yaml").write_text(ONE_DAY)
    served.gateway.reload()
    await forget(served, tmp_path)
    assert await shown(served.ann) == ([], False)
    assert "restart" not in caplog.text


# By number.

RULES = Rules(id="desk", profiles={ParticipantId("ann"): capabilities("*")})


@pytest.mark.parametrize(
    "policy",
    [
        RetentionPolicy(entries=20),
        RetentionPolicy(age=timedelta(seconds=40)),
        RetentionPolicy(bytes=1 << 20),
    ],
)
async def test_after_something_went_a_start_gives_the_same_space_and_history(
    tmp_path: Path, policy: RetentionPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = 5
    monkeypatch.setattr("mew.gateway.history.recovery._ENTRIES_MIN", every)
    monkeypatch.setattr("mew.gateway.history.recovery._ENTRIES", every)
    table = Table(RULES)
    table.join("ann", "a1")
    life = Life(tmp_path / "desk", policy=policy)
    for n in range(30):
        table.send("ann", "chat", {"text": "x" * (60_000 if policy.bytes else 10)}, connection="a1")
        table.wait(3)
        await life.live(table)
        index(tmp_path / "desk")
        life.snapshots.pass_time(life.now)
        await settled(life.retention)
        if n % 5:
            continue
        shutil.copytree(tmp_path / "desk", tmp_path / f"crashed-{n}")
        again = Life(tmp_path / f"crashed-{n}", policy=policy, now=life.now)
        assert again.space.state == table.space.state
        begin = again.journal.stats.begin  # in memory there may be more than the journal need keep
        assert list(again.history) == [one for one in life.history if one.cursor.seq > begin]
        assert again.history.reaches_back_to(None) is (begin == 0 and life.history.reaches_back_to(None))
        again.end()
    with open_index(tmp_path / "desk") as locator, JournalReader(locator, SPACE) as reader:
        assert check(reader)[0] > 10
    if policy.entries:
        in_history = 2 * policy.entries  # time passes between any two envelopes
        assert policy.entries <= life.journal.stats.entries <= in_history + 2 * every
    life.end()


def test_a_history_is_no_longer_than_what_its_journal_keeps() -> None:
    limits = Limits(history_envelopes=10_000, history_bytes=64 << 20)
    assert bounds(limits, RetentionPolicy()) == (10_000, 64 << 20)
    assert bounds(limits, RetentionPolicy(entries=1000, bytes=10 << 20)) == (1000, 5 << 20)
    assert bounds(limits, RetentionPolicy(entries=10**6, bytes=10 << 30)) == (10_000, 64 << 20)


async def test_nothing_goes_of_which_the_index_has_no_facts_yet(
    tmp_path: Path, start: Start, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await start(tmp_path)
    await served.ann.say()
    clock.time += 2 * DAY
    with monkeypatch.context() as patch:
        patch.setattr("tests.gateway.history.test_retention.index", lambda folder: None)
        await forget(served, tmp_path)
    assert journal(tmp_path)[0] == 0
    await served.ann.say()
    for _ in range(2):
        clock.time += 2 * DAY
        await forget(served, tmp_path)
    begin, last, _ = journal(tmp_path)
    assert begin == last
    with open_index(tmp_path / ".mew" / "journal") as locator:
        assert [fact.kind for fact in Index(locator, "demo").select("refusal = ''")]
