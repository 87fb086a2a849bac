"""A cell of the benchmark: a server and a load that believes nothing but the bytes that came."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.candidates import CANDIDATES, Candidate
from bench.cells import Cell, CellFailed, open_cells
from bench.compiled import CannotCompile
from bench.engines import engine_ready
from bench.load import EngineKind
from bench.workloads import Kind, Pace, Workload

pytestmark = pytest.mark.e2e

PHASE_S = 0.05
STALL_S = 3.0
FAN_OUT = Workload(name="fan-out", members=4, window=8)
ALL_KINDS = [
    FAN_OUT,
    Workload(name="long", members=3, bytes=4096, window=4),
    Workload(name="turns", kind=Kind.LATENCY, members=3, window=1, pace=Pace.ONE_AT_A_TIME),
    Workload(name="spaces", kind=Kind.SPACES, spaces=12, members=3, senders=3, window=1),
    Workload(name="addressed", kind=Kind.ADDRESSED, spaces=12, members=2, senders=2, window=1),
]


@pytest.fixture(params=list(EngineKind))
def engine(request: pytest.FixtureRequest) -> EngineKind:
    kind = EngineKind(request.param)
    if kind is EngineKind.C:
        try:
            engine_ready()
        except CannotCompile as why:
            pytest.skip(str(why))
    return kind


@contextmanager
def cells_of(
    candidates: list[Candidate], workload: Workload, engine: EngineKind = EngineKind.C
) -> Iterator[list[Cell]]:
    cores = sorted(os.sched_getaffinity(0))
    failures: list[str] = []

    def failed(candidate: Candidate, why: str) -> None:
        failures.append(f"{candidate.name}: {why}")

    with open_cells(
        candidates, workload, [cores[0], cores[-1]], failed, engine=engine, stall_s=STALL_S
    ) as cells:
        if failures:
            raise CellFailed("; ".join(failures))
        yield cells


def faulty(fault: str) -> Candidate:
    program = str(Path(__file__).parent / "faulty_floor.py")
    root = str(Path(__file__).parents[2])
    command = ["env", f"PYTHONPATH={root}", sys.executable, program]
    return Candidate("faulty", fault, lambda _workload, port, _scratch: [*command, str(port), fault])


def check(cell: Cell, workload: Workload) -> None:
    cell.warm_up(PHASE_S)
    measured = cell.measure(PHASE_S)
    assert measured.deliveries == measured.envelopes * workload.members > 0
    assert measured.load_share > 0
    assert measured.others_share >= 0
    assert (measured.latency_ms_p99 is not None) == (workload.pace is Pace.ONE_AT_A_TIME)


@pytest.mark.parametrize("workload", ALL_KINDS, ids=lambda workload: workload.name)
def test_every_kind_of_workload_gives_a_figure(workload: Workload) -> None:
    with cells_of([CANDIDATES["floor"], CANDIDATES["mew"]], workload) as cells:
        for cell in cells:
            check(cell, workload)


def test_every_server_at_hand_delivers_just_what_it_was_sent() -> None:
    at_hand = [candidate for candidate in CANDIDATES.values() if candidate.missing() is None]
    with cells_of(at_hand, FAN_OUT) as cells:
        for cell in cells:
            check(cell, FAN_OUT)


@pytest.mark.parametrize("workload", [ALL_KINDS[0], ALL_KINDS[2]], ids=lambda workload: workload.name)
def test_the_load_in_python_measures_too(workload: Workload) -> None:
    with cells_of([CANDIDATES["floor"]], workload, EngineKind.PYTHON) as cells:
        check(cells[0], workload)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("short", "stalled: 1 bytes still to come"),
        ("twice", "got other bytes than"),
        ("close", "connection lost in the middle"),
    ],
)
def test_one_fault_among_all_deliveries_leaves_no_figure(fault: str, words: str, engine: EngineKind) -> None:
    with cells_of([faulty(fault)], FAN_OUT, engine) as cells, pytest.raises(CellFailed, match=words):
        cells[0].warm_up(20 * PHASE_S)


def test_as_many_bytes_but_other_ones_are_noticed(engine: EngineKind) -> None:
    with (
        pytest.raises(CellFailed, match="got something else than was due"),
        cells_of([faulty("other")], FAN_OUT, engine),
    ):
        pytest.fail("nobody was to be let through")


def test_a_server_that_does_not_start_says_its_last_words() -> None:
    broken = Candidate("broken", "", lambda _workload, _port, _scratch: ["sh", "-c", "echo no luck; exit 3"])
    with pytest.raises(CellFailed, match="no luck"), cells_of([broken], FAN_OUT):
        pytest.fail("there was nothing to join")
