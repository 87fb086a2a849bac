"""How the command line ends: a code that means the same in all commands, and a sentence where something is wrong."""

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Final, NoReturn

import typer
from typer.exceptions import TyperException

from mew.protocol.visible import visible

from .registry import COMMANDS

__all__ = ["Exit", "end", "ended_by", "is_unexpected", "show_cause"]

_LINE_CHARS_MAX: Final = 2_000


class Exit(IntEnum):
    """The exit codes of all commands, and what each means."""

    DONE = 0, "it was done"
    SAID_NO = (
        1,
        "it was understood, and the answer is no: refused, rejected, not allowed, the tool failed, nobody answered, "
        "a check found a problem, something that should run does not",
    )
    WRONG = (
        2,
        "it could not be tried: typed wrongly, a file is missing or wrong, no token, no connection, a port is taken",
    )
    OUR_FAULT = 70, "mew itself failed, and should not have; `mew --debug` shows where"
    INTERRUPTED = 130, "interrupted, by Ctrl-C for instance"
    NOBODY_READS = 141, "whoever was to read the output has gone: `mew tail | head -1`"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "Exit":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


def ended_by(error: Exception, typed: Sequence[str]) -> Exit | None:
    """Say what was typed wrongly; None where it is nothing of that kind."""
    if isinstance(error, typer.Abort):  # Ctrl-C or Ctrl-D where something was asked
        return Exit.INTERRUPTED
    if not isinstance(error, TyperException):
        return None
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return Exit.DONE
    path = f"mew {_command(typed)}".strip() if context is None else context.command_path
    sentence = " ".join(message.split()).rstrip(".").replace(". Did you", "; did you")
    see = "" if sentence.endswith("?") else f"; see '{path} --help'"
    _say(f"{path}: {sentence[:1].lower()}{sentence[1:]}{see}")
    return Exit.WRONG


def is_unexpected(error: BaseException) -> bool:
    """Whether it is no way for a command to end."""
    expected = (typer.Exit, typer.Abort, TyperException, OSError)
    return isinstance(error, Exception) and not isinstance(error, expected) and not _is_unread(error)


def show_cause(error: BaseException) -> None:
    """The traceback of what ended a command, also where it was said in a sentence."""
    cause = error.__context__ if isinstance(error, typer.Exit) else error
    if cause is None or isinstance(cause, TyperException | typer.Abort | KeyboardInterrupt):
        return
    for part in traceback.format_exception(cause):
        for line in part.rstrip("\n").split("\n"):
            _say(line)


def end(error: BaseException) -> NoReturn:
    """End the process as this says."""
    code = _code(error)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        _silence()
        code = code or Exit.NOBODY_READS
    except OSError as full:  # a disk behind a redirection
        _silence()
        _say(f"mew: {full.strerror or full}")
        code = code or Exit.WRONG
    sys.exit(code)


def _code(error: BaseException) -> int:
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):  # Typer saw it first
        _silence()
        return Exit.NOBODY_READS
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if _is_unread(error):
        _silence()
        return Exit.NOBODY_READS
    if isinstance(error, OSError):
        named = "" if error.filename is None else f"{error.filename}: "
        _say(f"mew: {named}{error.strerror or error}")
        return Exit.WRONG
    # Its text is not shown: nobody knows what is in it.
    _say(
        f"mew: something went wrong that should not have ({type(error).__name__});"
        f" run it again as 'mew --debug {_command(sys.argv[1:])} …' to see where"
    )
    return Exit.OUR_FAULT


def _command(typed: Sequence[str]) -> str:
    """The command, without what follows, which may be secret."""
    return next((word for word in typed if word in COMMANDS), "")


def _is_unread(error: BaseException) -> bool:
    leaves = list(_leaves(error))
    return bool(leaves) and all(isinstance(one, BrokenPipeError) for one in leaves)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _silence() -> None:
    """What could not be written is written nowhere: the interpreter would complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
    finally:
        os.close(nowhere)


def _say(line: str) -> None:
    with suppress(OSError):  # stderr may be read by nobody, either
        typer.echo(visible(line, _LINE_CHARS_MAX).replace('\\"', '"').replace("\\\\", "\\"), err=True)
