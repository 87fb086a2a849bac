"""PURE. Our cost where one thing grows and all else stays: the points, and the straight line through them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from bench.chart import Axis, Measure, Panel, Series
from bench.recorded import Point, Recorded, Scaling
from bench.svg import Style, document, round_number, short

__all__ = ["Growth", "growth", "growth_document"]

GATEWAY: Final = "mew"
TITLES: Final = {
    "receivers": ("Receivers", "members of the space, all receiving"),
    "participants": ("Participants", "participants of the space"),
    "spaces": ("Spaces", "spaces on the gateway, everybody talking"),
    "capabilities": ("Capabilities", "capability patterns of the sender"),
    "history": ("History", "envelopes in the history"),
    "members at a join": ("A join", "members of the space that is joined"),
}
"""What grows, in the order of the panels."""
SMALLER: Final = {"ms": "µs", "µs": "ns"}


@dataclass(frozen=True)
class Growth:
    """Measured points, and the line that has the least squares of relative errors."""

    name: str
    unit: str
    points: tuple[Point, ...]
    base: float
    slope: float

    def at(self, x: float) -> float:
        return self.base + self.slope * x

    @property
    def off(self) -> float:
        """How far the farthest point is from the line, as a share."""
        return max(abs(point.median / self.at(point.x) - 1) for point in self.points)

    @property
    def told(self) -> str:
        """The line in words."""
        unit = self.unit.split()[0]
        return f"{short(self.base)} {unit}{_each(self.slope, unit)}"


def growth(run: Recorded) -> list[Growth]:
    """Of each thing that was made to grow, in the order in which they are shown."""
    given = {one.name: one for one in run.scaling if len(one.points) > 1}
    if "receivers" not in given and (derived := _by_receivers(run)) is not None:
        given["receivers"] = derived
    order = [name for name in TITLES if name in given] + sorted(given.keys() - TITLES.keys())
    return [_fitted(given[name]) for name in order]


def growth_document(found: list[Growth], style: Style, width: int) -> str:
    parts: list[str] = []
    for one, (left, top, across) in zip(found, _places(len(found)), strict=True):
        parts += _panel(one, style, left, top, across).parts()
    told = [
        f"{one.name}: {', '.join(f'{short(point.median)} at {point.x:,.0f}' for point in one.points)} ({one.unit})"
        for one in found
    ]
    subtitle = (
        "Dotted: the straight line through the points, as written below (a curve on a logarithmic axis)."
    )
    height = 82 + 296 * ((len(found) + 1) // 2)
    return document("What one more costs", subtitle, "; ".join(told) + ".", width, height, parts)


def _by_receivers(run: Recorded) -> Scaling | None:
    fans = [one for one in run.workloads if one.is_fan_out]
    size = min((one.bytes for one in fans), default=0)
    points = []
    for one in sorted(fans, key=lambda one: one.members):
        result = run.result(one.name, GATEWAY) if one.bytes == size else None
        if result is not None:
            cost = result.cpu_us_an_envelope
            points.append(Point(one.members, cost.median, cost.low, cost.high))
    return Scaling("receivers", "µs of CPU an envelope", points) if len(points) > 1 else None


def _fitted(scaling: Scaling) -> Growth:
    points = sorted(scaling.points, key=lambda point: point.x)
    weighed = [(1 / point.median**2, point) for point in points]
    total = sum(weight for weight, _ in weighed)
    x = sum(weight * point.x for weight, point in weighed) / total
    y = sum(weight * point.median for weight, point in weighed) / total
    across = sum(weight * (point.x - x) ** 2 for weight, point in weighed)
    along = sum(weight * (point.x - x) * (point.median - y) for weight, point in weighed)
    slope = along / across
    return Growth(scaling.name, scaling.unit, tuple(points), y - slope * x, slope)


def _places(count: int) -> Iterator[tuple[float, float, float]]:
    """Left, top and width of each panel: two in a row, but the first alone where they do not come out even."""
    for nth in range(count):
        place = nth + count % 2 if nth else 0
        is_alone = not nth and count % 2
        yield 64 + 400 * (place % 2), 108 + 296 * (place // 2), 730 if is_alone else 330


def _panel(one: Growth, style: Style, left: float, top: float, width: float) -> Panel:
    title, what = TITLES.get(one.name, (one.name.capitalize(), one.name))
    first, last = one.points[0].x, one.points[-1].x
    is_flat = abs(one.slope) * last < 3 * one.base  # what climbs is shown as the line that it is
    is_log = is_flat and first > 0 and last / first >= 20
    return Panel(
        x=Axis.at((point.x for point in one.points), is_log=is_log, form=lambda value: f"{value:,.0f}"),
        y=Axis.spanning(_heights(one), is_log=False, form=round_number),
        x_title=f"{what}{' (logarithmic)' if is_log else ''}",
        series=(Series("mew", style, tuple(_measures(one.points))),),
        left=left,
        top=top,
        width=width,
        height=176,
        title=title,
        unit=one.unit,
        note=f"{one.told}; at most {one.off:.0%} off",
        model=one.at,
        is_named=False,
    )


def _measures(points: Iterable[Point]) -> Iterator[Measure]:
    for point in points:
        yield Measure(point.x, point.median, point.low, point.high)


def _heights(one: Growth) -> Iterator[float]:
    for point in one.points:
        yield point.high


def _each(slope: float, unit: str) -> str:
    """The price of one more, in a unit that leaves digits to read."""
    sign, price = ("+" if slope > 0 else "−"), abs(slope)
    if price < 0.0995 and unit in SMALLER:
        price, unit = price * 1000, SMALLER[unit]
    return f" {sign} {short(price)} {unit} for each" if price >= 0.0995 else ", however many"
