"""What each command says of itself: read from its declaration, for `--help` and for docs/reference/cli.md."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typer._click import Command, Context

__all__ = ["Entry", "Page", "page_of"]

_OPTIONS: Final = "Options"
_EXAMPLES: Final = re.compile(r"Examples?(?: \((?P<remark>.+?)\))?:\s*")
_BELOW_MAX: Final = 4
_VARIABLE: Final = re.compile(r"\bMEW_[A-Z_]+\b")
_TYPES: Final = {"int": "NUMBER", "float": "NUMBER", "str": "TEXT", "path": "PATH", "Path": "PATH"}


@dataclass(frozen=True, slots=True)
class Entry:
    """An argument, an option or a command: how it is written, and what it does."""

    written: str
    says: str
    default: str = ""
    variables: tuple[str, ...] = ()
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One command. `options` are by the title they stand under, `commands` those below it."""

    path: str
    synopsis: str
    paragraphs: list[str]
    examples: list[str]
    arguments: list[Entry] = field(default_factory=list)
    options: dict[str, list[Entry]] = field(default_factory=dict)
    commands: list[Entry] = field(default_factory=list)


def page_of(context: "Context") -> Page:
    """Of the command of this context."""
    command: Any = context.command
    paragraphs, examples = _read(command.help or "")
    below: dict[str, Command] = getattr(command, "commands", {})
    if not examples:
        examples = [line for one in below.values() for line in _first(one)][:_BELOW_MAX]
    params = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [one for one in params if one.param_type_name == "argument"]
    options: dict[str, list[Entry]] = {}
    for one in params:
        if one.param_type_name == "option":
            title = getattr(one, "rich_help_panel", None) or _OPTIONS
            options.setdefault(title, []).append(_option(context, one))
    words = [context.command_path, "[OPTIONS]", *map(_argument_written, arguments)]
    return Page(
        path=context.command_path,
        synopsis=" ".join(words + _command_words(command)),
        paragraphs=paragraphs,
        examples=examples,
        arguments=[_argument(context, one) for one in arguments],
        options=options,
        commands=[Entry(name, _read(one.help or "")[0][0]) for name, one in below.items() if not one.hidden],
    )


def _first(command: Any) -> list[str]:
    """An example of a command below, for a group that has none of its own."""
    return [line for line in _read(command.help or "")[1] if not line.startswith("#")][:1]


def _command_words(command: Any) -> list[str]:
    if not hasattr(command, "commands"):
        return []
    return ["[COMMAND]" if command.invoke_without_command else "COMMAND"]


def _read(text: str) -> tuple[list[str], list[str]]:
    """Paragraphs without their line breaks, and the examples, a line each."""
    paragraphs: list[str] = []
    examples: list[str] = []
    for part in text.replace("\b", "").strip().split("\n\n"):
        begins = _EXAMPLES.match(part.strip())
        if begins is None:
            paragraphs.append(" ".join(part.split()))
        else:
            if begins["remark"]:
                examples.append(f"# {begins['remark']}")
            lines = part.strip()[begins.end() :].splitlines()
            examples += [line.strip() for line in lines if line.strip()]
    return paragraphs, examples


def _argument_written(param: Any) -> str:
    name: str = param.metavar or param.name.upper()
    if name.startswith("[") or "COMMAND" in name:
        return name
    shown = name if param.required else f"[{name}]"
    return f"{shown}..." if param.nargs == -1 else shown


def _argument(context: "Context", param: Any) -> Entry:
    name = _argument_written(param).removesuffix("...").strip("[]")
    return _entry(context, param, name)


def _option(context: "Context", param: Any) -> Entry:
    short = [one for one in param.opts if not one.startswith("--")]
    long = [one for one in (*param.opts, *param.secondary_opts) if one.startswith("--")]
    value = "" if param.is_flag else f" {_value(context, param)}"
    return _entry(context, param, ", ".join([*short, " / ".join(long)]) + value)


def _value(context: "Context", param: Any) -> str:
    """How a value of it is written."""
    if param.metavar:
        return str(param.metavar)
    declared = param.type_descriptor
    if declared.is_choice:
        return "|".join(str(getattr(one, "value", one)) for one in declared.choices or ())
    shown = param.bare_type().removeprefix("list[").removesuffix("]")
    return "PATH" if declared.is_path else _TYPES.get(shown, "NUMBER" if declared.is_ranged else "TEXT")


def _entry(context: "Context", param: Any, written: str) -> Entry:
    says = " ".join((getattr(param, "help", None) or "").split())
    own = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
    variables = tuple(dict.fromkeys([*own, *_VARIABLE.findall(says)]))
    return Entry(
        written, says, "".join(_default(context, param)), variables, is_required=bool(param.required)
    )


def _default(context: "Context", param: Any) -> Iterator[str]:
    value = param._extract_default_help_str(ctx=context)
    if value is None or param.show_default is False or value in ((), []):
        return
    shown = param._get_default_string(ctx=context, show_default_is_str=False, default_value=value)
    if shown and not isinstance(value, bool):
        yield f"{value:g}" if isinstance(value, float) else str(shown)
