"""Workloads with their own protocol: proposals end to end (§3.2), streams (§3.10), envelopes over HTTP (§5.3)."""

import asyncio
import re
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from mew.protocol.envelope import PROTOCOL
from mew.protocol.errors import ProtocolError
from mew.protocol.frames import join
from mew.protocol.json import decode_json, encode_json

from .connections import (
    NOTHING_DUE,
    CountingConnection,
    Credentials,
    GatewayAddress,
    LoadFailed,
    LoadPhase,
    ReadingConnection,
    SendingConnection,
    close_all,
    enter,
    enter_all,
    fresh_run,
    secure_context,
    some,
    was_refused,
)
from .frames import FILLING, SLOT, EnvelopeTemplate, binary_frame, envelope, text_frame
from .measurement import LoadResult, MeasuredRound, MeasurementPlan, Meter, envelopes_for

__all__ = ["InjectionLoad", "ProposalLoad", "StreamLoad", "run_injection", "run_proposals", "run_streams"]


_PROPOSED, _REQUESTED, _ANSWERED = b"p", b"q", b"r"
_STEPS: Final = (_PROPOSED, _REQUESTED, _ANSWERED)
_SETTLE_S: Final = 2.0
_TURNS_MIN: Final = 20


class ProposalLoad(Struct, frozen=True, tag="proposals", kw_only=True):
    """Three that each do their part; in a space that shows all to everyone, each sees all three envelopes."""

    address: GatewayAddress
    proposer: Credentials
    approver: Credentials
    executor: Credentials
    envelope_bytes: int = 400
    window: int = 32


class _Role(ReadingConnection):
    """One of the three: counts what it sees of each step, and goes on where it is its turn."""

    def __init__(self, phase: LoadPhase, name: str, waits_for: bytes, says: EnvelopeTemplate | None) -> None:
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

    def __init__(self, phase: LoadPhase, name: str, proposes: EnvelopeTemplate) -> None:
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

    def __init__(self, asked: ProposalLoad, name: str, timeout_s: float) -> None:
        self.phase = LoadPhase()
        self._timeout_s = timeout_s
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
            await asyncio.wait([self.phase.over], timeout=self._timeout_s)
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
        until_s = time.perf_counter() + min(_SETTLE_S, self._timeout_s)
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


async def run_proposals(
    asked: ProposalLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """As many as can be, in rounds; the latency is of one at a time.

    Raises:
        LoadFailed: one was not answered, something came twice or not at all, or the gateway says no.
    """
    table = _Table(asked, fresh_run(), plan.timeout_s)
    try:
        await enter(asked.address, asked.executor, table.executor)
        await enter(asked.address, asked.approver, table.approver)
        await enter(asked.address, asked.proposer, table.proposer)

        number, turns = await _numbers(table, asked, plan)
        rounds = []
        for _ in range(plan.rounds):
            rounds.append(await _proposals_round(table, asked, plan, number, turns))
            tell()
    finally:
        table.phase.complete()
        await close_all(table.roles)
    about = f"proposed, approved, executed, answered; {plan.in_flight(asked.window)}"
    return LoadResult(workload="proposals", of="proposals", about=about, rounds=tuple(rounds))


async def _numbers(table: _Table, asked: ProposalLoad, plan: MeasurementPlan) -> tuple[int, int]:
    """How many in a round at once, and how many one at a time beside them."""
    if plan.rate is not None:
        return plan.paced, 0

    async def phase(proposals: int) -> None:
        await table.flow(proposals, asked.window)
        await table.verify(proposals)

    number = await envelopes_for(phase, plan, at_least=4)
    return number, max(_TURNS_MIN, number // (2 * asked.window))


async def _proposals_round(
    table: _Table, asked: ProposalLoad, plan: MeasurementPlan, number: int, turns: int
) -> MeasuredRound:
    window = asked.window if turns else 1
    if turns:
        await table.flow(turns, 1)
        await table.verify(turns)
    alone_s = table.proposer.latencies_s
    meter = Meter(plan.server_pid)
    meter.start()
    try:
        await table.flow(number, window, plan.every_s)
        measured = meter.stop(number, 0, latencies_s=alone_s if turns else table.proposer.latencies_s)
    finally:
        meter.give_up()
    await table.verify(number)
    return replace(measured, deliveries=table.deliveries)


class StreamLoad(Struct, frozen=True, tag="streams", kw_only=True):
    """The readers are others than the writer: nobody hears their own frames. Nobody else is shown them."""

    address: GatewayAddress
    writer: Credentials
    readers: tuple[Credentials, ...]
    frame_bytes: int = 65_536
    window: int = 16


class _Reader(CountingConnection):
    """Counts, and tells the writer that it has read."""

    writer: "_Writer"

    def buffer_updated(self, count: int) -> None:
        super().buffer_updated(count)
        self.writer.refill()


class _Writer(ReadingConnection):
    """Has so many frames in flight as the slowest reader has not got."""

    def __init__(self, phase: LoadPhase, window: int) -> None:
        super().__init__(phase)
        self.window = window
        self.readers: Sequence[_Reader] = ()
        self.frame = b""
        self.frame_bytes = 1
        self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked = ""
        self._sent = self._quota = 0

    def request(self, asked: StreamLoad, name: str) -> None:
        self._asked = f"{name}-s"
        payload = {
            "direction": "upload",
            "description": "mew bench",
            "target": sorted({credentials.who for credentials in asked.readers}),
        }
        fields = {"protocol": PROTOCOL, "id": self._asked, "from": asked.writer.who, "kind": "stream/request"}
        self.say(text_frame(encode_json({**fields, "payload": payload})))

    def finish(self, asked: StreamLoad, name: str, stream: str) -> None:
        fields = {"protocol": PROTOCOL, "id": f"{name}-c", "from": asked.writer.who, "kind": "stream/close"}
        self.say(text_frame(encode_json({**fields, "payload": {"stream_id": stream}})))

    def heard(self, payload: bytes) -> None:
        super().heard(payload)
        if not self.opened.done() and b'"stream/open"' in payload:
            try:
                envelope: dict[str, Any] = decode_json(payload)
                if self._asked in envelope.get("correlation_id", ()):
                    self.opened.set_result(str(envelope["payload"]["stream_id"]))
            except (ProtocolError, KeyError, TypeError):
                self.phase.fail(LoadFailed("the gateway answered a stream/request with no stream/open"))

    def start(self, frames: int) -> None:
        self._sent, self._quota = 0, frames
        self.refill()

    def refill(self) -> None:
        got = min(reader.received for reader in self.readers) // self.frame_bytes
        due = min(got + self.window, self._quota) - self._sent
        if due > 0:
            self._sent += due
            self.say(self.frame if due == 1 else b"".join([self.frame] * due))


async def run_streams(
    asked: StreamLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """As many frames as can be, in rounds.

    Raises:
        LoadFailed: a reader did not get exactly the bytes that were due, or the gateway says no.
    """
    phase, name = LoadPhase(), fresh_run()
    writer = _Writer(phase, asked.window)
    readers = [_Reader(phase) for _ in asked.readers]
    for reader in readers:
        reader.writer = writer
    writer.readers = readers
    stream = ""
    try:
        await enter(asked.address, asked.writer, writer)
        await enter_all(asked.address, zip(asked.readers, readers, strict=True))
        stream = await _opened(asked, writer, name, plan)
        data = b"x" * (asked.frame_bytes - len(stream) - 2)
        writer.frame = binary_frame(join(stream, data))
        await _flow(phase, writer, 1, plan)
        writer.frame_bytes = readers[0].received

        async def trial(frames: int) -> None:
            await _flow(phase, writer, frames, plan)

        frames = await envelopes_for(trial, plan, at_least=asked.window)
        rounds = []
        for _ in range(plan.rounds):
            rounds.append(await _streams_round(phase, writer, frames, plan))
            tell()
    finally:
        phase.complete()
        if stream:
            writer.finish(asked, name, stream)
        await close_all([writer, *readers])
    about = f"frames of {asked.frame_bytes // 1024} KiB to {some(len(readers), 'reader')}, {asked.window} in flight"
    return LoadResult(workload="streams", of="frames", about=about, rounds=tuple(rounds))


async def _opened(asked: StreamLoad, writer: _Writer, name: str, plan: MeasurementPlan) -> str:
    await asyncio.sleep(0.1)  # the presence of the readers
    writer.phase.start(NOTHING_DUE)
    writer.request(asked, name)
    either: list[asyncio.Future[Any]] = [writer.opened, writer.phase.over]
    await asyncio.wait(either, timeout=plan.timeout_s, return_when=asyncio.FIRST_COMPLETED)
    if writer.phase.over.done():
        writer.phase.over.result()
    if not writer.opened.done():
        raise LoadFailed("the gateway did not answer a stream/request")
    await asyncio.sleep(0.1)  # the readers are shown that it is open
    return writer.opened.result()


async def _flow(phase: LoadPhase, writer: _Writer, frames: int, plan: MeasurementPlan) -> None:
    """So many frames, until every reader has them.

    Raises:
        LoadFailed: one did not get them, or other bytes.
    """
    writer.stay()
    for reader in writer.readers:
        reader.received = 0
        reader.stay()
    is_first = writer.frame_bytes == 1
    due = frames * (len(writer.frame) - 4 if is_first else writer.frame_bytes)  # a server does not mask
    phase.start(due * len(writer.readers))
    writer.start(frames)
    before = -1
    while not phase.over.done():
        await asyncio.wait([phase.over], timeout=plan.timeout_s)
        came = sum(reader.received for reader in writer.readers)
        if came == before and not phase.over.done():
            phase.fail(LoadFailed(f"{phase.left:,} bytes of {frames:,} frames did not come"))
        before = came
    phase.over.result()
    odd = [reader.received for reader in writer.readers if reader.received != due]
    if odd:
        raise LoadFailed(f"{len(odd)} readers got other bytes than the {due:,} due, e.g. {odd[0]:,}")


async def _streams_round(
    phase: LoadPhase, writer: _Writer, frames: int, plan: MeasurementPlan
) -> MeasuredRound:
    meter = Meter(plan.server_pid)
    meter.start()
    try:
        await _flow(phase, writer, frames, plan)
        deliveries = frames * len(writer.readers)
        return meter.stop(frames, deliveries, transferred=sum(reader.received for reader in writer.readers))
    finally:
        meter.give_up()


class InjectionLoad(Struct, frozen=True, tag="injection", kw_only=True):
    """The sender posts on so many connections, one request at a time on each; the witness sees what arrives."""

    address: GatewayAddress
    sender: Credentials
    witness: Credentials
    connections: int = 8
    envelope_bytes: int = 300


class _Poster(asyncio.Protocol):
    """A connection that is kept, and the next request as soon as one is answered."""

    def __init__(self, posting: "_Posting") -> None:
        self._posting = posting
        self._answer = b""
        self._sent_s = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._posting.phase.fail(LoadFailed(f"the gateway ended a connection over HTTP: {error or 'closed'}"))

    def next(self) -> None:
        request = self._posting.request()
        if request is not None and self.transport is not None:
            self._sent_s = time.perf_counter()
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if end and len(body) >= _length(head):
            self._answer = b""
            took_s = time.perf_counter() - self._sent_s
            self._posting.answered(head, body, took_s)
            if self._posting.has_more and self._posting.every_s > took_s:
                asyncio.get_running_loop().call_later(self._posting.every_s - took_s, self.next)
            else:
                self.next()


class _Posting:
    """What the posters share: the requests to come and how long each took."""

    def __init__(self, asked: InjectionLoad, name: str, phase: LoadPhase, every_s: float) -> None:
        self.phase = phase
        self.every_s = every_s
        self.latencies_s = array("d")
        fields = {"protocol": PROTOCOL, "id": f"{name}-h-#", "from": asked.sender.who, "kind": "chat"}
        empty = encode_json({**fields, "payload": {"text": ""}})
        text = "x" * max(asked.envelope_bytes - len(empty) - 7, 1)
        before, _, after = encode_json({**fields, "payload": {"text": text}}).partition(b"#")
        self._before = asked.address.post(asked.sender, len(before) + 8 + len(after)) + before
        self._after = after
        self._number = 0
        self._left = self._due = 0

    def start(self, envelopes: int) -> None:
        self._left = self._due = envelopes
        self.latencies_s = array("d")

    @property
    def has_more(self) -> bool:
        return self._left > 0

    def request(self) -> bytes | None:
        if not self._left:
            return None
        self._left -= 1
        self._number += 1
        return self._before + b"%08d" % self._number + self._after

    def answered(self, head: bytes, body: bytes, took_s: float) -> None:
        if not head.startswith(b"HTTP/1.1 200"):
            self.phase.fail(_refused(head, body))
            self._left = 0
            return
        self.latencies_s.append(took_s)
        if len(self.latencies_s) == self._due:
            self.phase.complete()


async def run_injection(
    asked: InjectionLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """As many as can be, in rounds.

    Raises:
        LoadFailed: the witness did not see each once, or the gateway says no.
    """
    phase, name = LoadPhase(), fresh_run()
    posting = _Posting(asked, name, phase, plan.every_s)
    witness = SendingConnection(phase, iter(()), run=name, tag="h", window=0)
    posters: list[_Poster] = []
    try:
        await enter(asked.address, asked.witness, witness)
        connections = asked.connections if plan.rate is None else 1
        posters = [await _poster(asked.address, posting) for _ in range(connections)]

        async def trial(envelopes: int) -> None:
            await _post(posting, posters, witness, envelopes, plan)
            await _verify_witness(witness, envelopes)

        if plan.rate is None:
            envelopes = await envelopes_for(trial, plan, at_least=connections)
        else:
            envelopes = plan.paced
        rounds = []
        for _ in range(plan.rounds):
            rounds.append(await _injection_round(posting, posters, witness, envelopes, plan))
            tell()
    finally:
        phase.complete()
        for poster in posters:
            if poster.transport is not None:
                poster.transport.close()
        await close_all([witness])
    about = f"{some(connections, 'connection')}, one request at a time on each{plan.pace}"
    return LoadResult(workload="injection", of="envelopes", about=about, rounds=tuple(rounds))


async def _poster(address: GatewayAddress, posting: _Posting) -> _Poster:
    loop = asyncio.get_running_loop()
    try:
        _, poster = await loop.create_connection(
            lambda: _Poster(posting),
            address.host,
            address.port,
            ssl=secure_context() if address.secure else None,
        )
    except OSError as error:
        raise LoadFailed(f"no connection to {address.authority}: {error.strerror or error}") from error
    return poster


async def _post(
    posting: _Posting,
    posters: Sequence[_Poster],
    witness: SendingConnection,
    envelopes: int,
    plan: MeasurementPlan,
) -> None:
    witness.start(0)
    witness.stay()
    posting.phase.start(NOTHING_DUE)
    posting.start(envelopes)
    for poster in posters:
        poster.next()
    before = -1
    while not posting.phase.over.done():
        await asyncio.wait([posting.phase.over], timeout=plan.timeout_s)
        answered = len(posting.latencies_s)
        if answered == before and not posting.phase.over.done():
            posting.phase.fail(
                LoadFailed(f"{envelopes - answered:,} of {envelopes:,} requests were not answered")
            )
        before = answered
    posting.phase.over.result()


async def _verify_witness(witness: SendingConnection, envelopes: int) -> None:
    until_s = time.perf_counter() + _SETTLE_S
    while witness.ours != envelopes:
        if time.perf_counter() > until_s:
            raise LoadFailed(f"of {envelopes:,} envelopes that were accepted, a member saw {witness.ours:,}")
        await asyncio.sleep(0.005)


async def _injection_round(
    posting: _Posting,
    posters: Sequence[_Poster],
    witness: SendingConnection,
    envelopes: int,
    plan: MeasurementPlan,
) -> MeasuredRound:
    meter = Meter(plan.server_pid)
    meter.start()
    try:
        await _post(posting, posters, witness, envelopes, plan)
        measured = meter.stop(envelopes, 0, latencies_s=posting.latencies_s)
    finally:
        meter.give_up()
    await _verify_witness(witness, envelopes)
    return replace(measured, deliveries=witness.ours)


def _length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    with suppress(ValueError):
        return int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    return 0


def _refused(head: bytes, body: bytes) -> LoadFailed:
    problem: Any = {}
    with suppress(ProtocolError):
        problem = decode_json(body)
    if not isinstance(problem, dict):
        problem = {}
    line = head.split(b"\r\n", 1)[0].decode(errors="replace")
    return was_refused(
        str(problem.get("error", "")), str(problem.get("message", problem.get("detail", line)))
    )
