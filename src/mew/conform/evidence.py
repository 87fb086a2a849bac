"""PURE. Evidence for people: what a check is about stands out, and what only kept time is folded."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

__all__ = ["folded", "where_they_differ"]

_IDS: Final = re.compile(r"conform-[0-9a-f]{8}[0-9a-f-]{24,28}", re.IGNORECASE)
"""What the kit gives to what it sends; others, as of guests, are in every other line."""
_MARK: Final = re.compile(r'"text": ?"mark"')
_NOISE: Final = {
    re.compile(r'"kind": ?"system/presence"'): ("presence", "is told"),
    re.compile(r'"kind": ?"system/welcome"'): ("welcome", "capabilities"),
}
"""What nobody looks for, unless these words are in what is said of it."""
_ABOUT: Final = "▶"
_LINES_MAX: Final = 40
_SHOWN_CHARS_MAX: Final = 160
_BEFORE_CHARS: Final = 30


def folded(why: str, evidence: Sequence[str]) -> list[str]:
    """The lines, with `▶` before those that have an id of which `why` speaks; what is not to the point is counted."""
    ids = set(_IDS.findall(why))
    noise = [pattern for pattern, words in _NOISE.items() if not any(word in why for word in words)]
    lines = list(_folded(evidence, ids, [_MARK, *noise]))
    first, last = lines[:-_LINES_MAX], lines[-_LINES_MAX:]
    meant = [line for line in first if line.startswith(_ABOUT)]
    left_out = len(first) - len(meant)
    return [*([f"  … {left_out} lines from before"] if left_out else []), *meant, *last]


def _folded(evidence: Iterable[str], ids: set[str], noise: Sequence[re.Pattern[str]]) -> Iterator[str]:
    held: list[str] = []
    for line in evidence:
        is_meant = any(one in line for one in ids)
        if not is_meant and any(pattern.search(line) for pattern in noise):
            held.append(line)
            continue
        yield from _counted(held)
        held = []
        yield f"{_ABOUT if is_meant else ' '} {line}"
    yield from _counted(held)


def _counted(held: Sequence[str]) -> list[str]:
    many = f"{len(held)} line{'s' if len(held) > 1 else ''}"
    return [f"  … {many} only to mark time or tell who is there"] if held else []


def where_they_differ(before: Any, after: Any) -> tuple[str, str]:
    """Two values as one sees them, each from a little before the first place where they are not the same."""
    one, other = ascii(before), ascii(after)
    place = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    start = max(0, place - _BEFORE_CHARS)
    return _from(one, start), _from(other, start)


def _from(text: str, start: int) -> str:
    if len(text) <= _SHOWN_CHARS_MAX:
        return text
    shown = text[start : start + _SHOWN_CHARS_MAX]
    return f"{'…' if start else ''}{shown}{'…' if start + _SHOWN_CHARS_MAX < len(text) else ''}"
