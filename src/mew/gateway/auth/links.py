"""Links that sign somebody in on the page: a code that works once, and not for long (decision 0012)."""

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from mew.protocol.envelope import ParticipantId

from .tokens import hash_token

__all__ = ["Link", "Links"]


class Link(Struct, frozen=True):
    """What a code is good for. `stands_for`: the hash of the token that asked for it."""

    space: str
    participant: ParticipantId
    stands_for: str
    expires: datetime


class Links:
    """The codes that have not been used; only hashes of them are kept, and never in a file.

    Who asks for more than `EACH_MAX` makes the oldest of their own worthless, and nobody else's.
    """

    LIFETIME: Final = timedelta(minutes=10)
    LIFETIME_MAX: Final = timedelta(days=1)
    EACH_MAX: Final = 16
    ALL_MAX: Final = 1024

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._links: dict[str, Link] = {}  # by the hash of the code, the oldest first

    def make(
        self, space: str, participant: ParticipantId, stands_for: str, lifetime: timedelta = LIFETIME
    ) -> tuple[str, Link]:
        """A new code, which is told to nobody else, and what it is good for; at most for `LIFETIME_MAX`."""
        self._drop_expired()
        own = [
            key for key, link in self._links.items() if (link.space, link.participant) == (space, participant)
        ]
        for key in own[: max(0, len(own) - self.EACH_MAX + 1)]:
            del self._links[key]
        while len(self._links) >= self.ALL_MAX:
            del self._links[next(iter(self._links))]
        code = secrets.token_urlsafe(32)
        link = Link(space, participant, stands_for, self._now() + min(lifetime, self.LIFETIME_MAX))
        self._links[hash_token(code)] = link
        return code, link

    def take(self, code: str) -> Link | None:
        """What the code is good for, this once; None: it never was, was used before, or is too old."""
        self._drop_expired()
        return self._links.pop(hash_token(code), None)

    def _drop_expired(self) -> None:
        now = self._now()
        for key in [key for key, link in self._links.items() if link.expires <= now]:
            del self._links[key]
