"""PURE. Rate limiting: a token bucket for the envelopes of a connection, a budget for the bytes of a participant."""

from collections.abc import Hashable
from math import inf
from typing import Final

__all__ = ["ByteBudget", "ByteBudgets", "RateLimiter", "RateLimiters"]


class RateLimiter:
    """A token bucket: holds up to `burst` tokens and gains `per_second` of them. `now_s` is any monotonic clock."""

    __slots__ = ("_at_s", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._at_s = -inf

    def take(self, now_s: float, count: int = 1) -> int:
        """Take this many tokens, or as many as there are; return how many that is."""
        tokens = self._tokens + (now_s - self._at_s) * self._per_second
        if tokens > self._burst:
            tokens = self._burst
        self._at_s = now_s
        taken = count if tokens >= count else int(tokens)
        self._tokens = tokens - taken
        return taken

    def put_back(self, count: int = 1) -> None:
        """Return unused tokens."""
        self._tokens = min(self._burst, self._tokens + count)

    @property
    def wait_s(self) -> float:
        """Seconds until the next token, as of the last `take`."""
        return max(0.0, (1 - self._tokens) / self._per_second)


class ByteBudget:
    """What one participant may send in bytes, over all its connections. `now_s` is any monotonic clock.

    Whoever receives from it takes the bytes from `left`, below zero if need be, and then waits for `debt_s`: nothing
    is lost, the sender is slowed down. It refills only when asked, so that receiving costs a subtraction.
    """

    __slots__ = ("_at_s", "_burst", "_per_second", "left")

    def __init__(self, per_second: float, burst: float, now_s: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._at_s = now_s
        self.left = burst

    def debt_s(self, now_s: float) -> float:
        """Refill; return the seconds until nothing is owed any more."""
        self.left = min(self._burst, self.left + (now_s - self._at_s) * self._per_second)
        self._at_s = now_s
        return max(0.0, -self.left / self._per_second)


class ByteBudgets:
    """One budget per participant; the least recently used is evicted."""

    BUDGETS_MAX: Final = 4096

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._budgets: dict[str, ByteBudget] = {}

    def of(self, who: str, now_s: float) -> ByteBudget:
        budget = self._budgets.pop(who, None) or ByteBudget(self._per_second, self._burst, now_s)
        self._budgets[who] = budget
        if len(self._budgets) > self.BUDGETS_MAX:
            del self._budgets[next(iter(self._budgets))]
        return budget


class RateLimiters:
    """One limiter per key, for clients without a connection; the least recently used is evicted."""

    LIMITERS_MAX: Final = 4096

    def __init__(self) -> None:
        self._limiters: dict[tuple[Hashable, float, float], RateLimiter] = {}

    def of(self, whose: Hashable, *, per_second: float, burst: float) -> RateLimiter:
        key = (whose, per_second, burst)
        limiter = self._limiters.pop(key, None) or RateLimiter(per_second, burst)
        self._limiters[key] = limiter
        if len(self._limiters) > self.LIMITERS_MAX:
            del self._limiters[next(iter(self._limiters))]
        return limiter
