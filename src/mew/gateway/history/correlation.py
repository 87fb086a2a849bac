"""PURE. An index of envelopes linked by `correlation_id`, built on demand and updated incrementally."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

__all__ = ["LINKS_MAX", "CorrelationChain", "CorrelationIndex"]

LINKS_MAX: Final = 100_000
"""So many links are followed for one answer: some 20 ms."""


class CorrelationChain(Struct, frozen=True):
    """The ids of what hangs together; not `complete`: there are too many links to follow them all."""

    ids: set[str]
    complete: bool


class CorrelationIndex:
    """Knows envelopes by consecutive numbers. To bring it up to date costs what came and went since."""

    def __init__(self) -> None:
        self._first = 0
        self._kept: dict[int, tuple[str, tuple[str, ...]]] = {}  # not the envelopes: those hold their bytes
        self._mentions: dict[str, int | list[int]] = {}  # by id: those that have or name it, ascending

    @property
    def end(self) -> int:
        """The number of the first envelope not known yet."""
        return self._first + len(self._kept)

    def drop_before(self, number: int) -> None:
        """Forget those before this one; if all are, the next to come has this number."""
        while self._first < number and self._kept:
            for mentioned in _mentioned(*self._kept.pop(self._first)):
                numbers = self._mentions[mentioned]
                if isinstance(numbers, int) or len(numbers) == 1:
                    del self._mentions[mentioned]
                else:
                    del numbers[0]
            self._first += 1
        self._first = max(self._first, number)

    def add(self, envelopes: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """The next ones: the id of each and those it names."""
        mentions = self._mentions
        for number, (own, named) in enumerate(envelopes, self.end):
            self._kept[number] = (own, named)
            for mentioned in _mentioned(own, named):
                numbers = mentions.setdefault(mentioned, number)  # no list for the many that occur once
                if isinstance(numbers, list):
                    numbers.append(number)
                elif numbers != number:
                    mentions[mentioned] = [numbers, number]

    def chain(self, ids: Iterable[str], is_seen: Callable[[int], bool]) -> CorrelationChain:
        """All that hangs together with these, whoever names whom, through envelopes that are seen; nearest first."""
        found = set(ids)
        to_visit = deque(found)
        passed: set[int] = set()
        links = 0
        while to_visit:
            numbers = self._mentions.get(to_visit.popleft(), ())
            for number in (numbers,) if isinstance(numbers, int) else numbers:
                links += 1
                if number in passed or not is_seen(number):
                    continue
                passed.add(number)
                own, named = self._kept[number]
                links += len(named)
                fresh = [each for each in (own, *named) if each not in found]
                found.update(fresh)
                to_visit.extend(fresh)
                if links > LINKS_MAX:
                    return CorrelationChain(found, complete=False)
        return CorrelationChain(found, complete=True)


def _mentioned(own: str, named: tuple[str, ...]) -> Iterable[str]:
    """Each once: most envelopes name one other or none."""
    if not named:
        return (own,)
    if len(named) == 1 and named[0] != own:
        return (own, named[0])
    return dict.fromkeys((own, *named))
