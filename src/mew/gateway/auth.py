"""Whose token it is: the port, the configured tokens behind it, and how failed attempts are slowed down."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

from .tokens import TokenTable

__all__ = ["AuthUnavailable", "Authenticator", "Chain", "Identity", "StaticTokens", "Throttle", "TokenSource"]


class TokenSource(StrEnum):
    """Where a token is known from. Those of invitations are known to the space, not here."""

    CONFIGURED = "configured"
    JWT = "jwt"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token says one is. `capabilities` is None where the space's configuration decides."""

    participant: ParticipantId
    capabilities: tuple[Capability, ...] | None
    source: TokenSource


class AuthUnavailable(Exception):
    """Nothing is known of the token: what would tell cannot be reached now. Try again later."""


class Authenticator(Protocol):
    """Knows some tokens."""

    async def identify(self, token: str, space: str) -> Identity | None:
        """Say who has this token in this space; None if it is not one of those known here.

        Raises:
            AuthUnavailable: it may or may not be one.
        """
        ...


class StaticTokens:
    """The tokens of configured participants."""

    def __init__(self, tables: Mapping[str, TokenTable]) -> None:
        self._tables = tables

    async def identify(self, token: str, space: str) -> Identity | None:
        table = self._tables.get(space)
        participant = table.find(token) if table is not None else None
        return Identity(participant, None, TokenSource.CONFIGURED) if participant is not None else None


class Chain:
    """Several authenticators, asked in order until one knows the token."""

    def __init__(self, *authenticators: Authenticator) -> None:
        self._authenticators = authenticators

    async def identify(self, token: str, space: str) -> Identity | None:
        unavailable: AuthUnavailable | None = None
        for authenticator in self._authenticators:
            try:
                identity = await authenticator.identify(token, space)
            except AuthUnavailable as error:
                unavailable = error  # a later one may know the token all the same
            else:
                if identity is not None:
                    return identity
        if unavailable is not None:
            raise unavailable
        return None


class Throttle:
    """How long an address waits before its next attempt, after failed ones. The clock is the caller's."""

    FREE: Final = 5
    FIRST_S: Final = 0.25
    MOST_S: Final = 8.0
    FORGET_S: Final = 60.0
    ADDRESSES_MAX: Final = 10_000

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, float]] = {}  # oldest first

    def delay_s(self, address: str, now: float) -> float:
        """Seconds to wait before answering an attempt from here: none, then doubling up to `MOST_S`."""
        extra = self._count(_origin(address), now) - self.FREE
        return 0.0 if extra < 0 else min(self.FIRST_S * 2 ** min(extra, 16), self.MOST_S)

    def failed(self, address: str, now: float) -> None:
        origin = _origin(address)
        count = self._count(origin, now) + 1
        self._failures.pop(origin, None)
        while len(self._failures) >= self.ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[origin] = (count, now)

    def succeeded(self, address: str) -> None:
        self._failures.pop(_origin(address), None)

    def _count(self, origin: str, now: float) -> int:
        count, at = self._failures.get(origin, (0, now))
        return count if now - at < self.FORGET_S else 0


def _origin(address: str) -> str:
    """The address, or the /64 an IPv6 one is in: whoever has one address of it has them all."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address  # a Unix socket
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(parsed) >> 64 << 64))
