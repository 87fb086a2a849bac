"""Decoded JSON as patterns see it: objects that repeat a key, and strings that climb with `..`."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from mew.protocol.errors import ProtocolError

__all__ = ["JSON", "AmbiguousPayload", "Repeated", "frozen", "has_parent_segment"]

JSON: TypeAlias = Any
"""A decoded JSON value: dict, list, str, int, float, bool or None."""

_PARENT = re.compile(r"(?<![^/\\])\.\.(?![^/\\])")


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
    """Whether `..` stands between separators; `\\` counts as one, since some readers take it so."""
    return ".." in text and _PARENT.search(text) is not None


def frozen(value: JSON) -> tuple[object, ...]:
    """A hashable twin of a JSON value; equal only if the values are written alike (`true` is not `1`)."""
    if isinstance(value, dict):
        return ("object", frozenset((name, frozen(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", *map(frozen, value))
    return (type(value).__name__, value)
