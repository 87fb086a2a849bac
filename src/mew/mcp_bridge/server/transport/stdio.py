"""A server as a process of ours: messages over its standard input and output, and no trace of it afterwards.

Beside the SDK's own transport, because that leaves children of a server that went by itself, reads lines without
end, and says nothing of an exit code.
"""

import asyncio
import logging
import os
import signal
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from mew.mcp_bridge.server.settings import Command, is_ours
from mew.protocol.visible import visible

from .confinement import confined

__all__ = ["Tell", "open_process"]

_log = logging.getLogger(__name__)

Tell = Callable[[str], None]
"""Takes a line that the server wrote to its standard error, fit for a terminal. Must not wait."""

_MESSAGE_BYTES_MAX: Final = 64 << 20
_SHOWN_CHARS_MAX: Final = 200
_LINE_CHARS_MAX: Final = 4_000
_CHUNK_BYTES: Final = 65_536
_LAST_LINES: Final = 5
_CLOSE_S: Final = 2.0
_TERMINATE_S: Final = 2.0
_KILL_S: Final = 1.0
_REST_S: Final = 0.5  # for what an ended process has left in its pipes


class ServerProcess:
    """A server that runs. `streams` are what the SDK's dispatcher takes; they close when the server is over."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: "_Protocol", tell: Tell) -> None:
        self._transport = transport
        self._protocol = protocol
        self._tell = tell
        self._incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self.streams: tuple[
            MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
        ] = (reading, writing)
        self.last_words: deque[str] = deque(maxlen=_LAST_LINES)
        """The last it wrote to its standard error."""
        self._garbage = 0
        self._fault: str | None = None

    @property
    def exit_code(self) -> int | None:
        return self._transport.get_returncode()

    @property
    def ending(self) -> str:
        """How it came to its end, in words that follow `it`."""
        match self.exit_code:
            case _ if self._fault is not None:
                return self._fault
            case None:
                return "closed its output"
            case int(code) if code < 0:
                return f"was killed by {_signal_name(-code)}"
            case code:
                return f"ended with exit code {code}"

    async def read(self) -> None:
        """Messages in, until the server is over."""
        async with self._incoming:
            reading = asyncio.ensure_future(self._read_lines())
            leaving = asyncio.ensure_future(self._protocol.exited.wait())
            try:
                await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
                # A child of it may hold its output open for ever.
                await asyncio.wait((reading,), timeout=_REST_S)
                await asyncio.wait((leaving,), timeout=_REST_S)
            finally:
                reading.cancel()
                leaving.cancel()
                await asyncio.gather(reading, leaving, return_exceptions=True)

    async def write(self) -> None:
        """Messages out; what cannot be written any more is dropped, and the reader finds out."""
        stdin = self._protocol.stdin
        assert stdin is not None, "a process without standard input"
        async with self._outgoing:
            async for message in self._outgoing:
                try:
                    written = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                except ValueError:
                    _log.warning("a message to the server has no form in JSON, and is not sent")
                    continue
                if not stdin.is_closing():
                    with suppress(ConnectionError):
                        stdin.write(written.encode() + b"\n")
                        await stdin.drain()

    async def listen(self) -> None:
        """What it writes to its standard error, line by line."""
        stderr = self._protocol.stderr
        assert stderr is not None, "a process without standard error"
        begun = b""
        while chunk := await stderr.read(_CHUNK_BYTES):
            *lines, begun = (begun + chunk).split(b"\n")
            if len(begun) > _CHUNK_BYTES:
                lines, begun = [*lines, begun], b""
            for line in lines:
                self._pass_on(line)
        self._pass_on(begun)

    async def end(self) -> None:
        """Close its input, wait, ask it to go, and kill what is left of it and its children."""
        stdin = self._transport.get_pipe_transport(0)
        try:
            if stdin is not None:
                stdin.close()
            if not await self._gone(_CLOSE_S):
                self._signal_all(signal.SIGTERM)
                await self._gone(_TERMINATE_S)
        finally:
            self.kill()
        await self._gone(_KILL_S)

    def kill(self) -> None:
        self._signal_all(getattr(signal, "SIGKILL", signal.SIGTERM))

    def close(self) -> None:
        for stream in (self._incoming, self._outgoing, *self.streams):
            stream.close()
        with suppress(PermissionError):
            self._transport.close()

    async def _read_lines(self) -> None:
        stdout = self._protocol.stdout
        assert stdout is not None, "a process without standard output"
        while True:
            try:
                line = await stdout.readuntil()
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            except asyncio.LimitOverrunError:
                self._fault = f"sent a message of more than {_MESSAGE_BYTES_MAX >> 20} MiB"
                return
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                self._note_garbage(line)
                continue
            try:
                await self._incoming.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    def _note_garbage(self, line: bytes) -> None:
        """Many a server prints to its output what belongs on its standard error: said once, and passed over."""
        text = visible(line[:_LINE_CHARS_MAX].decode(errors="replace").strip(), _SHOWN_CHARS_MAX)
        if not text:
            return
        self._garbage += 1
        say = _log.warning if self._garbage == 1 else _log.debug
        say("the server wrote something that is no MCP message to its output: %s", text)

    def _pass_on(self, line: bytes) -> None:
        shown = visible(line.decode(errors="replace").rstrip(), _LINE_CHARS_MAX)
        if shown:
            self.last_words.append(shown)
            self._tell(shown)

    async def _gone(self, within_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._protocol.exited.wait()
        return self._protocol.exited.is_set()

    def _signal_all(self, number: int) -> None:
        """To the server and all it has started: it leads a process group of its own."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._transport.get_pid(), number)
            else:
                self._transport.kill()


class _Protocol(SubprocessStreamProtocol):
    """Knows at once that the process has ended, not only when all its pipes are closed too."""

    def __init__(self) -> None:
        super().__init__(limit=_MESSAGE_BYTES_MAX, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


@asynccontextmanager
async def open_process(command: Command, tell: Tell) -> AsyncIterator[ServerProcess]:
    """A server that runs inside this block, and not a moment longer, nor anything it has started.

    Raises:
        OSError: it cannot be started.
        ValueError: a NUL in the command.
    """
    loop = asyncio.get_running_loop()
    words = [command.program, *command.arguments]
    transport, protocol = await loop.subprocess_exec(
        _Protocol,
        *(confined(words, command.hidden) if command.hidden else words),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=_environment(command.environment),
        cwd=command.directory,
        start_new_session=True,
    )
    process = ServerProcess(transport, protocol, tell)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(work()) for work in (process.read, process.write, process.listen)]
            try:
                yield process
            finally:
                with anyio.CancelScope(shield=True):
                    await process.end()
                for task in running:
                    task.cancel()
    finally:
        process.kill()
        process.close()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """What a program needs to run, and what was asked for: never a token of ours."""
    environment = get_default_environment() | dict(extra)
    return {name: value for name, value in environment.items() if not is_ours(name)}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
