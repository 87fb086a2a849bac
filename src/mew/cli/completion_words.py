"""What may come next on a command line: commands, options and values, as the commands themselves declare them."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .registry import COMMANDS

if TYPE_CHECKING:
    from typer._click import Context, Parameter

__all__ = ["Next", "Offer", "Way", "answer", "next_words", "say_next"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""What no shell takes for anything but itself. Others name tools and participants: what is not plain is not offered."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_TYPED_BYTES_MAX: Final = 1 << 20
_SAID_CHARS_MAX: Final = 70
_FOLDERS: Final = frozenset({"cwd", "folder", "journal"})
_FILE_METAVARS: Final = ("FILE", "PATH", "COMMAND")


class Offer(NamedTuple):
    """A word that may stand here, and what it means."""

    value: str
    says: str = ""


class Way(StrEnum):
    """How a shell is to complete the word."""

    VALUES = "values"
    FILES = "files"
    FOLDERS = "folders"
    NOTHING = "nothing"


class Next(NamedTuple):
    way: Way
    offers: Sequence[Offer] = ()


def say_next(shell: str) -> None:
    """Answer a script of `mew completion`: words on stdin, each ended by a zero, to lines on stdout.

    Whatever goes wrong, nothing is said of it.
    """
    try:
        typed = "" if sys.stdin.isatty() else sys.stdin.buffer.read(_TYPED_BYTES_MAX).decode(errors="replace")
        lines = answer(shell, *typed.removesuffix("\0").split("\0"))
    except Exception:
        lines = []
    written = "".join(f"{line}\n" for line in lines)
    os.write(sys.stdout.fileno(), written.encode("utf-8", "replace"))
    os._exit(0)  # a thread may still wait for a gateway


def answer(shell: str, *typed: str) -> list[str]:
    """The lines for a script: of bash the line to the cursor and what it breaks words at, of the others the words."""
    if shell == "bash":
        line, breaks = typed
        words, last = _split(line)
        found = next_words(words, last)
        done = _broken_off(last, breaks)
        return [found.way, *(offer.value[done:] for offer in found.offers)]
    *words, last = typed
    found = next_words(words, last)
    return [
        found.way,
        *(f"{offer.value}\t{offer.says}" if offer.says else offer.value for offer in found.offers),
    ]


def _split(line: str) -> tuple[list[str], str]:
    """The words after the command, and the one at the cursor, of which a quote may still be open."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=False)
    reader.whitespace_split = True
    reader.commenters = ""
    words: list[str] = []
    try:
        words.extend(reader)
    except ValueError:
        words.append(reader.token or "")
        line = ""  # the cursor is in that word
    else:
        if not line or line[-1].isspace():
            words.append("")
    while len(words) > 1 and _ASSIGNMENT.fullmatch(words[0]):
        words.pop(0)
    return words[1:-1], words[-1]


def _broken_off(word: str, breaks: str) -> int:
    """How much of the word bash takes for one before it: it replaces only what is after the last `:` or `=`."""
    return 1 + max((word.rfind(char) for char in breaks if not char.isspace()), default=-1)


def next_words(words: Sequence[str], typed: str) -> Next:
    """What may stand in the place of `typed`, after these words."""
    if not typed.startswith("-") and all(word.startswith("-") for word in words):
        return _offered((Offer(name, listed.does) for name, listed in COMMANDS.items()), typed)
    context = _context(words)
    if context is None:
        return Next(Way.NOTHING)
    is_past_options = "--" in words
    if not is_past_options:
        option, mark, value = typed.partition("=")
        if mark and option.startswith("--"):
            return _prefixed(f"{option}=", _of_option(context, option, value))
        if typed.startswith("-"):
            return _offered(_options(context), typed)
        if words and (found := _of_option(context, words[-1], typed)).way is not Way.NOTHING:
            return found
        if words and _option(context, words[-1]) is not None:
            return Next(Way.NOTHING)
    return _of_argument(context, typed)


def _context(words: Sequence[str]) -> "Context | None":
    """Of the command that is meant, with what is known of its parameters; nothing of it is run."""
    from typer.core import TyperGroup
    from typer.main import get_command

    from .main import app

    context: Any = get_command(app).make_context("mew", [*words], resilient_parsing=True)
    while isinstance(context.command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        if not rest:
            break
        name, command, rest = context.command.resolve_command(context, rest)
        if command is None:
            return None
        context = command.make_context(name, rest, parent=context, resilient_parsing=True)
    found: Context = context
    return found


def _option(context: "Context", name: str) -> "Parameter | None":
    """The option of this name, if it takes a value."""
    for param in context.command.get_params(context):
        if name in param.opts and param.param_type_name == "option" and not getattr(param, "is_flag", False):
            return param
    return None


def _of_option(context: "Context", name: str, typed: str) -> Next:
    param = _option(context, name)
    return Next(Way.NOTHING) if param is None else _of_parameter(context, param, typed)


def _of_argument(context: "Context", typed: str) -> Next:
    for param in context.command.get_params(context):
        if param.param_type_name == "argument" and _is_wanted(context, param):
            return _of_parameter(context, param, typed)
    commands = getattr(context.command, "commands", {})
    return _offered((Offer(name, one.help or "") for name, one in commands.items() if not one.hidden), typed)


def _is_wanted(context: "Context", param: "Parameter") -> bool:
    source = context.get_parameter_source(param.name or "")
    return param.nargs == -1 or source is None or source.name != "COMMANDLINE"


def _of_parameter(context: "Context", param: Any, typed: str) -> Next:
    from .completion_values import values_of

    values = values_of(context, param)
    if values is not None:
        return _offered(values, typed)
    declared = param.type_descriptor
    if declared.is_choice:
        return _offered((Offer(str(getattr(one, "value", one))) for one in declared.choices or ()), typed)
    if param.name in _FOLDERS:
        return Next(Way.FOLDERS)
    named = param.metavar or ""
    if declared.is_path or param.name == "key" or any(word in named for word in _FILE_METAVARS):
        return Next(Way.FILES)
    return Next(Way.NOTHING)


def _options(context: "Context") -> Iterator[Offer]:
    for param in context.command.get_params(context):
        given = context.get_parameter_source(param.name or "")
        is_given = given is not None and given.name == "COMMANDLINE"
        if param.param_type_name != "option" or getattr(param, "hidden", False):
            continue
        if is_given and not getattr(param, "multiple", False):
            continue
        for name in (*param.opts, *param.secondary_opts):
            yield Offer(name, getattr(param, "help", None) or "")


def _prefixed(prefix: str, found: Next) -> Next:
    return Next(found.way, [Offer(f"{prefix}{one.value}", one.says) for one in found.offers])


def _offered(offers: Iterable[Offer], typed: str) -> Next:
    fitting = [
        Offer(one.value, _in_a_line(one.says))
        for one in offers
        if one.value.startswith(typed) and _PLAIN.fullmatch(one.value)
    ]
    return Next(Way.VALUES, fitting) if fitting else Next(Way.NOTHING)


def _in_a_line(text: str) -> str:
    from mew.protocol.visible import cut, visible

    first = text.strip().split("\n\n")[0]
    return cut(visible(" ".join(first.split()).replace("\b", "")).replace('\\"', '"'), _SAID_CHARS_MAX)
