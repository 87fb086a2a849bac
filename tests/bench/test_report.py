"""What rounds add up to: ratios within a round, what the load was good for, and what was reached."""

from io import StringIO

import msgspec
import pytest
from bench.candidates import CANDIDATES
from bench.load import Measured
from bench.report import Spread, as_json, ceilings, print_report, ratio
from bench.targets import TARGETS, verdicts
from bench.workloads import WORKLOADS
from rich.console import Console


def measured(
    cost: float, *, load_share: float = 0.4, server_share: float = 1.0, p99_ms: float | None = None
) -> Measured:
    """A million deliveries at so many CPU-seconds of the server."""
    wall_s = cost / server_share
    return Measured(
        envelopes=20_000,
        deliveries=1_000_000,
        wall_s=wall_s,
        server_cpu_s=cost,
        load_cpu_s=wall_s * load_share,
        latency_ms_p50=p99_ms,
        latency_ms_p99=p99_ms,
    )


def printed(results: dict[str, dict[str, list[Measured]]]) -> str:
    console = Console(file=StringIO(), width=400)
    print_report(console, results)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_ratio_is_taken_within_a_round() -> None:
    ours = [measured(1.0), measured(4.0), measured(3.0)]
    theirs = [measured(2.0), measured(2.0), measured(2.0)]
    assert ratio(ours, theirs) == Spread(1.5, 0.5, 2.0)
    assert ratio(ours, []) is None


def test_a_load_whose_core_was_full_is_said_to_have_been_the_bottleneck() -> None:
    shown = printed({"spaces": {"floor": [measured(1.0, load_share=0.97, server_share=0.7)]}})
    assert "≥ 700,000" in shown
    assert "The load's core was full, the server's was not, in spaces/floor" in shown


def test_a_load_that_had_time_is_said_to_have_been_none() -> None:
    shown = printed({"spaces": {"floor": [measured(1.0)]}})
    assert "The load was nowhere the bottleneck" in shown
    assert "≥" not in shown


def test_what_the_load_is_good_for_is_what_it_did_at_least_cost_to_itself() -> None:
    results = {"spaces": {"floor": [measured(1.0)], "floor-c": [measured(0.5, load_share=0.4)]}}
    assert ceilings(results) == {"spaces": pytest.approx(5_000_000)}
    assert "spaces 5,000,000/s (5.0×)" in printed(results)  # and a full core of the floor would do a million


def test_a_machine_with_others_on_it_is_told_of() -> None:
    busy = msgspec.structs.replace(measured(1.0), others_share=0.5)
    assert "The machine was not quiet" in printed({"spaces": {"floor": [busy]}})
    assert "quiet" not in printed({"spaces": {"floor": [measured(1.0)]}})


def test_the_default_is_asked_to_reach_the_targets() -> None:
    rounds = {"mew-ephemeral": [measured(1.0)], "mew": [measured(1.2)], "floor": [measured(0.8)]}
    said = verdicts({"fan-out-50": rounds})
    assert "[green]reached[/]  fan-out-50: ≤ 1.3× without the journal: 1.20× (1.20–1.20)" in said
    claim = "without the journal ≤ 1.39× the bare uvloop floor"
    assert f"[green]reached[/]  fan-out-50: {claim}: 1.25× (1.25–1.25)" in said


def test_a_target_that_was_missed_or_not_measured_says_so() -> None:
    rounds = {"mew": [measured(10.0)], "node-ws": [measured(4.0)], "mew-ephemeral": [measured(1.0)]}
    said = verdicts({"fan-out-200": rounds})
    assert "[red]missed[/]  fan-out-200: cheaper than Node ws: 2.50× (2.50–2.50)" in said
    assert "[dim]not measured[/]  fan-out-200: cheaper than nats-server" in said


def test_the_latency_is_compared_where_the_target_is_of_latency() -> None:
    rounds = {"mew": [measured(1.0, p99_ms=3.0)], "node-ws": [measured(9.0, p99_ms=2.0)]}
    said = verdicts({"one-at-a-time-50": rounds})
    assert "[red]missed[/]  one-at-a-time-50: p99 latency no worse than Node ws: 1.50× (1.50–1.50)" in said
    assert "[green]reached[/]  one-at-a-time-50: cheaper than Node ws: 9.0× cheaper (9.0–9.0)" in said


def test_targets_name_workloads_and_candidates_that_there_are() -> None:
    for target in TARGETS:
        assert target.workload in WORKLOADS
        assert target.against in CANDIDATES
        assert target.workload not in CANDIDATES[target.against].not_for


def test_the_file_has_a_result_for_each_cell_with_every_round() -> None:
    rounds = {"mew": [measured(2.0), measured(3.0)], "floor": [measured(1.0), measured(1.0)], "node-ws": []}
    written = msgspec.json.decode(msgspec.json.encode(as_json({"spaces": rounds})))
    assert [(one["workload"], one["candidate"]) for one in written] == [
        ("spaces", "mew"),
        ("spaces", "floor"),
    ]
    assert written[0]["cpu_s_per_million"] == {"median": 2.5, "low": 2.0, "high": 3.0}
    assert written[0]["cost_to_floor"] == {"median": 2.5, "low": 2.0, "high": 3.0}
    assert written[0]["cost_to_node"] is None
    assert written[0]["load_was_bottleneck"] is False
    assert len(written[0]["rounds"]) == 2
