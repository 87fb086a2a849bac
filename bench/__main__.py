"""`python -m bench`: run every workload on every candidate, in interleaved rounds, and compare."""

import argparse
import importlib
import importlib.util
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from bench.candidates import CANDIDATES, FLOOR_C, Candidate
from bench.cells import Cell, CellFailed, open_cells
from bench.compiled import CannotCompile
from bench.engines import engine_ready
from bench.load import EngineKind, Measured
from bench.report import Results, as_json, ceilings, print_report
from bench.targets import verdicts
from bench.workloads import WORKLOADS, Pace, Workload

SPARE_FILES = 200
FURTHER = {"scaling": "bench.scaling", "figures": "bench.figures"}
"""What is measured apart from deliveries: a module with `measure(console, cores, quick)` for each key in the file."""


@dataclass
class Run:
    """What was asked, and what has come of it."""

    console: Console
    cores: list[int]
    asked: argparse.Namespace
    engine: EngineKind
    results: Results = field(default_factory=dict)
    left_out: list[dict[str, str]] = field(default_factory=list)
    failures: int = 0

    def leave_out(self, candidates: list[str], why: str, workload: str = "") -> None:
        """Say that there will be no figure, and keep it for the file."""
        self.left_out += [{"candidate": one, "workload": workload, "why": why} for one in candidates]
        where = f"{workload} " if workload else ""
        self.console.print(f"[yellow]{where}without {', '.join(candidates)}[/]: {escape(why)}")

    def fail(self, candidate: str, workload: str, why: str) -> None:
        """Say that there should have been a figure."""
        self.failures += 1
        self.left_out.append({"candidate": candidate, "workload": workload, "why": f"failed: {why}"})
        self.console.print(f"{workload}: [red]{candidate} failed[/]: {escape(why)}")


def main() -> int:
    asked = _arguments()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 180)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        console.print("bench needs two cores: one for the server, one for the load")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are stopped then, too
    began = time.monotonic()
    run = Run(console, cores, asked, _engine(console, asked))
    candidates = _ready_candidates(run)
    workloads = _possible_workloads(run)
    for workload in workloads:
        _measure(run, workload, candidates)
    further = {} if asked.check_load or asked.no_figures else _further(run)
    console.print()
    print_report(console, run.results)
    if not asked.check_load:
        for line in verdicts(run.results):
            console.print(line)
    console.print(f"took {(time.monotonic() - began) / 60:.1f} minutes")
    if asked.json:
        _write_json(run, workloads, candidates, further)
    return 1 if run.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter phases: a look, not a figure to quote")
    parser.add_argument("--rounds", type=int, default=3, help="rounds for each cell (3)")
    parser.add_argument(
        "--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES), metavar="NAME"
    )
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--window", type=int, help="envelopes each sender keeps in flight, where pipelined")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to a file")
    parser.add_argument(
        "--load",
        type=EngineKind,
        choices=list(EngineKind),
        default=EngineKind.C,
        help="the load's hot part (c)",
    )
    parser.add_argument(
        "--no-figures",
        action="store_true",
        help="only deliveries: leave out how costs grow, memory, storms and the like",
    )
    parser.add_argument(
        "--check-load",
        action="store_true",
        help="only drive the floor in C at full speed: what the load is good for",
    )
    asked = parser.parse_args()
    asked.warm_up_s, asked.measure_s = (0.3, 0.3) if asked.quick else (0.5, 0.6)
    if asked.check_load:
        asked.candidates = [FLOOR_C.name]
    return asked


def _engine(console: Console, asked: argparse.Namespace) -> EngineKind:
    """The load's hot part in C, if it can be made here."""
    if asked.load is EngineKind.PYTHON:
        return EngineKind.PYTHON
    try:
        engine_ready()
    except CannotCompile as error:
        console.print(f"[yellow]the load is the slower one, in Python[/]: {escape(str(error))}")
        return EngineKind.PYTHON
    return EngineKind.C


def _ready_candidates(run: Run) -> list[Candidate]:
    ready = []
    for name in run.asked.candidates:
        why_not = CANDIDATES[name].prepare()
        if why_not is None:
            ready.append(CANDIDATES[name])
        else:
            run.leave_out([name], why_not)
    return ready


def _possible_workloads(run: Run) -> list[Workload]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # servers and load inherit it
    possible = []
    for workload in (WORKLOADS[name] for name in run.asked.workloads):
        needed = workload.connections + SPARE_FILES
        if hard != resource.RLIM_INFINITY and hard < needed:
            run.leave_out(
                run.asked.candidates, f"it needs {needed} open files, the limit is {hard}", workload.name
            )
        elif run.asked.window and workload.pace is Pace.PIPELINED:
            possible.append(replace(workload, window=run.asked.window))
        else:
            possible.append(workload)
    return possible


def _measure(run: Run, workload: Workload, candidates: list[Candidate]) -> None:
    """Have every candidate of a workload up, and let them take turns."""
    taking_part = [one for one in candidates if workload.name not in one.not_for]
    for why, ones in groupby(candidates, key=lambda one: one.not_for.get(workload.name)):
        if why is not None:
            run.leave_out([one.name for one in ones], why, workload.name)
    found = run.results[workload.name] = {candidate.name: [] for candidate in taking_part}

    def failed(candidate: Candidate, why: str) -> None:
        run.fail(candidate.name, workload.name, why)

    with open_cells(taking_part, workload, run.cores, failed, engine=run.engine) as cells:
        for number in range(run.asked.rounds + 1):
            for cell in list(cells):
                try:
                    if number == 0:
                        cell.warm_up(run.asked.warm_up_s)
                    else:
                        found[cell.candidate.name].append(cell.measure(run.asked.measure_s))
                except CellFailed as error:
                    cells.remove(cell)
                    failed(cell.candidate, str(error))
            if number:
                run.console.print(_round(f"{workload.name} {number}/{run.asked.rounds}", cells, found))


def _round(name: str, cells: list[Cell], found: dict[str, list[Measured]]) -> str:
    costs = (f"{cell.candidate.name} {found[cell.candidate.name][-1].cost:.2f}" for cell in cells)
    return f"[dim]{name}: {', '.join(costs)}[/]"


def _further(run: Run) -> dict[str, object]:
    """How costs grow, and the figures that are no deliveries, where there is something that measures them."""
    return {
        key: importlib.import_module(module).measure(run.console, run.cores, run.asked.quick)
        for key, module in FURTHER.items()
        if importlib.util.find_spec(module)
    }


def _write_json(
    run: Run, workloads: list[Workload], candidates: list[Candidate], further: dict[str, object]
) -> None:
    written = {
        "machine": _machine(),
        "warm_up_s": run.asked.warm_up_s,
        "measure_s": run.asked.measure_s,
        "load": run.engine,
        "candidates": [{"name": one.name, "about": one.about} for one in candidates],
        "workloads": workloads,
        "results": as_json(run.results),
        "load_ceilings": ceilings(run.results),
        "left_out": run.left_out,
        "verdicts": [Text.from_markup(line).plain for line in verdicts(run.results)],
        "scaling": [],
        "figures": [],
        **further,
    }
    run.asked.json.parent.mkdir(parents=True, exist_ok=True)
    run.asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(written)) + b"\n")
    run.console.print(
        f"{run.asked.json} is written; to show it in docs/performance.md: "
        f"python scripts/performance.py {run.asked.json}"
    )


def _machine() -> dict[str, object]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "commit": _commit(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    asked = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
