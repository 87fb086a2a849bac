"""Working with somebody who may be gone before it is done."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from mew.client.client import Client
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

__all__ = ["departed", "unless"]

Result = TypeVar("Result")


async def departed(me: Client, who: str, back_s: float) -> None:
    """Return when somebody has left the space and did not come back within this time."""
    changed = asyncio.Event()

    def listen(envelope: Envelope, payload: Any) -> None:
        changed.set()

    me.connection.listen(listen, (Kind.PRESENCE, Kind.WELCOME))
    try:
        while True:
            while who in me.participants:
                changed.clear()
                await changed.wait()
            try:
                async with asyncio.timeout(back_s):
                    while who not in me.participants:
                        changed.clear()
                        await changed.wait()
            except TimeoutError:
                return
    finally:
        me.connection.unlisten(listen)


async def unless(
    gone: Coroutine[Any, Any, None], work: Coroutine[Any, Any, Result], otherwise: Result
) -> Result:
    """What comes of the work; where `gone` ends before it, the work is cancelled. Neither may raise."""
    async with asyncio.TaskGroup() as tasks:
        working, watching = tasks.create_task(work), tasks.create_task(gone)
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        if not working.done():
            working.cancel()
            return otherwise
    return working.result()
