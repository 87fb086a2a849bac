"""What a participant retains of the conversation, and what becomes of it on request (§3.9.4 to §3.9.8).

`Memory` is the port: an agent that keeps more than envelopes has its own. `NoMemory` is for who answers and forgets.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from mew.client.mcp.call import run
from mew.protocol.envelope import Envelope

__all__ = [
    "Compactor",
    "Direction",
    "EnvelopeMemory",
    "Freed",
    "Memory",
    "MemoryUsage",
    "NoMemory",
    "concerns",
]

Direction = Literal["oldest", "newest"]

Compactor = Callable[[tuple[Envelope, ...], int | None], Iterable[Envelope] | Awaitable[Iterable[Envelope]]]
"""From all that is retained, oldest first, and how many tokens it should have at most: what is to stay."""

_ENVELOPES_MAX: Final = 10_000
_BYTES_MAX: Final = 32 << 20
_OVERHEAD_BYTES: Final = 512  # of an envelope, beside its payload

# Said about participants and the space, not to be talked about: it is no part of a conversation.
_ABOUT: Final = ("system/", "participant/", "capability/", "space/", "stream/")


@dataclass(frozen=True)
class MemoryUsage:
    """`messages` are the envelopes retained; tokens are None where nobody said how to count them."""

    messages: int
    tokens: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class Freed:
    """What a compaction gave back; None where it is not known."""

    messages: int | None = None
    tokens: int | None = None


class Memory(Protocol):
    """All but `compact` must return at once: they are called between two envelopes. Whatever one raises is logged, and
    who asked is told that it failed."""

    def remember(self, envelope: Envelope) -> None:
        """An envelope that concerns the participant: it sent it, or is addressed, or everyone is."""

    def usage(self) -> MemoryUsage:
        """How full it is; asked after each envelope."""

    def forget(self, direction: Direction, entries: int | None) -> None:
        """Drop so many from one end; None leaves it to the memory how many (§3.9.5)."""

    async def compact(self, target_tokens: int | None) -> Freed | None:
        """Make room, down to so many tokens where that is given and can be done; None: there is nothing to compact.

        Cancelled when everything is cleared meanwhile.
        """

    def clear(self) -> None:
        """Erase everything, whatever it is (§3.9.8)."""


class NoMemory:
    """Of who retains nothing."""

    def remember(self, envelope: Envelope) -> None:
        """No."""

    def usage(self) -> MemoryUsage:
        return MemoryUsage(messages=0)

    def forget(self, direction: Direction, entries: int | None) -> None:
        """There is nothing."""

    async def compact(self, target_tokens: int | None) -> Freed | None:
        return None

    def clear(self) -> None:
        """There is nothing."""


class EnvelopeMemory:
    """Keeps the envelopes themselves, the last 10,000 or 32 MiB of them: iterate for them, oldest first.

    `count` says how many tokens an envelope has, and without it none are reported. Compacting calls `compactor`, in a
    thread if it is not async, or else drops the oldest: until `target_tokens` are left, or half of the envelopes.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        count: Callable[[Envelope], int] | None = None,
        compactor: Compactor | None = None,
        envelopes_max: int = _ENVELOPES_MAX,
        bytes_max: int = _BYTES_MAX,
    ) -> None:
        """
        Raises:
            ValueError: a maximum of tokens, and no way to count them.
        """
        if max_tokens is not None and count is None:
            raise ValueError("max_tokens says nothing without count, which tells the tokens of an envelope")
        self._max_tokens = max_tokens
        self._count = count
        self._compactor = compactor
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._kept: deque[_Kept] = deque()
        self._tokens = 0
        self._bytes = 0
        self._taken = 0  # how often something was taken away: what was compacted before that is out of date

    def __iter__(self) -> Iterator[Envelope]:
        return iter([kept.envelope for kept in self._kept])

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, envelope: Envelope) -> None:
        self._add(self._weighed(envelope))
        while len(self._kept) > self._envelopes_max or (
            self._bytes > self._bytes_max and len(self._kept) > 1
        ):
            self._subtract(self._kept.popleft())

    def usage(self) -> MemoryUsage:
        return MemoryUsage(len(self._kept), None if self._count is None else self._tokens, self._max_tokens)

    def forget(self, direction: Direction, entries: int | None) -> None:
        """Without a number, half of them, rounded up."""
        self._taken += 1
        many = (len(self._kept) + 1) // 2 if entries is None else min(entries, len(self._kept))
        for _ in range(many):
            self._subtract(self._kept.popleft() if direction == "oldest" else self._kept.pop())

    async def compact(self, target_tokens: int | None) -> Freed | None:
        before, tokens = len(self._kept), self._tokens
        if not before:
            return None
        if self._compactor is not None:
            came = await self._compact_with(self._compactor, target_tokens)
            before, tokens = before + came.messages, tokens + (came.tokens or 0)
        elif not self._drop_oldest(target_tokens):
            return None
        freed = max(0, tokens - self._tokens)
        return Freed(max(0, before - len(self._kept)), None if self._count is None else freed)

    def clear(self) -> None:
        self._taken += 1
        self._kept.clear()
        self._tokens = self._bytes = 0

    async def _compact_with(self, compactor: Compactor, target_tokens: int | None) -> MemoryUsage:
        """Put what it returns in the place of what there was; returns what came meanwhile, which stays."""
        taken, old = self._taken, list(self._kept)
        stays = [self._weighed(envelope) for envelope in await run(compactor, tuple(self), target_tokens)]
        if taken != self._taken:
            raise RuntimeError("something was forgotten while it was being compacted")
        known = {id(kept) for kept in old}
        came = [kept for kept in self._kept if id(kept) not in known]
        self.clear()
        for kept in (*stays, *came):
            self._add(kept)
        return MemoryUsage(len(came), sum(kept.tokens for kept in came))

    def _drop_oldest(self, target_tokens: int | None) -> int:
        """Returns how many; the newest stays in any case."""
        before = len(self._kept)
        if target_tokens is None or self._count is None:
            for _ in range(before // 2):
                self._subtract(self._kept.popleft())
        else:
            while self._tokens > target_tokens and len(self._kept) > 1:
                self._subtract(self._kept.popleft())
        return before - len(self._kept)

    def _weighed(self, envelope: Envelope) -> "_Kept":
        tokens = 0 if self._count is None else max(0, int(self._count(envelope)))
        return _Kept(envelope, tokens, len(bytes(envelope.payload)) + _OVERHEAD_BYTES)

    def _add(self, kept: "_Kept") -> None:
        self._kept.append(kept)
        self._tokens += kept.tokens
        self._bytes += kept.size_bytes

    def _subtract(self, kept: "_Kept") -> None:
        self._tokens -= kept.tokens
        self._bytes -= kept.size_bytes


@dataclass(frozen=True, slots=True)
class _Kept:
    envelope: Envelope
    tokens: int
    size_bytes: int


def concerns(envelope: Envelope, me: str) -> bool:
    """Whether an envelope is part of a participant's conversation.

    What it sent, what names it, and what is said to everyone; not what is said about participants and the space, and
    not how others reason, unless it is asked to take part (§3.5.6).
    """
    if envelope.kind.startswith(_ABOUT):
        return False
    if envelope.sender == me or me in envelope.to:
        return True
    return not envelope.to and not envelope.kind.startswith("reasoning/")
