"""How a command ends: exit codes that mean the same everywhere, and one sentence on stderr when something is wrong."""

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import Final, NoReturn

import typer
from typer.exceptions import TyperException

from .registry import COMMANDS
from .render.escape import escape_lines

__all__ = ["CommandError", "ExitCode", "end", "is_unexpected", "report_usage", "reported", "show_cause"]

_CHARS_MAX: Final = 4_000
_NO_GATEWAY: Final = "; is the gateway running? 'mew up' starts it, 'mew doctor' finds out what is wrong"


class ExitCode(IntEnum):
    """The exit codes of all commands, and what each means."""

    OK = 0, "done"
    NO = (
        1,
        "understood, and the answer is no: refused, rejected, not allowed, the tool failed, nobody answered, "
        "a check found a problem, something that should run does not",
    )
    ERROR = (
        2,
        "could not be tried: a mistake on the command line, a missing or invalid file, no token, no connection, "
        "a port in use",
    )
    INTERNAL = 70, "a bug in mew; `mew --debug` shows where"
    INTERRUPTED = 130, "interrupted, for example with Ctrl-C"
    BROKEN_PIPE = 141, "the reader of the output has gone, as in `mew tail | head -1`"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "ExitCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


class CommandError(Exception):
    """The command cannot do what was asked; the message says why, and what to do next."""

    def __init__(self, message: str, code: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def reported(command: str) -> Iterator[None]:
    """Report an expected error in this block as one sentence on stderr and an exit code, without a traceback."""
    try:
        yield
    except (typer.Exit, TyperException, OSError):
        raise
    except Exception as error:
        found = _expected(error)
        if found is None:
            raise
        message, code = found
        typer.echo(f"{command}: {escape_lines(message, _CHARS_MAX)}", err=True)
        raise typer.Exit(code) from None


def _expected(error: Exception) -> tuple[str, ExitCode] | None:
    """Return the sentence and the exit code of an error that is no bug."""
    # Imported here: a command that succeeds does without them.
    from mew.client.errors import ConnectError, Disconnected, MewError
    from mew.client.mcp.validation import InvalidArguments
    from mew.gateway.config.value import ConfigError
    from mew.journal.errors import Damaged
    from mew.journal.port import JournalUnavailable
    from mew.protocol.errors import InvalidCapability

    from .locate.journal import damage

    match error:
        case CommandError():
            return str(error), error.code
        case ConnectError() if error.come_back and error.status is None:
            return f"{error}{_NO_GATEWAY}", ExitCode.ERROR
        case Damaged():
            return damage(error), ExitCode.ERROR
        case (
            ConnectError()
            | Disconnected()
            | InvalidArguments()
            | InvalidCapability()
            | ConfigError()
            | JournalUnavailable()
        ):
            return str(error), ExitCode.ERROR
        case MewError():
            return str(error), ExitCode.NO
    return None


def report_usage(error: Exception, words: Sequence[str]) -> ExitCode | None:
    """Report a mistake on the command line; None if the error is something else."""
    if isinstance(error, typer.Abort):  # Ctrl-C or Ctrl-D at a prompt
        return ExitCode.INTERRUPTED
    if not isinstance(error, TyperException):
        return None
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return ExitCode.OK
    path = f"mew {_command(words)}".strip() if context is None else context.command_path
    sentence = " ".join(message.split()).rstrip(".").replace(". Did you", "; did you")
    see = "" if sentence.endswith("?") else f"; see '{path} --help'"
    _echo(f"{path}: {sentence[:1].lower()}{sentence[1:]}{see}")
    return ExitCode.ERROR


def is_unexpected(error: BaseException) -> bool:
    """Whether the error is a bug, and no regular way for a command to end."""
    expected = (typer.Exit, typer.Abort, TyperException, OSError)
    return isinstance(error, Exception) and not isinstance(error, expected) and not _is_broken_pipe(error)


def show_cause(error: BaseException) -> None:
    """Print the traceback of what ended a command, also of an error that was reported in a sentence."""
    cause = error.__context__ if isinstance(error, typer.Exit) else error
    if cause is None or isinstance(cause, TyperException | typer.Abort | KeyboardInterrupt):
        return
    for part in traceback.format_exception(cause):
        for line in part.rstrip("\n").split("\n"):
            _echo(line)


def end(error: BaseException) -> NoReturn:
    """End the process with the exit code of an error."""
    code = _code(error)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        _discard_output()
        code = code or ExitCode.BROKEN_PIPE
    except OSError as full:  # a full disk behind a redirection
        _discard_output()
        _echo(f"mew: {full.strerror or full}")
        code = code or ExitCode.ERROR
    sys.exit(code)


def _code(error: BaseException) -> int:
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):  # Typer saw it first
        _discard_output()
        return ExitCode.BROKEN_PIPE
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if _is_broken_pipe(error):
        _discard_output()
        return ExitCode.BROKEN_PIPE
    if isinstance(error, OSError):
        file = "" if error.filename is None else f"{error.filename}: "
        _echo(f"mew: {file}{error.strerror or error}")
        return ExitCode.ERROR
    # The text of the error is not shown: it may hold a secret.
    _echo(
        f"mew: this is a bug in mew ({type(error).__name__});"
        f" run 'mew --debug {_command(sys.argv[1:])} …' to see where it happens"
    )
    return ExitCode.INTERNAL


def _command(words: Sequence[str]) -> str:
    """Return the command without its arguments, which may be secret."""
    return next((word for word in words if word in COMMANDS), "")


def _is_broken_pipe(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_broken_pipe, error.exceptions))
    return isinstance(error, BrokenPipeError)


def _discard_output() -> None:
    """Redirect stdout to nowhere: the interpreter would complain at its end about what it cannot write."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _echo(line: str) -> None:
    with suppress(OSError):  # nobody may be reading stderr, either
        typer.echo(escape_lines(line, _CHARS_MAX).replace("\n", "\\n"), err=True)
