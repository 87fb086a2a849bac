"""A way through a journal from any place: nothing is left out, and nothing comes twice."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from tests.log.journal import AT
from tests.space.table import envelope_of

from mew.log import seeking
from mew.log.database import Damaged, Database, Durability
from mew.log.opening import FILE
from mew.log.reading import JournalReader
from mew.log.record import Row, first_link, pack
from mew.log.seeking import Seeker, TookTooLong
from mew.space import Entry, Sent

SIZES = (1, 3, 2, 1, 4, 1, 5, 2)  # of the turns
LAST = sum(SIZES)
MARKED = (1, 5, 6, 11, 12, 19)  # entries that hold a text
TEXT = b"wanted"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalReader]:
    folder = tmp_path_factory.mktemp("desk")
    database = Database.create(folder / FILE, "desk", first_link("desk"), Durability.PROCESS)
    end, made = first_link("desk"), [entry(n) for n in range(1, LAST + 1)]
    for size in SIZES:
        packed, end = pack(made[end.seq : end.seq + size], end)
        database.write(end.seq, packed)
    with JournalReader(folder) as reader:
        yield reader
    database.close()


def entry(n: int) -> Entry:
    text = TEXT.decode() if n in MARKED else "other"
    return Entry(
        n, AT + timedelta(seconds=n // 3), Sent(*envelope_of("ann", "chat", {"text": text}, id=f"e{n}"))
    )


@pytest.fixture(params=[(1, 1, 1), (2, 1000, 3), (3, 700, 6), (256, 1 << 20, 50_000)])
def seeker(request: pytest.FixtureRequest, journal: JournalReader, monkeypatch: pytest.MonkeyPatch) -> Seeker:
    """With room for few or many turns and bytes, and spans that are short or long."""
    for name, bound in zip(("_TURNS", "_BYTES", "_SPAN"), request.param, strict=True):
        monkeypatch.setattr(seeking, name, bound)
    return Seeker(journal)


def forwards(seeker: Seeker, after: int, until: int, texts: tuple[bytes, ...] = ()) -> list[int]:
    found: list[int] = []
    while after < until:
        rows, reached, passed = seeker.some_after(after, until, texts)
        assert after < reached <= until
        assert passed == reached - after
        found += [row.seq for row in rows]
        after = reached
    return found


def backwards(seeker: Seeker, after: int, until: int, texts: tuple[bytes, ...] = ()) -> list[int]:
    found: list[int] = []
    while after < until:
        rows, reached, passed = seeker.some_before(until + 1, after, texts)
        assert after <= reached < until
        assert passed == until - reached
        found += [row.seq for row in rows]
        until = reached
    return found


def test_every_stretch_of_the_way_is_gone_through_once_in_both_directions(seeker: Seeker) -> None:
    for after, until in product(range(LAST + 1), repeat=2):
        expected = list(range(after + 1, until + 1))
        assert forwards(seeker, after, until) == expected
        assert backwards(seeker, after, until) == expected[::-1]


def test_what_holds_a_text_is_never_left_out(seeker: Seeker) -> None:
    for after, until in product(range(LAST + 1), repeat=2):
        wanted = {n for n in MARKED if after < n <= until}
        for found in (
            forwards(seeker, after, until, (TEXT, b"nothing")),
            backwards(seeker, after, until, (TEXT, b"nothing"))[::-1],
        ):
            assert wanted <= set(found) <= set(range(after + 1, until + 1))
            assert found == sorted(set(found))
    assert forwards(seeker, 0, LAST, (b"nothing",)) == []


def test_a_text_is_found_from_the_newest_on(seeker: Seeker) -> None:
    for until in range(LAST + 1):
        found = seeker.holding(TEXT, until, lambda: False)
        assert [row.seq for row in found] == [n for n in reversed(MARKED) if n <= until]
    with pytest.raises(TookTooLong):
        list(seeker.holding(TEXT, LAST, lambda: True))


def test_the_first_since_a_moment_is_found(seeker: Seeker) -> None:
    for half_seconds in range(-2, 2 * LAST):
        moment = AT + timedelta(seconds=half_seconds / 2)
        expected = next((n for n in range(1, LAST + 1) if entry(n).at >= moment), LAST + 1)
        assert seeker.first_since(moment) == expected


def test_what_cannot_be_read_is_said_and_what_comes_before_is_not_lost(tmp_path: Path) -> None:
    database = Database.create(tmp_path / FILE, "desk", first_link("desk"), Durability.PROCESS)
    packed, end = pack([entry(1)], first_link("desk"))
    database.write(1, packed)
    database.write(2, b"not an entry")
    database.write(3, pack([entry(3)], end)[0])
    with JournalReader(tmp_path) as journal:
        seeker = Seeker(journal)
        assert numbers(seeker.some_after(0, 3).rows) == [1]
        assert numbers(seeker.some_before(4, 0).rows) == [3]
        with pytest.raises(Damaged, match="an entry breaks off"):
            seeker.some_after(1, 3)
        with pytest.raises(Damaged, match="an entry breaks off"):
            seeker.some_before(3, 0)
    database.close()


def numbers(rows: list[Row]) -> list[int]:
    return [row.seq for row in rows]
