"""PURE. The result of a verification, for people and programs."""

from datetime import datetime

from msgspec import Struct

from mew.journal.port import LostEntries

__all__ = [
    "BrokenEntry",
    "ChainPosition",
    "CheckpointSummary",
    "EntryTime",
    "VerificationResult",
    "unreadable",
]


class ChainPosition(Struct, frozen=True):
    """A place in a chain: the last entry before it, and its hash in hexadecimal."""

    seq: int
    hash: str


class EntryTime(Struct, frozen=True):
    """An entry, and when it was written: None where that cannot be read any more."""

    seq: int
    at: datetime | None


class BrokenEntry(Struct, frozen=True):
    """The first entry that is not sound, and why; all before it are. Without a number: it is no entry."""

    seq: int | None
    why: str


class CheckpointSummary(Struct, frozen=True, kw_only=True):
    """How many fit the chain, how many lie before it and cannot be compared, and what is wrong with others.

    `checked`: whether their signatures were, by the keys that were given. `last` is the last that fits, and `keys` are
    the fingerprints of those that signed.
    """

    fit: int = 0
    before: int = 0
    checked: bool = False
    keys: tuple[str, ...] = ()
    last: EntryTime | None = None
    wrong: tuple[str, ...] = ()


class VerificationResult(Struct, frozen=True, kw_only=True):
    """What is sound: entries from `first` to `last`, so many, after a place that is `after`.

    `begins`: whether that is where the space itself began; if not, the entries before it are not here. `lost`: entries
    that were committed and then missing, as a start of the gateway noticed.
    """

    space: str
    after: ChainPosition | None
    begins: bool
    entries: int
    first: EntryTime | None
    last: EntryTime | None
    broken: BrokenEntry | None
    checkpoints: CheckpointSummary
    lost: tuple[LostEntries, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return self.broken is None and not self.checkpoints.wrong and not self.lost


def unreadable(why: str, space: str = "") -> VerificationResult:
    """Nothing of it can be read."""
    return VerificationResult(
        space=space,
        after=None,
        begins=False,
        entries=0,
        first=None,
        last=None,
        broken=BrokenEntry(None, why),
        checkpoints=CheckpointSummary(),
    )
