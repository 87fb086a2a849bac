"""What was shown in a space before now, as far back as the gateway keeps it: fetched as it is iterated over."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, Self

from msgspec import Raw, Struct

from mew.protocol.capability import Capability
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError

from .connection.connection import ClientConnection
from .connection.transport import Walk
from .errors import ConnectError

__all__ = ["HistoryFilter", "HistoryIterator"]

_AWAY_S: Final = 30.0
_AGAIN_S: Final = 0.5


class HistoryFilter(Struct, frozen=True, kw_only=True):
    """What to look for. An envelope may stand for its id."""

    limit: int | None = None
    before: Envelope | str | None = None
    after: Envelope | str | None = None
    since: datetime | None = None
    until: datetime | None = None
    kind: str | None = None
    participant: str | None = None
    correlation: Envelope | str | None = None
    newest_first: bool = False

    def query(self) -> dict[str, str]:
        """As a gateway is asked.

        Raises:
            ValueError: a moment without a time zone, or a limit below 1.
            InvalidCapability: the kind is no pattern.
        """
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit: {self.limit} is less than 1")
        if self.kind is not None:
            Capability.parse({"kind": self.kind})
        given = {
            "before": _id(self.before),
            "after": _id(self.after),
            "since": _moment("since", self.since),
            "until": _moment("until", self.until),
            "kind": self.kind,
            "participant": self.participant,
            "correlation": _id(self.correlation),
            "order": "desc" if self.newest_first else None,
        }
        return {name: value for name, value in given.items() if value is not None}


class HistoryIterator(AsyncIterator[Envelope]):
    """An async iterator, to be gone through once. After a `ConnectError` it goes on where it was.

    It waits where the gateway is busy, and some time for one that is away.
    """

    def __init__(self, connection: ClientConnection, asked: HistoryFilter) -> None:
        self._connection = connection
        self._walk = Walk(
            connection.transport, asked.query(), limit=asked.limit, space=connection.session.space.id
        )
        self._envelopes: deque[Envelope] = deque()

    @property
    def complete(self) -> bool:
        """Whether nothing that may have fitted is gone, as far as this came."""
        return self._walk.complete

    async def list(self) -> list[Envelope]:
        """All that are left of them.

        Raises:
            ConnectError: the gateway cannot be reached, or does not tell.
            Disconnected: the connection ended for good.
        """
        taken: deque[Envelope] = deque()
        try:
            async for envelope in self:
                taken.append(envelope)
        except BaseException:
            self._envelopes.extendleft(reversed(taken))  # nobody got them
            raise
        return [*taken]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Envelope:
        while not self._envelopes:
            if self._walk.over:
                raise StopAsyncIteration
            for shown in await self._page():
                with suppress(ProtocolError):
                    self._envelopes.append(decode(bytes(shown)))
        return self._envelopes.popleft()

    async def _page(self) -> Sequence[Raw]:
        ended, loop = self._connection.ended, asyncio.get_running_loop()
        deadline_s = loop.time() + _AWAY_S
        while not ended.done():
            try:
                return await self._walk.page()
            except ConnectError as error:
                is_away = error.come_back and error.status is None
                if not is_away or loop.time() > deadline_s:
                    raise
            await asyncio.wait((ended,), timeout=_AGAIN_S)
        raise ended.result().copy()


def _id(named: Envelope | str | None) -> str | None:
    return named.id if isinstance(named, Envelope) else named


def _moment(name: str, moment: datetime | None) -> str | None:
    if moment is not None and moment.utcoffset() is None:
        raise ValueError(f"{name}: a moment needs a time zone")
    return None if moment is None else moment.isoformat()
