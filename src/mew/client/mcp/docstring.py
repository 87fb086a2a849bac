"""PURE. What a docstring says of a function and of each parameter: Google's `Args:` and reST's `:param x:`."""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Docstring", "docstring_of", "read_docstring"]

_ARGS: Final = re.compile(
    r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*"
)
_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD: Final = re.compile(r":(param|parameter|arg|argument|key|keyword|type|rtype)\b\s*([^:]*):\s*(.*)")


@dataclass(frozen=True)
class Docstring:
    """`description` is everything but what was said of the parameters."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def docstring_of(function: Callable[..., Any]) -> Docstring:
    while isinstance(function, functools.partial):  # it has one too: of `partial`
        function = function.func
    return read_docstring(inspect.getdoc(function))


def read_docstring(text: str | None) -> Docstring:
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if _ARGS.fullmatch(line):
            end = _indented_until(lines, at)
            parameters |= _entries(lines[at:end])
            at = end
        elif said := _FIELD.fullmatch(line):
            end = _indented_until(lines, at)
            role, named, first = said.groups()
            if role not in ("type", "rtype") and named.split():
                parameters[named.split()[-1].lstrip("*")] = _joined([first, *lines[at:end]])
            at = end
        else:
            description.append(line)
    return Docstring(re.sub(r"\n{3,}", "\n\n", "\n".join(description)).strip(), parameters)


def _indented_until(lines: list[str], start: int) -> int:
    """Where a block ends: before the next line that is not indented, blank lines at its end left out of it."""
    end = start
    for at in range(start, len(lines)):
        if lines[at].strip():
            if not lines[at].startswith((" ", "\t")):
                break
            end = at + 1
    return end


def _entries(block: list[str]) -> dict[str, str]:
    margin = min((_indent(line) for line in block if line.strip()), default=0)
    entries: dict[str, list[str]] = {}
    name = ""
    for line in block:
        begins = _ENTRY.fullmatch(line.strip()) if line.strip() and _indent(line) == margin else None
        if begins:
            name = begins[1]
            entries[name] = [begins[2]]
        elif name:
            entries[name].append(line)
    return {name: _joined(said) for name, said in entries.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
