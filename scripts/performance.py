"""Writes what a run of the benchmark came to into docs/performance.md, and draws its pictures.

    .venv/bin/python -m bench --json run.json && .venv/bin/python scripts/performance.py run.json

Without a file the run that is kept in docs/performance.json is shown again. What stands between the markers in the
page is written here; all else in it is written by hand.
"""

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # bench is no part of the package

from bench.growth import growth  # noqa: E402
from bench.plots import STYLES, Plot, plots  # noqa: E402
from bench.recorded import LeftOut, Recorded, Result, Spread, Workload  # noqa: E402
from bench.svg import short  # noqa: E402

__all__ = ["IMAGES", "PAGE", "RUN", "page", "pictures"]

PAGE: Final = ROOT / "docs" / "performance.md"
RUN: Final = ROOT / "docs" / "performance.json"
IMAGES: Final = ROOT / "docs" / "images"
WIDTH: Final = 116
OURS: Final = "mew"  # as it comes, with its journal
EPHEMERAL: Final = "mew-ephemeral"
QUICK_S: Final = 0.5
LOUD: Final = 0.1
CHEAPER: Final = 1.5  # where theirs is so many times ours, it is easier to read the other way round
ANSWERS: Final = {
    "fan-out-200": "One speaks and 200 listen",
    "spaces": "200 spaces of 5 in which everybody speaks",
    "addressed": "Pairs that speak to each other",
}
BESIDE: Final = {"node-ws": "Node `ws`", "nats-server": "`nats-server`", "floor": "the floor"}
BLOCK: Final = re.compile(r"<!-- performance:(\S+) -->\n.*?<!-- /performance -->", re.DOTALL)
VERDICT: Final = re.compile(r"(reached|missed|not measured)\s+(.*)")
NONE: Final = "Not measured in this run."


def page(text: str, run: Recorded) -> str:
    """The page with what this run says between its markers.

    Raises:
        KeyError: it has a marker that nothing is written for.
    """

    def filled(found: re.Match[str]) -> str:
        name = found[1]
        lines = (
            _pictures(run, name.removeprefix("picture-"))
            if name.startswith("picture-")
            else BLOCKS[name](run)
        )
        inner = "\n".join(lines) or NONE
        return f"<!-- performance:{name} -->\n{inner}\n<!-- /performance -->"

    return BLOCK.sub(filled, text)


def pictures(run: Recorded) -> dict[Path, str]:
    """The files of all plots."""
    return {IMAGES / plot.name: plot.svg for plot in plots(run)}


def _pictures(run: Recorded, kind: str) -> Iterator[str]:
    def is_of(plot: Plot) -> bool:
        return re.fullmatch(rf"performance-{kind}(-\w+)?\.svg", plot.name) is not None

    for plot in filter(is_of, plots(run)):
        yield f"![{plot.alt}](images/{plot.name})"


def _machine(run: Recorded) -> Iterator[str]:
    told = run.machine
    where = [str(told[key]) for key in ("processor", "system") if told.get(key)]
    where += [f"{told['cores']} cores"] if told.get("cores") else []
    where += [f"Python {told['python']}"] if told.get("python") else []
    at = f" at commit `{told['commit']}`" if told.get("commit") else ""
    rounds = max((len(one.rounds) for one in run.results), default=0)
    yield _prose(
        f"Measured{at}: {', '.join(where)}; {rounds} rounds of about {run.measure_s:g} s in each cell."
    )
    if run.measure_s < QUICK_S:
        yield "**This was a quick run (`--quick`): a look, not a figure to quote.**"


def _answer(run: Recorded) -> Iterator[str]:
    """In a sentence for each of the workloads that are most like what people do."""
    for name, told in ANSWERS.items():
        ours = run.result(name, OURS)
        if ours is None:
            continue
        beside = [
            f"{_compared(ours.cost_to(theirs).median)} {words}"
            for other, words in BESIDE.items()
            if (theirs := run.result(name, other)) is not None
        ]
        rate = f"{'at least ' if ours.load_was_bottleneck else ''}{short(ours.deliveries_per_s.median)}"
        cost = f"a delivery costs {short(ours.cpu_s_per_million.median)} µs of CPU"
        yield _prose(f"- {told}: {cost}, {_listed(beside)}; {rate} deliveries a second were seen.")


def _costs(run: Recorded) -> Iterator[str]:
    """CPU seconds per million deliveries of everyone in everything."""
    names = run.candidates
    yield from _head(["workload", *(f"`{name}`" for name in names)])
    for workload in run.workloads:
        found = [run.result(workload.name, name) for name in names]
        if any(found):
            yield _row([_said(workload), *map(_cost, found)])


def _ours(run: Recorded) -> Iterator[str]:
    """Ours beside the others: ratios within a round."""
    names = (EPHEMERAL, "floor", "floor-c", "node-ws", "nats-server")
    against = [name for name in names if name in run.candidates]
    yield from _head(["workload", "CPU-s per million", *(f"to `{name}`" for name in against)])
    for workload in run.workloads:
        ours = run.result(workload.name, OURS)
        if ours is not None:
            ratios = [_times(ours, run.result(workload.name, name)) for name in against]
            yield _row([_said(workload), _spread(ours.cpu_s_per_million), *ratios])


def _latency(run: Recorded) -> Iterator[str]:
    timed = [one for one in run.results if one.latency_ms("p50") is not None]
    if timed:
        yield from _head(["workload", "candidate", "p50 ms", "p99 ms"])
    for one in timed:
        p50, p99 = one.latency_ms("p50"), one.latency_ms("p99")
        if p50 is not None and p99 is not None:
            said = _said(run.workload(one.workload))
            yield _row([said, f"`{one.candidate}`", _spread(p50), _spread(p99)])


def _busy(run: Recorded) -> Iterator[str]:
    """How much more the load could have taken than the fastest server gave it."""
    head = [
        "workload",
        "fastest",
        "deliveries/s",
        "its core",
        "the load's core",
        "the load can take",
        "full first for",
    ]
    yield from _head(head)
    for workload in run.workloads:
        found = [one for one in run.results if one.workload == workload.name]
        if found:
            fastest = max(found, key=lambda one: one.deliveries_per_s.median)
            least = "≥ " if fastest.load_was_bottleneck else ""
            limited = ", ".join(f"`{one.candidate}`" for one in found if one.load_was_bottleneck)
            yield _row(
                [
                    _said(workload),
                    f"`{fastest.candidate}`",
                    f"{least}{short(fastest.deliveries_per_s.median)}",
                    f"{fastest.server_share:.0%}",
                    f"{fastest.load_share:.0%}",
                    short(max(one.load_could_take for one in found)),
                    limited or "nobody",
                ]
            )
    yield ""
    yield from _quiet(run)


def _quiet(run: Recorded) -> Iterator[str]:
    """Whether the machine was."""
    waiting = [one for one in run.results if not run.workload(one.workload).is_timed and one.is_waiting]
    others = max((one.others_share for one in run.results), default=0.0)
    if others:
        loud = " **The machine was not quiet: do not quote these figures.**" if others > LOUD else ""
        yield f"Other work took at most {others:.0%} of a core in any round.{loud}"
    if waiting:
        yield f"In {len(waiting)} of {len(run.results)} cells neither core was full: something else had the machine,"
        yield "and the deliveries per second are less than they could be. CPU time is counted all the same."
    if not others and not waiting:
        yield "Nothing else had the machine."


def _figures(run: Recorded) -> Iterator[str]:
    if run.figures:
        yield from _head(["", "measured", "may be"])
    for one in run.figures:
        spread = "" if one.low is None or one.high is None else f" ({short(one.low)}–{short(one.high)})"
        bound = ""
        if one.bound is not None:
            bound = f"{one.bound:g}{'' if one.value <= one.bound else ': **missed**'}"
        yield _row([one.name, f"{short(one.value)} {one.unit}{spread}", bound])


def _lines(run: Recorded) -> Iterator[str]:
    found = growth(run)
    if found:
        yield from _head(["what grows", "measured at", "the straight line", "farthest point off it"])
    for one in found:
        at = ", ".join(f"{point.x:,.0f}" for point in one.points)
        yield _row([one.name, at, f"{one.told} ({one.unit})", f"{one.off:.0%}"])


def _verdicts(run: Recorded) -> Iterator[str]:
    for line in run.verdicts:
        found = VERDICT.match(line)
        if found is not None:
            yield f"- **{found[1]}**: {found[2]}"


def _left_out(run: Recorded) -> Iterator[str]:
    by_reason: dict[str, list[LeftOut]] = {}
    for one in run.left_out:
        by_reason.setdefault(one.why, []).append(one)
    for why, those in by_reason.items():
        candidates = _listed([f"`{name}`" for name in dict.fromkeys(one.candidate for one in those)])
        workloads = _listed([f"`{name}`" for name in dict.fromkeys(one.workload for one in those) if name])
        where = f" in {workloads}" if any(one.workload for one in those) else ""
        yield _prose(f"- {candidates}{where}: {why}")
    told = {one.candidate for one in run.left_out}
    absent = [f"`{name}`" for name in STYLES if name not in run.candidates and name not in told]
    if absent:
        yield f"- {_listed(absent)}: not asked for"
    if not absent and not run.left_out:
        yield "Nothing: all were measured in everything."


BLOCKS: Final[dict[str, Callable[[Recorded], Iterable[str]]]] = {
    "machine": _machine,
    "answer": _answer,
    "costs": _costs,
    "ours": _ours,
    "latency": _latency,
    "busy": _busy,
    "figures": _figures,
    "lines": _lines,
    "verdicts": _verdicts,
    "left-out": _left_out,
}


def _said(workload: Workload) -> str:
    return f"`{workload.name}`"


def _times(ours: Result, theirs: Result | None) -> str:
    if theirs is None:
        return ""
    ratio = ours.cost_to(theirs)
    if ratio.median < 1 / CHEAPER:
        return f"{short(1 / ratio.median)}× cheaper ({short(1 / ratio.high)}–{short(1 / ratio.low)})"
    return f"{short(ratio.median)}× ({short(ratio.low)}–{short(ratio.high)})"


def _prose(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "beside nobody"


def _compared(ratio: float) -> str:
    return f"{short(1 / ratio)} times less than" if ratio < 1 / CHEAPER else f"{short(ratio)} times"


def _spread(spread: Spread) -> str:
    return f"{short(spread.median)} ({short(spread.low)}–{short(spread.high)})"


def _cost(result: Result | None) -> str:
    return "" if result is None else short(result.cpu_s_per_million.median)


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield _row(cells)
    yield "|---" + "|--:" * (len(cells) - 1) + "|"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _one_line_each(run: dict[str, object]) -> str:
    """The run as JSON, a line for each thing in it: short, and still to be compared line by line."""
    parts = []
    for key, value in run.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in value)
            parts.append(f"  {json.dumps(key)}: [\n{lines}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    if len(sys.argv) > 1 and Path(sys.argv[1]).resolve() != RUN:
        RUN.write_text(_one_line_each(json.loads(Path(sys.argv[1]).read_bytes())), encoding="utf-8")
    run = Recorded.load(RUN)
    for old in IMAGES.glob("performance-*.svg"):
        old.unlink()
    for file, svg in pictures(run).items():
        file.write_text(svg, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), run), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} and {len(pictures(run))} pictures written")


if __name__ == "__main__":
    main()
