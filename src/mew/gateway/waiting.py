"""Those who wait for something to come round in the log."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

__all__ = ["Waiting"]

Key = TypeVar("Key")
Result = TypeVar("Result")


class Waiting(Generic[Key, Result]):
    """Results by key; who waits for the same key is told in the order they came."""

    def __init__(self) -> None:
        self._waiting: dict[Key, deque[asyncio.Future[Result]]] = {}

    async def wait(self, key: Key) -> Result:
        """Until told, or until all are abandoned, which raises what they are abandoned with."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(future)
        return await future

    def tell(self, key: Key, result: Result) -> None:
        """Tell the first who waits for this key, if anyone does."""
        futures = self._waiting.get(key)
        if futures is None:
            return
        first = futures.popleft()
        if not futures:
            del self._waiting[key]
        if not first.done():  # its caller may have gone
            first.set_result(result)

    def abandon(self, error: Exception) -> None:
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        self._waiting.clear()
