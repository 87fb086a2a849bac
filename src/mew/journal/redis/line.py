"""One connection to Redis (RESP3): commands leave in one write; replies and pushes come in the order of execution.

So the reply to a command says that everything announced before it was executed has been received.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import hiredis

from mew.journal.port import JournalUnavailable

from .address import RedisAddress

__all__ = ["Line"]

Argument: TypeAlias = str | bytes | int
Replied: TypeAlias = Callable[[Any], None]

_CONNECT_S: Final = 5.0


class Line(asyncio.Protocol):
    """A connection. `pushed` is called with each message, `drained` after all that came at once, `lost` at its end."""

    def __init__(
        self,
        address: RedisAddress,
        pushed: Callable[[bytes, bytes], None] = lambda channel, data: None,
        drained: Callable[[], None] = lambda: None,
        lost: Callable[[JournalUnavailable], None] = lambda error: None,
    ) -> None:
        self._address = address
        self._pushed = pushed
        self._drained = drained
        self._lost = lost
        self._reader = hiredis.Reader()
        self._transport: asyncio.Transport | None = None
        self._replies: deque[Replied] = deque()
        self._unsent: list[bytes] = []
        self._waiting: set[asyncio.Future[Any]] = set()

    async def connect(self) -> None:
        """Connect and sign in.

        Raises:
            JournalUnavailable: it cannot be reached, or does not let us in.
        """
        address, loop = self._address, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_S):
                if address.path:
                    await loop.create_unix_connection(lambda: self, address.path)
                else:
                    context = ssl.create_default_context() if address.tls else None
                    await loop.create_connection(lambda: self, address.host, address.port, ssl=context)
                login = ("AUTH", address.username or "default", address.password) if address.password else ()
                await self.call("HELLO", 3, *login)
                if address.database:
                    await self.call("SELECT", address.database)
        except (OSError, TimeoutError) as error:
            self.close()
            why = "it does not answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise _unavailable(address, why) from error
        except BaseException:
            self.close()
            raise

    def send(self, replied: Replied, *command: Argument) -> None:
        """Add a command to the next write; `replied` is called with what comes of it."""
        self._unsent.append(hiredis.pack_command(command))  # type: ignore[arg-type]  # of any length
        self._replies.append(replied)

    def send_silent(self, *command: Argument) -> None:
        """Add a command that is answered by pushes alone, as SUBSCRIBE is."""
        self._unsent.append(hiredis.pack_command(command))  # type: ignore[arg-type]  # of any length

    def flush(self) -> None:
        """Write all commands at once."""
        if self._unsent and self._transport is not None:
            unsent, self._unsent = self._unsent, []
            self._transport.write(b"".join(unsent))

    async def call(self, *command: Argument) -> Any:
        """Send a command at once, and wait for its reply.

        Raises:
            JournalUnavailable: the connection was lost, or Redis refused the command.
        """
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.add(reply)

        def replied(value: Any) -> None:
            if not reply.done():
                reply.set_result(value)

        self.send(replied, *command)
        self.flush()
        try:
            value = await reply
        finally:
            self._waiting.discard(reply)
        if isinstance(value, hiredis.HiredisError):
            raise self.refused(value)
        return value

    def refused(self, error: Exception) -> JournalUnavailable:
        """What to say of an error that Redis answered."""
        return _unavailable(self._address, str(error))

    def close(self) -> None:
        """End the connection after what was written; nobody is told of its end."""
        self._lost = lambda error: None
        if self._transport is not None:
            self.flush()
            self._transport.close()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                if isinstance(reply, hiredis.PushNotification):
                    if reply[0] == b"message":
                        self._pushed(reply[1], reply[2])
                else:
                    self._replies.popleft()(reply)
        except hiredis.ProtocolError as error:
            self._end(_unavailable(self._address, f"it does not speak RESP: {error}"))
            return
        self._drained()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(_unavailable(self._address, "the connection was lost"))

    def _end(self, error: JournalUnavailable) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        for reply in self._waiting:
            if not reply.done():
                reply.set_exception(error)
        self._replies.clear()
        self._lost(error)


def _unavailable(address: RedisAddress, why: str) -> JournalUnavailable:
    return JournalUnavailable(f"Redis at {address}: {why}", summary="the shared journal cannot be reached")
