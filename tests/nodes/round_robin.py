"""A load balancer without stickiness: every connection goes to the next node."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["round_robin"]


@contextmanager
def round_robin(ports: list[int]) -> Iterator[int]:
    """The port of a balancer in front of these, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    turns = itertools.cycle(ports)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", next(turns))
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))

    async def start() -> asyncio.Server:
        return await asyncio.start_server(serve, "127.0.0.1", 0)

    async def stop() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(ConnectionError, OSError):
        writer.close()
