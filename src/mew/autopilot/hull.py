"""PURE. Patterns for a group: hulls of approved calls, narrowed until they hold hardly any rejection."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .precedents import Case, Precedents
from .rule import Pattern
from .view import View

__all__ = ["close_pattern", "is_clean", "patterns", "wide_pattern", "width"]

_ONE_HEAD_MAX: Final = 3
_WIDER: Final = 3.0  # levels of a path, or doublings of a length, that the widest rule of the ladder adds
_SIZE_MORE: Final = 1.0  # doublings that a text may be longer than those approved
_TRIM_FROM: Final = 8  # approvals from which a range needs two at each end
Weighted = Sequence[tuple[float, View]]


def patterns(known: Precedents, case: Case, *, least: int) -> Iterator[tuple[str, Pattern]]:
    """Generalisations of a call, widest first: all heads, one head, none; values approved `least` times."""
    depth = known.depth
    own = case.view(depth)
    opened = tuple(key for key in own.openable if known.is_open(key))
    heads = {key: values for key, values in own.heads.items() if key not in opened}
    past = [other.view(depth) for _, other in known.approved]
    everything = _values(past, least)
    if all(set(heads[key]) <= set(everything.get(key, ())) for key in heads):
        openable = {key for seen in past for key in seen.openable if known.is_open(key)}
        wide = {key: values for key, values in everything.items() if values and key not in openable}
        yield "all", _shrink(known, case, wide, tuple(sorted(openable | set(opened))))
    alike = [seen for seen in past if seen.heads.keys() == own.heads.keys()]
    varied = _values(alike, least)
    diverse = sorted(
        (key for key in heads if len(varied.get(key, ())) > 1), key=lambda key: -len(varied[key])
    )
    for key in diverse[:_ONE_HEAD_MAX] if len(diverse) > 1 else ():
        same = [seen for seen in alike if _agree(seen, own, (key, *opened))]
        values = _values(same, least).get(key, ())
        if len(values) > 1 and set(heads[key]) <= set(values):
            yield f"one:{key}", _shrink(known, case, {**heads, key: values}, opened)
    yield "same", _shrink(known, case, dict(heads), opened)


def is_clean(known: Precedents, pattern: Pattern) -> bool:
    """Whether past rejections hardly contradict the pattern."""
    good, bad = known.covered(pattern)
    return bad == 0 or bad <= known.risk / 4 * (good + bad)


def close_pattern(case: Case, depth: int) -> Pattern:
    """Calls with the same heads and softs as this one, seen at a depth; shorter texts fit too."""
    own = case.view(depth)
    softs = {key: (0.0 if key.endswith("#size") else number, number) for key, number in own.softs.items()}
    return Pattern(depth=depth, heads=dict(own.heads), softs=softs)


def wide_pattern(case: Case) -> Pattern:
    """Calls of the same form: any identifiers, numbers up to this call's, paths some levels deeper, longer texts."""
    own = case.view(1)
    heads = {key: values for key, values in own.heads.items() if key not in own.openable}
    more = {key: _WIDER if key.endswith(("#depth", "#size")) else 0.0 for key in own.softs}
    softs = {key: (min(0.0, number), number + more[key]) for key, number in own.softs.items()}
    return Pattern(heads=heads, softs=softs, open=tuple(own.openable))


def width(pattern: Pattern) -> tuple[bool, int, int, float]:
    """Sorts the narrowest first: the exact call, then the deepest view, then the fewest values."""
    values = sum(len(allowed) for allowed in pattern.heads.values()) + 10 * len(pattern.open)
    ranges = sum(high - low for low, high in pattern.softs.values())
    return pattern.exact is None, -pattern.depth, values, ranges


def _shrink(
    known: Precedents, case: Case, heads: dict[str, tuple[str, ...]], opened: tuple[str, ...]
) -> Pattern:
    """The hull of past approvals with these heads, narrowed around the call until it holds hardly any rejection.

    Each step drops one value or cuts one range, whichever excludes the most rejections for the approvals it costs.
    """
    depth = known.depth
    own = case.view(depth)
    within = Pattern(depth=depth, heads=heads, open=opened)
    good: Weighted = [
        (known.weight(number), seen)
        for number, other in known.approved
        if _fits_heads(seen := other.view(depth), within)
    ]
    bad: Weighted = [
        (1.0, seen) for _, other in known.rejected if _fits_heads(seen := other.view(depth), within)
    ]
    box = _Box(dict(heads), _ranges(good, own))
    bad = [one for one in bad if box.holds(one[1])]
    while len(bad) > known.risk / 16 * (_total(good) + len(bad)):
        cut = _best_cut(box, own, good, bad)
        if cut is None:
            break
        box = cut
        good = [one for one in good if box.holds(one[1])]
        box = _Box(box.heads, {**box.ranges, **_ranges(good, own)})
        bad = [one for one in bad if box.holds(one[1])]
    ranges = {
        key: (0.0, high + _SIZE_MORE) if key.endswith("#size") else (low, high)
        for key, (low, high) in box.ranges.items()
    }
    return Pattern(depth=depth, heads=box.heads, softs=ranges, open=opened)


@dataclass(frozen=True)
class _Box:
    heads: dict[str, tuple[str, ...]]
    ranges: dict[str, tuple[float, float]]

    def holds(self, seen: View) -> bool:
        for key, (low, high) in self.ranges.items():
            if not low <= seen.softs.get(key, low) <= high:
                return False
        return all(
            all(value in self.heads[key] for value in values)
            for key, values in seen.heads.items()
            if key in self.heads
        )


def _ranges(good: Weighted, own: View) -> dict[str, tuple[float, float]]:
    """The range of each number that was approved, without the single most extreme approval at each end."""
    numbers: dict[str, list[float]] = {}
    for _, seen in good:
        for key, number in seen.softs.items():
            numbers.setdefault(key, []).append(number)
    for key, number in own.softs.items():
        if key not in numbers:
            numbers[key] = [number]
    ranges: dict[str, tuple[float, float]] = {}
    for key, found in numbers.items():
        found.sort()
        trimmed = found[1:-1] if len(found) >= _TRIM_FROM else found
        ranges[key] = (trimmed[0], trimmed[-1])
    return ranges


def _best_cut(box: _Box, own: View, good: Weighted, bad: Weighted) -> _Box | None:
    """The box after its best cut that keeps `own`; None if no cut excludes rejections better than chance would."""
    best, best_score = None, 2.0 * (len(bad) + 1) / (_total(good) + 1)
    for score, cut in (*_head_cuts(box, own, good, bad), *_range_cuts(box, own, good, bad)):
        if score > best_score:
            best, best_score = cut, score
    return best


def _head_cuts(box: _Box, own: View, good: Weighted, bad: Weighted) -> Iterator[tuple[float, _Box]]:
    for key, values in box.heads.items():
        for value in values:
            if value in own.heads.get(key, ()):
                continue
            excluded = sum(value in seen.heads.get(key, ()) for _, seen in bad)
            if excluded:
                lost = sum(weight for weight, seen in good if value in seen.heads.get(key, ()))
                kept = tuple(one for one in values if one != value)
                yield excluded / (lost + 1), _Box({**box.heads, key: kept}, box.ranges)


def _range_cuts(box: _Box, own: View, good: Weighted, bad: Weighted) -> Iterator[tuple[float, _Box]]:
    for key, (low, high) in box.ranges.items():
        if key not in own.softs:
            continue
        mine = own.softs[key]
        worse = sorted(seen.softs[key] for _, seen in bad if key in seen.softs)
        fine = sorted((seen.softs[key], weight) for weight, seen in good if key in seen.softs)
        values = [number for number, _ in fine]
        before = [0.0]
        for _, weight in fine:
            before.append(before[-1] + weight)
        for number in dict.fromkeys(worse):
            if number == mine:
                continue
            if number > mine:
                place = bisect_left(values, number)
                excluded, lost = len(worse) - bisect_left(worse, number), before[-1] - before[place]
                kept = (low, max(mine, values[place - 1] if place > 0 else mine))
            else:
                place = bisect_right(values, number)
                excluded, lost = bisect_right(worse, number), before[place]
                kept = (min(mine, values[place] if place < len(values) else mine), high)
            yield excluded / (lost + 1), _Box(box.heads, {**box.ranges, key: kept})


def _total(good: Weighted) -> float:
    return sum(weight for weight, _ in good)


def _agree(other: View, own: View, besides: tuple[str, ...]) -> bool:
    return all(other.heads.get(key) == values for key, values in own.heads.items() if key not in besides)


def _values(views: Iterable[View], least: int) -> dict[str, tuple[str, ...]]:
    counts: dict[str, dict[str, int]] = {}
    for seen in views:
        for key, values in seen.heads.items():
            known = counts.setdefault(key, {})
            for value in values:
                known[value] = known.get(value, 0) + 1
    return {
        key: tuple(sorted(value for value, count in known.items() if count >= least))
        for key, known in counts.items()
    }


def _fits_heads(seen: View, pattern: Pattern) -> bool:
    for key, values in seen.heads.items():
        if key not in pattern.open and not all(value in pattern.heads.get(key, ()) for value in values):
            return False
    return True
