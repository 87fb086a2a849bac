"""Decoded JSON as patterns see it: objects that repeat a key, and paths that can be written in several ways."""

import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from mew.protocol.errors import ProtocolError

__all__ = [
    "JSON",
    "AmbiguousPayload",
    "Repeated",
    "canonical",
    "frozen",
    "has_parent_segment",
    "is_irregular",
    "regular",
]

JSON: TypeAlias = Any
"""A decoded JSON value: dict, list, str, int, float, bool or None."""

# A separator is `/`, or `\\`, since some readers take it so.
_PARENT: Final = re.compile(r"(?<![^/\\])\.\.(?![^/\\])")
_SUSPECT: Final = re.compile(r"[/\\]{2}|%|(?<![^/\\])\.\.?(?![^/\\])")
_REWRITTEN: Final = re.compile(r"//|\\|%|(?<![^/])\.\.?(?![^/])")
_EMPTY_OR_DOTS: Final = re.compile(r"[/\\]{2}|(?<![^/\\])\.\.?(?![^/\\])")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_QUERY: Final = re.compile(r"[?#]")
# Letters, digits, `-._~`, which RFC 3986 never has encoded, and separators; `%25` again and again is `%`.
_ENCODED: Final = re.compile(
    r"%(?:25)*(?:2[def]|3[0-9]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])", re.IGNORECASE
)
_ASCII: Final = re.compile(r"%([0-7][0-9A-Fa-f])")
_DECODINGS_MAX: Final = 4


class AmbiguousPayload(ProtocolError):
    """A pattern looked at a key that occurs twice: what was checked might not be what others read."""


class Repeated(dict[str, JSON]):
    """A decoded JSON object in which keys occurred more than once; `repeated` names them."""

    def __init__(
        self, fields: Mapping[str, JSON] | Iterable[tuple[str, JSON]], repeated: Iterable[str]
    ) -> None:
        super().__init__(fields)
        self.repeated = frozenset(repeated)

    def refuse(self, looked_at: Iterable[str]) -> None:
        """Raise AmbiguousPayload if one of the keys looked at is a repeated one."""
        for name in looked_at:
            if name in self.repeated:
                raise AmbiguousPayload(
                    f"a capability looks at {name[:64]!r}, which occurs twice in its object"
                )


def has_parent_segment(text: str) -> bool:
    """Whether `..` stands between separators, be it percent-encoded."""
    if ".." not in text and "%" not in text:
        return False
    return _PARENT.search(_decoded(text)) is not None


def is_irregular(text: str) -> bool:
    """Whether a path could be written more plainly: it has an empty, `.` or `..` segment, or encoded letters.

    The `//` behind a scheme is none, and of what follows the `?` of a URL only `..` counts.
    """
    if _SUSPECT.search(text) is None:
        return False
    _, path = _parted(text)
    return (
        _EMPTY_OR_DOTS.search(path) is not None
        or _ENCODED.search(path) is not None
        or has_parent_segment(text)
    )


def canonical(text: str) -> str:
    """The path written plainly: nothing encoded that is ASCII, `/` for `\\`, no empty segment and no `.`."""
    if _REWRITTEN.search(text) is None:
        return text
    scheme, _ = _parted(text)
    path = _decoded(text[len(scheme) :]).replace("\\", "/")
    kept = [segment for segment in path.split("/") if segment not in ("", ".")]
    lead = "/" if path.startswith("/") else ""
    trail = "/" if kept and path.endswith(("/", "/.")) else ""
    return f"{scheme}{lead}{'/'.join(kept)}{trail}"


def regular(value: JSON) -> JSON:
    """The same value with every path in it written plainly; itself if all of them are."""
    if isinstance(value, str):
        return canonical(value)
    if isinstance(value, dict):
        fields = {name: regular(item) for name, item in value.items()}
        return value if all(fields[name] is item for name, item in value.items()) else fields
    if isinstance(value, list):
        items = [regular(item) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    return value


def _parted(text: str) -> tuple[str, str]:
    """A scheme with its `://`, if there is one, and the path behind it, without a query."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return "", text
    rest = text[scheme.end() :]
    return scheme[0], rest if scheme[1].lower() == "file" else _QUERY.split(rest, maxsplit=1)[0]


def _decoded(text: str) -> str:
    for _ in range(_DECODINGS_MAX):
        if "%" not in text:
            break
        text, before = _ASCII.sub(lambda found: chr(int(found[1], 16)), text), text
        if text == before:
            break
    return text


def frozen(value: JSON) -> tuple[object, ...]:
    """A hashable twin of a JSON value; equal only if the values are written alike (`true` is not `1`)."""
    if isinstance(value, dict):
        return ("object", frozenset((name, frozen(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", *map(frozen, value))
    return (type(value).__name__, value)
