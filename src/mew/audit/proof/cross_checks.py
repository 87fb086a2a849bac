"""PURE. Follow a hash chain and cross-check it against checkpoints, snapshots and high-water marks."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mew.journal.record import (
    ChainBreak,
    ChainLink,
    RecordRow,
    find_break,
    from_microseconds,
    join_record,
    read_header,
    split_record,
)
from mew.protocol.visible import named

from .checkpoints import Checkpoint, has_valid_signature
from .verification_result import CheckpointSummary, EntryTime

__all__ = ["ChainFollower", "CheckpointVerifier", "Claim", "checkpoint_claim", "entry_time"]

_WRONG_MAX: Final = 10


class Claim(NamedTuple):
    """Somebody says that the chain was at this place."""

    link: ChainLink
    who: str
    checkpoint: Checkpoint | None = None


def checkpoint_claim(checkpoint: Checkpoint) -> Claim:
    at = checkpoint.at.isoformat(sep=" ", timespec="seconds")
    return Claim(checkpoint.link, f"the checkpoint of {at}", checkpoint)


def entry_time(rows: Iterable[RecordRow | None], seq: int) -> EntryTime:
    """An entry, and when it was made if it is in one of these records."""
    for row in rows:
        if row is not None and read_header(row.body).seq <= seq <= row.last:
            with suppress(ValueError):
                return EntryTime(seq, from_microseconds(row.at))
    return EntryTime(seq, None)


class ChainFollower:
    """Where we are in a chain that is followed from `begin`: what was taken is sound up to `end`."""

    def __init__(self, begin: ChainLink) -> None:
        self.begin = begin
        self.end = begin
        self._vouched = begin  # the last place of which somebody else says the same

    def take(self, row: RecordRow) -> ChainBreak | None:
        """The next entry; None: it is what was written."""
        found = find_break(row, self.end)
        if found is not None:
            return self._explained(row, found)
        self.end = ChainLink(row.last, row.hash)
        return None

    def hear(self, claim: Claim) -> ChainBreak | None:
        """What somebody says of the place where we are, or of one that was passed over; None: we say the same."""
        seq, digest = claim.link
        assert seq <= self.end.seq, f"a claim about entry {seq} at {self.end.seq}"
        if seq < self.end.seq:  # of a place inside the record that was taken last
            return ChainBreak(self._vouched.seq + 1, f"{claim.who} says that a record ended with entry {seq}")
        if digest == self.end.hash:
            self._vouched = self.end
            return None
        said = f"{claim.who} says that entry {seq} was another"
        if seq == self.begin.seq:
            return ChainBreak(seq + 1, f"{said}, so what follows it is not what followed it then")
        first = self._vouched.seq + 1
        which = f"entry {seq}" if first == seq else f"one of the entries {first} to {seq}"
        return ChainBreak(first, f"{which} is not what was written: all fit each other, but {said}")

    def _explained(self, row: RecordRow, found: ChainBreak) -> ChainBreak:
        before = self.end
        try:
            parts = split_record(row.body)
        except ValueError:
            return found
        first = parts.head.seq
        if first == found.seq:
            return found
        head = parts.head._replace(seq=found.seq)
        body = join_record(head, parts.event, parts.audiences, parts.raws)
        if find_break(row._replace(body=body, last=head.last), before) is None:
            return ChainBreak(found.seq, f"entry {found.seq} is not what was written: its number is {first}")
        if self.begin.seq < first <= before.seq:
            why = f"there are two entries {first}, the other after entry {before.seq}: one was put in"
            return ChainBreak(first, why)
        if first <= before.seq:
            return ChainBreak(found.seq, f"after entry {before.seq} an entry {first} was put in")
        return ChainBreak(found.seq, f"entry {found.seq} is missing, the next one is {first}")


class CheckpointVerifier:
    """The checkpoints of a space: which of them can be believed, and which fit."""

    def __init__(self, space: str, keys: Sequence[Ed25519PublicKey]) -> None:
        """Without a key all are believed."""
        self._space = space
        self._keys = keys
        self._fit = 0
        self._before = 0
        self._signers: dict[str, None] = {}
        self._last: Checkpoint | None = None
        self._wrong: list[str] = []
        self._wrong_count = 0

    def believes(self, checkpoint: Checkpoint) -> bool:
        """Whether it is of this space, and of one who has such a key; what is wrong with it is noted."""
        what = f"the checkpoint after entry {checkpoint.seq}"
        if checkpoint.space != self._space:
            self.doubt(f"{what} is of space {named(checkpoint.space)}")
            return False
        if not self._keys or any(has_valid_signature(checkpoint, key) for key in self._keys):
            return True
        self.doubt(
            f"{what} was not signed with {'this key' if len(self._keys) == 1 else 'one of these keys'}"
        )
        return False

    def doubt(self, why: str) -> None:
        """Something is wrong with what should be a checkpoint."""
        self._wrong_count += 1
        if len(self._wrong) < _WRONG_MAX:
            self._wrong.append(why)

    def pass_over(self) -> None:
        """One lies before all that is here."""
        self._before += 1

    def agree(self, checkpoint: Checkpoint) -> None:
        """It says what the chain says."""
        self._fit += 1
        self._last = checkpoint
        self._signers[checkpoint.key] = None

    def summary(self, *, is_done: bool) -> CheckpointSummary:
        """Of what was seen; where all was gone through, keys that have signed nothing of it are a fault."""
        wrong = self._wrong
        if self._wrong_count > len(wrong):
            wrong = [*wrong, f"and so on, {self._wrong_count} in all"]
        if is_done and self._keys and not self._fit and not wrong:
            wrong = ["nothing here was signed with the key: there is no checkpoint to compare with"]
        return CheckpointSummary(
            fit=self._fit,
            before=self._before,
            checked=bool(self._keys),
            keys=tuple(self._signers),
            last=None if self._last is None else EntryTime(self._last.seq, self._last.at),
            wrong=tuple(wrong),
        )
