"""What a capability check costs: requests of somebody who holds 1, 10 or 100 patterns that look into payloads."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .lines import Counter, Phase, Talker
from .measuring import Effort, Measured, Outcome
from .opening import close_all, enter
from .place import Place, Seat
from .seating import fresh_run, some
from .templates import FILLING, SLOT, Template, envelope, numbered
from .traffic import Group, Traffic, measured_rounds

__all__ = ["Checks", "capabilities", "run"]


class Checks(Struct, frozen=True, tag="checks", kw_only=True):
    """Callers by how many patterns they hold, each as `capabilities` of that number; all ask the same one."""

    place: Place
    callers: dict[int, Seat]
    asked: Seat
    envelope_bytes: int = 400
    window: int = 32


def capabilities(patterns: int) -> list[dict[str, Any]]:
    """So many, each of which allows one tool."""
    return [
        {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": f"tool-{n:03d}"}}}
        for n in range(patterns)
    ]


async def run(asked: Checks, effort: Effort, tell: Callable[[], None] = lambda: None) -> dict[int, Outcome]:
    """All tools that each may call, in turn; the callers take turns, too, so that they compare.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    rounds: dict[int, list[Measured]] = {patterns: [] for patterns in asked.callers}
    single = replace(effort, rounds=1)
    for _ in range(effort.rounds):
        for patterns, caller in asked.callers.items():
            rounds[patterns] += await _round(asked, patterns, caller, single)
            tell()
    return {patterns: _outcome(asked, effort, patterns, tuple(found)) for patterns, found in rounds.items()}


async def _round(asked: Checks, patterns: int, caller: Seat, effort: Effort) -> tuple[Measured, ...]:
    phase, name = Phase(), fresh_run()
    frames = numbered([_call(asked, name, caller, f"tool-{n:03d}") for n in range(patterns)])
    talker = Talker(phase, frames, run=name, tag="t", window=asked.window)
    counter = Counter(phase)
    traffic = Traffic(phase, [Group([talker], [counter])], patience_s=effort.patience_s)
    try:
        await enter(asked.place, asked.asked, counter)
        await enter(asked.place, caller, talker)
        return await measured_rounds(traffic, effort)
    finally:
        phase.complete()
        await close_all([talker, counter])


def _call(asked: Checks, name: str, caller: Seat, tool: str) -> Template:
    params = {"name": tool, "arguments": {"text": FILLING}}
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return envelope(
        f"{name}-t-{SLOT}",
        caller.who,
        "mcp/request",
        payload,
        to=[asked.asked.who],
        size=asked.envelope_bytes,
    )


def _outcome(asked: Checks, effort: Effort, patterns: int, rounds: tuple[Measured, ...]) -> Outcome:
    about = (
        f"requests of one who holds {some(patterns, 'pattern')} on payloads, {effort.in_flight(asked.window)}"
    )
    return Outcome(workload=f"checks-{patterns}", of="envelopes", about=about, rounds=rounds)
