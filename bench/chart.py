"""PURE. A pair of axes with lines: error bars from lowest to highest, and its name at the end of each line."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from bench.svg import MARK, Style, line, mark, path, short, text

__all__ = ["Axis", "Measure", "Panel", "Series"]

NAME_GAP: Final = 15.5
NAME_ROOM: Final = 26
BOLD: Final = 2.5


@dataclass(frozen=True)
class Measure:
    """A measured point. `is_least`: it is at least this, and shown hollow with an arrow."""

    x: float
    y: float
    low: float
    high: float
    is_least: bool = False


@dataclass(frozen=True)
class Series:
    name: str
    style: Style
    points: tuple[Measure, ...]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Values, and where on the way from its beginning to its end they lie."""

    low: float
    high: float
    is_log: bool
    ticks: tuple[float, ...]
    form: Callable[[float], str]

    def share(self, value: float) -> float:
        """How far along it a value lies, from 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def steps(self, count: int) -> list[float]:
        """Values at even distances from its beginning to its end."""
        shares = [n / count for n in range(count + 1)]
        if self.is_log:
            return [self.low * (self.high / self.low) ** share for share in shares]
        return [self.low + (self.high - self.low) * share for share in shares]

    @classmethod
    def spanning(cls, values: Iterable[float], *, is_log: bool, form: Callable[[float], str]) -> "Axis":
        """From round value to round value; one that is not logarithmic begins at zero."""
        least, most = min(numbers := list(values)), max(numbers)
        if not is_log:
            step = _round(most / 4, up=True)
            high = math.ceil(most * 1.02 / step) * step
            ticks = tuple(step * n for n in range(round(high / step) + 1))
            return cls(low=0, high=high, is_log=False, ticks=ticks, form=form)
        low, high = _round(least * 0.97, up=False), _round(most * 1.03, up=True)
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        all_ticks = [
            step * 10.0**decade for decade in decades for step in ((1, 2, 5) if high / low <= 2000 else (1,))
        ]
        ticks = tuple(tick for tick in all_ticks if low * 0.999 <= tick <= high * 1.001)
        return cls(low=low, high=high, is_log=True, ticks=ticks, form=form)

    @classmethod
    def at(cls, values: Iterable[float], *, is_log: bool, form: Callable[[float], str]) -> "Axis":
        """With a tick at each value that was measured, and a little room beside the last."""
        ticks = tuple(sorted(set(values)))
        if is_log:
            room = (ticks[-1] / ticks[0]) ** 0.05
            return cls(low=ticks[0] / room, high=ticks[-1] * room, is_log=True, ticks=ticks, form=form)
        return cls(low=0, high=ticks[-1] * 1.04, is_log=False, ticks=ticks, form=form)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes in a picture. What stands on the right of it are the names of its lines."""

    x: Axis
    y: Axis
    x_title: str
    series: tuple[Series, ...]
    left: float
    top: float
    width: float
    height: float
    title: str = ""
    unit: str = ""
    note: str = ""
    model: Callable[[float], float] | None = None
    """What the points would lie on; drawn dotted."""
    is_named: bool = True

    def parts(self) -> Iterator[str]:
        yield from self._axes()
        if self.model is not None:
            yield self._expected(self.model)
        for series in sorted(self.series, key=lambda one: one.style.width):  # ours above the others
            yield from self._line(series)
        if self.is_named:
            yield from self._names()

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self.left + self.x.share(x) * self.width, self.top + (1 - self.y.share(y)) * self.height

    def _axes(self) -> Iterator[str]:
        right, bottom, middle = self.left + self.width, self.top + self.height, self.left + self.width / 2
        for tick in self.y.ticks:
            _, y = self._at(self.x.high, tick)
            yield line("grid", self.left, y, right, y)
            yield text(self.left - 7, y + 4, self.y.form(tick), "quiet end")
        yield line("axis", self.left, bottom, right, bottom)
        free_from = -math.inf
        for tick in reversed(self.x.ticks):
            x, _ = self._at(tick, self.y.high)
            yield line("axis", x, bottom, x, bottom + 4)
            label = self.x.form(tick)
            if -x - free_from > 3.6 * len(label):  # where ticks crowd, not every one has its number
                yield text(x, bottom + 18, label, "quiet middle")
                free_from = -x + 3.6 * len(label) + 6
        yield text(middle, bottom + 37, self.x_title, "quiet middle")
        if self.title:
            yield text(self.left - 2, self.top - 16, self.title, "strong", self.unit)
        if self.note:
            yield text(middle, bottom + 56, self.note, "middle")

    def _expected(self, model: Callable[[float], float]) -> str:
        values = [(x, model(x)) for x in self.x.steps(60)]
        return path("fit", *_through([self._at(x, y) for x, y in values if self.y.low <= y <= self.y.high]))

    def _line(self, series: Series) -> Iterator[str]:
        style = series.style
        places = [self._at(point.x, point.y) for point in series.points]
        dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
        yield f'<g class="ink-{style.ink}">'
        if len(places) > 1:
            yield path("line", *_through(places), more=f' stroke-width="{style.width}"{dash}')
        for point, (x, y) in zip(series.points, places, strict=True):
            yield f"<g><title>{escape(self._told(series, point))}</title>"
            yield from self._spread(point, x)
            yield mark(style.mark, x, y, MARK + (style.width > BOLD) * 0.8, is_hollow=point.is_least)
            if point.is_least:
                yield path("bar", "M", x, y - 6, "v -9 m -3.5 4 l 3.5 -4 l 3.5 4")
            yield "</g>"
        yield "</g>"

    def _told(self, series: Series, point: Measure) -> str:
        spread = f"{short(point.y)} ({short(point.low)} to {short(point.high)})"
        return f"{series.name}, {self.x.form(point.x)}: {'at least ' if point.is_least else ''}{spread}"

    def _spread(self, point: Measure, x: float) -> Iterator[str]:
        (_, top), (_, bottom) = self._at(point.x, point.high), self._at(point.x, point.low)
        if bottom - top > 2 * MARK:  # else the mark itself covers it
            yield path("bar", "M", x, top, "V", bottom, "m -3 0 h 6 M", x - 3, top, "h 6")

    def _names(self) -> Iterator[str]:
        """At the right, on the height of the last point; beside the point itself where a line ends before."""
        last = max(one.points[-1].x for one in self.series)
        column = self.left + self.width + NAME_ROOM
        for x in sorted({one.points[-1].x for one in self.series}):
            ending = [(self._at(x, one.points[-1].y)[1], one) for one in self.series if one.points[-1].x == x]
            ending.sort(key=lambda end: (end[0], end[1].name))
            places = apart([y for y, _ in ending], NAME_GAP, self.top, self.top + self.height)
            for (y, series), place in zip(ending, places, strict=True):
                at, _ = self._at(x, series.points[-1].y)
                yield f'<g class="ink-{series.style.ink}">'
                if x == last:
                    yield path("leader", "M", at + 6, y, "L", column - 12, place, "H", column - 4)
                yield _name(series, column if x == last else at + 9, place + 4) + "</g>"


def _name(series: Series, x: float, y: float) -> str:
    last = series.points[-1]
    weight = "name strong" if series.style.width > BOLD else "name"
    return text(x, y, series.name, weight, f"{'≥ ' if last.is_least else ''}{short(last.y)}")


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The nearest places to those wanted, in order and a gap apart: those that would touch move as one."""
    groups: list[tuple[list[float], float]] = []  # what each member wants of the first of them; its place
    for value in wanted:
        members, place = [value], value
        while groups and groups[-1][1] + gap * len(groups[-1][0]) > place:
            before, _ = groups.pop()
            members = before + [one - gap * len(before) for one in members]
            place = sum(members) / len(members)
            place = max(low, min(place, high - gap * (len(members) - 1)))
        groups.append((members, place))
    return [place + gap * nth for members, place in groups for nth in range(len(members))]


def _through(places: Sequence[tuple[float, float]]) -> list[str | float]:
    return [step for nth, (x, y) in enumerate(places) for step in ("L" if nth else "M", x, y)]


def _round(value: float, *, up: bool) -> float:
    """The next of 1, 2, 5, 10, 20 and so on."""
    size: float = 10.0 ** math.floor(math.log10(value))
    steps = [size * step for step in (1, 2, 5, 10)]
    if up:
        return min(step for step in steps if step >= value * 0.999)
    return max(step for step in steps if step <= value * 1.001)
