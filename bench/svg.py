"""PURE. SVG as text: a picture that stands alone, and what is drawn in it. The same input gives the same bytes."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["MARK", "Style", "document", "line", "mark", "path", "round_number", "short", "text"]

MARK: Final = 3.6
INKS: Final = {  # on light and on dark; as text each has a contrast of at least 4.5 to the ground
    "ours": ("#0550ae", "#79c0ff"),
    "floor": ("#57606a", "#9da7b3"),
    "broker": ("#8250df", "#d2a8ff"),
    "node": ("#b35900", "#ffa657"),
    "python": ("#116f43", "#56d4a4"),
}
ROLES: Final = {
    "ground": ("#ffffff", "#0d1117"),
    "edge": ("#d0d7de", "#30363d"),
    "grid": ("#e1e6ec", "#262c36"),
    "stripe": ("#f6f8fa", "#151b23"),
    "text": ("#1f2328", "#e6edf3"),
    "quiet": ("#57606a", "#9da7b3"),
}
RULES: Final = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--text)}",
    ".title{font-size:17px;font-weight:650}.strong{font-weight:650}",
    ".quiet{fill:var(--quiet);font-size:12.5px}.cell{font-size:12.5px}",
    ".middle{text-anchor:middle}.end{text-anchor:end}.cell,.value{font-variant-numeric:tabular-nums}",
    ".ground{fill:var(--ground);stroke:var(--edge)}.stripe{fill:var(--stripe)}",
    ".grid{stroke:var(--grid)}.axis{stroke:var(--quiet)}",
    ".line,.bar,.leader,.fit{fill:none;stroke-linejoin:round}.bar{stroke-width:1.2}.mark{stroke-width:1.5}",
    ".leader{stroke-width:.8;opacity:.55}.fit{stroke:var(--quiet);stroke-width:1.2;stroke-dasharray:2 4}",
    ".value{font-weight:400;fill:var(--quiet)}",
)


@dataclass(frozen=True)
class Style:
    """How one server looks in every picture."""

    ink: str
    mark: str = "circle"
    dash: str = ""
    width: float = 1.6


def document(
    title: str, subtitle: str, description: str, width: int, height: int, parts: Iterable[str]
) -> str:
    """A picture that carries its own colours, for light and dark, and says in words what it shows."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(description)}</desc>',
        f"<style>{_stylesheet()}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        text(24, 34, title, "title"),
        text(24, 55, subtitle, "quiet"),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def text(x: float, y: float, words: str, style: str, value: str = "") -> str:
    """Words at a place, and a value after them."""
    after = f'<tspan class="value" dx="6">{escape(value)}</tspan>' if value else ""
    return f'<text class="{style}" x="{_number(x)}" y="{_number(y)}">{escape(words)}{after}</text>'


def line(style: str, x: float, y: float, to_x: float, to_y: float) -> str:
    begin, end = f'x1="{_number(x)}" y1="{_number(y)}"', f'x2="{_number(to_x)}" y2="{_number(to_y)}"'
    return f'<line class="{style}" {begin} {end}/>'


def path(style: str, *steps: str | float, more: str = "") -> str:
    """Steps are commands and their numbers, as SVG has them."""
    return f'<path class="{style}"{more} d="{_steps(*steps)}"/>'


def mark(name: str, x: float, y: float, size: float = MARK, *, is_hollow: bool = False) -> str:
    """The point of a server, in its own shape."""
    side, tip = 1.8 * size, 1.25 * size
    steps: tuple[str | float, ...] = {
        "circle": (
            "M",
            x - size,
            y,
            "a",
            size,
            size,
            "0 1 0",
            2 * size,
            0,
            "a",
            size,
            size,
            "0 1 0",
            -2 * size,
            0,
        ),
        "square": ("M", x - side / 2, y - side / 2, "h", side, "v", side, "h", -side),
        "diamond": ("M", x, y - tip, "l", tip, tip, "l", -tip, tip, "l", -tip, -tip),
        "triangle": ("M", x, y - tip, "l", tip, 1.7 * tip, "h", -2 * tip),
    }[name]
    return path("mark hollow" if is_hollow else "mark", *steps, "z")


def short(value: float) -> str:
    """Three digits that count, as a person would say it."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= size * 0.99995:
            return f"{_digits(value / min(size, 1e3 if size == 1e4 else size))}{letter}"
    return _digits(value)


def round_number(value: float) -> str:
    """A number that has few digits anyway, such as those at axes."""
    if abs(value) >= 10_000:
        return short(value).replace(".00", "").replace(".0", "")
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def _digits(value: float) -> str:
    if value == 0 or abs(value) >= 99.95:
        return f"{value:,.0f}"
    decimals = 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.0995 else 3
    return f"{value:.{decimals}f}"


def _stylesheet() -> str:
    def scheme(which: int) -> str:
        return ";".join(f"--{name}:{colours[which]}" for name, colours in {**ROLES, **INKS}.items())

    inks = (
        f".ink-{name} path{{stroke:var(--{name})}}.ink-{name} .mark,.ink-{name} .name{{fill:var(--{name})}}"
        for name in INKS
    )
    dark = f"@media (prefers-color-scheme:dark){{:root{{{scheme(1)}}}}}"
    return "".join([f":root{{{scheme(0)}}}", dark, *RULES, *inks, ".mark.hollow{fill:var(--ground)}"])


def _steps(*steps: str | float) -> str:
    return " ".join(step if isinstance(step, str) else _number(step) for step in steps)


def _number(value: float) -> str:
    """A coordinate, without digits that say nothing."""
    return f"{value:.1f}".removesuffix(".0")
