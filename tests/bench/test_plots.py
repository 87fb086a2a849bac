"""What is drawn is what was measured, wherever that lies."""

import re
from itertools import pairwise

import pytest
from bench.chart import Axis, Measure, Panel, Series, apart
from bench.growth import growth, growth_document
from bench.plots import STYLES, plots
from bench.recorded import Point, Recorded, Result, Round, Scaling, Spread, Workload
from bench.svg import INKS, ROLES, Style, round_number, short
from hypothesis import given
from hypothesis import strategies as st


def result(workload: str, candidate: str, cost: float, *, is_least: bool = False) -> Result:
    rounds = [Round(1000, 50_000, 2.0, cost * 0.05 * share, 0.5) for share in (0.9, 1, 1.2)]
    spread, one = Spread(cost, 0.9 * cost, 1.2 * cost), Spread(1, 1, 1)
    return Result(workload, candidate, spread, rounds, cost_to_floor=one, load_was_bottleneck=is_least)


def run(scaling: list[Scaling] | None = None, *, is_least: bool = False) -> Recorded:
    """Ours and the floor, with 10 and 1,000 receivers."""
    workloads = [Workload(f"fan-out-{members}", members, "fan-out") for members in (10, 1000)]
    results = [
        result(workload.name, candidate, cost, is_least=is_least)
        for workload in workloads
        for candidate, cost in (("mew", 0.4), ("floor", 0.2))
    ]
    return Recorded({}, workloads, results, scaling=scaling or [])


def svg(recorded: Recorded, name: str) -> str:
    (found,) = [plot.svg for plot in plots(recorded) if plot.name == f"performance-{name}.svg"]
    return found


def test_the_same_run_gives_the_same_bytes() -> None:
    assert plots(run()) == plots(run())


def test_every_line_has_its_name_and_its_last_value_beside_it() -> None:
    assert re.search(r">mew<tspan[^>]*>0\.40<", svg(run(), "cost"))
    assert re.search(r">floor<tspan[^>]*>0\.20<", svg(run(), "cost"))


def test_a_throughput_that_was_the_loads_is_called_at_least() -> None:
    assert "≥ " in svg(run(is_least=True), "throughput")
    assert 'class="mark hollow"' in svg(run(is_least=True), "throughput")
    assert "≥ " not in svg(run(), "throughput")


def test_what_was_not_measured_is_not_drawn() -> None:
    drawn = {plot.name.removeprefix("performance-") for plot in plots(run())}
    assert drawn == {"cost.svg", "throughput.svg", "scaling.svg"}


def test_an_error_bar_goes_from_the_lowest_to_the_highest() -> None:
    axis = Axis.spanning([0, 100], is_log=False, form=round_number)
    style = Style("ours")
    panel = Panel(
        x=Axis.at([10], is_log=False, form=round_number),
        y=axis,
        x_title="",
        series=(Series("a", style, (Measure(10, 50, 25, 100),)),),
        left=0,
        top=0,
        width=100,
        height=axis.high,
    )
    bar = next(part for part in panel.parts() if 'class="bar"' in part)
    assert re.search(rf"M \S+ {axis.high - 100:g} V {axis.high - 25:g} ", bar)


def test_the_line_through_points_on_a_line_is_that_line() -> None:
    points = [Point(x, 3 + 0.5 * x, 3, 3) for x in (1, 10, 100)]
    (_, found) = growth(run([Scaling("spaces", "µs of CPU an envelope", points)]))
    assert found.base == pytest.approx(3)
    assert found.slope == pytest.approx(0.5)
    assert found.off == pytest.approx(0)
    assert found.told == "3.00 µs + 0.50 µs for each"


def test_what_does_not_grow_is_said_to_cost_the_same() -> None:
    points = [Point(x, 3, 3, 3) for x in (0, 10, 100_000)]
    found = growth(run([Scaling("history", "µs of CPU an envelope", points)]))
    assert found[-1].told == "3.00 µs, however many"
    assert "3.00 µs, however many" in growth_document(found, STYLES["mew"], 820)


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12).map(sorted))
def test_names_keep_their_order_and_do_not_overlap(wanted: list[float]) -> None:
    places = apart(wanted, 15, 0, 340)
    assert len(places) == len(wanted)
    assert all(after - before >= 15 - 1e-6 for before, after in pairwise(places))


@given(st.floats(1e-3, 1e8), st.floats(1, 1e4))
def test_an_axis_has_room_for_all_it_was_made_for(low: float, times: float) -> None:
    for is_log in (True, False):
        axis = Axis.spanning([low, low * times], is_log=is_log, form=round_number)
        assert 0 <= axis.share(low) <= axis.share(low * times) <= 1
        assert all(-0.01 <= axis.share(tick) <= 1.01 for tick in axis.ticks)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (0.0891, "0.089"),
        (0.3, "0.30"),
        (24.25, "24.2"),
        (117.4, "117"),
        (9876, "9,876"),
        (74_400, "74.4 k"),
        (2_860_000, "2.86 M"),
    ],
)
def test_numbers_are_said_as_a_person_would(value: float, said: str) -> None:
    assert short(value) == said


def luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_all_that_is_written_stands_out_from_the_ground(scheme: int) -> None:
    for ground in (ROLES["ground"], ROLES["stripe"]):
        for colours in (*INKS.values(), ROLES["text"], ROLES["quiet"]):
            dark, light = sorted((luminance(colours[scheme]), luminance(ground[scheme])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (colours[scheme], ground[scheme])
