"""Goes through the whole chain of a journal: is every entry what was written, and are all of them there?"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mew.log.ahead import Ahead
from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.log.record import Break, Link, first_link, link_through, take_apart, unpack

from .checkpoints import FILE, read_all
from .verdict import Broken, Place, Point, Verdict, unreadable
from .witnesses import Claim, Following, Witnesses, claim_of

__all__ = ["Walked", "verify_journal"]

Walked = Callable[[int, int], None]
"""Told now and then how much is done, and of how much."""

_TRIES: Final = 5
_TOLD_EVERY: Final = 4096


def verify_journal(
    folder: Path, keys: Sequence[Ed25519PublicKey] = (), walked: Walked | None = None
) -> Verdict:
    """Whether the one in this folder is sound, and up to where; also beside a gateway that writes it.

    With keys every checkpoint must be signed with one of them; without, they are believed.

    Raises:
        LogUnavailable: there is none, or it cannot be read now.
    """
    try:
        with JournalReader(folder) as reader:
            return _verified(reader, keys, walked)
    except Damaged as error:
        return unreadable(f"it cannot be read as a journal: {error}", folder.name)


def _verified(reader: JournalReader, keys: Sequence[Ed25519PublicKey], walked: Walked | None) -> Verdict:
    walk = _Walk(reader, keys, walked)
    broken = walk.go()
    for _ in range(_TRIES):
        if broken is None or not walk.is_overtaken:
            break
        walk = _Walk(reader, keys, walked)
        broken = walk.go()
    return walk.verdict(broken)


class _Walk:
    """One way through a journal."""

    def __init__(
        self, reader: JournalReader, keys: Sequence[Ed25519PublicKey], walked: Walked | None
    ) -> None:
        self._reader = reader
        self._walked = walked
        self._witnesses = Witnesses(reader.space, keys)
        self._notes: list[str] = []
        self._begin = reader.begin
        self._following = Following(self._begin)
        self._claims = self._gather()  # before the entries: those that are written meanwhile are not missed

    @property
    def is_overtaken(self) -> bool:
        """Whether the first entries were dropped while they were read."""
        return self._reader.begin != self._begin

    def go(self) -> Broken | None:
        begin = self._begin
        if begin.seq == 0 and begin != first_link(self._reader.space):
            return Broken(1, f"the chain does not begin as that of a space {self._reader.space!r} does")
        try:
            found = self._hear() or self._go_through() or self._missing()
            if found is not None:
                return Broken(*found)
            fault = self._reader.fault()
        except Damaged as error:
            seq = self._following.end.seq + 1
            return Broken(seq, f"entry {seq}, or one soon after it, cannot be read: {error}")
        if fault is None:
            return None
        return Broken(None, f"the file is damaged, and entries after the last may be lost: {fault}")

    def verdict(self, broken: Broken | None) -> Verdict:
        begin, last = self._begin, self._following.end.seq
        if broken is not None and broken.seq is not None:
            last = max(broken.seq - 1, begin.seq)
        return Verdict(
            space=self._reader.space,
            after=Place(begin.seq, begin.hash.hex()),
            begins=begin == first_link(self._reader.space),
            entries=last - begin.seq,
            first=self._point(begin.seq + 1) if last > begin.seq else None,
            last=self._point(last) if last > begin.seq else None,
            broken=broken,
            checkpoints=self._witnesses.summary(is_done=broken is None),
            notes=tuple(self._notes),
        )

    def _gather(self) -> list[Claim]:
        """What is said of entries from `begin` on, the last first."""
        claims = [
            Claim(Link(one.mark.seq, one.hash), f"the snapshot {one.mark.seq}.snapshot")
            for one in self._reader.snapshots()
        ]
        written = read_all(self._reader.folder)
        for line in written.wrong:
            self._witnesses.doubt(f"line {line} of {FILE} is no checkpoint")
        self._notes += [f"line {line} of {FILE} was cut off and does not count" for line in written.torn]
        for checkpoint in written.checkpoints:
            if not self._witnesses.believes(checkpoint):
                continue
            if checkpoint.seq < self._begin.seq:
                self._witnesses.pass_over()
            else:
                claims.append(claim_of(checkpoint))
        kept = [claim for claim in claims if claim.link.seq >= self._begin.seq]
        return sorted(kept, key=lambda claim: claim.link.seq, reverse=True)

    def _go_through(self) -> Break | None:
        following, claims = self._following, self._claims
        told = following.end.seq
        for number, packed in self._reader.turns():
            if not isinstance(packed, bytes):
                return _empty(following.end)
            end = link_through(packed, following.end)
            if end is None or end.seq != number or (claims and claims[-1].link.seq <= number):
                broken = self._look_into(packed, number)
                if broken is not None:
                    return broken
            else:
                following.end = end
            if self._walked is not None and number >= told + _TOLD_EVERY:
                told = number
                self._walked(number - self._begin.seq, self._reader.last - self._begin.seq)
        return None

    def _look_into(self, packed: bytes, number: int) -> Break | None:
        """A turn entry by entry, because one of them is not sound, or somebody has something to say of it."""
        following = self._following
        before = following.end
        try:
            for row in unpack(packed):
                broken = following.take(row) or self._hear()
                if broken is not None:
                    return broken
        except ValueError:
            seq = following.end.seq + 1
            return Break(seq, f"entry {seq} is not what was written: it breaks off")
        last = following.end.seq
        if last == before.seq:
            return _empty(before)
        if last != number:
            return Break(last, f"entry {last} is not where it was written, but under the number {number}")
        return None

    def _hear(self) -> Break | None:
        """All that is said of the place where we are."""
        claims, end = self._claims, self._following.end
        while claims and claims[-1].link.seq == end.seq:
            claim = claims.pop()
            broken = self._following.hear(claim)
            if broken is not None:
                return broken
            if claim.checkpoint is not None:
                self._witnesses.agree(claim.checkpoint)
        return None

    def _missing(self) -> Break | None:
        """Whether there was more than the last that is there."""
        last = self._following.end.seq
        ahead = self._reader.ahead
        if ahead is Ahead.LOST:
            return Break(last + 1, f"what was written after entry {last} is damaged (in entries.db-wal)")
        if ahead is Ahead.UNREAD:
            self._notes.append("what may be in entries.db-wal could not be looked at")
        if not self._claims:
            return None
        claim = self._claims[0]
        return Break(
            last + 1,
            f"entry {last + 1} is missing, with all after it: {claim.who} says that there was entry"
            f" {claim.link.seq}",
        )

    def _point(self, seq: int) -> Point:
        at: datetime | None = None
        with suppress(Damaged, ValueError):
            row = self._reader.row(seq)
            at = None if row is None else take_apart(row.content).at
        return Point(seq, at)


def _empty(after: Link) -> Break:
    return Break(after.seq + 1, f"after entry {after.seq} a turn without entries was put in")
