"""What is older than what is in memory: read from the journal, without a seam."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.gateway.past import SPACE, WHO, Past, eventful, past, walk
from tests.space.table import START, Table, capabilities

from mew.gateway import excerpts
from mew.gateway.archive import ArchiveBusy
from mew.gateway.pages import Page, Query, Record
from mew.log import seeking
from mew.log.base import Keep
from mew.log.opening import FILE
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId
from mew.space import Rules

ANN, BOB = ParticipantId("ann"), ParticipantId("bob")
KINDS = (
    *("chat", "configured", "mcp/*", "mcp/request", "system/presence", "capability/**", "stream/*"),
    *("!chat", "/c/", "c*", "*", "sys**", "cap**", "nothing/*", "mcp/nothing"),
)
SEEDS = range(4)
ENTRIES = 90
Bounds = tuple[int, int, int, int]  # of effort, turns, bytes and spans
BOUNDS: tuple[Bounds, ...] = ((1, 1, 1, 1), (5, 3, 300, 7), (10_000, 256, 1 << 20, 50_000))
RULES = Rules(id=SPACE, profiles={ParticipantId(who): capabilities(["*"]) for who in WHO})


@pytest.fixture(scope="module")
def pasts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Past]]:
    """Spaces in which much happened, and the record of that."""
    with ExitStack() as stack:
        made = []
        for seed in SEEDS:
            one = stack.enter_context(past(tmp_path_factory.mktemp("past")))
            table = eventful(seed, ENTRIES)
            one.happen(table.entries, table.decided, turn=1 + seed)
            one.index()
            made.append(one)
        yield made


def kind(pattern: str) -> Capability:
    return Capability.parse({"kind": pattern})


def fitting(shown: list[Record], query: Query) -> list[Record]:
    """What a query asks for of all that was shown, said as simply as it can be."""
    numbers = {record.envelope.id: number for number, record in enumerate(shown)}
    first = 0 if query.after is None else numbers[query.after] + 1
    end = len(shown) if query.before is None else numbers[query.before]
    found = [
        record
        for record in shown[first:end]
        if record.is_for(query.who)
        and (query.kind is None or query.kind.fits(record.envelope.kind, (), lambda: None))
        and (query.participant is None or record.envelope.sender == query.participant)
        and (query.since is None or record.at >= query.since)
        and (query.until is None or record.at <= query.until)
    ]
    return found[::-1] if query.newest_first else found


queries = st.builds(
    Query,
    who=st.sampled_from(WHO).map(ParticipantId),
    kind=st.none() | st.sampled_from(KINDS).map(kind),
    participant=st.none() | st.sampled_from([*WHO, "zoe", "system:gateway"]),
    newest_first=st.booleans(),
    limit=st.sampled_from([1, 2, 7, 100]),
    since=(moment := st.none() | st.integers(0, 150).map(lambda late_s: START + timedelta(seconds=late_s))),
    until=moment,
)
cursors = st.tuples(place := st.none() | st.integers(0, ENTRIES), place)
situations = (st.sampled_from(SEEDS), st.integers(0, 40), st.sampled_from(BOUNDS))


def check(
    space: Past, kept: int, bounds: Bounds, query: Query, cursors: tuple[int | None, int | None]
) -> None:
    """Go through all pages, with so many envelopes in memory and such bounds on what is done for one page."""
    ids = [None if one is None else space.shown[one % len(space.shown)].envelope.id for one in cursors]
    query = replace(query, after=ids[0], before=ids[1])
    space.remember(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(excerpts, "_EFFORT_MAX", bounds[0])
        for name, bound in zip(("_TURNS", "_BYTES", "_SPAN"), bounds[1:], strict=True):
            patch.setattr(seeking, name, bound)
        found, complete = asyncio.run(walk(space, query))
    assert found == fitting(space.shown, query)
    assert complete or None not in ids


@settings(max_examples=30, deadline=None)
@given(*situations, queries, cursors)
def test_pages_of_journal_and_memory_together_are_all_that_was_ever_shown(
    pasts: list[Past],
    seed: int,
    kept: int,
    bounds: Bounds,
    query: Query,
    cursors: tuple[int | None, int | None],
) -> None:
    check(pasts[seed], kept, bounds, query, cursors)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(*situations, queries, cursors)
def test_however_often_one_asks_it_is_all_that_was_ever_shown(
    pasts: list[Past],
    seed: int,
    kept: int,
    bounds: Bounds,
    query: Query,
    cursors: tuple[int | None, int | None],
) -> None:
    check(pasts[seed], kept, bounds, query, cursors)


def test_what_happens_between_two_pages_is_neither_missed_nor_told_twice(tmp_path: Path) -> None:
    """Memory moves on with every page, and what was in it when the walk began is in the journal when it gets there."""
    table = eventful(7, 120)
    with past(tmp_path / "past", 10) as space:

        def happen(first: int, end: int) -> None:
            space.happen(table.entries[first:end], table.decided[first:end])

        happen(0, 60)
        grown = 60

        def grow() -> None:
            nonlocal grown
            happen(grown, grown + 4)
            grown += 4

        back = Query(who=ANN, newest_first=True, limit=5)
        before = fitting(space.shown, back)
        assert asyncio.run(walk(space, back, grow)) == (before, True)
        assert grown > 70
        forth = Query(who=ANN, limit=5)
        assert asyncio.run(walk(space, forth, grow)) == (fitting(space.shown, forth), True)


async def test_memory_that_moves_on_while_the_journal_is_read_ends_the_page_there(tmp_path: Path) -> None:
    table = eventful(8, 60)
    with past(tmp_path / "past", 10) as space:
        space.happen(table.entries[:40], table.decided[:40])
        space.index()
        query = Query(who=ANN, limit=1000)
        page = asyncio.ensure_future(space.archive.select(space.history, query))
        await asyncio.sleep(0)  # it has begun
        space.happen(table.entries[40:], table.decided[40:])
        assert (await page).more
        assert await walk(space, query) == (fitting(space.shown, query), True)


# What is gone, or not known.


async def test_what_is_dropped_between_two_pages_is_missing_and_said_to_be(tmp_path: Path) -> None:
    table = eventful(9, 80)
    with past(tmp_path / "past", 10) as space:
        space.happen(table.entries, table.decided, turn=2)
        space.index()
        query = Query(who=ANN, limit=5)
        first = await space.archive.select(space.history, query)
        assert first.complete
        space.drop(until=40)
        rest, complete = await walk(space, replace(query, after=first.next))
        assert not complete
        assert rest == [record for record in fitting(space.shown, query) if record.seq > 40]
        newest, complete = await walk(space, replace(query, newest_first=True))
        assert (newest, complete) == (rest[::-1], False)
        assert await walk(space, replace(query, since=START)) == (rest, False)
        kept = [record for record in rest if record.seq > 50]
        since = kept[0].at
        assert await walk(space, replace(query, since=since)) == (
            [record for record in rest if record.at >= since],
            True,
        )


async def test_what_need_not_be_kept_any_longer_is_not_told_though_it_is_there(tmp_path: Path) -> None:
    table = eventful(9, 80)
    with past(tmp_path / "past", 10) as space:
        space.happen(table.entries, table.decided)
        space.index()
        query, now = Query(who=ANN), table.now
        space.retention.now = lambda: now
        space.retention.keep = Keep(age=timedelta(seconds=60))
        found, complete = await walk(space, query)
        recent = [one for one in fitting(space.shown, query) if one.at >= now - timedelta(seconds=60)]
        in_memory = [record for record in space.history if record.is_for(ANN)]
        assert found == (recent if len(recent) > len(in_memory) else in_memory)
        assert not complete
        since = Query(who=ANN, since=now - timedelta(seconds=30))
        assert await walk(space, since) == (fitting(space.shown, since), True)


async def test_a_part_that_the_index_lacks_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    table = eventful(10, 80)
    with past(tmp_path / "past", 10) as space:
        space.auditing = False
        space.happen(table.entries[:30], table.decided[:30])
        space.index()
        space.happen(table.entries[30:], table.decided[30:])
        for newest_first in (False, True):
            query = Query(who=ANN, limit=7, newest_first=newest_first)
            found, complete = await walk(space, query)
            known = [
                one for one in fitting(space.shown, query) if one.seq <= 30 or one.seq > space.history.gone
            ]
            assert (found, complete) == (known, False)
        space.auditing = True
        query = Query(who=ANN)
        assert await walk(space, query) == (fitting(space.shown, query), True)


async def test_an_index_that_may_be_of_another_journal_is_not_believed(tmp_path: Path) -> None:
    table = eventful(10, 80)
    with past(tmp_path / "past", 10) as space:
        space.happen(table.entries, table.decided)
        space.index()
        space.is_sure = False
        query = Query(who=ANN)
        here = [one for one in fitting(space.shown, query) if one.seq > space.history.gone]
        assert await walk(space, query) == (here, False)
        linked = next(one for one in here if one.refers_to)
        of_it = Query(who=ANN, correlation=linked.refers_to[0])
        assert linked in (await walk(space, of_it))[0]
        space.is_sure = True
        assert await walk(space, Query(who=ANN)) == (fitting(space.shown, Query(who=ANN)), True)


async def test_what_comes_before_a_damage_is_told_and_what_is_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = eventful(11, 80)
    with past(tmp_path / "past", 10) as space:
        space.happen(table.entries, table.decided, turn=1)
        space.index()
        space.spoil(40)
        for newest_first in (False, True):
            query = Query(who=ANN, limit=7, newest_first=newest_first)
            found, complete = await walk(space, query)
            shown = fitting(space.shown, query)
            read = [one for one in shown if one.seq > 40 or not newest_first]
            assert found == [
                one for one in read if one.seq < 40 or one.seq > (space.history.gone, 40)[newest_first]
            ]
            assert not complete
    assert "cannot be read" in caplog.text


async def test_a_cursor_that_nobody_knows_begins_at_the_beginning_and_says_so(pasts: list[Past]) -> None:
    space = pasts[0]
    space.remember(5)
    for cursor in ("nobody's", "gw-at-99999.0", "gw-t-7.77"):
        page = await space.archive.select(space.history, Query(who=ANN, after=cursor, limit=1000))
        assert (list(page.records), page.complete) == (fitting(space.shown, Query(who=ANN)), False)
        page = await space.archive.select(space.history, Query(who=ANN, before=cursor))
        assert (page.records, page.complete) == ((), False)


async def test_a_journal_that_is_away_leaves_what_is_in_memory(tmp_path: Path) -> None:
    table = eventful(12, 40)
    with past(tmp_path / "past", 10) as space:
        space.happen(table.entries, table.decided)
        (tmp_path / "past" / FILE).rename(tmp_path / "elsewhere")
        found, complete = await walk(space, Query(who=ANN))
        assert (found, complete) == (
            [one for one in space.history if one.is_for(ANN) and one.seq > space.history.gone],
            False,
        )


# What hangs together.


async def test_what_hangs_together_is_found_across_journal_and_memory(tmp_path: Path) -> None:
    table = Table(RULES)
    for n in range(5):
        table.send("ann", "mcp/proposal", {"method": "tools/list"}, id=f"proposal-{n}")
        table.send("bob", "mcp/request", {}, id=f"request-{n}", correlation_id=[f"proposal-{n}"])
        table.send("ann", "chat", {}, id=f"talk-{n}", correlation_id=[f"request-{n}"])
    for n in range(5):
        table.send("ann", "mcp/response", {}, id=f"response-{n}", correlation_id=[f"request-{n}"])
    table.send("ann", "chat", {}, id="last", correlation_id=["response-2", "response-4"])
    with past(tmp_path / "past", 4) as space:
        space.happen(table.entries, table.decided)
        together = {f"{what}-{n}" for what in ("proposal", "request", "response") for n in (2, 4)} | {"last"}
        for one in ("proposal-2", "last", "response-4"):
            for newest_first in (False, True):
                query = Query(who=ANN, correlation=one, limit=2, newest_first=newest_first)
                found, complete = await walk(space, query)
                ids = [record.envelope.id for record in found]
                assert ids == [one for one in shown_ids(space, query) if one in together]
                assert not complete  # talk in the journal is not searched


def shown_ids(space: Past, query: Query) -> list[str]:
    ids = [record.envelope.id for record in space.shown]
    return ids[::-1] if query.newest_first else ids


async def test_a_chain_leads_through_nothing_that_was_for_others(tmp_path: Path) -> None:
    table = Table(replace(RULES, delivery="addressed"))
    table.send("ann", "mcp/proposal", {"method": "m"}, id="open")
    table.send("ann", "mcp/request", {}, id="private", to=["cid"], correlation_id=["open"])
    table.send("ann", "mcp/response", {}, id="behind", correlation_id=["private"])
    with past(tmp_path / "past", 0) as space:
        space.happen(table.entries, table.decided)
        for who, seen in ((BOB, ["open"]), (ANN, ["open", "private", "behind"])):
            found, _ = await walk(space, Query(who=who, correlation="open"))
            assert [record.envelope.id for record in found] == seen


# Not too much of it.


async def test_one_that_matches_nothing_is_answered_in_parts(
    pasts: list[Past], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpts, "_EFFORT_MAX", 10)
    monkeypatch.setattr(seeking, "_TURNS", 20)
    space = pasts[0]
    space.remember(5)
    page = await space.archive.select(space.history, Query(who=ANN, kind=kind("/nothing/")))
    assert (page.records, page.more, page.complete) == ((), True, True)
    assert page.next is not None


async def test_of_those_who_read_at_once_some_wait_and_the_rest_are_turned_away(pasts: list[Past]) -> None:
    space = pasts[0]
    space.remember(5)
    reads = [space.archive.select(space.history, Query(who=ANN, limit=1)) for _ in range(100)]
    answers = await asyncio.gather(*reads, return_exceptions=True)
    turned_away = [answer for answer in answers if isinstance(answer, ArchiveBusy)]
    assert 0 < len(turned_away) < 50
    assert all(isinstance(answer, Page) for answer in answers if answer not in turned_away)
    assert (await space.archive.select(space.history, Query(who=ANN, limit=1))).records
