"""How other commands ask a supervisor: a line of JSON over a Unix socket that only its owner can open, a line back."""

import asyncio
import hashlib
import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

__all__ = ["Ask", "Handle", "ask", "listening", "socket_path"]

Ask = dict[str, Any]
Handle = Callable[[Ask], Awaitable[dict[str, Any]]]
"""From a question to its answer; a `ValueError` or `KeyError` it raises is told to who asked."""

_PATH_CHARS_MAX: Final = 100  # of a socket's: the system takes 108, some 104
_LINE_BYTES_MAX: Final = 1 << 20
_ANSWER_S: Final = 60.0


def socket_path(folder: Path) -> Path:
    """Where the supervisor of a state folder listens: in it, or where its path is too long, in one for all of ours."""
    near = folder / "up.sock"
    if len(os.fsencode(near)) <= _PATH_CHARS_MAX:
        return near
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:24]
    return Path(tempfile.gettempdir()) / f"mew-{os.getuid()}" / f"{name}.sock"


@asynccontextmanager
async def listening(folder: Path, handle: Handle) -> AsyncIterator[None]:
    """Answer within this block.

    Raises:
        FileExistsError: another supervisor runs for this folder.
    """
    path = socket_path(folder)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent != folder and path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{path.parent} belongs to somebody else")
    if await ask(folder, {"ask": "ping"}) is not None:
        raise FileExistsError(f"another 'mew up' runs for {folder}")
    path.unlink(missing_ok=True)  # of one that was killed

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ValueError):
            line = await reader.readline()
            writer.write(json.dumps(await _answered(handle, json.loads(line))).encode() + b"\n")
            await writer.drain()
        writer.close()

    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(serve, path, limit=_LINE_BYTES_MAX)
    finally:
        os.umask(before)
    try:
        async with server:
            yield
    finally:
        path.unlink(missing_ok=True)


async def ask(folder: Path, question: Ask) -> dict[str, Any] | None:
    """The answer of the supervisor of a state folder; None where none runs.

    Raises:
        ValueError: it says no, and why.
        TimeoutError: it does not answer.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(socket_path(folder), limit=_LINE_BYTES_MAX)
    except (FileNotFoundError, ConnectionRefusedError, socket.gaierror):
        return None
    try:
        writer.write(json.dumps(question).encode() + b"\n")
        async with asyncio.timeout(_ANSWER_S):
            line = await reader.readline()
    except ConnectionError:
        return None
    finally:
        writer.close()
    if not line:
        return None
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


async def _answered(handle: Handle, question: Any) -> dict[str, Any]:
    if not isinstance(question, dict):
        return {"error": "expected an object"}
    if question.get("ask") == "ping":
        return {"pid": os.getpid()}
    try:
        return await handle(question)
    except (ValueError, KeyError) as error:
        return {"error": str(error.args[0] if error.args else error)}
