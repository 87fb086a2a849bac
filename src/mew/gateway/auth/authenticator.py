"""Authenticators: the port, configured tokens, and the throttle for failed attempts."""

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, TypeAlias

from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

from .tokens import TokenTable

__all__ = [
    "AuthUnavailable",
    "Authenticator",
    "Claims",
    "Identity",
    "StaticTokens",
    "Throttle",
    "TokenSource",
    "network_of",
]


class TokenSource(StrEnum):
    """The source of a token. Invitation tokens are known to the space, not here."""

    CONFIGURED = "configured"
    JWT = "jwt"


@dataclass(frozen=True, slots=True)
class Identity:
    """The participant a token identifies; `capabilities` None means that the space's configuration decides."""

    participant: ParticipantId
    capabilities: tuple[Capability, ...] | None
    source: TokenSource


class AuthUnavailable(Exception):
    """The token cannot be verified now, because the issuer's keys are unavailable. Retry later."""


Claims: TypeAlias = Mapping[str, Any]
"""The claims of a token with a verified signature."""


class Authenticator(Protocol):
    """Verify signed tokens. `is_candidate` is cheap, `verify` is not."""

    def is_candidate(self, token: str) -> bool:
        """Whether the token has the form of one that `verify` could accept."""
        ...

    async def verify(self, token: str) -> Claims | None:
        """Check the signature and return the claims; None if the token is not valid.

        Raises:
            AuthUnavailable: it may or may not be valid.
        """
        ...

    def identity(self, claims: Claims, space: str) -> Identity | None:
        """Return who the claims describe in this space; None if nobody."""
        ...


class StaticTokens:
    """The tokens of configured participants."""

    def __init__(self, tables: Mapping[str, TokenTable]) -> None:
        self._tables = tables

    def identify(self, digest: str, space: str) -> Identity | None:
        """Return whose token has this hash in this space; None if it is not configured."""
        table = self._tables.get(space)
        participant = table.holder(digest) if table is not None else None
        return Identity(participant, None, TokenSource.CONFIGURED) if participant is not None else None


class Throttle:
    """Delay answers to wrong tokens, per address, with exponential backoff. The caller passes the time.

    A valid token is never delayed and resets nothing: others may be guessing from the same address.
    """

    FREE: Final = 5
    FIRST_S: Final = 0.25
    MOST_S: Final = 8.0
    FORGET_S: Final = 60.0
    ADDRESSES_MAX: Final = 10_000
    WAITING_MAX: Final = 16
    WAITING_MAX_ALL: Final = 1024

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, float]] = {}  # oldest first
        self._waiting: Counter[str] = Counter()

    def failed(self, address: str, now: float) -> float:
        """Count a failure; return the delay of its answer in seconds, doubling up to `MOST_S`."""
        origin = network_of(address)
        count = self._count(origin, now)
        self._failures.pop(origin, None)
        while len(self._failures) >= self.ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[origin] = (count + 1, now)
        extra = count - self.FREE
        return 0.0 if extra < 0 else min(self.FIRST_S * 2 ** min(extra, 16), self.MOST_S)

    def is_full(self, address: str) -> bool:
        """Whether the limit of delayed answers is reached, for this address or in all."""
        return (
            self._waiting[network_of(address)] >= self.WAITING_MAX
            or self._waiting.total() >= self.WAITING_MAX_ALL
        )

    @contextmanager
    def waiting(self, address: str) -> Iterator[None]:
        """Count a delayed answer for this address."""
        origin = network_of(address)
        self._waiting[origin] += 1
        try:
            yield
        finally:
            self._waiting[origin] -= 1
            if not self._waiting[origin]:
                del self._waiting[origin]

    def _count(self, origin: str, now: float) -> int:
        count, at = self._failures.get(origin, (0, now))
        return count if now - at < self.FORGET_S else 0


def network_of(address: str) -> str:
    """The address, or the /64 network of an IPv6 address, which one client usually controls entirely."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address  # a Unix socket
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(parsed) >> 64 << 64))
