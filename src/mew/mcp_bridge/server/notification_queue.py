"""What a server tells without being asked, passed on in order and at a pace that a space can bear."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from mew.client.errors import MewError
from mew.gateway.room.rate_limit import RateLimiter

__all__ = ["Relay"]

_log = logging.getLogger(__name__)

Telling = Callable[[], Awaitable[object]]

_WAITING_MAX: Final = 4_096
_PER_SECOND: Final = 50.0
_BURST: Final = 200
_TELL_S: Final = 5.0


class Relay:
    """At most so many wait under a key, and then the newest takes the place of the last: what floods is thinned out.

    After a burst of 200 it is 50 in a second: the rest of what the space takes of us is for answers.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._by_key: dict[Hashable, deque[_Waiting]] = {}
        self._filled = asyncio.Event()
        self._limiter = RateLimiter(_PER_SECOND, _BURST)
        self._dropped = 0

    def put(self, key: Hashable, telling: Telling, *, most: int = 1) -> None:
        """Take something to tell, without waiting."""
        alike = self._by_key.get(key)
        if alike is not None and len(alike) >= most:
            alike[-1].telling = telling
            self._note_dropped()
            return
        if len(self._waiting) >= _WAITING_MAX:
            self._note_dropped()
            return
        waiting = _Waiting(key, telling)
        self._waiting.append(waiting)
        self._by_key.setdefault(key, deque()).append(waiting)
        self._filled.set()

    async def flush(self, key: Hashable, within_s: float) -> None:
        """Until what waits under a key now has been told, or that time is over."""
        alike = self._by_key.get(key)
        if not alike:
            return
        try:
            async with asyncio.timeout(within_s):
                await alike[-1].told.wait()
        except TimeoutError:
            pass

    async def run(self) -> None:
        """Tell, one after the other, for ever."""
        while True:
            await self._filled.wait()
            while self._waiting:
                await self._pace()
                waiting = self._waiting.popleft()
                try:
                    async with asyncio.timeout(_TELL_S):
                        await waiting.telling()
                except (MewError, TimeoutError) as error:
                    _log.debug("a notification was not passed on: %s", error)
                finally:
                    self._done(waiting)
            self._filled.clear()
            self._dropped = 0

    async def _pace(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._limiter.take(loop.time()):
            await asyncio.sleep(self._limiter.wait_s)
            self._limiter.take(loop.time())

    def _done(self, waiting: "_Waiting") -> None:
        waiting.told.set()
        alike = self._by_key[waiting.key]
        alike.remove(waiting)
        if not alike:
            del self._by_key[waiting.key]

    def _note_dropped(self) -> None:
        self._dropped += 1
        if self._dropped == _BURST:
            _log.warning("the server tells more than can be passed on; some of it is left out")


class _Waiting:
    def __init__(self, key: Hashable, telling: Telling) -> None:
        self.key = key
        self.telling = telling
        self.told = asyncio.Event()
