"""Asking who sits at the terminal for a line, or by way of their editor for other arguments, while connected."""

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import typer

from mew.cli.where import Failed
from mew.client.mcp.validation import InvalidArguments, check
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .out import is_terminal, whole
from .place import SaidNo

__all__ = ["ask", "edited"]

_LINE_BYTES: Final = 4096
_EDITORS: Final = ("VISUAL", "EDITOR")
_SEE_ERROR: Final = "e"


async def ask(question: str) -> str:
    """What somebody types, without the end of the line.

    Raises:
        SaidNo: they typed the end of all.
    """
    _forget_typed_ahead()
    typer.echo(whole(question), err=True, nl=False)
    typed = await (_threaded_line() if sys.platform == "win32" else _line())
    if not typed:
        typer.echo(err=True)
        raise SaidNo("nothing was decided")
    return typed.strip()


async def edited(arguments: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The arguments as somebody left them in their editor: a JSON object that the schema allows.

    Raises:
        Failed: there is no editor, or nobody to ask.
        SaidNo: it failed, or what they left there is nothing.
    """
    if not is_terminal():
        raise Failed("--edit needs a terminal; use --set key=value instead")
    with TemporaryDirectory(prefix="mew-edit-") as folder:
        file = Path(folder, "arguments.json")
        _write(file, arguments)
        while True:
            await _open_editor(file)
            try:
                return _read(file, schema)
            except (ProtocolError, InvalidArguments) as error:
                again = await ask(f"  ! {error}\n[e]dit again, or give up? ")
                if again[:1].lower() != _SEE_ERROR:
                    raise SaidNo("nothing was decided") from None


def _write(file: Path, arguments: dict[str, Any]) -> None:
    file.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(file: Path, schema: Any) -> dict[str, Any]:
    written = file.read_bytes()
    if not written.strip():
        raise SaidNo("the file is empty, nothing was decided")
    arguments = decode_json(written)
    if not isinstance(arguments, dict):
        raise InvalidArguments("expected a JSON object with the arguments")
    check(arguments, schema)
    return arguments


async def _open_editor(file: Path) -> None:
    named = next((said for name in _EDITORS if (said := os.environ.get(name, "").strip())), "vi")
    try:
        words = shlex.split(named)
        with _interrupts_are_for_the_editor():
            process = await asyncio.create_subprocess_exec(*words, str(file))
            code = await process.wait()
    except (OSError, ValueError) as error:
        raise Failed(f"the editor {named!r} does not start: {error}; set EDITOR") from error
    if code != 0:
        raise SaidNo(f"the editor ended with {code}, nothing was decided")


@contextmanager
def _interrupts_are_for_the_editor() -> Iterator[None]:
    """Ctrl-C reaches whoever has the terminal; a handler of ours is not handed down to it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _forget_typed_ahead() -> None:
    """What was typed before the question was seen is no answer to it."""
    if sys.platform != "win32" and sys.stdin.isatty():
        import termios  # not to be had on Windows

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def _line() -> str:
    """The next line; unlike a thread that reads, it can be left with Ctrl-C."""
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[str] = loop.create_future()

    def readable() -> None:
        if not typed.done():
            typed.set_result(os.read(stdin, _LINE_BYTES).decode("utf-8", "replace"))

    loop.add_reader(stdin, readable)
    try:
        return await typed
    finally:
        loop.remove_reader(stdin)


async def _threaded_line() -> str:
    return await asyncio.to_thread(sys.stdin.readline)
