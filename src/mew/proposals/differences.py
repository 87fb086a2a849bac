"""PURE. How two JSON values differ, path by path.

Numbers are compared by value (`1` is `1.0`, as in canonical JSON), truth values only with truth values.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from msgspec import UNSET, Struct

from mew.protocol.visible import cut

__all__ = ["DIFFERENCES_MAX", "Difference", "differences", "same"]

DIFFERENCES_MAX: Final = 64
_PATH_CHARS_MAX: Final = 4096  # a name in it may be as long as an envelope
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTED: Final = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in range(0x20)} | {"\\": "\\\\", "'": "\\'"}
)


class Difference(Struct, frozen=True):
    """At `path` (JSONPath, RFC 9535) there was `old` and is `new`; UNSET where there was, or is, nothing.

    A path of more than 4,096 characters is cut, and ends in `…`.
    """

    path: str
    old: Any = UNSET
    new: Any = UNSET


def differences(old: Any, new: Any) -> tuple[Difference, ...]:
    """What changed from one JSON value to another, outermost change first; the first 64 of them."""
    return tuple(islice(_walk((), old, new), DIFFERENCES_MAX))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same."""
    return next(_walk((), one, other), None) is None


def _walk(steps: tuple[str | int, ...], old: Any, new: Any) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old | new:
            yield from _walk((*steps, name), old.get(name, UNSET), new.get(name, UNSET))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        for place in range(max(len(old), len(new))):
            was = old[place] if place < len(old) else UNSET
            yield from _walk((*steps, place), was, new[place] if place < len(new) else UNSET)
    elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
        yield Difference(cut("$" + "".join(map(_step, steps)), _PATH_CHARS_MAX), old, new)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"['{step.translate(_QUOTED)}']"
