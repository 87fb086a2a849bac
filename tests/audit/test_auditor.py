"""The record that is written while a space runs is the one that its journal gives."""

import asyncio
import logging
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Final

import pytest
from tests.audit.conversation import SPACE, conversation, journal_of
from tests.space.table import START, Table, capabilities

from mew.audit import auditor as module
from mew.audit.auditor import Auditor, Writers
from mew.audit.catching_up import catch_up
from mew.audit.checkpoints import Checkpointing, Signer, check, read
from mew.audit.facts import Fact
from mew.audit.index import Index
from mew.audit.keys import load_public, make_key
from mew.log.base import LogUnavailable
from mew.log.reading import JournalReader
from mew.protocol.envelope import ParticipantId
from mew.space import Answer, Deliver, Rules

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
        await auditor.settle(len(table.entries))
        await auditor.close()


@pytest.fixture
def writers() -> Iterator[Writers]:
    with closing(Writers()) as made:
        yield made


@pytest.fixture
async def table() -> Table:
    return conversation()


@pytest.fixture
async def folder(table: Table, tmp_path: Path) -> Path:
    return await journal_of(table.entries, tmp_path) / SPACE


async def test_what_is_written_beside_the_space_is_what_its_journal_gives(
    table: Table, folder: Path, writers: Writers, tmp_path: Path
) -> None:
    await write(Auditor(folder, lambda: START, writers), table)
    written = facts_in(folder)
    assert [fact.kind for fact in written if fact.kind.startswith("mcp/")]
    assert written == made_anew(folder, tmp_path)
    assert gaps_in(folder, len(table.entries)) == []


async def test_a_space_waits_for_a_record_that_is_far_behind(
    table: Table, folder: Path, writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MANY", 1)
    monkeypatch.setattr(module, "_BEHIND", 2)
    auditor = Auditor(folder, lambda: START, writers)
    waited = 0
    for entry, decisions in zip(table.entries, table.decided, strict=True):
        auditor.take(entry, decisions)
        if auditor.is_behind:
            await auditor.keep_up()
            waited += 1
            assert not auditor.is_behind
            assert gaps_in(folder, entry.seq) == []
    assert waited >= 3
    await auditor.close()


@pytest.mark.parametrize("limit", ["_MANY", "_BYTES_MAX"])
async def test_much_is_written_at_once(
    table: Table, folder: Path, writers: Writers, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(module, limit, 1)
    await is_written_in_passing(Auditor(folder, lambda: START, writers), table, folder)


async def test_little_is_written_after_a_while(
    table: Table, folder: Path, writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LATE_S", 0.001)
    await is_written_in_passing(Auditor(folder, lambda: START, writers), table, folder)


async def is_written_in_passing(auditor: Auditor, table: Table, folder: Path) -> None:
    """Nobody asks for it, and nothing ends."""
    for entry, decisions in zip(table.entries, table.decided, strict=True):
        auditor.take(entry, decisions)
    auditor.pass_by()
    async with asyncio.timeout(5):
        while not (folder / "index.db").exists() or gaps_in(folder, len(table.entries)):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await auditor.close()


async def test_what_waits_to_be_written_is_counted_and_no_welcome_is_kept(
    folder: Path, writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {ParticipantId(f"p{n}"): capabilities(["chat"]) for n in range(100)}
    table = Table(Rules(id=SPACE, profiles=many))
    for who in many:
        table.join(who)
    told = [one for decisions in table.decided for one in decisions if isinstance(one, Deliver)]
    welcomes = [one for decisions in table.decided for one in decisions if isinstance(one, Answer)]
    held = list(map(sys.getrefcount, welcomes))
    auditor = Auditor(folder, lambda: START, writers)
    taken = [list(decisions) for decisions in table.decided]
    for entry in table.entries:
        auditor.take(entry, taken.pop(0))
    assert list(map(sys.getrefcount, welcomes)) == held
    monkeypatch.setattr(module, "_BYTES_MAX", 1)
    monkeypatch.setattr(module, "_BEHIND", sum(len(bytes(one.envelope.payload)) for one in told) - 1)
    assert auditor.is_behind
    await auditor.close()


async def test_a_record_from_before_is_not_sure_until_it_was_looked_at(
    table: Table, folder: Path, writers: Writers
) -> None:
    first = Auditor(folder, lambda: START, writers)
    assert first.is_sure, "there is none"
    for entry, decisions in zip(table.entries, table.decided, strict=True):
        first.take(entry, decisions)
    await first.close()
    second, busy = Auditor(folder, lambda: START, writers), Event()
    for _ in range(2):  # all the threads there are
        writers.writing.submit(busy.wait)
    second.begin(after=len(table.entries))
    assert not second.is_sure
    busy.set()
    await second.settle(len(table.entries))
    assert second.is_sure
    await second.close()


async def test_a_record_that_could_not_be_opened_is_tried_again_by_who_needs_it(
    table: Table, folder: Path, writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(Auditor(folder, lambda: START, writers), table)
    auditor = Auditor(folder, lambda: START, writers)
    with monkeypatch.context() as briefly:
        briefly.setattr(module, "Index", unavailable)
        auditor.begin(after=len(table.entries))
        await auditor.settle(len(table.entries))
        assert not auditor.is_sure
    await auditor.settle(len(table.entries))
    assert auditor.is_sure
    await auditor.close()


def unavailable(folder: Path) -> object:
    raise LogUnavailable("too many open files")


async def test_what_could_not_be_written_is_made_when_there_is_room_again(
    table: Table, folder: Path, writers: Writers, tmp_path: Path
) -> None:
    half = len(table.entries) // 2
    auditor = Auditor(folder, lambda: START, writers)
    (folder / "index.db").mkdir()
    for entry, decisions in zip(table.entries[:half], table.decided[:half], strict=True):
        auditor.take(entry, decisions)
    await auditor.settle(half)
    (folder / "index.db").rmdir()
    for entry, decisions in zip(table.entries[half:], table.decided[half:], strict=True):
        auditor.take(entry, decisions)
    await auditor.close()
    assert gaps_in(folder, len(table.entries)) == []
    assert facts_in(folder) == made_anew(folder, tmp_path)


async def test_a_record_of_entries_that_the_journal_lost_is_kept_under_another_name(
    table: Table, folder: Path, writers: Writers, caplog: pytest.LogCaptureFixture
) -> None:
    await write(Auditor(folder, lambda: START, writers), table)
    before = facts_in(folder)
    (folder / "entries.db").unlink()
    with caplog.at_level(logging.WARNING):
        auditor = Auditor(folder, lambda: START, writers)
        auditor.begin(3)
        await auditor.close()
    assert "entries that the journal has lost" in caplog.text
    assert [fact for fact in before if fact.seq <= 3] == facts_in(folder)
    (folder / "aside").mkdir()
    aside = (folder / "index.db.damaged-1").rename(folder / "aside" / "index.db")
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    assert facts_in(folder / "aside") == before


async def test_a_record_that_is_not_ahead_of_the_journal_is_not_set_aside(
    table: Table, folder: Path, writers: Writers
) -> None:
    await write(Auditor(folder, lambda: START, writers), table)
    auditor = Auditor(folder, lambda: START, writers)
    auditor.begin(len(table.entries))
    await auditor.close()
    assert not (folder / "index.db.damaged-1").exists()


async def test_a_space_goes_on_when_somebody_takes_its_journal_away(
    table: Table, folder: Path, writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MANY", 1)
    monkeypatch.setattr(module, "_BEHIND", 2)
    (folder / "entries.db").unlink()
    await write(Auditor(folder, lambda: START, writers), table)
    assert not (folder / "index.db").exists()


async def test_an_auditor_that_ends_does_not_wait_until_all_is_made_up_for(
    table: Table, folder: Path, writers: Writers
) -> None:
    auditor = Auditor(folder, lambda: START, writers)
    auditor.begin(len(table.entries))
    async with asyncio.timeout(5):
        await auditor.close()
    assert gaps_in(folder, len(table.entries)) == [(0, len(table.entries))]


async def test_a_checkpoint_is_signed_every_minute(
    table: Table, folder: Path, writers: Writers, tmp_path: Path
) -> None:
    make_key(tmp_path / "key.pem")
    now = START
    signing = Checkpointing(folder, SPACE, Signer.load(tmp_path / "key.pem"))
    auditor = Auditor(folder, lambda: now, writers, signing)
    signed = []
    for entry, decisions in zip(table.entries[:4], table.decided[:4], strict=True):
        auditor.take(entry, decisions)
        await auditor.settle(entry.seq)
        signed.append([checkpoint.link.seq for checkpoint in read(folder)])
        now += timedelta(seconds=40)
    await auditor.close()
    assert signed == [[1], [1], [1, 3], [1, 3]]
    assert [checkpoint.link.seq for checkpoint in read(folder)] == [1, 3, 4]


async def test_what_happened_last_is_signed_though_nothing_follows_it(
    table: Table, folder: Path, writers: Writers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_key(tmp_path / "key.pem")
    moments = iter((START, START + timedelta(seconds=1)))
    later = START + timedelta(minutes=2)
    signing = Checkpointing(folder, SPACE, Signer.load(tmp_path / "key.pem"))
    auditor = Auditor(folder, lambda: next(moments, later), writers, signing)
    monkeypatch.setattr(module, "_UNSIGNED_S", 0.0)
    for entry, decisions in zip(table.entries[:2], table.decided[:2], strict=True):
        auditor.take(entry, decisions)
        await auditor.settle(entry.seq)
    async with asyncio.timeout(5):
        while [one.link.seq for one in read(folder)] != [1, 2]:  # noqa: ASYNC110  # a thread writes it
            await asyncio.sleep(0)
    await auditor.close()


async def test_the_next_process_makes_up_for_what_the_last_did_not_write(
    table: Table, folder: Path, writers: Writers, tmp_path: Path
) -> None:
    with Index(folder) as index:
        index.add((), 0, 3)  # and there it was killed
    later = len(table.entries) - 2
    await write(Auditor(folder, lambda: START, writers), table, after=later)
    with JournalReader(folder) as journal, Index(folder) as index:
        assert index.gaps(0, journal.last) == []
    assert facts_in(folder) == [fact for fact in made_anew(folder, tmp_path) if fact.seq > 3]


async def test_talk_is_covered_without_a_fact(writers: Writers, tmp_path: Path) -> None:
    table = conversation()
    before = len(table.entries)
    for _ in range(3):
        table.send("ann", "chat", {"text": "hi"}, connection="again")
    folder = await journal_of(table.entries, tmp_path) / SPACE
    await write(Auditor(folder, lambda: START, writers), table, after=before)
    assert [fact for fact in facts_in(folder) if fact.seq > before] == []
    assert gaps_in(folder, len(table.entries)) == []


async def test_a_space_without_a_file_has_no_record_either(writers: Writers, tmp_path: Path) -> None:
    table = Table(conversation().rules)
    await write(Auditor(tmp_path / SPACE, lambda: START, writers), table)
    assert not (tmp_path / SPACE).exists()


async def test_a_record_that_cannot_be_written_is_told_of_and_stops_nothing(
    table: Table, folder: Path, writers: Writers, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "index.db").mkdir()
    with caplog.at_level(logging.WARNING):
        await write(Auditor(folder, lambda: START, writers), table)
    assert "the record is not up to date" in caplog.text


async def test_a_checkpoint_is_signed_at_the_end(
    table: Table, folder: Path, writers: Writers, tmp_path: Path
) -> None:
    make_key(tmp_path / "key.pem")
    signer = Signer.load(tmp_path / "key.pem")
    await write(Auditor(folder, lambda: START, writers, Checkpointing(folder, SPACE, signer)), table)
    last = read(folder)[-1]
    with JournalReader(folder) as journal:
        row = journal.row(len(table.entries))
    assert row is not None
    assert last.link == (row.seq, row.hash)
    assert check(last, load_public(tmp_path / "key.pem.pub"))
