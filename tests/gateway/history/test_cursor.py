"""Pages go on where they ended: by cursor, whatever the ids are, and without a file if memory has enough."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.gateway.history.past import Past, past, walk
from tests.gateway.served import Serve
from tests.space.table import START, envelope_of

from mew.gateway.history.cursor import Cursor, parse_cursor
from mew.gateway.history.query import HistoryQuery
from mew.gateway.history.recent import RecentHistory
from mew.journal.files.database import FILE
from mew.journal.port import Delivered, RetentionPolicy
from mew.protocol.envelope import ParticipantId
from mew.space.state import is_gateway_id

ANN = ParticipantId("ann")


@given(st.integers(0, 10**18 - 1), st.integers(0, 10**9 - 1), st.sampled_from(["", "0a1b2c3d"]))
def test_a_cursor_is_read_as_it_was_written_and_only_in_its_own_life(seq: int, n: int, life: str) -> None:
    written = Cursor(seq, n).text(life)
    assert parse_cursor(written, life) == Cursor(seq, n)
    assert parse_cursor(written, "ffff") is None
    assert is_gateway_id(written)  # so no participant can send an envelope that has it as its id


@pytest.mark.parametrize(
    "text", ["", "e1", "gw-at-1", "gw-at-1.", "gw-at-1.2-", "gw-at-1.2 ", "gw-at-١.0", "at-1.2"]
)
def test_what_is_no_cursor_is_an_id(text: str) -> None:
    assert parse_cursor(text) is None


@pytest.mark.parametrize("kept", [1000, 6, 0])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_ids_that_are_used_again_lead_nobody_astray(
    tmp_path: Path, kept: int, *, newest_first: bool
) -> None:
    """An old client counts from the beginning each time it starts."""
    with past(tmp_path, kept) as space:
        for life in range(3):
            for n in range(5):
                space.send("bob", "chat", {"text": f"{life}.{n}"}, id=f"envelope-{n}", lenient=True)
                space.send("ann", "chat", {"text": "."}, id=f"ann-{life}-{n}")
        async with asyncio.timeout(20):
            found, complete = await walk(space, HistoryQuery(who=ANN, limit=1, newest_first=newest_first))
        assert found == space.shown[:: -1 if newest_first else 1]
        assert complete


@pytest.mark.parametrize("kept", [1000, 4, 0])
async def test_after_an_id_that_was_used_again_comes_what_followed_its_first_use(
    tmp_path: Path, kept: int
) -> None:
    with past(tmp_path, kept) as space:
        for n in range(9):
            space.send("bob", "chat", {"text": f"{n}"}, id=f"envelope-{n % 3}", lenient=True)
        known = space.history.knows("envelope-1")
        found, _ = await walk(space, HistoryQuery(who=ANN, after="envelope-1"))
        first = next(
            n for n, one in enumerate(space.shown) if one.id == "envelope-1" and not (known and n < 9 - kept)
        )
        assert found == space.shown[first + 1 :]


async def test_who_reads_messages_goes_on_by_cursor(serve: Serve) -> None:
    served = await serve()
    said = [await served.ann.say() for _ in range(3)]
    page = (await served.bot.messages(after=said[0], limit=1)).json
    assert parse_cursor(page["next"]) is not None
    rest = (await served.bot.messages(after=page["next"])).json
    assert [one["id"] for one in rest["messages"]] == said[2:]


def chat(number: int, seq: int, start: int = 0) -> Delivered:
    _, raw = envelope_of("ann", "chat", id=f"e{number}")
    return Delivered(seq, START + timedelta(seconds=seq), (f"e{number}",), (raw,), None, start)


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_cursor_within_what_one_entry_delivered_is_found_when_some_of_that_is_gone(
    *, newest_first: bool
) -> None:
    history = RecentHistory(5, 1 << 30)
    for number in range(9):  # of the first entry that is left, some is gone
        history.append(chat(number, 1 + number // 3, number % 3), 100)
    found = []
    query = HistoryQuery(who=ANN, limit=1, newest_first=newest_first)
    for _ in range(20):
        page = history.select(query)
        found += [one.id for one in page.envelopes]
        if page.next is None:
            break
        query = replace(query, **{"before" if newest_first else "after": page.next})
    expected = [f"e{number}" for number in range(4, 9)]
    assert found == (expected[::-1] if newest_first else expected)


def test_a_cursor_of_a_life_that_left_nothing_is_not_known_in_another() -> None:
    histories = [RecentHistory(100, 1 << 30, life=life) for life in ("1a", "2b", "")]
    for history in histories:
        for number in range(4):
            history.append(chat(number, 1 + number), 100)
    written = histories[0].select(HistoryQuery(who=ANN, limit=2)).next
    assert written is not None
    assert [history.knows(written) for history in histories] == [True, False, False]
    assert not histories[0].knows(Cursor(2, 1).text())


def test_a_cursor_ahead_of_all_there_is_is_not_known() -> None:
    """It is of a life of which some is lost: others may get the same numbers."""
    history = RecentHistory(100, 1 << 30)
    for number in range(4):
        history.append(chat(number, 1 + number), 100)
    assert history.knows(Cursor(5, 0).text())
    assert not history.knows(Cursor(6, 0).text())


# The newest, at once.


def talk(space: Past, count: int) -> None:
    for n in range(count):
        space.now += timedelta(seconds=1)
        space.send("ann", "chat", {"text": "hi"}, id=f"e{n}")


def newest() -> HistoryQuery:
    return HistoryQuery(who=ANN, limit=5, newest_first=True)


async def test_the_newest_are_given_from_memory_to_however_many_ask(tmp_path: Path) -> None:
    with past(tmp_path, 20) as space:
        talk(space, 40)
        stats = space.stats
        asking = [space.archive.select(space.history, stats, newest()) for _ in range(300)]
        for page in await asyncio.gather(*asking):
            assert (list(page.envelopes), page.more, page.complete) == (space.shown[:-6:-1], True, True)
        found, complete = await walk(space, newest())
        assert (found, complete) == (space.shown[::-1], True)


async def test_the_newest_need_no_file(tmp_path: Path) -> None:
    with past(tmp_path, 20) as space:
        talk(space, 40)
        stats = space.stats
        (tmp_path / FILE).rename(tmp_path / "elsewhere")
        page = await space.archive.select(space.history, stats, newest())
        assert (list(page.envelopes), page.complete) == (space.shown[:-6:-1], True)


@pytest.mark.parametrize(
    ("since_s", "dropped", "age_s", "complete"),
    [
        (None, 0, None, True),
        (None, 6, None, False),
        (None, 0, 35, False),
        (None, 0, 1000, True),
        (3, 6, None, False),
        (10, 6, None, True),
        (3, 0, 35, False),
        (10, 0, 35, True),
    ],
)
async def test_the_newest_say_whether_anything_is_gone(
    tmp_path: Path, since_s: int | None, dropped: int, age_s: int | None, *, complete: bool
) -> None:
    with past(tmp_path, 20) as space:
        talk(space, 40)
        if dropped:
            space.drop(dropped)
        space.retention.now = lambda: START + timedelta(seconds=40)
        space.retention.policy = RetentionPolicy(age=None if age_s is None else timedelta(seconds=age_s))
        since = None if since_s is None else START + timedelta(seconds=since_s)
        page = await space.select(replace(newest(), since=since))
        assert (len(page.envelopes), page.complete) == (5, complete)
        found, whole = await walk(space, replace(newest(), since=since))
        assert whole is complete
        assert found == [one for one in space.shown[::-1] if one in found]
