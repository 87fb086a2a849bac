"""Salvage a damaged journal: copy every readable, correctly chained record into a new file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mew.journal.files.database import Columns, Damaged, Database, Durability, SpaceRow
from mew.journal.files.snapshots import Snapshot
from mew.journal.record import ChainBreak, ChainLink, RecordRow, find_break, genesis_link, read_header

__all__ = ["salvage"]

_COPY_ROWS: Final = 256
# Of a space: what is not before where a start begins, although it comes before it, and what comes after the end.
_DELETE_UNFIT: Final = "DELETE FROM records WHERE space = ? AND ((n < ? AND last >= ?) OR n > ?)"


def salvage(
    damaged: Database, draft: Path, durability: Durability, snapshots: Callable[[str], Sequence[Snapshot]]
) -> list[str]:
    """Write a new file; return what is wrong with spaces in words. `snapshots`: the good ones of a space.

    Raises:
        Damaged: not even the names of the spaces can be read.
    """
    spaces = damaged.spaces()
    for suffix in ("", "-wal", "-shm"):
        draft.with_name(f"{draft.name}{suffix}").unlink(missing_ok=True)  # of an attempt that was cut off
    saved = Database.create(draft, durability)
    is_whole = _copy(damaged, spaces, saved)
    chains = {space.id: _Chain(space, snapshots(space.name)) for space in spaces.values()}
    for of, row in saved.scan():
        if of in chains:
            chains[of].take(row)
    told = [_cut(saved, chain, is_whole=is_whole) for chain in chains.values()]
    saved.close()
    return [one for one in told if one]


class _Chain:
    """The records of one space, followed in their order from where a start can begin.

    That is its beginning or the newest snapshot, after which they are `base_n` and following, up to `end_n`.
    """

    def __init__(self, space: SpaceRow, snapshots: Sequence[Snapshot]) -> None:
        self.space = space
        self._links = {one.seq: one.link for one in snapshots}
        self.newest = max(self._links.values(), default=None)
        self.begin = space.begin if space.begin.seq else genesis_link(space.name)
        self.base = self.end = self.begin
        self.base_n = self.end_n = 0
        self.broken: ChainBreak | None = None
        """What is wrong with the record after `end`."""
        self._has_begun = False

    def take(self, row: RecordRow) -> None:
        self._mend_begin(row)
        link = ChainLink(row.last, row.hash)
        before = self._snapshot_before(row)
        if self._links.get(row.last) == link:
            self.base, self.base_n = link, row.n
        elif before is not None:
            self.base, self.base_n = before, row.n
        else:
            self.broken = self.broken or find_break(row, self.end)
            if self.broken is not None:
                return
        self.end, self.end_n, self.broken = link, row.n, None

    def _mend_begin(self, first: RecordRow) -> None:
        """A record from before the beginning shows that this was damaged."""
        if self._has_begun:
            return
        self._has_begun = True
        if first.last <= self.begin.seq and find_break(first, genesis_link(self.space.name)) is None:
            self.begin = self.base = self.end = genesis_link(self.space.name)

    def _snapshot_before(self, row: RecordRow) -> ChainLink | None:
        """The snapshot that a record follows, be the one it was made after there or not."""
        try:
            link = self._links.get(read_header(row.body).seq - 1)
        except ValueError:
            return None
        return link if link is not None and find_break(row, link) is None else None


def _cut(saved: Database, chain: _Chain, *, is_whole: bool) -> str | None:
    """Leave what a start can go through; return what is wrong."""
    space, begin, why = chain.space, chain.begin, None
    if chain.newest is not None and chain.newest.seq > chain.end.seq and not is_whole:
        begin = chain.newest
        saved.ask("DELETE FROM records WHERE space = ?", (space.id,))
        why = f"it is as it was after entry {begin.seq}: what came before and after cannot be read"
    else:
        saved.ask(_DELETE_UNFIT, (space.id, chain.base_n, chain.base.seq, chain.end_n))
        if chain.base.seq < begin.seq:
            begin = chain.base
            saved.ask("DELETE FROM records WHERE space = ? AND last <= ?", (space.id, begin.seq))
        if chain.broken is not None:
            why = f"{chain.broken.why}; all up to entry {chain.end.seq} is served"
    if begin != space.begin:
        saved.ask("UPDATE spaces SET seq = ?, hash = ? WHERE id = ?", (*begin, space.id))
        why = why or f"where it begins was not what was written; it begins after entry {begin.seq}"
    return None if why is None else f"space {space.name!r}: {why}"


def _copy(damaged: Database, spaces: Mapping[str, SpaceRow], saved: Database) -> bool:
    """Copy all records that can be read; return whether there are no others."""
    for space in spaces.values():
        saved.add_space(space.name, space.begin, space.id)
    after: int | None = 0
    is_whole = True
    while after is not None:
        try:
            for some in _some(damaged.scan(after)):
                saved.write([_columns(of, row) for of, row in some])
                after = some[-1][1].n
        except Damaged:
            is_whole = False
            after = damaged.behind_damage(after)
        else:
            break
    return is_whole


def _some(rows: Iterator[tuple[int, RecordRow]]) -> Iterator[list[tuple[int, RecordRow]]]:
    """Some at a time, all up to one that cannot be read."""
    some: list[tuple[int, RecordRow]] = []
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


def _columns(space: int, row: RecordRow) -> Columns:
    return (row.n, space, row.last, row.at, True, row.hash, row.body)
