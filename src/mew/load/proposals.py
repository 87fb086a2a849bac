"""Proposals end to end (§3.2): proposed by who may not, approved by who may, executed and answered."""

import asyncio
import re
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .lines import NOTHING_DUE, Listener, Phase
from .measuring import Effort, Measured, Meter, Outcome, envelopes_for
from .opening import close_all, enter
from .place import Place, Seat
from .problems import LoadFailed
from .seating import fresh_run
from .templates import FILLING, SLOT, Template, envelope

__all__ = ["Proposals", "run"]

_PROPOSED, _REQUESTED, _ANSWERED = b"p", b"q", b"r"
_STEPS: Final = (_PROPOSED, _REQUESTED, _ANSWERED)
_SETTLE_S: Final = 2.0
_TURNS_MIN: Final = 20


class Proposals(Struct, frozen=True, tag="proposals", kw_only=True):
    """Three that each do their part; in a space that shows all to everyone, each sees all three envelopes."""

    place: Place
    proposer: Seat
    approver: Seat
    executor: Seat
    envelope_bytes: int = 400
    window: int = 32


class _Role(Listener):
    """One of the three: counts what it sees of each step, and goes on where it is its turn."""

    def __init__(self, phase: Phase, name: str, waits_for: bytes, says: Template | None) -> None:
        super().__init__(phase)
        self.seen = dict.fromkeys(_STEPS, 0)
        self._step = re.compile(rb'"id":\s*"' + name.encode() + rb'-([pqr])-(\d{8})"')
        self._waits_for = waits_for
        self._says = says
        self._due: list[bytes] = []

    def heard(self, payload: bytes) -> None:
        found = self._step.search(payload)
        if found is None:
            super().heard(payload)
            return
        step = found[1]
        self.seen[step] += 1
        if step == self._waits_for:
            self.turn(int(found[2]))

    def turn(self, number: int) -> None:
        assert self._says is not None, "the proposer says nothing to an answer"
        self._due.append(self._says.frame(number))

    def caught_up(self) -> None:
        if self._due:
            self.say(b"".join(self._due))
            self._due.clear()


class _Proposer(_Role):
    """Keeps a window of proposals open, and takes the time from each to its answer."""

    def __init__(self, phase: Phase, name: str, proposes: Template) -> None:
        super().__init__(phase, name, _ANSWERED, None)
        self._proposes = proposes
        self._next = 0
        self._left = self._open = 0
        self._every_s = 0.0
        self._sent_s: dict[int, float] = {}
        self.latencies_s = array("d")

    def start(self, proposals: int, window: int, every_s: float) -> None:
        self._left, self._open = proposals, proposals
        self._every_s = every_s
        self.latencies_s = array("d")
        for _ in range(min(window, proposals)):
            self._propose()
        self.caught_up()

    def turn(self, number: int) -> None:
        took_s = time.perf_counter() - self._sent_s.pop(number)
        self.latencies_s.append(took_s)
        self._open -= 1
        if self._left and self._every_s > took_s:
            asyncio.get_running_loop().call_later(self._every_s - took_s, self._propose_late)
        elif self._left:
            self._propose()
        elif not self._open:
            self.phase.complete()

    def _propose_late(self) -> None:
        self._propose()
        self.caught_up()

    def _propose(self) -> None:
        self._left -= 1
        self._sent_s[self._next] = time.perf_counter()
        self._due.append(self._proposes.frame(self._next))
        self._next += 1


class _Table:
    """The three, and the phase they share."""

    def __init__(self, asked: Proposals, name: str, patience_s: float) -> None:
        self.phase = Phase()
        self._patience_s = patience_s
        size = asked.envelope_bytes
        proposer, approver, executor = asked.proposer.who, asked.approver.who, asked.executor.who
        params = {"name": "write_file", "arguments": {"path": "notes.txt", "text": FILLING}}
        call = {"method": "tools/call", "params": params}
        proposal = envelope(f"{name}-p-{SLOT}", proposer, "mcp/proposal", call, to=[approver], size=size)
        request = envelope(
            f"{name}-q-{SLOT}",
            approver,
            "mcp/request",
            {"jsonrpc": "2.0", "id": 1, **call},
            to=[executor],
            about=f"{name}-p-{SLOT}",
            size=size,
        )
        answer = envelope(
            f"{name}-r-{SLOT}",
            executor,
            "mcp/response",
            {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": FILLING}]}},
            to=[approver, proposer],
            about=f"{name}-q-{SLOT}",
            size=size,
        )
        self.proposer = _Proposer(self.phase, name, proposal)
        self.approver = _Role(self.phase, name, _PROPOSED, request)
        self.executor = _Role(self.phase, name, _REQUESTED, answer)

    @property
    def roles(self) -> Sequence[_Role]:
        return self.proposer, self.approver, self.executor

    @property
    def deliveries(self) -> int:
        return sum(sum(role.seen.values()) for role in self.roles)

    async def flow(self, proposals: int, window: int, every_s: float = 0.0) -> None:
        """Until each of so many is answered; no two are proposed within `every_s`, where the window is one.

        Raises:
            LoadFailed: one was not, or something was refused.
        """
        for role in self.roles:
            role.seen = dict.fromkeys(_STEPS, 0)
            role.stay()
        self.phase.start(NOTHING_DUE)
        self.proposer.start(proposals, window, every_s)
        answered = -1
        while not self.phase.over.done():
            await asyncio.wait([self.phase.over], timeout=self._patience_s)
            if len(self.proposer.latencies_s) == answered and not self.phase.over.done():
                missing = proposals - answered
                self.phase.fail(LoadFailed(f"{missing:,} of {proposals:,} proposals were not answered"))
            answered = len(self.proposer.latencies_s)
        self.phase.over.result()

    async def verify(self, proposals: int) -> None:
        """Who has a part in a step saw it exactly as often as it was taken, and nobody saw one more often.

        Raises:
            LoadFailed: it is not so.
        """
        until_s = time.perf_counter() + min(_SETTLE_S, self._patience_s)
        while not self._is_exact(proposals):
            if time.perf_counter() > until_s:
                seen = [{step.decode(): count for step, count in role.seen.items()} for role in self.roles]
                raise LoadFailed(f"of {proposals:,} proposals, not all was seen once: {seen}")
            await asyncio.sleep(0.01)

    def _is_exact(self, proposals: int) -> bool:
        must = (
            (self.proposer, (_PROPOSED, _ANSWERED)),
            (self.approver, _STEPS),
            (self.executor, (_REQUESTED, _ANSWERED)),
        )
        return all(
            role.seen[step] == proposals or (step not in steps and not role.seen[step])
            for role, steps in must
            for step in _STEPS
        )


async def run(asked: Proposals, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """As many as can be, in rounds; the latency is of one at a time.

    Raises:
        LoadFailed: one was not answered, something came twice or not at all, or the gateway says no.
    """
    table = _Table(asked, fresh_run(), effort.patience_s)
    try:
        await enter(asked.place, asked.executor, table.executor)
        await enter(asked.place, asked.approver, table.approver)
        await enter(asked.place, asked.proposer, table.proposer)

        number, turns = await _numbers(table, asked, effort)
        rounds = []
        for _ in range(effort.rounds):
            rounds.append(await _round(table, asked, effort, number, turns))
            tell()
    finally:
        table.phase.complete()
        await close_all(table.roles)
    about = f"proposed, approved, executed, answered; {effort.in_flight(asked.window)}"
    return Outcome(workload="proposals", of="proposals", about=about, rounds=tuple(rounds))


async def _numbers(table: _Table, asked: Proposals, effort: Effort) -> tuple[int, int]:
    """How many in a round at once, and how many one at a time beside them."""
    if effort.rate is not None:
        return effort.paced, 0

    async def phase(proposals: int) -> None:
        await table.flow(proposals, asked.window)
        await table.verify(proposals)

    number = await envelopes_for(phase, effort, at_least=4)
    return number, max(_TURNS_MIN, number // (2 * asked.window))


async def _round(table: _Table, asked: Proposals, effort: Effort, number: int, turns: int) -> Measured:
    window = asked.window if turns else 1
    if turns:
        await table.flow(turns, 1)
        await table.verify(turns)
    alone_s = table.proposer.latencies_s
    meter = Meter(effort.server_pid)
    meter.start()
    try:
        await table.flow(number, window, effort.every_s)
        measured = meter.stop(number, 0, latencies_s=alone_s if turns else table.proposer.latencies_s)
    finally:
        meter.give_up()
    await table.verify(number)
    return replace(measured, deliveries=table.deliveries)
