"""PURE. Values of a type hint as JSON: their schema, how they are read, how they are written.

msgspec does the work. This adds what it lacks: unions it cannot tell apart (the first member that fits), pydantic
models and paths, descriptions as plain strings in `Annotated`, and `1.0` as the integer it is in JSON Schema.
"""

import operator
import types
from collections.abc import Sequence
from datetime import datetime, time
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, ValidationError

from mew.protocol.json import decode_json, encode_json

__all__ = ["Schemas", "description_of", "mentions", "normal", "plain", "read"]

_UNIONS: Final = (Union, types.UnionType)
_REFERENCE: Final = "#/$defs/"
# msgspec names them only where a time zone is demanded.
_FORMATS: Final = {datetime: "date-time", time: "time"}


class _Chosen(type):
    def __instancecheck__(cls, _value: object) -> bool:
        return True  # msgspec asks after we have read it: it is of one of the members


class _Choice(metaclass=_Chosen):
    """A union that msgspec cannot tell apart by the JSON type; each has a class of its own."""

    members: ClassVar[tuple[Any, ...]] = ()


class Schemas:
    """Makes JSON Schemas; `definitions` holds what they refer to as `#/$defs/…`.

    `mode` tells pydantic models whether they are read or written: theirs may differ. `has_models`: it met one.
    """

    def __init__(self, mode: Literal["validation", "serialization"] = "validation") -> None:
        self.definitions: dict[str, Any] = {}
        self.has_models = False
        self._mode = mode

    def of(self, hints: Sequence[Any]) -> list[dict[str, Any]]:
        """One schema for each of these hints, which `normal` has seen.

        Raises:
            TypeError: a hint that JSON has no form for.
        """
        schemas, definitions = msgspec.json.schema_components(
            hints, schema_hook=self._of_class, ref_template=_REFERENCE + "{name}"
        )
        self._define(definitions)
        return list(schemas)

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with a reference at its top replaced by what it refers to."""
        name = schema.get("$ref", "").removeprefix(_REFERENCE)
        if name not in self.definitions:
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**self.resolved(self.definitions[name]), **beside}

    def _of_class(self, hint: type) -> dict[str, Any]:
        if issubclass(hint, _Choice):
            return {"anyOf": self.of(hint.members)}
        if issubclass(hint, PurePath):
            return {"type": "string", "format": "path"}
        if hasattr(hint, "model_json_schema"):
            self.has_models = True
            schema: dict[str, Any] = hint.model_json_schema(
                ref_template=_REFERENCE + "{model}", mode=self._mode
            )
            self._define(schema.pop("$defs", {}))
            return schema
        raise TypeError(f"{hint.__qualname__} has no form in JSON")

    def _define(self, definitions: dict[str, Any]) -> None:
        for name, schema in definitions.items():
            if self.definitions.setdefault(name, schema) != schema:
                raise TypeError(f"two different types are called {name!r}")


def normal(hint: Any) -> Any:
    """The hint as the rest of this module wants it: what msgspec would refuse is replaced, where there is a way."""
    if hint is object:
        return Any
    if isinstance(hint, type) and hint in _FORMATS:
        return operator.getitem(Annotated, (hint, Meta(extra_json_schema={"format": _FORMATS[hint]})))
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        metas = [Meta(description=extra) if isinstance(extra, str) else extra for extra in parts[1:]]
        return operator.getitem(Annotated, (normal(parts[0]), *metas))
    if origin in _UNIONS:
        return _union(tuple(normal(part) for part in parts))
    if isinstance(origin, type) and parts and not _is_callable(parts):
        return operator.getitem(origin, tuple(normal(part) for part in parts))  # type: ignore[call-overload]
    return hint


def read(value: Any, hint: Any, *, strict: bool = True) -> Any:
    """The Python value of a hint from JSON. Not strict: strings are read as numbers too, for what came in a URI.

    Raises:
        ValidationError: it is something else, with what was expected and where.
    """
    try:
        try:
            return _convert(value, hint, strict=strict)
        except ValidationError:
            return _convert(_with_integers(value), hint, strict=strict)
    except (TypeError, OverflowError, RecursionError) as error:  # a list in a set, for one
        raise ValidationError(str(error)) from None


def plain(value: Any) -> Any:
    """Anything that has a form in JSON, in that form.

    Raises:
        TypeError: it has none.
    """
    try:
        return decode_json(encode_json(msgspec.to_builtins(value, str_keys=True, enc_hook=_encode)))
    except (ValueError, OverflowError, RecursionError) as error:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON: {error}") from error


def mentions(hint: Any, kinds: tuple[type, ...]) -> bool:
    """Whether the hint is, or has within it, one of these classes."""
    if isinstance(hint, type) and get_origin(hint) is None and issubclass(hint, kinds):
        return True
    return any(mentions(part, kinds) for part in get_args(hint))


def description_of(hint: Any) -> str | None:
    """What `Annotated` says of it."""
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((e.description for e in extras if isinstance(e, Meta) and e.description is not None), None)


def _union(members: tuple[Any, ...]) -> Any:
    union = operator.getitem(Union, members)
    try:
        msgspec.json.Decoder(union)
    except TypeError:
        return _Chosen("_Choice", (_Choice,), {"members": members})
    return union


def _is_callable(parts: tuple[Any, ...]) -> bool:
    return isinstance(parts[0], list)


def _convert(value: Any, hint: Any, *, strict: bool) -> Any:
    return msgspec.convert(value, type=hint, strict=strict, str_keys=True, dec_hook=_decode)


def _with_integers(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _with_integers(item) for key, item in value.items()}
        case list():
            return [_with_integers(item) for item in value]
    return value


def _decode(hint: Any, value: Any) -> Any:
    if issubclass(hint, _Choice):
        return _first_that_fits(hint.members, value)
    if issubclass(hint, PurePath):
        if not isinstance(value, str):
            raise ValueError(f"Expected `path`, got `{type(value).__name__}`")
        return hint(value)
    try:
        return hint.model_validate(value)
    except ValueError as error:
        raise ValueError(_model_problems(error)) from None


def _first_that_fits(members: tuple[Any, ...], value: Any) -> Any:
    problems = []
    for member in members:
        try:
            return read(value, member)
        except ValidationError as problem:
            problems.append(str(problem))
    raise ValueError("; or ".join(dict.fromkeys(problems)))


def _model_problems(error: ValueError) -> str:
    problems = error.errors() if hasattr(error, "errors") else []
    said = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".lstrip(": ") for problem in problems]
    return "; ".join(said[:3]) or str(error)


def _encode(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
