"""PURE. A Python function as JSON Schema: its parameters, what it returns, and what its docstring says of them."""

import difflib
import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from .hints import Schemas, description_of, mentions, normal, plain, read

__all__ = [
    "ArgumentError",
    "Arguments",
    "Docstring",
    "OutputSchema",
    "arguments_of",
    "docstring_of",
    "output_of",
    "read_docstring",
]

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


_SHOWN_MAX: Final = 5
_NAME_CHARS_MAX: Final = 60
_PROBLEM_CHARS_MAX: Final = 300


class ArgumentError(ValueError):
    """Arguments a function does not take: which, and what was expected."""


@dataclass(frozen=True)
class Arguments:
    """What a function takes. `schema` describes an object with a property for each parameter."""

    schema: dict[str, Any]
    hints: dict[str, Any]
    signature: inspect.Signature
    context: tuple[str, ...]

    def decode(self, given: object, context: object = None, *, strict: bool = True) -> inspect.BoundArguments:
        """What to call the function with; parameters of the context's class get `context`.

        Raises:
            ArgumentError: names every argument that is unknown, missing or wrong.
        """
        if not isinstance(given, Mapping):
            raise ArgumentError(f"arguments: expected an object, got {_kind_of(given)}")
        unknown = [name for name in given if name not in self.hints]
        problems = [self._unknown(name) for name in unknown[:_SHOWN_MAX]]
        values: dict[str, Any] = dict.fromkeys(self.context, context)
        for name, hint in self.hints.items():
            if name in given:
                try:
                    values[name] = read(given[name], hint, strict=strict)
                except msgspec.ValidationError as problem:
                    problems.append(_worded(name, str(problem)))
            elif name in self.schema["required"]:
                problems.append(f"argument {name!r} is missing{self._expected(name)}")
        if problems:
            hidden = len(problems) + len(unknown[_SHOWN_MAX:]) - _SHOWN_MAX
            more = [f"and {hidden} more"] if hidden > 0 else []
            raise ArgumentError("; ".join(problems[:_SHOWN_MAX] + more))
        ordered = {name: values[name] for name in self.signature.parameters if name in values}
        bound = inspect.BoundArguments(self.signature, ordered)
        bound.apply_defaults()
        return bound

    def choices(self, name: str) -> list[str]:
        """The values an argument is limited to, as text; none where it is not limited."""
        return [str(value) for value in self._enumerated(self.schema["properties"].get(name, {}))]

    def _enumerated(self, schema: dict[str, Any]) -> list[Any]:
        if "$ref" in schema:
            return self._enumerated(self.schema["$defs"][schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return [value for member in schema["anyOf"] for value in self._enumerated(member)]
        return [value for value in schema.get("enum", []) if value is not None]

    def _unknown(self, name: str) -> str:
        nearest = difflib.get_close_matches(name, self.hints, n=1) if len(name) <= _NAME_CHARS_MAX else []
        if nearest:
            return f"unknown argument {_short(name)}, did you mean {nearest[0]!r}?"
        takes = ", ".join(repr(known) for known in self.hints) or "none"
        return f"unknown argument {_short(name)}, expected: {takes}"

    def _expected(self, name: str) -> str:
        kind = self.schema["properties"][name].get("type")
        return f", expected {kind}" if isinstance(kind, str) else ""


@dataclass(frozen=True)
class OutputSchema:
    """What a function promises to return. MCP wants an object: any other value is `wrapped` as `{"result": value}`."""

    schema: dict[str, Any]
    hint: Any
    is_wrapped: bool
    is_checked: bool

    def keep(self, value: Any) -> None:
        """See that a value, in JSON, is what was promised.

        Raises:
            TypeError: it is not.
        """
        if not self.is_checked:
            return
        try:
            read(value, self.hint)
        except msgspec.ValidationError as problem:
            raise TypeError(f"the result is not what the function promises: {_lower(str(problem))}") from None


def arguments_of(function: Callable[..., Any], *, context: type | None = None) -> Arguments:
    """Read a function's parameters; those annotated with `context` are filled in, not asked for.

    Raises:
        TypeError: it takes `*args` or `**kwargs`, or a parameter's type has no form in JSON.
    """
    resolved = _hints_of(function)
    signature = inspect.signature(function)
    hints: dict[str, Any] = {}
    filled_in: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise TypeError(f"{_called(function)} takes {stars}{name}: name each parameter, callers see them")
        hint = resolved.get(name, Any)
        if context is not None and mentions(hint, (context,)):
            filled_in.append(name)
        else:
            hints[name] = normal(hint)
    return Arguments(_object_schema(function, signature, hints), hints, signature, tuple(filled_in))


def output_of(function: Callable[..., Any], *, besides: tuple[type, ...] = ()) -> OutputSchema | None:
    """What the return annotation promises: nothing where it is text, `besides`, or what JSON has no form for.

    Raises:
        TypeError: an annotation cannot be resolved.
    """
    hint = normal(_hints_of(function).get("return", Any))
    if hint in (Any, str, None, type(None), typing.NoReturn, typing.Never) or mentions(hint, besides):
        return None
    schemas = Schemas(mode="serialization")
    try:
        schema = schemas.resolved(*schemas.of([hint]))
    except TypeError:
        return None
    is_wrapped = schema.get("type") != "object"
    if is_wrapped:
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return OutputSchema(_with_definitions(schema, schemas), hint, is_wrapped, not schemas.has_models)


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not inspect.isclass(inner):
        inner = type(inner).__call__
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{_called(function)}: {error}; what an annotation names must be importable from its module, "
            "not local to a function and not under TYPE_CHECKING"
        ) from None


def _object_schema(
    function: Callable[..., Any], signature: inspect.Signature, hints: dict[str, Any]
) -> dict[str, Any]:
    schemas = Schemas()
    said = docstring_of(function).parameters
    properties = dict(zip(hints, _schemas_of(function, hints, schemas), strict=True))
    for name, schema in properties.items():
        described = description_of(hints[name]) or said.get(name)
        if described:
            schema["description"] = described
        default = signature.parameters[name].default
        if default is not inspect.Parameter.empty and _is_shown(default, hints[name]):
            schema["default"] = plain(default)
    required = [name for name in hints if signature.parameters[name].default is inspect.Parameter.empty]
    whole = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return _with_definitions(whole, schemas)


def _schemas_of(
    function: Callable[..., Any], hints: dict[str, Any], schemas: Schemas
) -> list[dict[str, Any]]:
    try:
        return schemas.of(list(hints.values()))
    except TypeError as error:
        for name, hint in hints.items():
            try:
                Schemas().of([hint])
            except TypeError as culprit:
                raise TypeError(f"{_called(function)}: parameter {name!r}: {culprit}") from None
        raise TypeError(f"{_called(function)}: {error}") from None


def _is_shown(default: object, hint: Any) -> bool:
    """Whether a caller could have given the default: a sentinel, or None for an `int`, is the function's own affair."""
    try:
        read(plain(default), hint)
    except (TypeError, msgspec.ValidationError):
        return False
    return True


def _with_definitions(schema: dict[str, Any], schemas: Schemas) -> dict[str, Any]:
    return {**schema, "$defs": schemas.definitions} if schemas.definitions else schema


def _worded(name: str, problem: str) -> str:
    """`argument 'a[0].b': expected int, got str` from msgspec's "Expected `int`, got `str` - at `$[0].b`"."""
    what, at, where = problem.rpartition(" - at `")
    path = where.partition("$")[2].removesuffix("`") if at else ""
    return f"argument '{name}{path[:_PROBLEM_CHARS_MAX]}': {_lower(what if at else problem)[:_PROBLEM_CHARS_MAX]}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].replace("`", "")


def _short(name: str) -> str:
    return repr(name if len(name) <= _NAME_CHARS_MAX else f"{name[:_NAME_CHARS_MAX]}…")


def _kind_of(value: object) -> str:
    kinds = {str: "a string", bool: "a boolean", list: "an array", type(None): "null"}
    return kinds.get(type(value), "a number")


def _called(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"
