"""Pages go on where they ended: by place, whatever the ids are, and without a file where memory has enough."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.gateway.past import SPACE, WHO, Past, past, walk
from tests.gateway.served import Serve
from tests.space.table import START, Table, capabilities

from mew.gateway import excerpts
from mew.gateway.history import History
from mew.gateway.pages import Query, Record
from mew.gateway.places import Place, cursor, place_in
from mew.log.base import Keep
from mew.log.opening import FILE
from mew.protocol.codec import encode
from mew.protocol.envelope import PROTOCOL, Envelope, ParticipantId
from mew.space import Rules

ANN = ParticipantId("ann")
RULES = Rules(id=SPACE, profiles={ParticipantId(who): capabilities(["*"]) for who in WHO})


def again() -> Table:
    """An old client counts from the beginning each time it starts."""
    table = Table(RULES)
    for life in range(3):
        for n in range(5):
            table.send("bob", "chat", {"text": f"{life}.{n}"}, id=f"envelope-{n}", lenient=True)
            table.send("ann", "chat", {"text": "."}, id=f"ann-{life}-{n}")
    return table


@pytest.mark.parametrize("kept", [1000, 6, 0])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_ids_that_are_used_again_lead_nobody_astray(
    tmp_path: Path, kept: int, *, newest_first: bool
) -> None:
    table = again()
    with past(tmp_path / "past", kept) as space:
        space.happen(table.entries, table.decided)
        space.index()
        async with asyncio.timeout(10):
            found, complete = await walk(space, Query(who=ANN, limit=1, newest_first=newest_first))
        assert [one.raw for one in found] == [one.raw for one in space.shown[:: -1 if newest_first else 1]]
        assert complete


async def test_who_reads_messages_goes_on_by_place(serve: Serve) -> None:
    served = await serve()
    said = [await served.ann.say() for _ in range(3)]
    page = (await served.bot.messages(after=said[0], limit=1)).json
    assert place_in(page["next"]) is not None
    rest = (await served.bot.messages(after=page["next"])).json
    assert [one["id"] for one in rest["messages"]] == said[2:]


def several(number: int, seq: int) -> Record:
    envelope = Envelope(protocol=PROTOCOL, id=f"e{number}", sender="ann", kind="chat")
    return Record.of(envelope, encode(envelope), at=START + timedelta(seconds=seq), seq=seq)


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_place_within_what_one_entry_showed_is_found_when_some_of_that_is_gone(
    *, newest_first: bool
) -> None:
    history = History(5, 1 << 30)
    for number in range(9):
        history.append(several(number, 1 + number // 4))  # of the first two that are left, some are gone
    found = []
    query = Query(who=ANN, limit=1, newest_first=newest_first)
    for _ in range(20):
        page = history.select(query)
        found += [record.id for record in page.records]
        if page.next is None:
            break
        query = replace(query, **{"before" if newest_first else "after": page.next})
    expected = [f"e{number}" for number in range(4, 9)]
    assert found == (expected[::-1] if newest_first else expected)


def test_a_cursor_of_a_life_that_left_nothing_is_not_known_in_another() -> None:
    histories = [History(100, 1 << 30, life=life) for life in ("1a", "2b", "")]
    for history in histories:
        for number in range(4):
            history.append(several(number, 1 + number))
    written = histories[0].select(Query(who=ANN, limit=2)).next
    assert written is not None
    assert [history.knows(written) for history in histories] == [True, False, False]
    assert not histories[0].knows(cursor(Place(2, 1)))


# The newest, at once.


def talk(space: Past, count: int) -> None:
    table = Table(RULES)
    for n in range(count):
        table.now += timedelta(seconds=1)
        table.send("ann", "chat", {"text": "hi"}, id=f"e{n}")
    space.happen(table.entries, table.decided)
    space.index()


async def test_the_newest_are_given_from_memory_to_however_many_ask(tmp_path: Path) -> None:
    with past(tmp_path / "past", 20) as space:
        talk(space, 40)
        asking = [space.archive.select(space.history, newest()) for _ in range(300)]
        for page in await asyncio.gather(*asking):
            assert (list(page.records), page.more, page.complete) == (space.shown[:-6:-1], True, True)
        found, complete = await walk(space, newest())
        assert (found, complete) == (space.shown[::-1], True)


async def test_the_newest_need_no_file(tmp_path: Path) -> None:
    with past(tmp_path / "past", 20) as space:
        talk(space, 40)
        kept = space.archive._kept()
        space.archive._kept = lambda: kept
        (tmp_path / "past" / FILE).rename(tmp_path / "elsewhere")
        page = await space.archive.select(space.history, newest())
        assert (list(page.records), page.complete) == (space.shown[:-6:-1], True)


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
    with past(tmp_path / "past", 20) as space:
        talk(space, 40)
        if dropped:
            space.drop(dropped)
        space.retention.now = lambda: START + timedelta(seconds=40)
        space.retention.keep = Keep(age=None if age_s is None else timedelta(seconds=age_s))
        since = None if since_s is None else START + timedelta(seconds=since_s)
        page = await space.archive.select(space.history, replace(newest(), since=since))
        assert (len(page.records), page.complete) == (5, complete)
        found, whole = await walk(space, replace(newest(), since=since))
        assert whole is complete
        assert found == [one for one in space.shown[::-1] if one in found]


def newest() -> Query:
    return Query(who=ANN, limit=5, newest_first=True)


async def test_what_hangs_together_is_followed_only_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(RULES)
    for n in range(10):
        table.send("ann", "mcp/request", {}, id=f"e{n}", correlation_id=[f"e{n - 1}"] if n else [])
    with past(tmp_path / "past", 0) as space:
        space.happen(table.entries, table.decided)
        space.index()
        query = Query(who=ANN, correlation="e0")
        assert len((await walk(space, query))[0]) == 10
        monkeypatch.setattr(excerpts, "_FIND_S", 0.0)
        assert await walk(space, query) == ([], False)
