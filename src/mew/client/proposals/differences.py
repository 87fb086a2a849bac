"""PURE. How two JSON values differ, path by path.

Numbers are compared by value (`1` is `1.0`, as in canonical JSON), truth values only with truth values.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from msgspec import UNSET, Struct

__all__ = ["DIFFERENCES_MAX", "Difference", "differences", "same"]

DIFFERENCES_MAX: Final = 64
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTED: Final = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in range(0x20)} | {"\\": "\\\\", "'": "\\'"}
)


class Difference(Struct, frozen=True):
    """At `path` (JSONPath, RFC 9535) there was `old` and is `new`; UNSET where there was, or is, nothing."""

    path: str
    old: Any = UNSET
    new: Any = UNSET


def differences(old: Any, new: Any) -> tuple[Difference, ...]:
    """What changed from one JSON value to another, outermost change first; the first 64 of them."""
    return tuple(islice(_walk("$", old, new), DIFFERENCES_MAX))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same."""
    return next(_walk("$", one, other), None) is None


def _walk(path: str, old: Any, new: Any) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old | new:
            yield from _walk(f"{path}{_step(name)}", old.get(name, UNSET), new.get(name, UNSET))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        for place in range(max(len(old), len(new))):
            was = old[place] if place < len(old) else UNSET
            yield from _walk(f"{path}[{place}]", was, new[place] if place < len(new) else UNSET)
    elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
        yield Difference(path, old, new)


def _step(name: str) -> str:
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"['{name.translate(_QUOTED)}']"
