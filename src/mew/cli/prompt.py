"""Ask the person at the controlling terminal for a line, or through their editor for other arguments."""

import asyncio
import json
import os
import select
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import typer

from mew.client.mcp.validation import InvalidArguments, check_call
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .errors import CommandError, ExitCode
from .render.escape import escape_lines
from .render.text import is_terminal

__all__ = ["ask", "edited", "has_terminal"]

_LINE_BYTES: Final = 4096
_TERMINAL: Final = "/dev/tty"
_LOOK_S: Final = 0.03
_EDITORS: Final = ("VISUAL", "EDITOR")
_SEE_ERROR: Final = "e"


def has_terminal() -> bool:
    """Whether there is a person to ask: a controlling terminal, whatever standard input is."""
    if sys.platform == "win32":
        return sys.stdin.isatty()
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR))
    except OSError:
        return False
    return True


async def ask(question: str) -> str:
    """Show a question on the controlling terminal, and return the line that is typed there.

    Not standard input: another program may have written what is in it.

    Raises:
        CommandError: there is no terminal.
        CommandError: they typed the end of input.
    """
    typed = await (_line_of_stdin(question) if sys.platform == "win32" else _line_of_terminal(question))
    if not typed:
        typer.echo(err=True)
        raise CommandError("nothing was decided", ExitCode.NO)
    return typed.strip()


async def edited(arguments: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The arguments as somebody left them in their editor: a JSON object that the schema allows.

    Raises:
        CommandError: there is no editor, or nobody to ask.
        CommandError: it failed, or what they left there is nothing.
    """
    if not is_terminal():
        raise CommandError("--edit needs a terminal; use --set key=value instead")
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
                    raise CommandError("nothing was decided", ExitCode.NO) from None


def _write(file: Path, arguments: dict[str, Any]) -> None:
    file.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(file: Path, schema: Any) -> dict[str, Any]:
    written = file.read_bytes()
    if not written.strip():
        raise CommandError("the file is empty, nothing was decided", ExitCode.NO)
    arguments = decode_json(written)
    if not isinstance(arguments, dict):
        raise InvalidArguments("expected a JSON object with the arguments")
    check_call(arguments, schema)
    return arguments


async def _open_editor(file: Path) -> None:
    named = next((said for name in _EDITORS if (said := os.environ.get(name, "").strip())), "vi")
    try:
        words = shlex.split(named)
        with _interrupts_are_for_the_editor():
            process = await asyncio.create_subprocess_exec(*words, str(file))
            code = await process.wait()
    except (OSError, ValueError) as error:
        raise CommandError(f"the editor {named!r} does not start: {error}; set EDITOR") from error
    if code != 0:
        raise CommandError(f"the editor ended with {code}, nothing was decided", ExitCode.NO)


@contextmanager
def _interrupts_are_for_the_editor() -> Iterator[None]:
    """Ctrl-C reaches whoever has the terminal; a handler of ours is not handed down to it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _line_of_terminal(question: str) -> str:
    """Unlike a thread that reads, it can be left with Ctrl-C."""
    import termios  # not to be had on Windows

    try:
        terminal = os.open(_TERMINAL, os.O_RDWR)
    except OSError:
        raise CommandError("cannot ask for confirmation: there is no terminal") from None
    try:
        termios.tcflush(terminal, termios.TCIFLUSH)  # typed before the question was seen
        unwritten = escape_lines(question).encode("utf-8", "replace")
        while unwritten:
            unwritten = unwritten[os.write(terminal, unwritten) :]
        while True:
            if select.select([terminal], [], [], 0)[0]:
                return os.read(terminal, _LINE_BYTES).decode("utf-8", "replace")
            await asyncio.sleep(_LOOK_S)  # no event loop can watch /dev/tty on macOS
    finally:
        os.close(terminal)


async def _line_of_stdin(question: str) -> str:
    typer.echo(escape_lines(question), err=True, nl=False)
    return await asyncio.to_thread(sys.stdin.readline)
