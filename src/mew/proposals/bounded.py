"""PURE. What keeps a memory of a space bounded and fair: envelopes seen before, and who takes up the most room."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from mew.protocol.envelope import Envelope

__all__ = ["Seen", "Shares", "oldest_of_the_greediest"]

_SEEN_LEAST: Final = 16_384

Key = TypeVar("Key", bound=Hashable)


class Seen:
    """Tells an envelope of a replay from a new one, among the last 16,384 at least.

    By id, sender and time: TypeScript clients count their ids from the start again when they restart.
    """

    def __init__(self, least: int = _SEEN_LEAST) -> None:
        self._least = least
        self._now: set[tuple[Hashable, ...]] = set()
        self._before: set[tuple[Hashable, ...]] = set()

    def first(self, envelope: Envelope) -> bool:
        """Whether this envelope was not here before; now it was."""
        key = (envelope.id, envelope.sender, envelope.ts)
        if key in self._now or key in self._before:
            return False
        self._now.add(key)
        if len(self._now) >= self._least:
            self._before, self._now = self._now, set()
        return True


class Shares(Generic[Key]):
    """Who holds what, and of what size: so that past a bound the one who holds the most gives way, and no other."""

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self._held: dict[str, dict[Key, int]] = {}
        self._sizes: dict[str, int] = {}

    def hold(self, owner: str, key: Key, size: int = 0) -> None:
        """It is the owner's, and takes so much room; its age counts from the first time."""
        held = self._held.setdefault(owner, {})
        before = held.get(key)
        held[key] = size
        self.count += before is None
        self.size += size - (before or 0)
        self._sizes[owner] = self._sizes.get(owner, 0) + size - (before or 0)

    def release(self, owner: str, key: Key) -> None:
        """It is no longer held, if it was."""
        held = self._held.get(owner, {})
        if key in held:
            size = held.pop(key)
            self.count -= 1
            self.size -= size
            self._sizes[owner] -= size
            if not held:
                del self._held[owner], self._sizes[owner]

    def oldest_of_most(self) -> Key:
        """The oldest of whoever holds the greatest number."""
        return self._oldest(max(self._held, key=lambda owner: len(self._held[owner])))

    def oldest_of_largest(self) -> Key:
        """The oldest of whoever takes the most room."""
        return self._oldest(max(self._sizes, key=self._sizes.__getitem__))

    def _oldest(self, owner: str) -> Key:
        return next(iter(self._held[owner]))


def oldest_of_the_greediest(held: Iterable[tuple[Key, str, int]]) -> Key:
    """Of keys held for somebody, oldest first, each with its weight: the first key of whoever has the most in all.

    So that no one pushes out what is another's.
    """
    weights: Counter[str] = Counter()
    oldest: dict[str, Key] = {}
    for key, owner, weight in held:
        weights[owner] += weight
        oldest.setdefault(owner, key)
    assert oldest, "nothing is held"
    return oldest[max(oldest, key=weights.__getitem__)]
