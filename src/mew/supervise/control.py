"""How other commands ask a supervisor: a line of JSON over a Unix socket that only its owner can open, a line back."""

import asyncio
import hashlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json, encode_json

__all__ = ["Ask", "Handle", "ask", "listening", "socket_path", "sockets_folder"]

Ask = dict[str, Any]
Handle = Callable[[Ask], Awaitable[dict[str, Any]]]
"""From a question to its answer; a `ValueError` or `KeyError` it raises is told to who asked."""

_PATH_CHARS_MAX: Final = 100  # of a socket's: the system takes 108, some 104
_LINE_BYTES_MAX: Final = 1 << 20
_QUESTION_S: Final = 5.0


def socket_path(folder: Path) -> Path:
    """Where the supervisor of a state folder listens: in it, or where its path is too long, in one for all of ours."""
    near = folder / "up.sock"
    if len(os.fsencode(near)) <= _PATH_CHARS_MAX:
        return near
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:24]
    return sockets_folder() / f"{name}.sock"


def sockets_folder() -> Path:
    """Return the folder for sockets whose own folder has too long a path; it may not be there yet."""
    return Path(tempfile.gettempdir()) / f"mew-{os.getuid()}"


@asynccontextmanager
async def listening(folder: Path, handle: Handle) -> AsyncIterator[None]:
    """Answer within this block. Who has claimed the folder does: what another left there is put away.

    Raises:
        PermissionError: the folder for sockets is somebody else's.
    """
    path = socket_path(folder)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent != folder and path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{path.parent} belongs to somebody else")
    path.unlink(missing_ok=True)  # of one that was killed

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, TimeoutError, ValueError):
            async with asyncio.timeout(_QUESTION_S):
                line = await reader.readline()
            writer.write(encode_json(await _answered(handle, line)) + b"\n")
            async with asyncio.timeout(_QUESTION_S):
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


async def ask(folder: Path, question: Ask, *, within_s: float = 5.0) -> dict[str, Any] | None:
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
        writer.write(encode_json(question) + b"\n")
        async with asyncio.timeout(within_s):
            line = await reader.readline()
    except ConnectionError:
        return None
    finally:
        writer.close()
    if not line:
        return None
    answer: dict[str, Any] = decode_json(line)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


async def _answered(handle: Handle, line: bytes) -> dict[str, Any]:
    try:
        question = decode_json(line)
        if not isinstance(question, dict):
            return {"error": "expected an object"}
        return await handle(question)
    except ProtocolError as error:
        return {"error": f"expected JSON: {error}"}
    except (ValueError, KeyError) as error:
        return {"error": str(error.args[0] if error.args else error)}
