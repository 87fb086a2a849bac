"""What can be read of a damaged journal, in a new file. The old one is kept under another name; nothing is deleted.

At every moment there is a file in its place: a crash in the middle only means that this is done again.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Final

from .base import LogUnavailable
from .database import Damaged, Database, Durability
from .record import Link, Row, pack_again

__all__ = ["free_name", "keep_aside", "salvage"]

_COPY_ROWS: Final = 64


def free_name(path: Path) -> Path:
    """A name beside it under which it can be kept."""
    names = (path.with_name(f"{path.name}.damaged-{n}") for n in count(1))
    return next(name for name in names if not name.exists())


def keep_aside(path: Path) -> Path:
    """Give a database that nobody has open a second name, so that another may take its place.

    Raises:
        OSError: it could not be kept.
    """
    aside = free_name(path)
    os.link(path, aside)
    ahead = path.with_name(f"{path.name}-wal")
    if ahead.exists():  # or it would be taken for the new one's
        ahead.rename(aside.with_name(f"{aside.name}-wal"))
    return aside


def salvage(
    path: Path, aside: Path, space: str, *, begin: Link, end: Link, durability: Durability
) -> Database:
    """Put a new file in its place with all that can be read up to `end`; it begins there if `end` itself cannot."""
    draft = path.with_name(f".{path.name}.salvage")
    for suffix in ("", "-wal", "-shm"):
        draft.with_name(f"{draft.name}{suffix}").unlink(missing_ok=True)  # of an attempt that was cut off
    fresh = Database.create(draft, space, begin, durability)
    damaged = Database.open(aside, space, durability)
    _copy(damaged, fresh, begin.seq, end.seq)
    is_joined = fresh.hash_of(end.seq) == end.hash
    fresh.close()
    with suppress(Damaged, LogUnavailable):
        damaged.close()
    if not is_joined:
        return Database.create(path, space, end, durability)
    draft.replace(path)
    return Database.open(path, space, durability)


def _copy(damaged: Database, fresh: Database, after: int, until: int) -> None:
    """From the front up to what cannot be read, and from the back down to it."""
    last = after
    with suppress(Damaged):
        for rows in _some(takewhile(lambda row: row.seq <= until, damaged.rows(after))):
            last = rows[-1].seq
            fresh.write(last, pack_again(rows))
    with suppress(Damaged):
        for rows in _some(takewhile(lambda row: row.seq > last, damaged.rows_back(until))):
            fresh.write(rows[0].seq, pack_again(reversed(rows)))


def _some(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """All that can be read, some at a time; then raises if there was more."""
    some: list[Row] = []
    try:
        for row in rows:
            some.append(row)
            if len(some) == _COPY_ROWS:
                yield some
                some = []
    except Damaged:
        if some:
            yield some
        raise
    if some:
        yield some
