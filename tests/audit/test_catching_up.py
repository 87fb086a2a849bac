"""The facts made from the journal are those that were made when it happened, however they came into the index."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.audit.kept import drop_until, keep, put_turns, turns_in
from tests.audit.office import OFFICE, office
from tests.log.journal import snapshot
from tests.space.table import Table
from tests.space.test_properties import AnyHistory

from mew.audit import catching_up
from mew.audit.catching_up import catch_up
from mew.audit.facts import Fact, facts_of
from mew.audit.index import Index
from mew.audit.standing import standing_at
from mew.log.base import LogUnavailable, Mark
from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.log.sqlite import SqliteLog
from mew.space import Entry, Space, TimePassed

ALL = "ORDER BY seq, n"


def pushed(table: Table, first: int, last: int) -> list[Fact]:
    """What is written while it happens."""
    happened = zip(table.entries[first - 1 : last], table.decided[first - 1 : last], strict=True)
    return [fact for entry, decisions in happened for fact in facts_of(entry, decisions)]


def caught_up(folder: Path) -> list[Fact]:
    with JournalReader(folder) as journal, Index(folder) as index:
        catch_up(journal, index)
        assert index.gaps(journal.begin.seq, journal.last) == []
        return index.select(tail=ALL)


@pytest.fixture
def table() -> Table:
    return office()


@pytest.fixture
def folder(tmp_path: Path, table: Table) -> Path:
    return keep(tmp_path, 5, 1, 9, space=OFFICE, entries=table.entries)


def without_inheritance(facts: list[Fact]) -> list[tuple[object, ...]]:
    return [
        (fact.seq, fact.n, fact.kind, fact.who, fact.id, fact.note, fact.made, fact.digest) for fact in facts
    ]


def test_a_journal_without_an_index_gives_one(table: Table, folder: Path) -> None:
    facts = caught_up(folder)
    assert without_inheritance(facts) == without_inheritance(
        sorted(pushed(table, 1, 99), key=lambda f: (f.seq, f.n))
    )
    responses = {
        fact.id: fact.about for fact in facts if fact.kind in ("mcp/response", "mcp/reject", "mcp/withdraw")
    }
    assert responses == {
        "edited-response": "tools/call:write_file",
        "plain-response": "tools/call:read_file",
        "bad-reject": "tools/call:delete_file",
        "late-withdraw": "tools/call:read_file",
        "list-response": "tools/list",
    }


@pytest.mark.parametrize(
    "ranges", [[(1, 10)], [(11, 20)], [(20, 38)], [(30, 38), (8, 9)], [(9, 9), (12, 12), (38, 38)]]
)
def test_only_what_is_missing_is_made(
    table: Table, folder: Path, tmp_path: Path, ranges: list[tuple[int, int]]
) -> None:
    whole = caught_up(keep(tmp_path / "other", space=OFFICE, entries=table.entries))
    with Index(folder) as index:
        for first, last in ranges:
            index.add(pushed(table, first, last), first - 1, last)
    assert caught_up(folder) == whole


@pytest.mark.parametrize("some", [1, 2, 7])
def test_so_it_is_in_many_small_parts(
    table: Table, folder: Path, tmp_path: Path, some: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = caught_up(keep(tmp_path / "other", space=OFFICE, entries=table.entries))
    monkeypatch.setattr(catching_up, "_MANY", some)
    monkeypatch.setattr(catching_up, "_SOME", some)
    told: list[tuple[int, int]] = []
    with JournalReader(folder) as journal, Index(folder) as index:
        catch_up(journal, index, lambda done, of: told.append((done, of)))
        assert index.select(tail=ALL) == whole
    assert told == sorted(told)
    assert {of for _, of in told} == {len(table.entries)}


def test_much_of_the_gateways_own_is_written_bit_by_bit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "_BYTES_MAX", 1)
    assert caught_up(folder) == caught_up(folder)


def test_nothing_is_gone_through_where_nothing_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = caught_up(folder)
    monkeypatch.setattr(JournalReader, "entries", None)
    assert caught_up(folder) == whole


async def test_what_is_no_longer_kept_stays_in_the_record(table: Table, tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / OFFICE, OFFICE)
    space = Space()
    for entry in table.entries[:15]:
        log.append(entry.at, entry.event)
        space.apply(entry)
    follower = log.follow(0)
    await anext(follower)
    await follower.aclose()
    await snapshot(log, Mark(15, table.entries[14].at, 0, 0), space.state.snapshot())
    for entry in table.entries[15:]:
        log.append(entry.at, entry.event)
    follower = log.follow(15)
    await anext(follower)
    await follower.aclose()
    log.close()
    folder = tmp_path / OFFICE
    whole = caught_up(folder)
    drop_until(folder, 15)
    assert caught_up(folder) == whole
    (folder / "index.db").unlink()
    assert caught_up(folder)[0].seq == 16


def test_without_a_snapshot_of_what_came_before_it_says_so(folder: Path) -> None:
    drop_until(folder, 5)
    with (
        JournalReader(folder) as journal,
        Index(folder) as index,
        pytest.raises(LogUnavailable, match="snapshot"),
    ):
        catch_up(journal, index)


def test_what_came_before_a_damage_is_there(folder: Path) -> None:
    turns = turns_in(folder)
    put_turns(folder, {last: entries[:-1] if last == 15 else entries for last, entries in turns.items()})
    with JournalReader(folder) as journal, Index(folder) as index:
        with pytest.raises(Damaged):
            catch_up(journal, index)
        assert index.gaps(0, journal.last) == [(14, journal.last)]
        assert index.select(tail=ALL)[-1].seq == 14


def test_a_missing_entry_is_a_damage(folder: Path) -> None:
    turns = turns_in(folder)
    del turns[6]
    put_turns(folder, turns)
    with (
        JournalReader(folder) as journal,
        Index(folder) as index,
        pytest.raises(Damaged, match="entry 6 is missing"),
    ):
        catch_up(journal, index)


class Recorded(AnyHistory):
    """Whatever happens: the record made from the journal is the one that was written, and tells who held what."""

    def teardown(self) -> None:
        super().teardown()
        if not self.entries:
            return
        with tempfile.TemporaryDirectory() as made:
            folder = keep(Path(made), 7, 1, 20, entries=self.entries)
            facts = [
                f
                for entry, decided in zip(self.entries, self.decided, strict=True)
                for f in facts_of(entry, decided)
            ]
            with JournalReader(folder) as journal, Index(folder) as index:
                catch_up(journal, index)
                assert without_inheritance(index.select(tail=ALL)) == without_inheritance(
                    sorted(facts, key=lambda f: (f.seq, f.n))
                )
                self.stands_alike(journal, index)

    def stands_alike(self, journal: JournalReader, index: Index) -> None:
        space = Space()
        for entry in self.entries:
            space.apply(entry)
        space.apply(Entry(space.seq + 1, self.now, TimePassed()))
        stood = standing_at(journal, index, self.now)
        for name in ("grants", "cuts", "left", "invited", "kicked", "identities", "rules", "dead_tokens"):
            assert getattr(stood, name) == getattr(space.state, name), name


def test_whatever_happens_the_record_is_the_same_from_the_journal() -> None:
    run_state_machine_as_test(
        Recorded, settings=settings(max_examples=8, stateful_step_count=25, deadline=None)
    )


@pytest.mark.slow
def test_whatever_happens_for_long_the_record_is_the_same() -> None:
    run_state_machine_as_test(
        Recorded, settings=settings(max_examples=40, stateful_step_count=60, deadline=None)
    )
