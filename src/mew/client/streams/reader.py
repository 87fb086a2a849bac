"""The data of a stream, for one who reads it: in order, bounded in bytes and in frames.

A reader that is slow holds the gateway back (`Pressure`); one that nobody has begun to read holds up nobody. Past a
bound it keeps nothing more and ends with `StreamBroken`: there is nowhere to ask for a frame again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

from mew.client.connection.feed import Pressure
from mew.client.errors import StreamBroken

__all__ = ["BYTES_HIGH", "BYTES_MOST", "FRAMES_HIGH", "FRAMES_MOST", "StreamReader"]

BYTES_HIGH: Final = 4 << 20
FRAMES_HIGH: Final = 4_096
"""So much that waits holds the gateway back."""
BYTES_MOST: Final = 16 << 20
FRAMES_MOST: Final = 16_384
"""More is not kept."""


class StreamReader(AsyncIterator[bytes]):
    """An async iterator over the frames of one stream, and a context that closes it.

    What comes from its making on is in it, until it is closed or dropped: one frame at a time, as it was written, an
    empty one too. Text comes as its UTF-8. What was there before the stream closed, or broke, is yielded first.

    Raises:
        StreamBroken: while iterating: some of the data is lost.
    """

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._begun = False
        self._pressing = False
        self._closed = False
        self._broken: str | None = None

    def offer(self, data: bytes) -> None:
        """Put a frame's data in; nothing happens once it is closed."""
        if self._closed:
            return
        self._frames.append(data)
        self._bytes += len(data)
        if self._bytes > BYTES_MOST or len(self._frames) > FRAMES_MOST:
            self._frames.clear()
            self._bytes = 0
            self.close(
                f"{BYTES_MOST} bytes or {FRAMES_MOST} frames waited for a reader that did not take them"
            )
        self._weigh()
        self._news.set()

    def close(self, broken: str | None = None) -> None:
        """No more comes. What is in it is still yielded; then it ends, with `StreamBroken` if it says why."""
        if not self._closed:
            self._closed = True
            self._broken = broken
            self._weigh()
            self._news.set()

    @property
    def waiting_bytes(self) -> int:
        """What came and was not taken yet."""
        return self._bytes

    async def gather(self, bytes_max: int) -> list[bytes]:
        """The next frame, and those behind it that are there already, up to about this much; none: it has ended.

        Raises:
            StreamBroken: some of the data is lost.
        """
        if not await self._ready():
            return []
        frames = [self._take()]
        size = len(frames[0])
        while self._frames and size + len(self._frames[0]) <= bytes_max:
            frames.append(self._take())
            size += len(frames[-1])
        self._weigh()
        return frames

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not await self._ready():
            raise StopAsyncIteration
        data = self._take()
        self._weigh()
        return data

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _ready(self) -> bool:
        """Wait until a frame is there; False once none will be."""
        if not self._begun:
            self._begun = True
            self._weigh()
        while not self._frames:
            if self._broken is not None:
                raise StreamBroken(self._broken)
            if self._closed:
                return False
            self._news.clear()
            await self._news.wait()
        return True

    def _take(self) -> bytes:
        data = self._frames.popleft()
        self._bytes -= len(data)
        return data

    def _weigh(self) -> None:
        """Press when much waits, let go when half of that is gone."""
        least = 0.5 if self._pressing else 1.0
        heavy = self._bytes > least * BYTES_HIGH or len(self._frames) > least * FRAMES_HIGH
        pressing = heavy and self._begun and not self._closed
        if pressing != self._pressing:
            self._pressing = pressing
            change = self._pressure.rise if pressing else self._pressure.fall
            change(self)  # type: ignore[arg-type]  # it only counts them
