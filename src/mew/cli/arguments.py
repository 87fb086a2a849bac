"""Arguments as they are typed: `key=value` by the schema of the tool, `key:=JSON`, `key=@file`."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mew.cli import completion
from mew.protocol.capability import Repeated
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .errors import CommandError

__all__ = ["ArgumentsOption", "Pairs", "read_object", "read_pairs", "read_text"]

Pairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Arguments: key=value, key:=JSON, or key=@file for what a file holds.",
        show_default=False,
        autocompletion=completion.tool_arguments,
    ),
]
ArgumentsOption = Annotated[
    str | None,
    typer.Option(
        "--arguments", metavar="JSON", help="All arguments as a JSON object, @file, or - for stdin."
    ),
]

_PAIR: Final = re.compile(r"(?P<key>[^=]*?)(?P<mark>:=|=)(?P<value>.*)", re.DOTALL)
_DEPTH_MAX: Final = 16
_BYTES_MAX: Final = 64 << 20
_JSON_TYPES: Final = frozenset({"number", "integer", "boolean", "null", "array", "object"})
_CHOICES: Final = ("anyOf", "oneOf", "allOf")

_IsOf: Final[dict[str, Callable[[Any], bool]]] = {
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def read_pairs(pairs: Sequence[str], whole: str | None = None, schema: Any = None) -> dict[str, Any]:
    """The arguments: those of `whole`, a JSON object, and over them the pairs.

    A value is read as what the schema says it is; where that says nothing, as JSON if it is a number, true, false,
    null, an array or an object, and as text otherwise. A key whose value is an array may occur several times.

    Raises:
        CommandError: something is no pair, no JSON, no file, or not what the schema asks for.
    """
    arguments = {} if whole is None else read_object("--arguments", whole)
    typed: set[str] = set()
    for pair in pairs:
        found = _PAIR.fullmatch(pair)
        if found is None or not found["key"]:
            raise CommandError(f"{pair!r} is no argument: write key=value, key:=JSON or key=@file")
        key, expected = found["key"], _Expected.of(schema, found["key"])
        value = _value(found["mark"], key, found["value"], expected)
        if key in typed and isinstance(arguments[key], list) and isinstance(value, list):
            value = [*arguments[key], *value]
        elif key in typed:
            raise CommandError(f"{key!r} is given twice")
        typed.add(key)
        arguments[key] = value
    return arguments


def read_object(option: str, written: str) -> dict[str, Any]:
    """A JSON object as an option has it: itself, `@file`, or `-` for stdin.

    Raises:
        CommandError: it is none.
    """
    value = _read_json(option, written)
    if not isinstance(value, dict):
        raise CommandError(f'{option}: expected a JSON object, like {{"path": "a.txt"}}')
    return value


def _read_json(option: str, written: str) -> Any:
    """Any JSON, written alike.

    Raises:
        CommandError: it is none.
    """
    if written == "-" or written.startswith("@"):
        written = read_text(option, written if written == "-" else written[1:])
    return _json(option, written)


def read_text(option: str, file: str) -> str:
    """What a file holds; `-` is stdin.

    Raises:
        CommandError: it cannot be read, or is no text.
    """
    try:
        if file == "-":
            held = sys.stdin.buffer.read(_BYTES_MAX + 1)
        else:
            with Path(file).open("rb") as opened:
                held = opened.read(_BYTES_MAX + 1)
        if len(held) > _BYTES_MAX:
            raise CommandError(f"{option}: {file} has more than {_BYTES_MAX:,} bytes")
        return held.decode()
    except OSError as error:
        raise CommandError(f"{option}: {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandError(f"{option}: {file} is not text in UTF-8") from None


class _Expected:
    """What a schema says of one argument: of which types it may be, and what is in it if it is an array."""

    def __init__(self, types: frozenset[str], items: frozenset[str] = frozenset()) -> None:
        self.types = types
        self.items = items

    @classmethod
    def of(cls, schema: Any, key: str) -> "_Expected":
        properties = schema.get("properties") if isinstance(schema, dict) else None
        wanted = properties.get(key) if isinstance(properties, dict) else None
        items = wanted.get("items") if isinstance(wanted, dict) else None
        return cls(_types(schema, wanted, 0), _types(schema, items, 0))


def _types(root: Any, schema: Any, depth: int) -> frozenset[str]:
    """The types that a schema may ask for; none: it does not say."""
    if not isinstance(schema, dict) or depth > _DEPTH_MAX:
        return frozenset()
    if isinstance(schema.get("$ref"), str):
        return _types(root, _referred(root, schema["$ref"]), depth + 1)
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(one for one in named if isinstance(one, str))
    if isinstance(schema.get("enum"), list) and all(isinstance(one, str) for one in schema["enum"]):
        return frozenset({"string"})
    choices = [one for choice in _CHOICES for one in _listed(schema.get(choice))]
    return frozenset().union(*(_types(root, one, depth + 1) for one in choices))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _referred(root: Any, ref: str) -> Any:
    """What `#/$defs/Name` refers to; None where there is no such thing."""
    found = root
    for step in ref.removeprefix("#/").split("/") if ref.startswith("#/") else ("",):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _value(mark: str, key: str, written: str, expected: _Expected) -> Any:
    if mark == ":=":
        return _read_json(key, written)
    if written.startswith("@") and len(written) > 1:
        return _typed(key, read_text(key, written[1:]), expected)
    return _typed(key, written, expected)


def _typed(key: str, written: str, expected: _Expected) -> Any:
    if not expected.types:
        return _guessed(written)
    if "string" in expected.types:
        return written
    try:
        value = decode_json(written.encode())
    except (ProtocolError, UnicodeError):
        value = written
    if any(_is_of(value, one) for one in expected.types):
        return value
    if "array" in expected.types:
        return [_typed(key, written, _Expected(expected.items))]
    types = " or ".join(sorted(expected.types))
    raise CommandError(f"{key}: expected {types}, and {written[:80]!r} is none")


def _is_of(value: Any, kind: str) -> bool:
    is_of = _IsOf.get(kind)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return True
    return is_of is not None and is_of(value)


def _guessed(written: str) -> Any:
    try:
        value = decode_json(written.encode())
    except (ProtocolError, UnicodeError):
        return written
    return written if isinstance(value, str) else value


def _json(option: str, written: str) -> Any:
    try:
        value = decode_json(written.encode())
    except (ProtocolError, UnicodeError) as error:
        raise CommandError(f"{option}: this is no JSON: {error}") from error
    if _repeats(value):
        raise CommandError(f"{option}: a key occurs twice in an object")
    return value


def _repeats(value: Any) -> bool:
    if isinstance(value, Repeated) and value.repeated:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_repeats, inner))
