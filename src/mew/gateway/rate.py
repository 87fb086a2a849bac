"""PURE. How fast somebody may send: a bucket that fills by itself."""

from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING, Final

from mew import compiled

__all__ = ["Bucket", "Buckets"]


class BucketInPython:
    """Holds up to `burst` tokens and gains `per_second` of them; `now_s` is any clock that only goes forward."""

    __slots__ = ("_at_s", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._at_s = -inf

    def take(self, now_s: float) -> float:
        """Take one token; 0 if there was one, else how many seconds until there is."""
        tokens = self._tokens + (now_s - self._at_s) * self._per_second
        if tokens > self._burst:
            tokens = self._burst
        self._at_s = now_s
        if tokens >= 1:
            self._tokens = tokens - 1
            return 0.0
        self._tokens = tokens
        return (1 - tokens) / self._per_second


if TYPE_CHECKING:
    Bucket = BucketInPython
else:
    Bucket = compiled.Bucket or BucketInPython


class Buckets:
    """A bucket for each of those who come and go without a connection; who was idle longest is forgotten first."""

    BUCKETS_MAX: Final = 4096

    def __init__(self) -> None:
        self._buckets: dict[tuple[Hashable, float, float], Bucket] = {}

    def of(self, whose: Hashable, *, per_second: float, burst: float) -> Bucket:
        key = (whose, per_second, burst)
        bucket = self._buckets.pop(key, None) or Bucket(per_second, burst)
        self._buckets[key] = bucket
        if len(self._buckets) > self.BUCKETS_MAX:
            del self._buckets[next(iter(self._buckets))]
        return bucket
