"""`python -m bench`: run every workload on every candidate, in interleaved rounds, and compare."""

import argparse
import os
import platform
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from bench.candidates import CANDIDATES, Candidate
from bench.load import LoadOrder, Measured
from bench.report import Results, as_json, print_report, verdicts
from bench.server import ServerFailed, running
from bench.workloads import WORKLOADS, Pace, Workload

SPARE_FILES = 200
LOAD_TIMEOUT_S = 180


class CellFailed(Exception):
    """The load gave no figure; its last words are the text."""


def main() -> int:
    asked = _arguments()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        console.print("bench needs two cores: one for the server, one for the load")
        return 2
    candidates = _ready_candidates(console, asked.candidates)
    workloads = _possible_workloads(console, asked)
    results: Results = {workload.name: {one.name: [] for one in candidates} for workload in workloads}
    failed = 0
    for number in range(1, asked.rounds + 1):
        for workload in workloads:
            for candidate in candidates:
                cell = f"round {number}/{asked.rounds}  {workload.name}  {candidate.name}"
                try:
                    measured = _measure(candidate, workload, cores, asked)
                except (CellFailed, ServerFailed) as error:
                    failed += 1
                    console.print(f"{cell}: [red]failed[/]: {error}", markup=True)
                    continue
                results[workload.name][candidate.name].append(measured)
                console.print(f"[dim]{cell}: {measured.cost:.2f} CPU-s per million[/]")
    console.print()
    print_report(console, results)
    if asked.json:
        _write_json(asked, workloads, results)
    return 1 if failed else 0


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
    asked = parser.parse_args()
    asked.warm_up_s, asked.measure_s = (0.5, 0.7) if asked.quick else (1.5, 2.5)
    return asked


def _ready_candidates(console: Console, names: list[str]) -> list[Candidate]:
    ready = []
    for name in names:
        why_not = CANDIDATES[name].prepare()
        if why_not is None:
            ready.append(CANDIDATES[name])
        else:
            console.print(f"[yellow]{name} is skipped[/]: {why_not}")
    return ready


def _possible_workloads(console: Console, asked: argparse.Namespace) -> list[Workload]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # servers and load inherit it
    possible = []
    for workload in (WORKLOADS[name] for name in asked.workloads):
        needed = workload.connections + SPARE_FILES
        if hard != resource.RLIM_INFINITY and hard < needed:
            console.print(
                f"[yellow]{workload.name} is skipped[/]: it needs {needed} open files, the limit is {hard}"
            )
        elif asked.window and workload.pace is Pace.PIPELINED:
            possible.append(replace(workload, window=asked.window))
        else:
            possible.append(workload)
    return possible


def _measure(
    candidate: Candidate, workload: Workload, cores: list[int], asked: argparse.Namespace
) -> Measured:
    with running(candidate, workload, cores[0]) as server:
        order = LoadOrder(workload, server.port, server.pid, cores[1], asked.warm_up_s, asked.measure_s)
        try:
            load = subprocess.run(
                [sys.executable, "-m", "bench.load"],
                input=msgspec.json.encode(order),
                capture_output=True,
                timeout=LOAD_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as late:
            raise CellFailed(f"no figure after {LOAD_TIMEOUT_S} s") from late
    if load.returncode != 0:
        raise CellFailed(load.stderr.decode(errors="replace").strip()[-500:])
    return msgspec.json.decode(load.stdout, type=Measured)


def _write_json(asked: argparse.Namespace, workloads: list[Workload], results: Results) -> None:
    written = {
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        },
        "warm_up_s": asked.warm_up_s,
        "measure_s": asked.measure_s,
        "workloads": workloads,
        "results": as_json(results),
        "verdicts": [Text.from_markup(line).plain for line in verdicts(results)],
    }
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(written)) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
