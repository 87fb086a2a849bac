"""What `mew bench` found: a table for people, JSON for programs. A figure that the load limited is marked `≥`."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from rich.table import Column
from rich.text import Text

from mew.cli.render.table import console, put, table
from mew.load.measurement import Bottleneck, LoadResult, MeasuredRound, Spread
from mew.protocol.visible import visible

__all__ = ["as_json", "show"]

_HEADS: Final = ("per second", "delivered/s", "p50 ms", "p99 ms", "gateway, each")
_WHO: Final = {
    Bottleneck.GATEWAY: "the gateway, which was always busy",
    Bottleneck.LOAD: "mew bench itself, which was always busy",
    Bottleneck.NOBODY: "waiting: neither side was always busy",
    Bottleneck.NOT_THE_LOAD: "something other than mew bench",
}
_TIMED: Final = frozenset({"joins"})
"""Where the pace is the load's own, and only the latency says something."""
_MB: Final = 1e6
_KB: Final = 1e3
_SENTENCE_MAX: Final = 400
_ONE_LINE: Final = 140
"""As wide as a terminal must be for medians and spreads beside each other."""


def show(outcomes: Sequence[LoadResult], missing: Sequence[tuple[str, str]]) -> None:
    out = console()
    if outcomes:
        between = "\n" if out.width < _ONE_LINE else " "
        rows = table(
            out, Column("workload", no_wrap=True), *(Column(head, justify="right") for head in _HEADS)
        )
        for outcome in outcomes:
            rows.add_row(outcome.workload, *_row(outcome, between))
        put(out, rows)
        put(out)
        for outcome in outcomes:
            put(
                out,
                Text(
                    f"{outcome.workload}: {visible(outcome.about, _SENTENCE_MAX)}{_limited(outcome)}", "dim"
                ),
            )
        put(out, Text("Medians of three rounds, with the least and the most.", "dim"))
    for name, why in missing:
        put(out, Text(f"{name}: no figure: {visible(why, _SENTENCE_MAX)}", "yellow"))


def as_json(outcomes: Sequence[LoadResult], missing: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        "workloads": [_told(outcome) for outcome in outcomes],
        "not_measured": [{"workload": name, "why": why} for name, why in missing],
    }


def _told(outcome: LoadResult) -> dict[str, Any]:
    def spread(of: Callable[[MeasuredRound], float | None]) -> Spread | None:
        return Spread.of(map(of, outcome.rounds))

    return {
        "workload": outcome.workload,
        "about": outcome.about,
        "counted": outcome.of,
        "per_s": spread(lambda one: one.per_s),
        "deliveries_per_s": spread(lambda one: one.deliveries / one.wall_s),
        "mb_per_s": spread(lambda one: one.bytes / one.wall_s / _MB if one.bytes else None),
        "latency_ms_p50": spread(lambda one: one.latency_ms_p50),
        "latency_ms_p99": spread(lambda one: one.latency_ms_p99),
        "gateway_cpu_us_each": spread(lambda one: one.cpu_us_each),
        "gateway_cpu_s_per_million_deliveries": spread(lambda one: one.cpu_s_per_million),
        "gateway_bytes_each": spread(_bytes_each),
        "gateway_share": spread(lambda one: one.server_share),
        "load_share": spread(lambda one: one.load_share),
        "bottleneck": _bottleneck(outcome),
        "is_lower_bound": outcome.is_lower_bound,
        "rounds": msgspec.to_builtins(outcome.rounds),
    }


def _row(outcome: LoadResult, between: str) -> list[str]:
    def written(of: Callable[[MeasuredRound], float | None], unit: str = "", least: str = "") -> str:
        found = Spread.of(map(of, outcome.rounds))
        if found is None:
            return ""
        spread = f"{between}({_number(found.low)}–{_number(found.high)})" if len(outcome.rounds) > 1 else ""
        return f"{least}{_number(found.median)}{unit}{spread}"

    least = "≥ " if outcome.is_lower_bound else ""
    rate = written(lambda one: one.per_s, least=least)
    delivered = written(lambda one: one.deliveries / one.wall_s, least=least)
    if outcome.workload == "streams":
        delivered = written(lambda one: one.bytes / one.wall_s / _MB, " MB", least)
    elif outcome.counts_deliveries:
        delivered = ""
    if outcome.workload in _TIMED:
        rate = delivered = ""
    memory = written(lambda one: None if (each := _bytes_each(one)) is None else each / _KB, " KB")
    return [
        rate,
        delivered,
        written(lambda one: one.latency_ms_p50),
        written(lambda one: one.latency_ms_p99),
        memory or written(lambda one: one.cpu_us_each, " µs"),
    ]


def _limited(outcome: LoadResult) -> str:
    if outcome.workload in _TIMED:
        return ""
    who = _bottleneck(outcome)
    share = Spread.of(one.load_share for one in outcome.rounds)
    assert share is not None, "an outcome without rounds"
    busy = f", busy for {min(share.median, 1):.0%} of the time" if who is Bottleneck.NOT_THE_LOAD else ""
    more = ", so it is at least that (≥)" if who is Bottleneck.LOAD else ""
    return f"; limited by {_WHO[who]}{busy}{more}"


def _bottleneck(outcome: LoadResult) -> Bottleneck:
    """The load, if it was so in any round; else what most rounds say."""
    found = [one.bottleneck for one in outcome.rounds]
    return Bottleneck.LOAD if outcome.is_lower_bound else max(found, key=found.count)


def _bytes_each(one: MeasuredRound) -> float | None:
    return None if one.server_grew_bytes is None else one.server_grew_bytes / one.count


def _number(value: float) -> str:
    """Three digits that count."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"
