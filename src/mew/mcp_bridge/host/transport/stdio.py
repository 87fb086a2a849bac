"""Standard input and output as the channel to a host, in a way that can be given up.

The SDK's own waits in a thread until the host says something, even when we are to stop. Here the threads are left
behind. As with it, nothing else in the process can write to the channel: what is printed goes to stderr.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from queue import SimpleQueue
from typing import BinaryIO, Final

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

__all__ = ["standard_streams"]

_LINES_MAX: Final = 16

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The streams that a server runs on. The incoming one ends with the input."""
    send_in, receive_in = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    send_out, receive_out = anyio.create_memory_object_stream[SessionMessage](0)
    with _claimed() as (stdin, stdout):
        async with asyncio.TaskGroup() as tasks:
            moving = [
                tasks.create_task(_read(stdin, send_in)),
                tasks.create_task(_write(stdout, receive_out)),
            ]
            try:
                yield receive_in, send_out
            finally:
                await send_out.aclose()
                with suppress(TimeoutError):  # what was said last is still to be written
                    async with asyncio.timeout(1.0):
                        await asyncio.shield(moving[1])
                for task in moving:
                    task.cancel()


async def _read(stdin: BinaryIO, sink: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue(_LINES_MAX)

    def read() -> None:
        try:
            for line in iter(stdin.readline, b""):
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(lines.put(b""), loop).result()
        except (OSError, RuntimeError, ValueError):
            return  # the loop is gone, and nobody listens

    threading.Thread(target=read, name="mew-stdin", daemon=True).start()
    async with sink:
        while line := await lines.get():
            if line.strip():
                await sink.send(_message(line))


async def _write(stdout: BinaryIO, source: MemoryObjectReceiveStream[SessionMessage]) -> None:
    loop = asyncio.get_running_loop()
    due: SimpleQueue[tuple[bytes, asyncio.Future[bool]] | None] = SimpleQueue()

    def write() -> None:
        while (item := due.get()) is not None:
            data, written = item
            try:
                stdout.write(data)
                stdout.flush()
                is_written = True
            except (OSError, ValueError):
                is_written = False
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, written, is_written)

    threading.Thread(target=write, name="mew-stdout", daemon=True).start()
    try:
        async with source:
            async for message in source:
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                written: asyncio.Future[bool] = loop.create_future()
                due.put((data, written))
                if not await written:
                    return  # nobody reads any more
    finally:
        due.put(None)


def _settle(written: asyncio.Future[bool], is_written: bool) -> None:  # noqa: FBT001 a callback
    if not written.done():
        written.set_result(is_written)


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


@contextmanager
def _claimed() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The two, for us alone: what reads or writes them elsewhere in the process gets nothing, and stderr."""
    stdin_fd, stdout_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        # Not closed: a thread may be reading from it still.
        stdin, stdout = os.fdopen(stdin_fd, "rb", closefd=False), os.fdopen(stdout_fd, "wb", closefd=False)
        yield stdin, stdout
    finally:
        os.dup2(stdin_fd, 0)
        os.dup2(stdout_fd, 1)
        os.close(nothing)
