"""Coming by a connection: attempt after attempt, ever less often, and never in step with others."""

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from msgspec import Raw

from mew.client.errors import ConnectError
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.errors import ProtocolError

from .session import ClientSession, EnvelopeReceived
from .transport import LinkClosed, Transport, TransportLink, recall

__all__ = ["Dialler"]

_log = logging.getLogger(__name__)

_BACKOFF_FIRST_S: Final = 0.05
_BACKOFF_MOST_S: Final = 15.0
_WELCOME_S: Final = 10.0
_STEADY_S: Final = 5.0


class Dialler:
    """Makes the connections of one session; each is handed over with its welcome."""

    def __init__(self, transport: Transport, session: ClientSession) -> None:
        self._transport = transport
        self._session = session
        self.recalled: list[Envelope] = []
        """What was shown before the first connection, oldest first, where that was asked for."""
        self._delays = _delays()
        self._connected_s = 0.0

    async def first(self, within_s: float, last: int = 0) -> tuple[TransportLink, EnvelopeReceived]:
        """At once; and for so long again and again, where that may help. `last`: with so many that came before.

        Raises:
            ConnectError: nobody is there, or we are not let in.
        """
        loop, delays = asyncio.get_running_loop(), _delays()
        deadline_s = loop.time() + within_s
        while True:
            try:
                if last:
                    self._recall(await recall(self._transport, last))
                return await self._connect()
            except ConnectError as error:
                delay_s = next(delays)
                if not error.come_back or loop.time() + delay_s > deadline_s:
                    raise
                _log.warning("not connected yet: %s", error)
                await asyncio.sleep(delay_s)

    async def again(self) -> tuple[TransportLink, EnvelopeReceived]:
        """For as long as it takes.

        Raises:
            ConnectError: we are not let in any more.
        """
        if asyncio.get_running_loop().time() - self._connected_s > _STEADY_S:
            # Only then: a gateway that welcomes and hangs up at once would be called all the time.
            self._delays = _delays()
        for delay_s in self._delays:
            await asyncio.sleep(delay_s)
            try:
                return await self._connect()
            except ConnectError as error:
                if not error.come_back:
                    raise
                _log.info("not connected yet: %s", error)
        raise AssertionError("the delays have ended")

    def _recall(self, shown: Iterable[Raw]) -> None:
        """What comes over the connection goes on where these end."""
        self.recalled = []
        for received in shown:
            with suppress(ProtocolError):
                self.recalled.append(decode(bytes(received)))
        self._session.after = EnvelopeId(self.recalled[-1].id) if self.recalled else None

    async def _connect(self) -> tuple[TransportLink, EnvelopeReceived]:
        link = await self._transport.open(self._session.after)
        try:
            async with asyncio.timeout(_WELCOME_S):
                welcome = self._session.welcome(await link.receive())
            self._connected_s = asyncio.get_running_loop().time()
            return link, welcome
        except BaseException as error:
            await link.close()
            match error:
                case LinkClosed():
                    raise ConnectError(
                        f"closed at once: {error.reason}", come_back=error.come_back
                    ) from error
                case TimeoutError():
                    raise ConnectError("connected, but no welcome came", come_back=True) from None
                case ProtocolError():
                    raise ConnectError(f"this is no MEW gateway: {error}", come_back=False) from error
            raise


def _delays() -> Iterator[float]:
    most_s = _BACKOFF_FIRST_S
    while True:
        yield random.uniform(most_s / 2, most_s)
        most_s = min(2 * most_s, _BACKOFF_MOST_S)
