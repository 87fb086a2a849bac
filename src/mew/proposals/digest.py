"""PURE. The digest of what a proposal would do: SHA-256 over its canonical JSON (RFC 8785, JCS).

Two writers of the same operation get the same digest, whatever the order of their keys, their white space or the
spelling of their numbers. What readers of JSON could take for different values has no canonical form and is refused.
"""

from collections.abc import Iterable
from decimal import Decimal
from hashlib import sha256
from math import isfinite
from typing import Any, Final

__all__ = ["NotCanonical", "canonical", "digest"]

_NESTING_MAX: Final = 128
_DOUBLE_BITS_MAX: Final = 1024
_SAFE_INTEGER_MAX: Final = 2**53 - 1
# ECMAScript writes exponents for numbers of more than 21 digits before the point, or more than 6 zeros behind it.
_DIGITS_MAX: Final = 21
_ZEROS_MAX: Final = 6
_ESCAPES: Final = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in range(0x20)}
    | {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
)


class NotCanonical(ValueError):
    """A value that RFC 8785 gives no form: a lone surrogate, an integer doubles cannot tell, infinity, no JSON."""


def digest(
    target: str | Iterable[str] | None, method: str, params: dict[str, Any] | None = None, schema: Any = None
) -> str:
    """Lowercase hex SHA-256 over the canonical form of `{"target", "method", "params", "schema"}`.

    Several targets are a set: sorted, each once. No target and no schema are null, no params are `{}`.

    Raises:
        NotCanonical: something in it has no canonical form.
    """
    if target is not None and not isinstance(target, str):
        target = sorted(set(target))
    whole = {"target": target, "method": method, "params": params or {}, "schema": schema}
    return sha256(canonical(whole)).hexdigest()


def canonical(value: Any) -> bytes:
    """The one way RFC 8785 has to write a JSON value: keys by UTF-16 code units, numbers as ECMAScript does, UTF-8.

    An integer is taken if it is exactly what ECMAScript writes for the nearest double: all up to 2^53 - 1, and beyond
    that those JavaScript itself would send (`295147905179352830000`, not 2^68 in full), so that different integers
    never share a form and a canonical text read again gives itself.

    Raises:
        NotCanonical: it has no canonical form.
    """
    parts: list[str] = []
    _write(value, parts, 0)
    return "".join(parts).encode()


def _write(value: Any, parts: list[str], depth: int) -> None:
    match value:
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case str():
            parts.append(_string(value))
        case int():
            parts.append(_integer(value))
        case float():
            parts.append(_double(value))
        case dict():
            _write_object(value, parts, _below(depth))
        case list() | tuple():
            _write_array(value, parts, _below(depth))
        case _:
            raise NotCanonical(f"{type(value).__name__} is no JSON")


def _below(depth: int) -> int:
    if depth == _NESTING_MAX:
        raise NotCanonical(f"nested deeper than {_NESTING_MAX} levels")
    return depth + 1


def _write_object(fields: dict[Any, Any], parts: list[str], depth: int) -> None:
    names = sorted((_code_units(name), name) for name in fields)
    separator = "{"
    for _, name in names:
        parts += (separator, _string(name), ":")
        _write(fields[name], parts, depth)
        separator = ","
    parts.append("}" if names else "{}")


def _write_array(items: Iterable[Any], parts: list[str], depth: int) -> None:
    separator = "["
    for item in items:
        parts.append(separator)
        _write(item, parts, depth)
        separator = ","
    parts.append("]" if separator == "," else "[]")


def _code_units(name: Any) -> bytes:
    """What sorts a string by its UTF-16 code units: big-endian, they compare as their bytes do."""
    if not isinstance(name, str):
        raise NotCanonical(f"{type(name).__name__} is no key of a JSON object")
    try:
        return name.encode("utf-16-be")
    except UnicodeEncodeError:
        raise NotCanonical("a lone surrogate in a key") from None


def _string(text: str) -> str:
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise NotCanonical("a lone surrogate in a string")
    return f'"{text.translate(_ESCAPES)}"'


def _integer(number: int) -> str:
    if -_SAFE_INTEGER_MAX <= number <= _SAFE_INTEGER_MAX:
        return str(int(number))
    if number.bit_length() <= _DOUBLE_BITS_MAX:
        try:
            written = _double(float(number))
        except OverflowError:  # less than 2^1024, and still rounded up to it
            written = "0"
        if int(Decimal(written)) == number:
            return written
    raise NotCanonical(f"an integer of {number.bit_length()} bits that a reader of doubles takes for another")


def _double(number: float) -> str:
    """Number::toString of ECMAScript; Python's repr has the same digits, laid out in another way."""
    if not isfinite(number):
        raise NotCanonical(f"{number} is no JSON")
    if number == 0:
        return "0"  # -0 too
    sign, figures, exponent = Decimal(repr(float(number))).as_tuple()
    assert isinstance(exponent, int), exponent
    point = len(figures) + exponent  # where it stands, counted from the first digit
    digits = "".join(map(str, figures)).rstrip("0")
    if 0 < point <= _DIGITS_MAX:
        text = digits.ljust(point, "0")
        text = f"{text[:point]}.{text[point:]}" if len(text) > point else text
    elif -_ZEROS_MAX < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{fraction}e{point - 1:+d}"
    return f"-{text}" if sign else text
