"""What a running gateway writes down beside its journal, and that it ends in time."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.gateway.served import SPACE_YAML, Serve
from tests.log.journal import fill, open_log
from tests.space.table import START, Table, capabilities

from mew.audit import catching_up
from mew.audit.checkpoints import check, read
from mew.audit.index import Index
from mew.audit.keys import load_public, make_key
from mew.gateway.config import load_config
from mew.gateway.config_node import ConfigError
from mew.gateway.server import Gateway
from mew.log.opening import FILE
from mew.log.reading import JournalReader
from mew.protocol.envelope import ParticipantId
from mew.space import Rules

CALL = {"method": "tools/call", "params": {"name": "rm"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".mew" / "journal" / "demo"


def called(folder: Path) -> list[str]:
    with Index(folder) as index:
        return [fact.about for fact in index.select("kind = 'mcp/request'", tail="ORDER BY seq")]


async def test_when_a_gateway_has_stopped_its_record_is_written(serve: Serve, folder: Path) -> None:
    served = await serve()
    await served.ann.say("mcp/request", payload=CALL)
    await served.stop()
    assert called(folder) == ["tools/call:rm"]
    with JournalReader(folder) as journal, Index(folder) as index:
        assert index.gaps(0, journal.last) == []


async def test_a_gateway_with_a_key_signs_what_it_leaves(serve: Serve, tmp_path: Path, folder: Path) -> None:
    make_key(tmp_path / "key.pem")
    served = await serve(more="journal: {sign_key: key.pem}\n")
    await served.ann.say()
    await served.stop()
    last = read(folder)[-1]
    with JournalReader(folder) as journal:
        row = journal.row(journal.last)
    assert row is not None
    assert last.link == (row.seq, row.hash)
    assert check(last, load_public(tmp_path / "key.pem.pub"))


async def test_a_record_outlives_a_journal_that_is_damaged(
    serve: Serve, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = await serve()
    await first.ann.say("mcp/request", payload=CALL)
    await first.stop()
    file = folder / FILE
    file.write_bytes(b"\0" * 4096 + file.read_bytes()[4096:])
    second = await serve()
    await second.ann.say()
    await second.stop()
    assert "entries that the journal has lost" in caplog.text
    assert called(folder) == []
    (folder / "before").mkdir()
    (folder / "index.db.damaged-1").rename(folder / "before" / "index.db")
    assert called(folder / "before") == ["tools/call:rm"]


async def test_a_gateway_that_does_not_start_leaves_nothing_open(tmp_path: Path) -> None:
    who = '{ann: {tokens: [t-ann], capabilities: ["*"]}}'
    file = tmp_path / "space.yaml"
    file.write_text(
        f"spaces: [{{id: one, participants: {who}}}, {{id: two, participants: {who}}}]\nserver: {{port: 0}}\n"
    )
    for name in ("one", "two"):
        await keep(tmp_path / ".mew" / "journal", name, 5)
    with closing(sqlite3.connect(tmp_path / ".mew" / "journal" / "two" / FILE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = set(threading.enumerate())
    with pytest.raises(ConfigError):
        await Gateway(load_config(file, {}), {}).__aenter__()
    assert not (tmp_path / ".mew" / "journal" / "one" / "index.db").exists()
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in left if name.startswith("mew-")}


async def keep(folder: Path, name: str, count: int) -> None:
    table = Table(Rules(id=name, profiles={ParticipantId("ann"): capabilities(["*"])}))
    for n in range(count):
        table.now = START + timedelta(seconds=n)
        table.send("ann", "mcp/request", CALL, id=f"e{n}", to=["ann"])
    with closing(open_log(folder / name, name)) as log:
        await fill(log, table.entries)


async def test_a_gateway_does_not_wait_for_a_record_that_is_far_behind(
    serve: Serve, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(folder.parent, "demo", 300)
    monkeypatch.setattr(catching_up, "_GIVE_WAY_S", 0.2)
    monkeypatch.setattr(catching_up, "_GIVE_WAY", 1)
    served = await serve(SPACE_YAML)
    async with asyncio.timeout(3):
        await served.ann.say()
        await served.stop()
    with Index(folder) as index:
        assert index.gaps(0, 300) != []
