"""PURE. Whether a value is what a JSON Schema asks for (2020-12, or the draft that it names).

Schemas come from participants: their patterns run in linear time (RE2), nothing is fetched, and what takes too long,
as references that go on for ever do, is given up. `unevaluatedProperties`, `unevaluatedItems` and patterns RE2 does
not know go unchecked: the tool checks them itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import re2

from mew.client.errors import MewError
from mew.protocol.json import encode_json
from mew.protocol.visible import cut

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["InvalidArguments", "check", "check_call", "mismatch"]

_SHOWN_MAX: Final = 5
_PROBLEM_CHARS_MAX: Final = 200
_WORK_MAX: Final = 3_000_000  # in microseconds, about
_KEYWORD_WORK: Final = 10
_PATTERN_WORK: Final = 10
_UNCHECKED: Final = ("unevaluatedProperties", "unevaluatedItems")

_Keyword = Callable[[Any, Any, Any, Any], Iterator["ValidationError"] | None]
_Tolerant = Callable[[Any, Any, Any, Any], bool]


class InvalidArguments(MewError, ValueError):
    """Arguments that a tool's schema does not allow: which, and what was expected. Nothing was sent."""


def check(arguments: Any, schema: Any, *, whose: str = "the tool's") -> None:
    """See that arguments are what the schema asks for; a schema of `None` asks for nothing.

    Raises:
        InvalidArguments: they are not, or the schema is one that nothing can be checked against.
    """
    _raise_for(_problems(arguments, schema, whose=whose, replaced={}))


def check_call(arguments: Any, schema: Any) -> None:
    """See that a tool may take these arguments: as `check`, but as tolerant as servers are known to be.

    A property that has a default may be missing, a number, boolean or null may be given as text, and a schema that
    nothing can be checked against allows everything.

    Raises:
        InvalidArguments: the tool would not take them.
    """
    try:
        problems = _problems(arguments, schema, whose="the tool's", replaced=_TOLERANT)
    except InvalidArguments:
        return  # the schema cannot be read: the tool has the last word
    _raise_for(problems)


def mismatch(arguments: Any, schema: Any) -> str | None:
    """Return how a call does not match its tool's schema, as a note for reviewers; None if it does.

    Servers take more than their schemas allow, so such a call is proposed with this note and not refused.
    """
    try:
        check_call(arguments, schema)
    except InvalidArguments as error:
        return f"The call does not match the tool's schema: {error}"
    return None


def _raise_for(problems: Sequence[str]) -> None:
    if problems:
        more = ["and more"] if len(problems) > _SHOWN_MAX else []
        raise InvalidArguments("; ".join([*problems[:_SHOWN_MAX], *more]))


def _problems(arguments: Any, schema: Any, *, whose: str, replaced: "Mapping[str, _Tolerant]") -> list[str]:
    """What is wrong with the arguments, in words, and one more than is shown.

    Raises:
        InvalidArguments: nothing can be checked against the schema.
    """
    if schema is None:
        return []
    import jsonschema  # slow to import, and only needed here
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        known: Any = validator_for(schema, default=jsonschema.Draft202012Validator)
        for wrong in islice(_ours(known)(known.META_SCHEMA).iter_errors(schema), 1):
            raise InvalidArguments(f"{whose} schema is no JSON Schema: {_worded(wrong)}")
        validator = _ours(known, replaced)(schema, registry=Registry())
        return [_worded(error) for error in islice(validator.iter_errors(arguments), _SHOWN_MAX + 1)]
    except InvalidArguments:
        raise
    except Unresolvable as error:
        raise InvalidArguments(
            f"{whose} schema refers to {cut(str(error.ref), 80)!r}, which is not in it"
        ) from None
    except RecursionError:
        raise InvalidArguments(f"{whose} schema is nested or refers to itself without end") from None
    except _TooLong:
        raise InvalidArguments(
            f"{whose} schema takes too long to check, or refers to itself without end"
        ) from None
    except Exception as error:  # the library fails in many ways on schemas that are none
        raise InvalidArguments(f"{whose} schema cannot be read: {cut(str(error), 80)}") from error


class _TooLong(Exception):
    """More work than anybody needs."""


def _ours(known: Any, tolerant: "Mapping[str, _Tolerant]" = MappingProxyType({})) -> Any:
    """The validator of a draft, with its dangerous keywords replaced, and a bound on its work.

    `tolerant` are keywords with what makes up for a value that they do not allow.
    """
    from jsonschema import validators

    left = _WORK_MAX

    def counted(keyword: str, check: _Keyword) -> _Keyword:
        def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator["ValidationError"]:
            nonlocal left
            left -= _KEYWORD_WORK + _work(keyword, value, instance, schema)
            if left < 0:
                raise _TooLong
            yield from check(validator, value, instance, schema) or ()

        return checked

    replaced: dict[str, _Keyword] = {
        **known.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        **dict.fromkeys(_UNCHECKED, _unchecked),
    }
    for keyword, allows in tolerant.items():
        if keyword in replaced:
            replaced[keyword] = _unless(allows, replaced[keyword])
    every = {keyword: counted(keyword, check) for keyword, check in replaced.items()}
    return validators.extend(known, every)  # type: ignore[no-untyped-call]  # the library's own


def _work(keyword: str, value: Any, instance: Any, schema: Any) -> int:
    """Of those that take longer the larger what they are given is, and more than in proportion to it."""
    many = len(instance) if isinstance(instance, dict | list) else 1
    match keyword:
        case "enum" | "required" if isinstance(value, list):
            return len(value)
        case "uniqueItems" if isinstance(instance, list):
            is_sortable = {type(item) for item in instance} in ({str}, {int}, {float})
            return many if is_sortable else many * many
        case "patternProperties" if isinstance(value, dict):
            return _PATTERN_WORK * many * len(value)
        case "additionalProperties" if isinstance(patterns := schema.get("patternProperties"), dict):
            return _PATTERN_WORK * many * len(patterns)
    return 0


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator["ValidationError"]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(instance, "string") and _found(pattern, instance) is False:
        yield ValidationError(f"{cut(instance, 60)!r} does not match {cut(pattern, 60)!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
) -> Iterator["ValidationError"]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _found(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator["ValidationError"]:
    from jsonschema.exceptions import ValidationError

    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in named or any(_found(pattern, name) is not False for pattern in patterns):
            continue
        if allowed is False:
            expected = ", ".join(repr(each) for each in named) or "none"
            yield ValidationError(f"unknown argument {name!r}, expected: {expected}")
        else:
            yield from validator.descend(value, allowed, path=name)


def _unless(allows: _Tolerant, check: _Keyword) -> _Keyword:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator["ValidationError"]:
        if not allows(validator, value, instance, schema):
            yield from check(validator, value, instance, schema) or ()

    return checked


def _is_typed_as_text(_validator: Any, types: Any, instance: Any, _schema: Any) -> bool:
    """Whether the text says a value of one of the types: "3" an integer, "true" a boolean."""
    wanted = [types] if isinstance(types, str) else types
    return isinstance(instance, str) and any(
        kind in _AS_TEXT and _AS_TEXT[kind].fullmatch(instance) is not None for kind in wanted
    )


def _is_listed_as_text(_validator: Any, values: Any, instance: Any, _schema: Any) -> bool:
    listed = values if isinstance(values, list) else [values]
    return isinstance(instance, str) and any(
        not isinstance(value, str) and encode_json(value).decode() == instance for value in listed
    )


def _has_defaults(_validator: Any, required: Any, instance: Any, schema: Any) -> bool:
    """Whether everything that is missing has a default."""
    properties = schema.get("properties")
    if not isinstance(instance, dict) or not isinstance(properties, dict):
        return False
    missing = [properties.get(name) for name in required if name not in instance]
    return all(isinstance(one, dict) and "default" in one for one in missing)


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    return None


def _found(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None if RE2 does not know such patterns."""
    try:
        return _compiled(pattern).search(text) is not None
    except (re2.error, UnicodeError):
        return None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, options=_OPTIONS)


def _worded(error: Any) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".")
    said = cut(error.message, _PROBLEM_CHARS_MAX)
    return f"{cut(where, _PROBLEM_CHARS_MAX)}: {said}" if where else said


_AS_TEXT: Final = {
    "integer": re.compile(r"[+-]?[0-9]{1,64}", re.ASCII),
    "number": re.compile(r"[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([eE][+-]?[0-9]{1,3})?", re.ASCII),
    "boolean": re.compile(r"true|false", re.IGNORECASE),
    "null": re.compile(r"null"),
}
_TOLERANT: Final[Mapping[str, _Tolerant]] = {
    "type": _is_typed_as_text,
    "enum": _is_listed_as_text,
    "const": _is_listed_as_text,
    "required": _has_defaults,
}
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20
