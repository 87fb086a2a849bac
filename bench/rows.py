"""PURE. A picture of rows and columns: a server in each row, a workload in each column, a dot in each cell."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.chart import Axis
from bench.svg import MARK, Style, document, line, mark, path, short, text

__all__ = ["Cell", "Row", "rows_document"]

ROW: Final = 34
NAMES: Final = 142
TOP: Final = 118
GAP: Final = 14
BOLD: Final = 2.5
VALUE: Final = 36
LETTER: Final = 7.5


@dataclass(frozen=True)
class Cell:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    name: str
    style: Style
    cells: tuple[Cell | None, ...]


def rows_document(
    title: str,
    subtitle: str,
    width: int,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Row],
    sign: str,
) -> str:
    """All columns share one logarithmic axis, whose numbers have the sign after them; of multiples, 1 is marked."""
    values = [end for row in rows for cell in row.cells if cell for end in (cell.low, cell.high)]
    axis = Axis.spanning([*values, 0.9], is_log=True, form=lambda value: f"{value:g}{sign}")
    column_width = (width - NAMES - 24) / len(columns)
    height = TOP + ROW * len(rows) + 44
    parts: list[str] = []
    for at, row in enumerate(rows):
        parts += _name(row, TOP + ROW * at, width, at)
    for at, heading in enumerate(columns):
        left = NAMES + column_width * at + GAP
        inner = column_width - 2 * GAP
        parts += _column(heading, axis, left, inner, rows)
        for nth, row in enumerate(rows):
            parts += _cell(row, row.cells[at], axis, left, inner, TOP + ROW * nth + ROW / 2)
    return document(title, subtitle, _in_words(columns, rows, sign), width, height, parts)


def _in_words(columns: Sequence[tuple[str, str]], rows: Sequence[Row], sign: str) -> str:
    said = []
    for row in rows:
        cells = zip(columns, row.cells, strict=True)
        values = [f"{', '.join(column)} {short(cell.value)}{sign}" for column, cell in cells if cell]
        said.append(f"{row.name}: {'; '.join(values)}")
    return ". ".join(said) + "."


def _name(row: Row, top: float, width: int, at: int) -> Iterator[str]:
    if at % 2 == 0:
        yield f'<rect class="stripe" x="12" y="{top}" width="{width - 24}" height="{ROW}" rx="4"/>'
    weight = "name strong" if row.style.width > BOLD else "name"
    yield f'<g class="ink-{row.style.ink}">{text(24, top + ROW / 2 + 4, row.name, weight)}</g>'


def _column(
    heading: tuple[str, str], axis: Axis, left: float, inner: float, rows: Sequence[Row]
) -> Iterator[str]:
    bottom = TOP + ROW * len(rows)
    yield text(left, TOP - 30, heading[0], "strong")
    yield text(left, TOP - 13, heading[1], "quiet")
    free_to = math.inf
    for tick in reversed(axis.ticks):
        if not math.log10(tick).is_integer():
            continue
        x = left + axis.share(tick) * inner
        yield line("axis" if axis.form(tick) == "1×" else "grid", x, TOP, x, bottom)
        half = LETTER / 2 * len(axis.form(tick))
        if x + half < free_to:  # where they crowd, not every one has its number
            yield text(x, bottom + 17, axis.form(tick), "quiet middle")
            free_to = x - half - LETTER


def _cell(row: Row, cell: Cell | None, axis: Axis, left: float, inner: float, y: float) -> Iterator[str]:
    if cell is None:
        yield text(left + inner / 2, y + 4, "–", "quiet middle")
        return
    x, low, high = (left + axis.share(value) * inner for value in (cell.value, cell.low, cell.high))
    told = f"{row.name}: {short(cell.value)} ({short(cell.low)} to {short(cell.high)})"
    yield f'<g class="ink-{row.style.ink}"><title>{told}</title>'
    if high - low > 2 * MARK:
        yield path("bar", "M", low, y, "H", high)
    yield mark(row.style.mark, x, y, MARK + 0.6) + "</g>"
    room_before, room_after = min(low, x - 5) - left, left + inner - max(high, x + 5)
    if room_after >= min(room_before, VALUE):
        yield text(max(high, x + 5) + 4, y + 4, short(cell.value), "cell")
    else:
        yield text(min(low, x - 5) - 4, y + 4, short(cell.value), "cell end")
