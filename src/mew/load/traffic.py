"""Envelopes in flight among groups of connections, and the proof that each connection got exactly what was due."""

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from .connections import NOTHING_DUE, CountingConnection, LoadFailed, LoadPhase, SendingConnection, close_all
from .measurement import MeasuredRound, MeasurementPlan, Meter, envelopes_for, quantiles_ms

__all__ = ["Traffic", "TrafficGroup", "measured_rounds"]

_SETTLE_S: Final = 2.0
_QUIET_S: Final = 0.15
_QUIET_MOST_S: Final = 10.0
_TURNS_MIN: Final = 20
_TURNS_MAX: Final = 20_000


@dataclass(slots=True)
class TrafficGroup:
    """Connections that are all sent the same: everyone in a space, or those addressed. The first talks."""

    talkers: list[SendingConnection]
    counters: list[CountingConnection] = field(default_factory=list)
    due: int = 0
    """Envelopes, to each of them, in this phase."""

    @property
    def lines(self) -> "list[SendingConnection | CountingConnection]":
        return [*self.talkers, *self.counters]

    @property
    def has_all(self) -> bool:
        return all(talker.ours >= self.due for talker in self.talkers)

    def wrong(self) -> str | None:
        """What somebody got too much or too little of."""
        for talker in self.talkers:
            if talker.ours != self.due:
                return f"{talker.ours:,} envelopes came to somebody who should have got {self.due:,}"
        same = self.talkers[0].received
        odd = [line.received for line in self.lines if line.received != same]
        if not odd:
            return None
        return (
            f"{len(odd)} of {len(self.lines)} members got other bytes than the {same:,} due, e.g. {odd[0]:,}:"
            " envelopes were lost or repeated, or others talk here and the counts cannot be held apart"
        )


class Traffic:
    """All groups of a workload, under one phase."""

    def __init__(self, phase: LoadPhase, groups: Sequence[TrafficGroup], *, timeout_s: float) -> None:
        self.groups = groups
        self.lines = [line for group in groups for line in group.lines]
        self.talkers = [talker for group in groups for talker in group.talkers]
        self.deliveries_each = sum(len(group.talkers) * len(group.lines) for group in groups)
        """For one envelope of each talker."""
        self._phase = phase
        self._timeout_s = timeout_s
        self._frame_bytes = 1

    async def prepare(self) -> None:
        """Wait until welcomes and presence have come; then send one envelope, to see how long it is as it comes back.

        Raises:
            LoadFailed: somebody does not get it, or it is refused.
        """
        await self._quiet()
        self.stay()
        first = self.groups[0]
        self._expect({0: 1})
        self._phase.start(1, self._complete_with_all)
        first.talkers[0].start(1)
        await self._over()
        await self.verify()
        self._frame_bytes = first.talkers[0].received
        for talker in self.talkers:
            talker.frame_bytes = self._frame_bytes

    async def flow(self, envelopes: int) -> None:
        """Send so many from each talker; return when everybody has as many bytes as that should be.

        Raises:
            LoadFailed: it stopped before, or something was refused.
        """
        self._expect({n: envelopes * len(group.talkers) for n, group in enumerate(self.groups)})
        self._phase.start(envelopes * self.deliveries_each * self._frame_bytes, self._complete_with_all)
        for talker in self.talkers:
            talker.start(envelopes)
        await self._over()

    async def turns(self, envelopes: int, every_s: float = 0.0) -> "array[float]":
        """One at a time from the first talker: in seconds, how long each took until the last had it.

        Each is sent when the one before has come to all, and not sooner than `every_s` after it.

        Raises:
            LoadFailed: as `flow`, or somebody did not get exactly these.
        """
        taken = array("d")
        sender, phase = self.talkers[0], self._phase
        due_bytes = self._frame_bytes * len(self.groups[0].lines)
        sent_s = 0.0
        loop = asyncio.get_running_loop()

        def send() -> None:
            nonlocal sent_s
            phase.left = due_bytes
            sent_s = time.perf_counter()
            sender.send_one()

        def reached() -> None:
            taken.append(time.perf_counter() - sent_s)
            if len(taken) == envelopes or phase.over.done():
                phase.complete()
            elif every_s > taken[-1]:
                phase.left = NOTHING_DUE
                loop.call_later(every_s - taken[-1], send)
            else:
                send()

        self._expect({0: envelopes})
        phase.start(due_bytes, reached)
        send()
        await self._over()
        await self.verify()
        return taken

    async def verify(self) -> None:
        """That everyone got what was due and no byte more: talkers counted the envelopes, the others their bytes.

        Raises:
            LoadFailed: somebody got more or less.
        """
        until_s = time.perf_counter() + min(_SETTLE_S, self._timeout_s)
        while (wrong := self._wrong()) is not None:
            if time.perf_counter() > until_s:
                raise LoadFailed(wrong)
            await asyncio.sleep(0.01)

    def stay(self) -> None:
        """Let the gateway hear that all are there: who is silent for long is pinged, which is bytes."""
        for line in self.lines:
            line.stay()

    async def close(self) -> None:
        self._phase.complete()
        await close_all(self.lines)

    def _wrong(self) -> str | None:
        return next((wrong for group in self.groups if (wrong := group.wrong()) is not None), None)

    def _complete_with_all(self) -> None:
        """Where others talk, too, as many bytes as were due may have come before all that is ours has."""
        if all(group.has_all for group in self.groups):
            self._phase.complete()

    def _expect(self, due: dict[int, int]) -> None:
        for number, group in enumerate(self.groups):
            group.due = due.get(number, 0)
        for line in self.lines:
            line.received = 0
        for talker in self.talkers:
            talker.start(0)

    async def _over(self) -> None:
        """The end of the phase; a stall is the end of it, too."""
        before = -1
        while not self._phase.over.done():
            await asyncio.wait([self._phase.over], timeout=self._timeout_s)
            came = sum(line.received for line in self.lines)
            if came == before and not self._phase.over.done():
                due = sum(group.due * len(group.lines) for group in self.groups)
                missing = max(due - came // self._frame_bytes, 1)
                told = f"about {missing:,} of {due:,} deliveries did not come, nor anything for"
                self._phase.fail(LoadFailed(f"{told} {self._timeout_s:g} s"))
            before = came
        self._phase.over.result()

    async def _quiet(self) -> None:
        seen, until_s = -1, time.perf_counter() + _QUIET_MOST_S
        while seen != (now := sum(line.received for line in self.lines)) and time.perf_counter() < until_s:
            seen = now
            await asyncio.sleep(_QUIET_S)


async def measured_rounds(
    traffic: Traffic,
    plan: MeasurementPlan,
    *,
    latency: bool = False,
    tell: Callable[[], None] = lambda: None,
) -> tuple[MeasuredRound, ...]:
    """Warm up, and measure rounds of pipelined envelopes; with the latency of one at a time beside each.

    Raises:
        LoadFailed: somebody did not get exactly what was due.
    """
    await traffic.prepare()
    if plan.rate is not None:
        return await _paced_rounds(traffic, plan, tell)

    async def phase(envelopes: int) -> None:
        await traffic.flow(envelopes)
        await traffic.verify()

    envelopes = await envelopes_for(phase, plan, at_least=4)
    turns = 0
    if latency:
        began_s = time.perf_counter()
        await traffic.turns(_TURNS_MIN)
        each_s = (time.perf_counter() - began_s) / _TURNS_MIN
        turns = max(_TURNS_MIN, min(int(plan.round_s / 2 / each_s), _TURNS_MAX))
    rounds = []
    for _ in range(plan.rounds):
        rounds.append(await _measured_round(traffic, plan, envelopes, turns))
        tell()
    return tuple(rounds)


async def _measured_round(
    traffic: Traffic, plan: MeasurementPlan, envelopes: int, turns: int = 0
) -> MeasuredRound:
    """So many from each talker, pipelined; and some one at a time, for the latency.

    Raises:
        LoadFailed: somebody did not get exactly what was due.
    """
    traffic.stay()
    meter = Meter(plan.server_pid)
    meter.start()
    try:
        await traffic.flow(envelopes)
        measured = meter.stop(
            envelopes * len(traffic.talkers),
            envelopes * traffic.deliveries_each,
            transferred=sum(line.received for line in traffic.lines),
        )
    finally:
        meter.give_up()
    await traffic.verify()
    if not turns:
        return measured
    p50, p99 = quantiles_ms(await traffic.turns(turns))
    return replace(measured, latency_ms_p50=p50, latency_ms_p99=p99)


async def _paced_rounds(
    traffic: Traffic, plan: MeasurementPlan, tell: Callable[[], None]
) -> tuple[MeasuredRound, ...]:
    """As many as the rate allows, one at a time."""
    rounds = []
    for _ in range(plan.rounds):
        traffic.stay()
        meter = Meter(plan.server_pid)
        meter.start()
        try:
            taken = await traffic.turns(plan.paced, plan.every_s)
            deliveries = plan.paced * len(traffic.groups[0].lines)
            transferred = sum(line.received for line in traffic.lines)
            rounds.append(meter.stop(plan.paced, deliveries, transferred=transferred, latencies_s=taken))
        finally:
            meter.give_up()
        tell()
        await asyncio.sleep(plan.every_s)
    return tuple(rounds)
