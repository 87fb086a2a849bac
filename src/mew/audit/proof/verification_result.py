"""PURE. What going through a chain has shown, for people and for programs."""

from datetime import datetime

from msgspec import Struct

from mew.journal.port import Loss

__all__ = ["Broken", "Checkpoints", "Place", "Point", "Verdict", "unreadable"]


class Place(Struct, frozen=True):
    """A place in a chain: the last entry before it, and its hash in hexadecimal."""

    seq: int
    hash: str


class Point(Struct, frozen=True):
    """An entry, and when it was written: None where that cannot be read any more."""

    seq: int
    at: datetime | None


class Broken(Struct, frozen=True):
    """The first entry that is not sound, and why; all before it are. Without a number: it is no entry."""

    seq: int | None
    why: str


class Checkpoints(Struct, frozen=True, kw_only=True):
    """How many fit the chain, how many lie before it and cannot be compared, and what is wrong with others.

    `checked`: whether their signatures were, by the keys that were given. `last` is the last that fits, and `keys` are
    the fingerprints of those that signed.
    """

    fit: int = 0
    before: int = 0
    checked: bool = False
    keys: tuple[str, ...] = ()
    last: Point | None = None
    wrong: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """What is sound: entries from `first` to `last`, so many, after a place that is `after`.

    `begins`: whether that is where the space itself began; if not, the entries before it are not here. `lost`: entries
    that were committed and then missing, as a start of the gateway noticed.
    """

    space: str
    after: Place | None
    begins: bool
    entries: int
    first: Point | None
    last: Point | None
    broken: Broken | None
    checkpoints: Checkpoints
    lost: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return self.broken is None and not self.checkpoints.wrong and not self.lost


def unreadable(why: str, space: str = "") -> Verdict:
    """Nothing of it can be read."""
    return Verdict(
        space=space,
        after=None,
        begins=False,
        entries=0,
        first=None,
        last=None,
        broken=Broken(None, why),
        checkpoints=Checkpoints(),
    )
