"""An entry as it is kept: it comes back as it was, and the chain shows what was done to it."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.test_log import AT, EVENTS
from tests.log.journal import entries

from mew.log.record import (
    Break,
    Link,
    Row,
    break_at,
    first_break,
    first_link,
    link_through,
    pack,
    pack_again,
    put_together,
    take_apart,
    to_entry,
    unpack,
)
from mew.space import Entry, TimePassed

START = first_link("desk")


def rows_of(written: list[Entry], after: Link) -> list[Row]:
    return list(unpack(pack(written, after)[0]))


def rows(count: int = 5) -> list[Row]:
    return rows_of(entries(1, count), START)


def test_every_event_comes_back_as_it_was() -> None:
    written = [Entry(n, AT, event) for n, event in enumerate(EVENTS, 1)]
    packed, end = pack(written, START)
    assert [to_entry(row) for row in unpack(packed)] == written
    assert end == Link(len(EVENTS), packed[-32:])


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=5.5)))))
def test_every_moment_comes_back_to_the_microsecond(at: datetime) -> None:
    (row,) = rows_of([Entry(1, at, TimePassed())], START)
    assert to_entry(row).at == at


def test_rows_do_not_depend_on_how_they_were_batched() -> None:
    once = rows(4)
    some = rows_of(entries(1, 3), START)
    assert some + rows_of(entries(4, 4), Link(3, some[-1].hash)) == once


def test_a_chain_that_was_left_alone_is_whole() -> None:
    assert first_break(rows(), START) is None
    assert first_break(rows()[2:], Link(2, rows()[1].hash)) is None


def altered(row: Row) -> Row:
    return row._replace(content=row.content[:-1] + bytes([row.content[-1] ^ 1]))


DONE: dict[str, tuple[Callable[[list[Row]], list[Row]], int]] = {
    "one is altered": (lambda rows: [*rows[:2], altered(rows[2]), *rows[3:]], 3),
    "a hash is altered": (lambda rows: [*rows[:2], rows[2]._replace(hash=bytes(32)), *rows[3:]], 3),
    "one is altered and hashed anew": (
        lambda rows: [
            *rows[:2],
            *rows_of([Entry(3, AT, TimePassed())], Link(2, rows[1].hash)),
            *rows[3:],
        ],
        4,
    ),
    "one is removed": (lambda rows: [*rows[:2], *rows[3:]], 3),
    "the first is removed": (lambda rows: rows[1:], 1),
    "one is put in": (lambda rows: [*rows[:2], rows[1], *rows[2:]], 3),
    "two are exchanged": (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], 2),
}


@pytest.mark.parametrize("what", DONE)
def test_what_is_done_to_a_chain_is_found_where_it_was_done(what: str) -> None:
    spoil, where = DONE[what]
    found = first_break(spoil(rows()), START)
    assert isinstance(found, Break)
    assert found.seq == where
    assert str(where) in found.why


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_byte_can_be_changed_unnoticed(place: int, change: int) -> None:
    packed = bytearray(pack(entries(1, 5), START)[0])
    packed[place % len(packed)] ^= change
    try:
        found = first_break(unpack(bytes(packed)), START)
    except ValueError:
        return
    assert found is not None


def test_a_chain_belongs_to_its_space() -> None:
    assert break_at(rows()[0], first_link("other")) is not None


@given(st.binary(max_size=200))
def test_no_bytes_unpack_to_anything_but_rows_or_a_value_error(packed: bytes) -> None:
    try:
        for row in unpack(packed):
            to_entry(row)
    except ValueError:
        pass


@given(st.integers(0, 600))
def test_what_breaks_off_is_read_up_to_there(size: int) -> None:
    whole = rows()
    assert pack_again(whole) == pack(entries(1, 5), START)[0]
    packed = pack_again(whole)[:size]
    found: list[Row] = []
    try:
        found.extend(unpack(packed))
    except ValueError:
        assert len(packed) < len(pack_again(whole))
    assert found == whole[: len(found)]


def test_what_was_taken_apart_is_put_together_again_to_the_byte() -> None:
    written = [Entry(n, AT, event) for n, event in enumerate(EVENTS, 1)]
    for row, entry in zip(rows_of(written, START), written, strict=True):
        parts = take_apart(row.content)
        assert (parts.seq, parts.at) == (entry.seq, entry.at)
        assert put_together(parts) == row.content


def test_packed_entries_lead_to_the_place_after_them() -> None:
    packed, end = pack(entries(1, 5), START)
    assert link_through(packed, START) == end
    assert link_through(b"", START) == START
    later, last = pack(entries(6, 6), end)
    assert link_through(later, end) == last
    assert link_through(later, START) is None


@given(st.data())
def test_packed_entries_of_which_a_byte_was_changed_lead_nowhere(data: st.DataObject) -> None:
    packed = bytearray(pack(entries(1, 3), START)[0])
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    assert link_through(bytes(packed), START) is None


def test_packed_entries_that_break_off_or_go_on_lead_nowhere() -> None:
    packed = pack(entries(1, 3), START)[0]
    for size in range(1, len(packed)):
        assert link_through(packed[:size], START) in (None, *(Link(row.seq, row.hash) for row in rows(3)))
        assert link_through(packed + packed[:size], START) is None
