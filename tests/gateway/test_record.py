"""What a running gateway writes beside its journal, and that it ends in time."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.audit.kept import keep
from tests.gateway.served import SPACE_YAML, Serve
from tests.space.table import START, Table, capabilities

from mew.audit.proof.checkpoints import has_valid_signature, read_checkpoints
from mew.audit.proof.keys import load_public, make_key
from mew.audit.record import index as audit_index
from mew.audit.record.index import Index
from mew.gateway.config.loader import load_config
from mew.gateway.config.value import ConfigError
from mew.gateway.server import Gateway
from mew.journal.files.database import FILE
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import INDEX_FILE, Locator
from mew.journal.reader import JournalReader
from mew.protocol.envelope import ParticipantId
from mew.space import Entry, Rules

CALL = {"method": "tools/call", "params": {"name": "rm"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".mew" / "journal"


def called(folder: Path) -> list[str]:
    with Locator(folder) as locator:
        return [
            fact.about for fact in Index(locator, "demo").select("kind = 'mcp/request'", tail="ORDER BY seq")
        ]


async def test_when_a_gateway_has_stopped_its_journal_is_indexed(serve: Serve, folder: Path) -> None:
    served = await serve()
    await served.ann.say("mcp/request", payload=CALL)
    await served.stop()
    assert called(folder) == ["tools/call:rm"]
    with Locator(folder) as locator:
        assert locator.indexed == locator.located > 0


async def test_a_gateway_with_a_key_signs_what_it_leaves(serve: Serve, tmp_path: Path, folder: Path) -> None:
    make_key(tmp_path / "key.pem")
    served = await serve(more="journal: {sign_key: key.pem}\n")
    await served.ann.say()
    await served.stop()
    last = read_checkpoints(space_folder(folder, "demo"))[-1]
    with Locator(folder) as locator, JournalReader(locator, "demo") as journal:
        row = journal.row(journal.last)
    assert row is not None
    assert last.link == (row.last, row.hash)
    assert has_valid_signature(last, load_public(tmp_path / "key.pem.pub"))


async def test_facts_outlive_a_journal_that_is_damaged(serve: Serve, folder: Path) -> None:
    first = await serve()
    await first.ann.say("mcp/request", payload=CALL)
    await first.stop()
    file = folder / FILE
    file.write_bytes(b"\0" * 4096 + file.read_bytes()[4096:])
    second = await serve()
    await second.ann.say()
    await second.stop()
    assert called(folder) == []
    with closing(sqlite3.connect(folder / f"{INDEX_FILE}.damaged-1")) as connection:
        assert ("tools/call:rm",) in connection.execute("SELECT about FROM all_facts").fetchall()


async def test_a_gateway_that_does_not_start_leaves_nothing_open(tmp_path: Path, folder: Path) -> None:
    who = '{ann: {tokens: [t-ann], capabilities: ["*"]}}'
    file = tmp_path / "space.yaml"
    file.write_text(
        f"spaces: [{{id: one, participants: {who}}}, {{id: two, participants: {who}}}]\nserver: {{port: 0}}\n"
    )
    keep(folder, talk(5), "one")
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = set(threading.enumerate())
    with pytest.raises(ConfigError):
        await Gateway(load_config(file, {}), {}).__aenter__()
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in left if name.startswith("mew-")}


def talk(count: int) -> list[Entry]:
    table = Table(Rules(id="demo", profiles={ParticipantId("ann"): capabilities(["*"])}))
    for n in range(count):
        table.now = START + timedelta(seconds=n)
        table.send("ann", "mcp/request", CALL, id=f"e{n}", to=["ann"])
    return table.entries


async def test_a_gateway_does_not_wait_for_an_index_that_is_far_behind(
    serve: Serve, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(folder, talk(300), "demo")
    (folder / INDEX_FILE).unlink(missing_ok=True)
    monkeypatch.setattr(audit_index, "_RECORDS", 1)
    monkeypatch.setattr(audit_index, "_YIELD_S", 0.2)
    served = await serve(SPACE_YAML)
    async with asyncio.timeout(3):
        await served.ann.say()
        await served.stop()
    with Locator(folder) as locator:
        assert locator.indexed < locator.located
