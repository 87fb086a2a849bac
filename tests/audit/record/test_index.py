"""The index has what the journal gives: whoever makes it, in how many parts, and whatever happens in between."""

import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Final

import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.audit.kept import (
    as_indexed,
    chat,
    drop_until,
    index_with,
    keep,
    opened,
    put_records,
    record_of,
    records_in,
)
from tests.audit.office import OFFICE, Office, call, office
from tests.space.table import capabilities, envelope_of
from tests.space.test_properties import AnyHistory

from mew.audit.queries.chain import annotated, chain_of
from mew.audit.queries.effective_capabilities import state_at
from mew.audit.queries.proposals import RequestMatch, records_of
from mew.audit.queries.search import (
    FactFilter,
    count_refusals,
    facts_of_grants,
    find_facts,
    proposal_facts,
    select_facts,
)
from mew.audit.queries.statistics import proposal_counts, statistics_of
from mew.audit.record.facts import Fact, facts_of
from mew.audit.record.index import Index, catch_up
from mew.journal.files.locator import INDEX_FILE, Locator
from mew.journal.reader import JournalReader
from mew.journal.record import Record, RecordRow
from mew.protocol.envelope import ParticipantId
from mew.space import Decision, Deliver, Entry, Rules, Space, TimePassed

ALL: Final = "ORDER BY seq, n"
WAIT_S: Final = 60
MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
ANSWERS: Final = ("mcp/response", "mcp/reject", "mcp/withdraw")


def facts_in(folder: Path, space: str = OFFICE) -> list[Fact]:
    """Those in the index as it is."""
    with opened(folder, space) as (_, index):
        return index.select(tail=ALL)


def caught_up(folder: Path, space: str = OFFICE) -> list[Fact]:
    """Those in the index once it is up to date."""
    with as_indexed(folder, space) as (_, index):
        assert index.locator.indexed == index.locator.located
        return index.select(tail=ALL)


def said_by(entries: Sequence[Entry], decided: Sequence[Sequence[Decision]]) -> list[Fact]:
    """What the record says of entries, one by one: answers do not yet say what was asked."""
    happened = zip(entries, decided, strict=True)
    return [fact for entry, some in happened for fact in facts_of(record_of(entry, some))]


def without_inheritance(facts: Sequence[Fact]) -> list[Fact]:
    return [msgspec.structs.replace(fact, about="") if fact.kind in ANSWERS else fact for fact in facts]


@pytest.fixture
def table() -> Office:
    return office()


@pytest.fixture
def folder(table: Office, tmp_path: Path) -> Path:
    return table.keep(tmp_path / "journal")


@pytest.fixture
def desk() -> Office:
    """Where everybody may do everything."""
    who = ("ann", "bot", "eve", "files")
    table = Office(Rules(id=OFFICE, profiles={ParticipantId(one): capabilities(["*"]) for one in who}))
    for one in who:
        table.join(one)
    return table


def many(count: int) -> Office:
    """So many requests, each with its response."""
    table = Office(Rules(id=OFFICE, profiles={ParticipantId("ann"): capabilities(["*"])}))
    for n in range(count):
        table.say(f"r{n}", "ann", "mcp/request", call("read", n=n), to=["ann"])
        table.say(f"s{n}", "ann", "mcp/response", {"result": {}}, names=f"r{n}")
    return table


# What is in it.


def test_a_journal_gives_the_facts_of_its_entries(table: Office, folder: Path) -> None:
    facts = caught_up(folder)
    assert without_inheritance(facts) == said_by(table.entries, table.decided)
    assert {fact.id: fact.about for fact in facts if fact.kind in ANSWERS} == {
        "edited-response": "tools/call:write_file",
        "plain-response": "tools/call:read_file",
        "bad-reject": "tools/call:delete_file",
        "late-withdraw": "tools/call:read_file",
        "list-response": "tools/list",
    }


def test_what_was_kept_comes_out_with_every_field(tmp_path: Path) -> None:
    whole = Fact(1, 2, 3, "k", "w", "i", "a", "n", "r", "c", ("x", "y"), ("z",), "d", "g")
    plain = Fact(2, 0, 4, "k", "w")
    with index_with(tmp_path, [plain, whole]) as index:
        assert index.select(tail=ALL) == [whole, plain]
        assert index.select("kind = ? AND seq > ?", ("k", 1)) == [plain]
        assert index.rows("SELECT count(*) FROM facts") == [(2,)]


def test_an_answer_is_about_what_its_sender_was_asked(desk: Office, tmp_path: Path) -> None:
    def ask(id: str, kind: str, tool: str, *whom: str) -> None:
        desk.say(id, "ann", kind, call(tool), to=list(whom))

    desk.say("early", "files", "mcp/response", {"result": {}}, names="harmful")
    ask("harmless", "mcp/request", "harmless", "bot")
    ask("proposed", "mcp/proposal", "proposed", "files")
    ask("harmful", "mcp/request", "harmful", "bot", "files")
    ask("to-all", "mcp/request", "to_all")
    for id, kind, *names in (
        ("a", "mcp/response", "harmless", "proposed", "harmful"),
        ("b", "mcp/response", "harmless", "proposed"),
        ("c", "mcp/response", "to-all", "harmful"),
        ("d", "mcp/reject", "harmless", "harmful", "proposed"),
    ):
        desk.say(id, "files", kind, {"result": {}}, names=names)
    about = {fact.id: fact.about for fact in caught_up(desk.keep(tmp_path))}
    assert [about[id] for id in ("early", "a", "b", "c", "d")] == [
        *("", "tools/call:harmful", "", "tools/call:to_all", "tools/call:proposed"),
    ]


def test_an_answer_in_the_same_batch_says_what_was_asked_too(desk: Office, tmp_path: Path) -> None:
    desk.send_batch(
        envelope_of("ann", "mcp/request", call("read"), id="r")[1],
        chat("c", "ann", "please"),
        envelope_of("files", "mcp/response", {"result": {}}, id="s", correlation_id=["r"])[1],
    )
    assert [fact.about for fact in caught_up(desk.keep(tmp_path))][-2:] == ["tools/call:read"] * 2


def test_an_envelope_is_found_by_its_id_and_by_what_names_it(tmp_path: Path) -> None:
    def fact(seq: int, *names: str, id: str = "", refusal: str = "") -> Fact:
        return Fact(seq, 0, 0, "mcp/response", "ann", id or f"e{seq}", refusal=refusal, causes=names)

    request = fact(1)
    facts = [request, fact(2, "e1"), fact(3, "e1", id="e1", refusal="duplicate_id"), fact(4, "e0", "e1")]
    with index_with(tmp_path, facts) as index:
        assert index.with_id("e1") == request
        assert index.with_id("e9") is None
        assert [one.seq for one in index.naming("e1")] == [2, 4]
        assert [one.seq for one in index.naming("e1", 1)] == [2]
        assert [one.seq for one in index.naming("e1", after=(2, 0))] == [4]
        assert (index.times_named("e1"), index.times_named("e1", (2, 0))) == (2, 1)


# An id that was used again: its sender may, or it was free again.


def test_of_an_id_used_again_the_latest_before_is_meant(tmp_path: Path) -> None:
    facts = [Fact(seq, 0, 0, "mcp/request", "ann", "again") for seq in (5, 7, 1)]
    with index_with(tmp_path, facts) as index:
        found = [index.with_id("again", before) for before in ((1, 0), (5, 0), (6, 0), (7, 1))]
        assert [one and one.seq for one in found] == [None, 1, 5, 7]
        assert index.with_id("again") == found[-1]
        assert index.times_used("again") == 3


def test_a_request_carries_out_the_latest_proposal_of_that_id(desk: Office, tmp_path: Path) -> None:
    for n in (1, 2, 3):
        desk.say("env-1", "bot", "mcp/proposal", call("read", n=n), to=["files"], lenient=True)
        if n < 3:
            request = call("read", n=n)
            desk.say(f"r{n}", "ann", "mcp/request", request, to=["files"], names="env-1")
    with as_indexed(desk.keep(tmp_path), OFFICE) as (_, index):
        for id in ("r1", "r2"):
            fact = index.with_id(id)
            assert fact is not None
            root = annotated(chain_of(index, fact), lambda fact: None).root
            (node,) = root.children
            assert node.execution is not None
            assert (node.execution.verdict, root.remarks) == (
                RequestMatch.AS_PROPOSED,
                ["its id was used 3 times"],
            )
        records = [(fact.about, record) for fact, record in records_of(proposal_facts(index))]
        of, _ = proposal_counts(records, MOMENT)
        records = [(fact.about, record) for fact, record in records_of(proposal_facts(index, 7))]
        later, _ = proposal_counts(records, MOMENT)
    assert (of.proposed, of.approved, of.edited, of.open) == (3, 2, 0, 1)
    assert of.decided_p90_s == 1
    assert (later.proposed, later.approved) == (2, 1)


def test_nobody_takes_over_the_id_of_another(desk: Office, tmp_path: Path) -> None:
    desk.say("env-1", "bot", "mcp/proposal", call("read", path="/tmp"), to=["files"])
    desk.say("env-1", "eve", "mcp/proposal", call("read", path="/"), to=["files"], lenient=True)
    with as_indexed(desk.keep(tmp_path), OFFICE) as (_, index):
        found = index.with_id("env-1")
        assert found is not None
        assert found.who == "bot"
        assert index.times_used("env-1") == 1


# Made in parts.


def test_an_index_that_was_deleted_is_made_again(folder: Path) -> None:
    whole = caught_up(folder)
    (folder / INDEX_FILE).unlink()
    assert caught_up(folder) == whole


def test_only_what_is_new_is_read(table: Office, folder: Path) -> None:
    before = caught_up(folder)
    with as_indexed(folder, OFFICE) as (_, index):
        index.locator.ask("UPDATE all_facts SET note = 'as it was'")
    table.say("more", "ann", "mcp/request", call("read_file"))
    keep(folder, table.entries[-1:], OFFICE)
    after = caught_up(folder)
    assert {fact.note for fact in after[:-1]} == {"as it was"}
    assert (len(after), after[-1].id) == (len(before) + 1, "more")


def test_what_is_left_to_another_time_is_done_then(tmp_path: Path) -> None:
    table = many(700)
    folder = table.keep(tmp_path)
    progress: list[tuple[int, int]] = []
    with opened(folder, OFFICE) as (_, index):
        while index.locator.indexed < index.locator.located:
            asked = iter((False, True))
            catch_up(
                index.locator, lambda done, of: progress.append((done, of)), is_over=partial(next, asked)
            )
        facts = index.select(tail=ALL)
    assert len(progress) == 6
    assert without_inheritance(facts) == said_by(table.entries, table.decided)
    assert {fact.about for fact in facts if fact.kind in ANSWERS} == {"tools/call:read"}


CRASH: Final = """
import os, signal, sys
from pathlib import Path
from mew.audit.record.index import catch_up
from mew.journal.files.locator import Locator

locator = Locator(Path(sys.argv[1]))
left = int(sys.argv[2])

def crash():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

locator.connection.set_progress_handler(crash, 1000)
catch_up(locator)
"""


@pytest.mark.parametrize("steps", [1, 30, 120, 250])
def test_what_a_process_did_not_finish_the_next_one_does(tmp_path: Path, steps: int) -> None:
    table = many(700)
    folder = table.keep(tmp_path)
    crashed = subprocess.run([sys.executable, "-c", CRASH, str(folder), str(steps)], timeout=WAIT_S)
    assert crashed.returncode == -signal.SIGKILL
    facts = caught_up(folder)
    assert without_inheritance(facts) == said_by(table.entries, table.decided)
    assert {fact.about for fact in facts if fact.kind in ANSWERS} == {"tools/call:read"}


def test_two_may_do_it_at_once(tmp_path: Path) -> None:
    table = many(700)
    folder = table.keep(tmp_path)
    done: list[int] = []

    def work() -> None:
        with Locator(folder) as locator:
            catch_up(locator)
            done.append(locator.indexed)

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert done == [len(table.entries)] * 3
    assert without_inheritance(facts_in(folder)) == said_by(table.entries, table.decided)
    assert not list(folder.glob("*.damaged-*"))


def test_many_that_one_names_are_all_found(desk: Office, tmp_path: Path) -> None:
    names = [f"x{n}" for n in range(200)]
    desk.say("r", "ann", "mcp/request", call("read"), names=names)
    with as_indexed(desk.keep(tmp_path), OFFICE) as (_, index):
        assert [index.times_named(name) for name in names] == [1] * 200


# Several spaces.


def test_spaces_in_one_index_do_not_mix(table: Office, folder: Path) -> None:
    other = Office(Rules(id="hall", profiles={ParticipantId("ann"): capabilities(["*"])}))
    other.say("edited-proposal", "ann", "mcp/proposal", call("open"))
    other.say("edited-request", "ann", "mcp/request", call("open"), names="edited-proposal")
    alone = caught_up(folder)
    keep(folder, other.entries, "hall")
    with as_indexed(folder, "hall") as (_, index):
        assert index.select(tail=ALL) == said_by(other.entries, other.decided)
        assert [fact.seq for fact in index.naming("edited-proposal")] == [3]
        assert index.times_used("edited-request") == 1
        found = index.with_id("edited-proposal")
        assert found is not None
        assert found.about == "tools/call:open"
    assert caught_up(folder) == alone


def test_an_index_that_serves_one_space_does_not_serve_another_meanwhile(folder: Path) -> None:
    keep(folder)
    with opened(folder, OFFICE) as (_, index):
        Index(index.locator, OFFICE)
        with pytest.raises(AssertionError, match="another space"):
            Index(index.locator, "desk")


# What the journal does not have, or not any more.


def test_what_is_no_longer_kept_stays_in_the_record(folder: Path) -> None:
    whole = caught_up(folder)
    drop_until(folder, 15, OFFICE)
    assert caught_up(folder) == whole
    (folder / INDEX_FILE).unlink()
    assert caught_up(folder)[0].seq == 16


def set_aside(folder: Path) -> list[Fact]:
    """The facts in the one copy that was set aside, which nobody else may read."""
    (aside,) = folder.glob(f"{INDEX_FILE}.damaged-*")
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    with Locator(folder, aside) as locator:
        return Index(locator, OFFICE).select(tail=ALL)


def test_facts_of_entries_that_the_journal_lost_are_set_aside(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = caught_up(folder)
    put_records(folder, [row for row in records_in(folder, OFFICE) if row.last <= 12], OFFICE)
    assert caught_up(folder) == [fact for fact in before if fact.seq <= 12]
    assert "entries that the journal has lost" in caplog.text
    assert set_aside(folder) == before
    caught_up(folder)
    assert set_aside(folder) == before


def test_others_that_got_their_numbers_are_told_of_instead(table: Office, folder: Path) -> None:
    before = caught_up(folder)
    put_records(folder, [row for row in records_in(folder, OFFICE) if row.last <= 12], OFFICE)
    again = Office()
    for entry in table.entries[:12]:
        again.now = entry.at
        again.apply(entry.event)
    for n in range(60):
        again.say(f"other-{n}", "ann", "mcp/request", call("other"))
    keep(folder, again.entries[12:], OFFICE)
    assert without_inheritance(caught_up(folder)) == said_by(again.entries, again.decided)
    assert set_aside(folder) == before


def test_a_journal_that_was_started_anew_is_told_of_alone(table: Office, folder: Path) -> None:
    before = caught_up(folder)
    (folder / "journal.db").unlink()
    anew = many(3)
    anew.keep(folder)
    assert without_inheritance(caught_up(folder)) == said_by(anew.entries, anew.decided)
    assert set_aside(folder) == before


def spoilt(row: RecordRow) -> RecordRow:
    return row._replace(body=row.body[:-1])


def test_a_record_that_cannot_be_read_is_passed_over_until_it_can(table: Office, folder: Path) -> None:
    sound = records_in(folder, OFFICE)
    keep(folder)
    put_records(folder, [spoilt(row) if row.last == 9 else row for row in sound], OFFICE)
    with as_indexed(folder, OFFICE) as (_, index):
        assert {fact.seq for fact in index.select("seq BETWEEN 8 AND 10")} == {8, 10}
        assert "record 9 is none that this version of mew knows" in (index.unread() or "")
    with as_indexed(folder) as (_, index):
        assert index.unread() is None
        assert len(index.select()) == 8
    put_records(folder, sound, OFFICE)
    with as_indexed(folder, OFFICE) as (_, index):
        assert index.unread() is None
        facts = index.select(tail=ALL)
    (folder / INDEX_FILE).unlink()
    assert caught_up(folder) == facts


# How it is asked.


@pytest.fixture
def asked(folder: Path) -> "Asked":
    return Asked(folder)


class Asked:
    """Notes the plans of all that is asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def plans(self, question: Callable[[JournalReader, Index], object]) -> list[str]:
        said: list[str] = []
        with as_indexed(self._folder, OFFICE) as (journal, index):
            connection = index.locator.connection
            connection.set_trace_callback(said.append)
            question(journal, index)
            connection.set_trace_callback(None)
            steps = [
                str(step)
                for query in said
                if query.lstrip().startswith("SELECT") and ("facts" in query or "causes" in query)
                for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")
            ]
        return [step for step in steps if "all_facts" in step or "all_causes" in step]


CAUSES: Final = "PRIMARY KEY (space=? AND cause=?"


@pytest.mark.parametrize(
    ("question", "ways"),
    [
        (lambda journal, index: index.with_id("x"), ["by_id (space=? AND id=?"]),
        (lambda journal, index: index.times_used("x"), ["by_id (space=? AND id=?"]),
        (lambda journal, index: index.naming("x"), [CAUSES, "PRIMARY KEY (space=? AND seq=? AND n=?)"]),
        (lambda journal, index: index.times_named("x"), [CAUSES]),
        (
            lambda journal, index: find_facts(index, "xxxx"),
            [
                "by_id (space=? AND id=?",
                "by_id (space=? AND id>? AND id<?)",
                "by_id (space=?)",  # an end cannot be looked up
                "by_refusal (space=?)",
            ],
        ),
        (lambda journal, index: find_facts(index, "#7"), ["PRIMARY KEY (space=? AND seq=?)"]),
        (lambda journal, index: count_refusals(index, FactFilter()), ["by_refusal (space=?)"]),
        (lambda journal, index: count_refusals(index, FactFilter(who="ann")), ["by_refusal (space=?)"]),
        (
            lambda journal, index: facts_of_grants(index, 0, 9),
            ["by_kind (space=? AND kind=? AND seq>? AND seq<?)"],
        ),
        # In the order in which it is listed: it ends when enough is found.
        (
            lambda journal, index: select_facts(index, FactFilter(who="ann"), limit=3),
            ["PRIMARY KEY (space=?)"],
        ),
        (
            lambda journal, index: select_facts(index, FactFilter(kind="mcp/*"), limit=3),
            ["PRIMARY KEY (space=?)"],
        ),
    ],
)
def test_nothing_is_gone_through_that_can_be_looked_up(
    asked: Asked, question: Callable[[JournalReader, Index], object], ways: list[str]
) -> None:
    steps = asked.plans(question)
    assert len(steps) == len(ways), steps
    for step, way in zip(steps, ways, strict=True):
        assert step.startswith("SEARCH")
        assert way in step


def test_statistics_are_counted_by_the_indexes(asked: Asked) -> None:
    steps = asked.plans(lambda journal, index: statistics_of(journal, index, MOMENT))
    assert [step for step in steps if not step.startswith("SEARCH")] == []
    walks = [step for step in steps if step.endswith("(space=?)")]
    assert [step.partition(" USING ")[2] for step in walks] == [
        "COVERING INDEX by_kind (space=?)",
        "COVERING INDEX by_who (space=?)",
        "INDEX by_refusal (space=?)",
    ]


# Whatever happens.


def delivered(decided: Sequence[Decision]) -> list[tuple[bytes, tuple[str, ...] | None]]:
    """What a space decided to deliver, and to whom."""
    return [
        (raw, None if one.only is None else one.only[place])
        for one in decided
        if isinstance(one, Deliver)
        for place, raw in enumerate(one.envelopes.raws)
    ]


def kept(record: Record) -> list[tuple[bytes, tuple[str, ...] | None]]:
    """The same, as the journal tells it without asking the space again."""
    delivered = record.delivered
    return list(zip(delivered.raws, delivered.only or (None,) * len(delivered.raws), strict=True))


class Recorded(AnyHistory):
    """Whatever happens: the record made from the journal is the one that was written, and tells who held what."""

    def teardown(self) -> None:
        super().teardown()
        if not self.entries:
            return
        space = Space()  # rules are journalled with what happens next
        entries = [*self.entries, Entry(self.entries[-1].last + 1, self.now, TimePassed())]
        decided = [space.apply(entry) for entry in entries]
        with tempfile.TemporaryDirectory() as made, as_indexed(keep(Path(made), entries)) as (journal, index):
            assert without_inheritance(index.select(tail=ALL)) == said_by(entries, decided)
            assert list(map(kept, journal.records())) == list(map(delivered, decided))
            stood = state_at(journal, index, self.now)
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
