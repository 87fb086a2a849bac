"""PURE. How fast somebody may send: a bucket that fills by itself."""

__all__ = ["Bucket"]


class Bucket:
    """Holds up to `burst` tokens and gains `per_second` of them; `now_s` is any clock that only goes forward."""

    __slots__ = ("_at_s", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._at_s = 0.0

    def take(self, now_s: float) -> float:
        """Take one token; 0 if there was one, else how many seconds until there is."""
        tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._per_second)
        self._at_s = now_s
        if tokens >= 1:
            self._tokens = tokens - 1
            return 0.0
        self._tokens = tokens
        return (1 - tokens) / self._per_second
