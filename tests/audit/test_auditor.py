"""The record that is written while a space runs is the one that its journal gives."""

import asyncio
import logging
from pathlib import Path
from typing import Final

import pytest
from tests.audit.conversation import SPACE, conversation, journal_of
from tests.space.table import START, Table

from mew.audit import auditor as module
from mew.audit.auditor import Auditor
from mew.audit.catching_up import catch_up
from mew.audit.checkpoints import Checkpointing, Signer, check, read
from mew.audit.facts import Fact
from mew.audit.index import Index
from mew.audit.keys import load_public, make_key
from mew.log.reading import JournalReader

ALL: Final = "ORDER BY seq, n"


def facts_in(folder: Path) -> list[Fact]:
    with Index(folder) as index:
        return index.select(tail=ALL)


def gaps_in(folder: Path, until: int) -> list[tuple[int, int]]:
    with Index(folder) as index:
        return index.gaps(0, until)


def made_anew(folder: Path, tmp_path: Path) -> list[Fact]:
    """The facts that the journal alone gives."""
    (tmp_path / "anew").mkdir()
    with JournalReader(folder) as journal, Index(tmp_path / "anew") as index:
        catch_up(journal, index)
        return index.select(tail=ALL)


async def write(auditor: Auditor, table: Table, *, after: int = 0) -> None:
    auditor.begin(after)
    for entry, decisions in zip(table.entries[after:], table.decided[after:], strict=True):
        auditor.take(entry, decisions)
        auditor.pass_by()
        if auditor.is_behind:
            await auditor.keep_up()
    async with asyncio.timeout(5):
        await auditor.close()


@pytest.fixture
async def table() -> Table:
    return conversation()


@pytest.fixture
async def folder(table: Table, tmp_path: Path) -> Path:
    return await journal_of(table.entries, tmp_path) / SPACE


async def test_what_is_written_beside_the_space_is_what_its_journal_gives(
    table: Table, folder: Path, tmp_path: Path
) -> None:
    await write(Auditor(folder, lambda: START), table)
    written = facts_in(folder)
    assert [fact.kind for fact in written if fact.kind.startswith("mcp/")]
    assert written == made_anew(folder, tmp_path)
    assert gaps_in(folder, len(table.entries)) == []


async def test_a_space_waits_for_a_record_that_is_far_behind(
    table: Table, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MANY", 1)
    monkeypatch.setattr(module, "_BEHIND", 2)
    await write(Auditor(folder, lambda: START), table)
    assert facts_in(folder) == made_anew(folder, tmp_path)


async def test_the_next_process_makes_up_for_what_the_last_did_not_write(
    table: Table, folder: Path, tmp_path: Path
) -> None:
    with Index(folder) as index:
        index.add((), 0, 3)  # and there it was killed
    later = len(table.entries) - 2
    await write(Auditor(folder, lambda: START), table, after=later)
    with JournalReader(folder) as journal, Index(folder) as index:
        assert index.gaps(0, journal.last) == []
    assert facts_in(folder) == [fact for fact in made_anew(folder, tmp_path) if fact.seq > 3]


async def test_talk_is_covered_without_a_fact(tmp_path: Path) -> None:
    table = conversation()
    before = len(table.entries)
    for _ in range(3):
        table.send("ann", "chat", {"text": "hi"}, connection="again")
    folder = await journal_of(table.entries, tmp_path) / SPACE
    await write(Auditor(folder, lambda: START), table, after=before)
    assert [fact for fact in facts_in(folder) if fact.seq > before] == []
    assert gaps_in(folder, len(table.entries)) == []


async def test_a_space_without_a_file_has_no_record_either(tmp_path: Path) -> None:
    table = Table(conversation().rules)
    await write(Auditor(tmp_path / SPACE, lambda: START), table)
    assert not (tmp_path / SPACE).exists()


async def test_a_record_that_cannot_be_written_is_told_of_and_stops_nothing(
    table: Table, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "index.db").mkdir()
    with caplog.at_level(logging.WARNING):
        await write(Auditor(folder, lambda: START), table)
    assert "the record is not up to date" in caplog.text


async def test_a_checkpoint_is_signed_at_the_end(table: Table, folder: Path, tmp_path: Path) -> None:
    make_key(tmp_path / "key.pem")
    signer = Signer.load(tmp_path / "key.pem")
    await write(Auditor(folder, lambda: START, Checkpointing(folder, SPACE, signer)), table)
    last = read(folder)[-1]
    with JournalReader(folder) as journal:
        row = journal.row(len(table.entries))
    assert row is not None
    assert last.link == (row.seq, row.hash)
    assert check(last, load_public(tmp_path / "key.pem.pub"))
