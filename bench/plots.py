"""PURE. The pictures of docs/performance.md, drawn from a run: by file name, the same run giving the same bytes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.chart import Axis, Measure, Panel, Series
from bench.growth import growth, growth_document
from bench.recorded import Recorded, Result, Spread
from bench.rows import Cell, Row, rows_document
from bench.svg import Style, document, round_number, short

__all__ = ["STYLES", "Plot", "plots"]

WIDTH: Final = 820
MAIN: Final[tuple[str, ...]] = ("fan-out-50", "fan-out-200", "one-at-a-time-50", "spaces", "addressed")
"""The workloads of the overview, in its order; those that were not measured are left out."""
KIBIBYTE: Final = 1024
OURS: Final = Style("ours", width=2.8)
STYLES: Final = {
    "mew": OURS,
    "mew-ephemeral": Style("ours", "square", "5 3"),
    "floor": Style("floor", "circle", "6 4", 2),
    "floor-c": Style("floor", "diamond", "2 3", 2),
    "nats-server": Style("broker", "diamond"),
    "node-ws": Style("node"),
    "node-ws-prepared": Style("node", "square", "5 3"),
    "socketio-node": Style("node", "triangle", "2 3"),
    "websockets": Style("python"),
    "python-socketio": Style("python", "triangle", "2 3"),
}
UNKNOWN: Final = Style("floor", "square")


@dataclass(frozen=True)
class Plot:
    """A picture: the name of its file, what it shows in a line, and the SVG."""

    name: str
    alt: str
    svg: str


def plots(run: Recorded) -> list[Plot]:
    """All that the run has figures for."""
    return [*_overview(run), *_fan_outs(run), *_latency(run), *_growing(run)]


def _overview(run: Recorded) -> Iterator[Plot]:
    names = {one.name for one in run.workloads}
    chosen = [name for name in MAIN if name in names]
    rows = []
    for candidate in run.candidates:
        found = [run.result(workload, candidate) for workload in chosen]
        cells = [_cell(None if one is None else one.cost_to_floor) for one in found]
        if any(cells):
            rows.append(Row(candidate, _style(candidate), tuple(cells)))
    if rows and len(chosen) > 1:
        alt = "What each server costs, as a multiple of the bare uvloop floor, in each workload"
        svg = rows_document(
            "How many times the floor?",
            "CPU time of a delivery over that of the bare uvloop floor in the same round. Less is better.",
            WIDTH,
            [_workload_title(run, name) for name in chosen],
            sorted(rows, key=_middle),
            "×",
        )
        yield Plot("performance-overview.svg", alt, svg)


def _cell(ratio: Spread | None) -> Cell | None:
    return None if ratio is None else Cell(ratio.median, ratio.low, ratio.high)


def _middle(row: Row) -> tuple[float, str]:
    values = sorted(cell.value for cell in row.cells if cell is not None)
    return values[len(values) // 2], row.name


def _style(candidate: str) -> Style:
    return STYLES.get(candidate, UNKNOWN)


def _workload_title(run: Recorded, name: str) -> tuple[str, str]:
    one = run.workload(name)
    if one.is_timed:
        return f"{one.members} receivers", "one at a time"
    if one.spaces > 1 and one.members == 2:
        return f"{one.spaces} pairs", "1:1, addressed"
    if one.spaces > 1:
        return f"{one.spaces} spaces of {one.members}", "everybody talks"
    return f"{one.members} receivers", f"{one.window} in flight"


def _fan_outs(run: Recorded) -> Iterator[Plot]:
    """Cost and throughput against receivers, for each size of envelope that was measured with several."""
    fans = [one for one in run.workloads if one.is_fan_out]
    for size in sorted({one.bytes for one in fans}):
        members = {one.name: one.members for one in fans if one.bytes == size}
        if len(members) < 2:
            continue
        window = next(one.window for one in fans if one.bytes == size)
        how = f"One sender, {window} envelopes of {_size(size)} in flight"
        end = "" if size == fans[0].bytes else f"-{size}"
        yield _lines(
            run,
            f"performance-cost{end}.svg",
            f"What a delivery costs, envelopes of {_size(size)}",
            f"CPU seconds of the server per million deliveries. {how}. Lower is better.",
            members,
            lambda result: result.cpu_s_per_million,
        )
        yield _lines(
            run,
            f"performance-throughput{end}.svg",
            f"Deliveries a second on one core, envelopes of {_size(size)}",
            f"{how}. Higher is better. Hollow: the load was full first, so the server can do more.",
            members,
            lambda result: result.deliveries_per_s,
            bound=lambda result: result.load_was_bottleneck,
        )


def _latency(run: Recorded) -> Iterator[Plot]:
    members = {one.name: one.members for one in run.workloads if one.is_timed}
    if len(members) == 1:
        yield from _latency_of_one(run, *members.items())
    for which in ("p50", "p99") if len(members) > 1 else ():
        yield _lines(
            run,
            f"performance-latency-{which}.svg",
            f"Latency until the last receiver has it, {which}",
            "Milliseconds; one envelope at a time, and the load's own reading is in it. Lower is better.",
            members,
            partial(Result.latency_ms, which=which),
        )


def _latency_of_one(run: Recorded, timed: tuple[str, int]) -> Iterator[Plot]:
    workload, members = timed
    rows = []
    for candidate in run.candidates:
        result = run.result(workload, candidate)
        if result is not None:
            cells = (_cell(result.latency_ms("p50")), _cell(result.latency_ms("p99")))
            rows.append(Row(candidate, _style(candidate), cells))
    title = f"Latency until the last of {members} receivers has it"
    svg = rows_document(
        title,
        "One envelope at a time, and the load's own reading is in it: compare, do not quote. Less is better.",
        WIDTH,
        [("p50", "half are quicker"), ("p99", "one in a hundred is slower")],
        sorted(rows, key=_middle),
        " ms",
    )
    yield Plot("performance-latency.svg", title, svg)


def _lines(
    run: Recorded,
    file: str,
    title: str,
    subtitle: str,
    members: dict[str, int],
    of: Callable[[Result], Spread | None],
    bound: Callable[[Result], bool] = lambda _result: False,
) -> Plot:
    series = []
    for candidate in run.candidates:
        found = [(members[name], run.result(name, candidate)) for name in members]
        marks = [
            Measure(x, spread.median, spread.low, spread.high, bound(result))
            for x, result in sorted(found, key=lambda one: one[0])
            if result is not None and (spread := of(result)) is not None
        ]
        if marks:
            series.append(Series(candidate, _style(candidate), tuple(marks)))
    extremes = [value for one in series for point in one.points for value in (point.low, point.high)]
    panel = Panel(
        x=Axis.at(members.values(), is_log=True, form=lambda value: f"{value:,.0f}"),
        y=Axis.spanning(extremes, is_log=True, form=round_number),
        x_title="receivers (logarithmic, as is the other axis)",
        series=tuple(series),
        left=72,
        top=82,
        width=520,
        height=340,
    )
    svg = document(title, subtitle, _in_words(series, "receivers"), WIDTH, 474, panel.parts())
    return Plot(file, title, svg)


def _growing(run: Recorded) -> Iterator[Plot]:
    found = growth(run)
    if found:
        alt = f"What our envelopes cost as one thing grows: {', '.join(one.name for one in found)}"
        yield Plot("performance-scaling.svg", alt, growth_document(found, OURS, WIDTH))


def _in_words(series: list[Series], unit: str) -> str:
    said = []
    for one in series:
        values = ", ".join(
            f"{'at least ' if point.is_least else ''}{short(point.y)} at {point.x:,.0f} {unit}"
            for point in one.points
        )
        said.append(f"{one.name}: {values}")
    return "; ".join(said) + "."


def _size(size: int) -> str:
    return f"{size // KIBIBYTE} KiB" if size % KIBIBYTE == 0 else f"{size} bytes"
