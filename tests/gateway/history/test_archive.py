"""What is older than what is in memory: read from the journal, without a seam."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.gateway.history.past import RULES, WHO, Past, naive, past, walk
from tests.space.table import START

from mew.gateway.history import archive
from mew.gateway.history import journal_query as excerpt
from mew.gateway.history.archive import ArchiveBusy
from mew.gateway.history.query import HistoryPage, HistoryQuery
from mew.journal import reader
from mew.journal.files.database import FILE
from mew.journal.port import RetentionPolicy
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

ANN, BOB = ParticipantId("ann"), ParticipantId("bob")
KINDS = (
    *("chat", "configured", "mcp/*", "mcp/request", "system/presence", "capability/**", "stream/*"),
    *("!chat", "/c/", "c*", "*", "sys**", "cap**", "nothing/*", "mcp/nothing"),
)
SEEDS = range(4)
ENTRIES = 90
Bounds = tuple[int, int, int]  # of envelopes, bytes of one, and entries searched at a time
BOUNDS: tuple[Bounds, ...] = ((1, 1, 1), (5, 300, 7), (10_000, 2048, 50_000))


@pytest.fixture(scope="module")
def pasts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Past]]:
    """Spaces in which much happened."""
    with ExitStack() as stack:
        made = []
        for seed in SEEDS:
            one = stack.enter_context(past(tmp_path_factory.mktemp("past"), rules=None))
            one.happen(seed, ENTRIES)
            made.append(one)
        yield made


def kind(pattern: str) -> Capability:
    return Capability.parse({"kind": pattern})


queries = st.builds(
    HistoryQuery,
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
    space: Past, kept: int, bounds: Bounds, query: HistoryQuery, cursors: tuple[int | None, int | None]
) -> None:
    """Go through all pages, with so many envelopes in memory and such bounds on what is done for one page."""
    ids = [None if one is None else space.shown[one % len(space.shown)].id for one in cursors]
    query = replace(query, after=ids[0], before=ids[1])
    space.remember(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(excerpt, "_ENVELOPES_MAX", bounds[0])
        patch.setattr(excerpt, "_ENVELOPE_BYTES", bounds[1])
        patch.setattr(reader, "_SPAN", bounds[2])
        found, complete = asyncio.run(walk(space, query))
    assert found == naive(space.shown, query)
    assert complete or None not in ids


@settings(max_examples=30, deadline=None)
@given(*situations, queries, cursors)
def test_pages_of_journal_and_memory_together_are_all_that_was_ever_delivered(
    pasts: list[Past],
    seed: int,
    kept: int,
    bounds: Bounds,
    query: HistoryQuery,
    cursors: tuple[int | None, int | None],
) -> None:
    check(pasts[seed], kept, bounds, query, cursors)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(*situations, queries, cursors)
def test_however_often_one_asks_it_is_all_that_was_ever_delivered(
    pasts: list[Past],
    seed: int,
    kept: int,
    bounds: Bounds,
    query: HistoryQuery,
    cursors: tuple[int | None, int | None],
) -> None:
    check(pasts[seed], kept, bounds, query, cursors)


def test_what_happens_between_two_pages_is_neither_missed_nor_told_twice(tmp_path: Path) -> None:
    """Memory moves on with every page, and what was in it when the walk began is in the journal when it gets there."""
    with past(tmp_path, 10, rules=None) as space:
        space.happen(7, 60)
        seed = 7

        def grow() -> None:
            nonlocal seed
            seed += 1
            space.happen(seed, 4)

        back = HistoryQuery(who=ANN, newest_first=True, limit=5)
        before = naive(space.shown, back)
        assert asyncio.run(walk(space, back, grow)) == (before, True)
        assert seed > 9
        forth = HistoryQuery(who=ANN, limit=7)
        assert asyncio.run(walk(space, forth, grow)) == (naive(space.shown, forth), True)


async def test_memory_that_moves_on_while_the_journal_is_read_ends_the_page_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, moved_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def read_slowly(*asked: Any) -> excerpt.ScanResult:
        loop.call_soon_threadsafe(begun.set)
        moved_on.wait(20)
        return excerpt.scan_journal(*asked)

    with past(tmp_path, 10, rules=None) as space:
        space.happen(8, 40)
        query = HistoryQuery(who=ANN, limit=1000)
        monkeypatch.setattr(archive, "scan_journal", read_slowly)
        page = asyncio.ensure_future(space.select(query))
        await begun.wait()
        space.happen(9, 20)
        moved_on.set()
        assert (await page).more
        assert await walk(space, query) == (naive(space.shown, query), True)


# What is gone, or not known.


async def test_what_is_dropped_between_two_pages_is_missing_and_said_to_be(tmp_path: Path) -> None:
    with past(tmp_path, 10, rules=None) as space:
        space.happen(9, 80)
        query = HistoryQuery(who=ANN, limit=5)
        first = await space.select(query)
        assert first.complete
        gone = space.drop(until=40)
        rest, complete = await walk(space, replace(query, after=first.next))
        assert not complete
        assert rest == [one for one in naive(space.shown, query) if one.cursor.seq > gone]
        newest, complete = await walk(space, replace(query, newest_first=True))
        assert (newest, complete) == (rest[::-1], False)
        assert await walk(space, replace(query, since=START)) == (rest, False)
        since = next(one.at for one in rest if one.cursor.seq > 50)
        late = [one for one in rest if one.at >= since]
        assert await walk(space, replace(query, since=since)) == (late, True)


async def test_what_need_not_be_kept_any_longer_is_not_told_though_it_is_there(tmp_path: Path) -> None:
    with past(tmp_path, 10, rules=None) as space:
        space.happen(9, 80)
        query, now = HistoryQuery(who=ANN), space.now
        space.retention.now = lambda: now
        space.retention.policy = RetentionPolicy(age=timedelta(seconds=60))
        found, complete = await walk(space, query)
        recent = [one for one in naive(space.shown, query) if one.at >= now - timedelta(seconds=60)]
        in_memory = [one for one in space.history if one.is_for(ANN)]
        assert found == (recent if len(recent) > len(in_memory) else in_memory)
        assert not complete
        since = HistoryQuery(who=ANN, since=now - timedelta(seconds=30))
        assert await walk(space, since) == (naive(space.shown, since), True)


async def test_what_the_index_lacks_is_taken_in_when_somebody_asks(tmp_path: Path) -> None:
    with past(tmp_path, 10, rules=None) as space:
        space.happen(10, 30)
        await space.index()
        space.happen(11, 50)
        for newest_first in (False, True):
            query = HistoryQuery(who=ANN, limit=7, newest_first=newest_first)
            assert await walk(space, query) == (naive(space.shown, query), True)


async def test_what_comes_before_a_damage_is_told_and_what_is_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with past(tmp_path, 10, rules=None) as space:
        space.happen(11, 80)
        await space.index()
        bad = space.spoil(40)
        begin = space.history.begin
        for newest_first in (False, True):
            query = HistoryQuery(who=ANN, limit=7, newest_first=newest_first)
            found, complete = await walk(space, query)
            read = naive(space.shown, query)
            if newest_first:
                assert found == [one for one in read if one.cursor.seq > bad]
            else:
                assert found == [one for one in read if one.cursor.seq < bad or one.cursor >= begin]
            assert not complete
    assert "cannot be read" in caplog.text


async def test_a_cursor_that_nobody_knows_begins_at_the_beginning_and_says_so(pasts: list[Past]) -> None:
    space = pasts[0]
    space.remember(5)
    for cursor in ("nobody's", "gw-at-99999.0", "gw-t-7.77"):
        page = await space.select(HistoryQuery(who=ANN, after=cursor, limit=1000))
        assert (list(page.envelopes), page.complete) == (naive(space.shown, HistoryQuery(who=ANN)), False)
        page = await space.select(HistoryQuery(who=ANN, before=cursor))
        assert (page.envelopes, page.complete) == ((), False)


async def test_a_journal_that_is_away_leaves_what_is_in_memory(tmp_path: Path) -> None:
    with past(tmp_path, 10, rules=None) as space:
        space.happen(12, 40)
        stats = space.stats
        (tmp_path / FILE).rename(tmp_path / "elsewhere")
        page = await space.archive.select(space.history, stats, HistoryQuery(who=ANN, limit=1000))
        here = [one for one in space.history if one.is_for(ANN)]
        assert (list(page.envelopes), page.complete) == (here, False)


# What is connected.


async def test_what_is_connected_is_found_across_journal_and_memory(tmp_path: Path) -> None:
    with past(tmp_path, 4) as space:
        for n in range(5):
            space.send("ann", "mcp/proposal", {"method": "tools/list"}, id=f"proposal-{n}")
            space.send("bob", "mcp/request", {}, id=f"request-{n}", correlation_id=[f"proposal-{n}"])
            space.send("ann", "chat", {}, id=f"talk-{n}", correlation_id=[f"request-{n}"])
        for n in range(5):
            space.send("ann", "mcp/response", {}, id=f"response-{n}", correlation_id=[f"request-{n}"])
        space.send("ann", "chat", {}, id="last", correlation_id=["response-2", "response-4"])
        together = {f"{what}-{n}" for what in ("proposal", "request", "response") for n in (2, 4)} | {"last"}
        for start in ("proposal-2", "last", "response-4"):
            for newest_first in (False, True):
                query = HistoryQuery(who=ANN, correlation=start, limit=2, newest_first=newest_first)
                found, complete = await walk(space, query)
                expected = [one for one in space.shown if one.id in together]
                assert found == (expected[::-1] if newest_first else expected)
                assert not complete  # talk in the journal is not searched


async def test_a_chain_leads_through_nothing_that_was_for_others(tmp_path: Path) -> None:
    with past(tmp_path, 0, replace(RULES, delivery="addressed")) as space:
        space.send("ann", "mcp/proposal", {"method": "m"}, id="open")
        space.send("ann", "mcp/request", {}, id="private", to=["cid"], correlation_id=["open"])
        space.send("ann", "mcp/response", {}, id="behind", correlation_id=["private"])
        for who, seen in ((BOB, ["open"]), (ANN, ["open", "private", "behind"])):
            found, _ = await walk(space, HistoryQuery(who=who, correlation="open"))
            assert [one.id for one in found] == seen


async def test_what_is_connected_in_one_batch_is_told_without_the_rest_of_it(tmp_path: Path) -> None:
    with past(tmp_path, 0) as space:
        said: list[Any] = [
            ("ann", "mcp/request", {}, {"id": f"r{n}", "correlation_id": [f"c{n % 2}"]}) for n in range(6)
        ]
        space.send_all(said)
        found, _ = await walk(space, HistoryQuery(who=ANN, correlation="c1", limit=2))
        assert [one.id for one in found] == ["r1", "r3", "r5"]


# Not too much of it.


async def test_one_that_matches_nothing_is_answered_in_parts(
    pasts: list[Past], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpt, "_ENVELOPES_MAX", 10)
    space = pasts[0]
    space.remember(5)
    page = await space.select(HistoryQuery(who=ANN, kind=kind("/nothing/")))
    assert (page.envelopes, page.more, page.complete) == ((), True, True)
    assert page.next is not None


async def test_of_those_who_read_at_once_some_wait_and_the_rest_are_turned_away(pasts: list[Past]) -> None:
    space = pasts[0]
    space.remember(5)
    reads = [space.select(HistoryQuery(who=ANN, limit=1)) for _ in range(100)]
    answers = await asyncio.gather(*reads, return_exceptions=True)
    turned_away = [answer for answer in answers if isinstance(answer, ArchiveBusy)]
    assert 0 < len(turned_away) < 50
    assert all(isinstance(answer, HistoryPage) for answer in answers if answer not in turned_away)
    assert (await space.select(HistoryQuery(who=ANN, limit=1))).envelopes


async def test_what_is_connected_is_followed_only_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with past(tmp_path, 0) as space:
        for n in range(10):
            space.send("ann", "mcp/request", {}, id=f"e{n}", correlation_id=[f"e{n - 1}"] if n else [])
        query = HistoryQuery(who=ANN, correlation="e0")
        assert len((await walk(space, query))[0]) == 10
        monkeypatch.setattr(excerpt, "_FIND_S", 0.0)
        assert await walk(space, query) == ([], False)
