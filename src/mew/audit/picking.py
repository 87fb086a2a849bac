"""Which entries to look at for what is asked: the fewer, the better the index or their bytes tell."""

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Final

from msgspec import Struct

from mew.protocol.capability import Capability
from mew.protocol.envelope import GATEWAY
from mew.protocol.kinds import RESERVED_PREFIX, Kind

from .chronicle import Chronicle, Part
from .facts import is_talk

__all__ = ["Picking", "Wanted"]

_KINDS_MAX: Final = 1_000
_SOME: Final = 200
_SINGLE: Final = 20  # as many can be read in a row as one that is looked up
_WILDCARDS: Final = re.compile(r"[*?]")
_OWN: Final = (RESERVED_PREFIX, "capability/", "stream/", "space/", "participant/")
_KINDS: Final = """
WITH RECURSIVE each(kind) AS (
    SELECT min(kind) FROM facts
    UNION ALL SELECT (SELECT min(kind) FROM facts WHERE kind > each.kind) FROM each WHERE each.kind IS NOT NULL
)
SELECT kind FROM each WHERE kind IS NOT NULL LIMIT ?
"""


class Wanted(Struct, frozen=True, kw_only=True):
    """What is asked for. `numbers`: of the entries, where they are known."""

    kind: Capability | None = None
    sender: str | None = None
    numbers: Sequence[int] | None = None
    newest_first: bool = False


class Picking:
    """Finds the entries that may have shown what is wanted; whether they did, who gets them has to look."""

    def __init__(self, chronicle: Chronicle, wanted: Wanted) -> None:
        self._chronicle = chronicle
        self._wanted = wanted
        pattern = "" if wanted.kind is None else wanted.kind.source.get("kind")
        self._pattern = pattern if isinstance(pattern, str) else ""
        self._kinds = self._recorded_kinds()
        self._texts = self._certain_texts()

    def parts(self, after: int, until: int) -> Iterator[Part]:
        """Those after one number, up to and with another, in the order that is wanted."""
        newest_first = self._wanted.newest_first
        numbers = self._numbers(after, until)
        if numbers is None:
            walk = self._chronicle.backwards if newest_first else self._chronicle.forwards
            yield from walk(after, until, self._texts)
            return
        for number in numbers:
            yield Part(self._chronicle.each((number,)), number - newest_first, _SINGLE)

    def _numbers(self, after: int, until: int) -> Iterator[int] | None:
        """Where all that may be wanted has facts, the numbers of those."""
        wanted = self._wanted
        if wanted.numbers is not None:
            numbers = [number for number in wanted.numbers if after < number <= until]
            return reversed(numbers) if wanted.newest_first else iter(numbers)
        if wanted.sender == GATEWAY:
            return self._with_facts(("who = ?", GATEWAY), after=after, until=until)
        if self._kinds is None:
            return None
        of_sender = () if wanted.sender is None else (wanted.sender,)
        which = "kind = ? AND who = ?" if of_sender else "kind = ?"
        each = [self._with_facts((which, kind, *of_sender), after=after, until=until) for kind in self._kinds]
        return _each_once(merge(*each, reverse=wanted.newest_first))

    def _with_facts(self, which: tuple[str, ...], *, after: int, until: int) -> Iterator[int]:
        """Of entries that have a fact like that; a condition in SQL comes first, then its values."""
        newest_first = self._wanted.newest_first
        query = (
            f"SELECT DISTINCT seq FROM facts WHERE {which[0]} AND seq > ? AND seq <= ? AND refusal = ''"
            f" ORDER BY seq {'DESC' if newest_first else 'ASC'} LIMIT {_SOME}"
        )
        while True:
            found = self._chronicle.index.rows(query, (*which[1:], after, until))
            for (number,) in found:
                yield number
            if len(found) < _SOME:
                return
            after, until = (after, found[-1][0] - 1) if newest_first else (found[-1][0], until)

    def _recorded_kinds(self) -> list[str] | None:
        """The kinds that fit, where everything that can fit has a fact; None: it may be talk, or there are too many."""
        plain = _WILDCARDS.split(self._pattern)[0]
        if (is_talk(plain) and not plain.startswith(RESERVED_PREFIX)) or self._is_of_kind(Kind.STATUS):
            return None
        kinds = self._chronicle.index.rows(_KINDS, (_KINDS_MAX,))
        return None if len(kinds) == _KINDS_MAX else [kind for (kind,) in kinds if self._is_of_kind(kind)]

    def _certain_texts(self) -> tuple[bytes, ...]:
        """One of these is in the bytes of all that may be wanted; none: nobody knows.

        A letter may be written otherwise than as itself, but not without a backslash.
        """
        if self._wanted.sender is not None:
            return self._wanted.sender.encode(), b"\\u"
        plain = "" if self._pattern[:1] in ("!", "/") else _WILDCARDS.split(self._pattern)[0]
        if not plain or any(plain.startswith(own) or own.startswith(plain) for own in _OWN):
            return ()  # what the gateway itself says is not in the journal
        return plain.encode(), b"\\u", b"\\/"

    def _is_of_kind(self, kind: str) -> bool:
        return self._wanted.kind is None or self._wanted.kind.fits(kind, (), lambda: None)


def _each_once(numbers: Iterable[int]) -> Iterator[int]:
    last = None
    for number in numbers:
        if number != last:
            yield number
        last = number
