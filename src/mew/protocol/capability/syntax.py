"""Syntax of capabilities: parse what people write into patterns, with every limit and error message; short forms."""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import re2

from mew.protocol.errors import InvalidCapability

from .glob import Glob
from .json_path import Path, PathError
from .pattern import ANYTHING, AnyOf, Exact, Fields, Not, Pattern, Regex, Scalar, StringPattern
from .values import JSON, Repeated

__all__ = [
    "BYTES_MAX",
    "LENGTH_MAX",
    "compiled",
    "count_expensive",
    "expanded",
    "name_field",
    "normalised",
    "short_form",
    "short_text",
    "written_bytes",
]

BYTES_MAX = 8_192
LENGTH_MAX = 4_096
_NODES_MAX = 1_000
_ALTERNATIVES_MAX = 256
_DEPTH_MAX = 32
_WILDCARDS_MAX = 64
_ENGINE_LENGTH_MAX = 512
_CLASS_WEIGHT = 64  # in characters: what a Unicode class like `\pL` takes to compile

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')  # taken for the longest form, `\u0000`

_ENGINE = re.compile(r"(?:^|:)!*/.*/$", re.DOTALL)

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 21  # ample, so that matching stays fast
_SMALL = re2.Options()
_SMALL.log_errors = False
_SMALL.max_mem = 1 << 16  # what the expression itself may take of it


def normalised(written: object, where: str) -> JSON:
    """A plain copy of a written pattern, in which everything is of a kind and size that can be compiled.

    Raises:
        InvalidCapability: it is not; the message says where and why.
    """
    return _Copier().copy(written, where, 0)


def compiled(written: JSON, where: str, *, in_doubt: bool) -> Pattern:
    """The pattern that a normalised one means; `in_doubt` as in `Fields`.

    Raises:
        InvalidCapability: a part of it does not compile; the message says where and why.
    """
    match written:
        case str():
            return _string(written, where)
        case list():
            return AnyOf(tuple(compiled(item, where, in_doubt=in_doubt) for item in written))
        case dict():
            parts = [
                (name, compiled(item, f"{where}.{_short(name)}", in_doubt=in_doubt))
                for name, item in written.items()
            ]
            return Fields(
                tuple(part for part in parts if not part[0].startswith("$")),
                tuple((_path(name, where), pattern) for name, pattern in parts if name.startswith("$")),
                in_doubt,
            )
        case _:
            return Scalar(written)


def count_expensive(written: object) -> int:
    """How many regular expressions and JSONPaths there are in what was written: all that is slow to compile."""
    found, waiting = 0, [written]
    while waiting:
        part = waiting.pop()
        match part:
            case str():
                found += _ENGINE.search(part) is not None
            case list() | tuple():
                waiting += part
            case Mapping():
                found += sum(isinstance(name, str) and name.startswith("$") for name in part)
                waiting += part.values()
    return found


def written_bytes(source: JSON) -> int:
    """How long a normalised pattern is as JSON without spaces."""
    match source:
        case str():
            return len(source.encode("utf-8", "surrogatepass")) + 2 + 5 * len(_ESCAPED.findall(source))
        case dict():
            return 1 + sum(written_bytes(name) + 2 + written_bytes(item) for name, item in source.items())
        case list():
            return 1 + sum(1 + written_bytes(item) for item in source)
        case int():
            return source.bit_length() // 3 + 2  # about; `str` fails on very long ones
        case _:
            return len(str(source))


class _Copier:
    """Copies one pattern and counts its nodes."""

    def __init__(self) -> None:
        self._nodes = 0

    def copy(self, written: object, where: str, depth: int) -> JSON:
        self._nodes += 1
        if self._nodes > _NODES_MAX:
            raise InvalidCapability(f"{where} makes the pattern larger than {_NODES_MAX} parts")
        if depth > _DEPTH_MAX:
            raise InvalidCapability(f"the pattern is nested deeper than {_DEPTH_MAX} levels")
        match written:
            case str():
                return _bounded(written, where)
            case bool() | int() | None:
                return written
            case float() if math.isfinite(written):
                return written
            case list() | tuple():
                return self._array(written, where, depth)
            case Mapping():
                return self._object(written, where, depth)
            case _:
                raise InvalidCapability(f"{where} is {_name(written)}, which is not a JSON value")

    def _array(self, written: list[object] | tuple[object, ...], where: str, depth: int) -> JSON:
        if not written:
            raise InvalidCapability(
                f"{where} is an empty array, which nothing fits; name at least one alternative"
            )
        if len(written) > _ALTERNATIVES_MAX:
            raise InvalidCapability(
                f"{where} has {len(written)} alternatives, {_ALTERNATIVES_MAX} are allowed"
            )
        return [self.copy(item, f"{where}[{n}]", depth + 1) for n, item in enumerate(written)]

    def _object(self, written: Mapping[object, object], where: str, depth: int) -> JSON:
        if isinstance(written, Repeated) and written.repeated:
            raise InvalidCapability(f"{where} has the key {_short(min(written.repeated))!r} twice")
        copy = {}
        for name, item in written.items():
            if not isinstance(name, str):
                raise InvalidCapability(f"{where} has the key {_short(repr(name))}, keys are strings")
            _bounded(name, f"a key of {where}")
            copy[name] = self.copy(item, f"{where}.{_short(name)}", depth + 1)
        return copy


def _string(text: str, where: str, depth: int = 0) -> StringPattern:
    if text.startswith("!"):
        if depth == _DEPTH_MAX:
            raise InvalidCapability(f"{where} has more than {_DEPTH_MAX} '!' in a row")
        return Not(_string(text[1:], where, depth + 1))
    if len(text) >= 2 and text.startswith("/") and text.endswith("/"):
        return _regex(text, where)
    if not text.strip("*") and text:
        return ANYTHING
    if "*" in text or "?" in text:
        glob = Glob(text)
        if glob.wildcards > _WILDCARDS_MAX:
            raise InvalidCapability(
                f"{where} has {glob.wildcards} wildcards, {_WILDCARDS_MAX} are allowed: {_short(text)!r}"
            )
        return glob
    return Exact(text)


def _regex(text: str, where: str) -> Regex:
    if text == "//":
        raise InvalidCapability(f"{where} is an empty regular expression, write '*' for anything")
    if len(text) + _CLASS_WEIGHT * text.lower().count("\\p") > _ENGINE_LENGTH_MAX:
        raise InvalidCapability(
            f"{where} is too long a regular expression: {_ENGINE_LENGTH_MAX} characters are allowed,"
            f" and a Unicode class counts as {_CLASS_WEIGHT}"
        )
    try:
        return Regex(text, _expression(text[1:-1]))
    except (re2.error, UnicodeError) as error:
        why = error.args[0]
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else "it is not valid Unicode"
        raise InvalidCapability(
            f"{where} is not a regular expression of RE2: {_short(text)!r}: {why}"
            " (a string that starts and ends with '/' is one)"
        ) from error


@lru_cache(maxsize=1_024)  # an envelope's capabilities are compiled when checked and again when accepted
def _expression(text: str) -> Any:
    re2.compile(text.encode(), options=_SMALL)
    return re2.compile(text.encode(), options=_OPTIONS)


@lru_cache(maxsize=1_024)
def _compiled_path(text: str) -> Path:
    return Path(text)


def _path(text: str, where: str) -> Path:
    if len(text) > _ENGINE_LENGTH_MAX:
        raise InvalidCapability(
            f"{where} has a JSONPath of {len(text)} characters, {_ENGINE_LENGTH_MAX} are allowed"
        )
    try:
        return _compiled_path(text)
    except PathError as error:
        raise InvalidCapability(
            f"{where} has the key {_short(text)!r}, which is not a JSONPath of RFC 9535: {error}"
            " (a key that starts with '$' is one; for the field itself write \"$['$name']\")"
        ) from error


def _bounded(text: str, where: str) -> str:
    if len(text) > LENGTH_MAX:
        raise InvalidCapability(f"{where} has {len(text)} characters, {LENGTH_MAX} are allowed")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 64 else text[:61] + "..."


def _name(value: object) -> str:
    return repr(value) if isinstance(value, float) else f"a {type(value).__name__}"


_NAMED_BY = {
    "tools/call": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "prompts/get": "name",
    "completion/complete": "ref",
}
_KINDS_WITH_METHOD = ("mcp/request", "mcp/proposal")
_SHOWN_MAX = 128


def short_form(kind: str, payload: JSON) -> str:
    """The narrowest string form that fits an envelope like this: its kind, and method and name where it has them."""
    method = payload.get("method") if kind in _KINDS_WITH_METHOD and isinstance(payload, dict) else None
    if not isinstance(method, str):
        return kind
    params = payload.get("params")
    name = params.get(name_field(method)) if isinstance(params, dict) else None
    parts = (kind, method, name) if isinstance(name, str) else (kind, method)
    return ":".join(part[:_SHOWN_MAX] for part in parts)


def name_field(method: str) -> str | None:
    """The field of the params that says which tool, prompt or resource a method is for."""
    return _NAMED_BY.get(method)


def short_text(written: JSON) -> str:
    """A capability as somebody wrote it, in its string form where that says all of it; else its JSON."""
    if isinstance(written, str):
        return written
    kind = written.get("kind") if isinstance(written, dict) else None
    if isinstance(written, dict) and isinstance(kind, str):
        text = short_form(kind, written.get("payload"))
        try:
            if expanded(text) == written:
                return text
        except InvalidCapability:
            pass  # its kind has a colon in it
    return msgspec.json.encode(written).decode()


def expanded(text: str) -> dict[str, JSON]:
    """The object that the string stands for. A `*` for the method or the name is no condition on it.

    Raises:
        InvalidCapability: the string has parts that mean nothing.
    """
    if len(text) > LENGTH_MAX:
        raise InvalidCapability(f"a capability has {len(text)} characters, {LENGTH_MAX} are allowed")
    kind, *parts = text.split(":", 2)  # no further: the name may be a URI
    if not all((kind, *parts)):
        raise InvalidCapability(
            f"{text[:64]!r} has an empty part, write 'kind', 'kind:method' or 'kind:method:name'"
        )
    if not parts or (parts == ["*"] and kind in (*_KINDS_WITH_METHOD, "mcp/response")):
        return {"kind": kind}
    if kind not in _KINDS_WITH_METHOD:
        raise InvalidCapability(
            f"{text[:64]!r} names a method, which only {' and '.join(_KINDS_WITH_METHOD)} have;"
            f" write {kind[:64]!r} alone, or an object with a payload"
        )
    method = parts[0]
    if len(parts) == 1:
        return {"kind": kind, "payload": {"method": method}}
    if method not in _NAMED_BY:
        raise InvalidCapability(
            f"{text[:64]!r} has a third part, which only these methods take: {', '.join(_NAMED_BY)}"
        )
    if parts[1] == "*":
        return {"kind": kind, "payload": {"method": method}}
    return {"kind": kind, "payload": {"method": method, "params": {_NAMED_BY[method]: parts[1]}}}
