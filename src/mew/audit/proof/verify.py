"""Verify the hash chain of a space: every record is intact, and none is missing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mew.journal.files.database import FILE as JOURNAL
from mew.journal.files.database import Damaged, Database
from mew.journal.files.folder import space_folder
from mew.journal.files.high_water import MARKS_FILE, high_water_mark, read_losses
from mew.journal.files.snapshots import Snapshots
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainBreak, RecordRow, genesis_link
from mew.journal.recovery.wal import WalStatus, wal_status

from .checkpoints import FILE, read_checkpoint_file
from .cross_checks import ChainFollower, CheckpointVerifier, Claim, checkpoint_claim, entry_time
from .verification_result import BrokenEntry, ChainPosition, EntryTime, VerificationResult, unreadable

__all__ = ["Walked", "verify_journal"]

Walked = Callable[[int, int], None]
"""Told now and then how much is done, and of how much."""

_TRIES: Final = 5
_TOLD_EVERY: Final = 4096


def verify_journal(
    folder: Path, space: str, keys: Sequence[Ed25519PublicKey] = (), walked: Walked | None = None
) -> VerificationResult:
    """Whether the records of a space in this folder are sound, and up to where; also while a gateway writes them.

    With keys every checkpoint must be signed with one of them; without, they are believed. No index is trusted.

    Raises:
        JournalUnavailable: there are none, or they cannot be read now.
    """
    if not (folder / JOURNAL).exists():
        raise JournalUnavailable(f"{folder}: there is no journal here")
    try:
        with ExitStack() as files, closing(Database.view(folder / JOURNAL)) as database:
            return _verified(database, folder, space, keys, walked, files)
    except Damaged as error:
        return unreadable(f"it cannot be read as a journal: {error}", space)


def _verified(
    database: Database,
    folder: Path,
    space: str,
    keys: Sequence[Ed25519PublicKey],
    walked: Walked | None,
    files: ExitStack,
) -> VerificationResult:
    walk = _Walk(database, folder, space, keys, walked, files)
    broken = walk.go()
    for _ in range(_TRIES):
        if broken is None or not walk.is_overtaken:
            break
        walk = _Walk(database, folder, space, keys, walked, files)
        broken = walk.go()
    return walk.verdict(broken)


class _Walk:
    """One way through the records of a space."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        space: str,
        keys: Sequence[Ed25519PublicKey],
        walked: Walked | None,
        files: ExitStack,
    ) -> None:
        self._database = database
        self._journal = folder
        self._folder = space_folder(folder, space)
        self._space = space
        self._walked = walked
        self._files = files
        self._witnesses = CheckpointVerifier(space, keys)
        self._notes: list[str] = []
        row = database.spaces().get(space)
        if row is None:
            raise JournalUnavailable(f"{database.path}: there is no space {space!r} in it")
        self._number = row.id
        self._begin = row.begin
        self._following = ChainFollower(self._begin)
        self._first: RecordRow | None = None
        self._latest: RecordRow | None = None
        self._agreed: RecordRow | None = None  # the last of which somebody else says the same
        self._claims = self._gather()  # before the records: those that are written meanwhile are not missed

    @property
    def is_overtaken(self) -> bool:
        """Whether the first records were dropped while they were read."""
        return self._database.spaces()[self._space].begin != self._begin

    def go(self) -> BrokenEntry | None:
        begin = self._begin
        if begin.seq == 0 and begin != genesis_link(self._space):
            return BrokenEntry(1, f"the chain does not begin as that of a space {self._space!r} does")
        try:
            found = self._hear() or self._go_through() or self._missing()
            if found is not None:
                return BrokenEntry(*found)
            ((fault,),) = self._database.ask("PRAGMA quick_check(1)")
        except Damaged as error:
            seq = self._following.end.seq + 1
            return BrokenEntry(seq, f"entry {seq}, or one soon after it, cannot be read: {error}")
        if fault == "ok":
            return None
        return BrokenEntry(None, f"the file is damaged, and entries after the last may be lost: {fault}")

    def verdict(self, broken: BrokenEntry | None) -> VerificationResult:
        begin, last = self._begin, self._following.end.seq
        if broken is not None and broken.seq is not None:
            last = max(broken.seq - 1, begin.seq)
        return VerificationResult(
            space=self._space,
            after=ChainPosition(begin.seq, begin.hash.hex()),
            begins=begin == genesis_link(self._space),
            entries=last - begin.seq,
            first=self._point(begin.seq + 1) if last > begin.seq else None,
            last=self._point(last) if last > begin.seq else None,
            broken=broken,
            checkpoints=self._witnesses.summary(is_done=broken is None),
            lost=read_losses(self._journal, self._space, begin.seq),
            notes=tuple(self._notes),
        )

    def _gather(self) -> list[Claim]:
        """What is said of entries from `begin` on, the last first."""
        claims = [
            Claim(one.link, f"the snapshot {one.seq}.snapshot") for one in Snapshots(self._folder).good()
        ]
        mark = None if self._database.is_blind else high_water_mark(self._journal, self._space)
        if mark is not None:
            claims.append(Claim(mark.link, f"the high-water mark in {MARKS_FILE}"))
        written = read_checkpoint_file(self._folder)
        for line in written.wrong:
            self._witnesses.doubt(f"line {line} of {FILE} is no checkpoint")
        self._notes += [f"line {line} of {FILE} was cut off and does not count" for line in written.torn]
        for checkpoint in written.checkpoints:
            if not self._witnesses.believes(checkpoint):
                continue
            if checkpoint.seq < self._begin.seq:
                self._witnesses.pass_over()
            else:
                claims.append(checkpoint_claim(checkpoint))
        kept = [claim for claim in claims if claim.link.seq >= self._begin.seq]
        return sorted(kept, key=lambda claim: claim.link.seq, reverse=True)

    def _go_through(self) -> ChainBreak | None:
        following, told = self._following, 0
        for row in self._rows():
            broken = following.take(row)
            if broken is not None:
                return broken
            self._first = self._first or row
            self._latest = row
            broken = self._hear()
            if broken is not None:
                return broken
            if self._walked is not None and row.n >= told + _TOLD_EVERY:
                told = row.n
                self._walked(row.n, self._database.last())
        return None

    def _rows(self) -> Iterator[RecordRow]:
        for _, row in self._database.scan(space=self._number):
            yield row

    def _hear(self) -> ChainBreak | None:
        """All that is said of the place where we are, and of any that a batch has passed over."""
        claims, end = self._claims, self._following.end
        while claims and claims[-1].link.seq <= end.seq:
            claim = claims.pop()
            broken = self._following.hear(claim)
            if broken is not None:
                return broken
            self._agreed = self._latest
            if claim.checkpoint is not None:
                self._witnesses.agree(claim.checkpoint)
        return None

    def _missing(self) -> ChainBreak | None:
        """Whether there was more than the last that is there."""
        last = self._following.end.seq
        status = wal_status(self._database.path, self._files, is_blind=self._database.is_blind)
        if status is WalStatus.LOST:
            return ChainBreak(last + 1, f"what was written after entry {last} is damaged (in {JOURNAL}-wal)")
        if status is WalStatus.UNREAD:
            self._notes.append(f"what may be in {JOURNAL}-wal could not be looked at")
        if not self._claims:
            return None
        claim = self._claims[0]
        return ChainBreak(
            last + 1,
            f"entry {last + 1} is missing, with all after it: {claim.who} says that there was entry"
            f" {claim.link.seq}",
        )

    def _point(self, seq: int) -> EntryTime:
        return entry_time((self._first, self._latest, self._agreed), seq)
