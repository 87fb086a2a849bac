"""Envelopes over HTTP (§5.3): how many a second, and how long until each is answered."""

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from mew.protocol.envelope import PROTOCOL
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json, encode_json

from .lines import NOTHING_DUE, Phase, Talker
from .measuring import Effort, Measured, Meter, Outcome, envelopes_for
from .opening import close_all, enter, secure_context
from .place import Place, Seat
from .problems import LoadFailed, was_refused
from .seating import fresh_run, some

__all__ = ["Injection", "run"]

_SETTLE_S: Final = 2.0


class Injection(Struct, frozen=True, tag="injection", kw_only=True):
    """The sender posts on so many connections, one request at a time on each; the witness sees what arrives."""

    place: Place
    sender: Seat
    witness: Seat
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

    def __init__(self, asked: Injection, name: str, phase: Phase, every_s: float) -> None:
        self.phase = phase
        self.every_s = every_s
        self.latencies_s = array("d")
        fields = {"protocol": PROTOCOL, "id": f"{name}-h-#", "from": asked.sender.who, "kind": "chat"}
        empty = encode_json({**fields, "payload": {"text": ""}})
        text = "x" * max(asked.envelope_bytes - len(empty) - 7, 1)
        before, _, after = encode_json({**fields, "payload": {"text": text}}).partition(b"#")
        self._before = asked.place.post(asked.sender, len(before) + 8 + len(after)) + before
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


async def run(asked: Injection, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """As many as can be, in rounds.

    Raises:
        LoadFailed: the witness did not see each once, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    posting = _Posting(asked, name, phase, effort.every_s)
    witness = Talker(phase, iter(()), run=name, tag="h", window=0)
    posters: list[_Poster] = []
    try:
        await enter(asked.place, asked.witness, witness)
        connections = asked.connections if effort.rate is None else 1
        posters = [await _poster(asked.place, posting) for _ in range(connections)]

        async def trial(envelopes: int) -> None:
            await _post(posting, posters, witness, envelopes, effort)
            await _verify(witness, envelopes)

        if effort.rate is None:
            envelopes = await envelopes_for(trial, effort, at_least=connections)
        else:
            envelopes = effort.paced
        rounds = []
        for _ in range(effort.rounds):
            rounds.append(await _round(posting, posters, witness, envelopes, effort))
            tell()
    finally:
        phase.complete()
        for poster in posters:
            if poster.transport is not None:
                poster.transport.close()
        await close_all([witness])
    about = f"{some(connections, 'connection')}, one request at a time on each{effort.pace}"
    return Outcome(workload="injection", of="envelopes", about=about, rounds=tuple(rounds))


async def _poster(place: Place, posting: _Posting) -> _Poster:
    loop = asyncio.get_running_loop()
    try:
        _, poster = await loop.create_connection(
            lambda: _Poster(posting),
            place.host,
            place.port,
            ssl=secure_context() if place.secure else None,
        )
    except OSError as error:
        raise LoadFailed(f"no connection to {place.authority}: {error.strerror or error}") from error
    return poster


async def _post(
    posting: _Posting, posters: Sequence[_Poster], witness: Talker, envelopes: int, effort: Effort
) -> None:
    witness.start(0)
    witness.stay()
    posting.phase.start(NOTHING_DUE)
    posting.start(envelopes)
    for poster in posters:
        poster.next()
    before = -1
    while not posting.phase.over.done():
        await asyncio.wait([posting.phase.over], timeout=effort.patience_s)
        answered = len(posting.latencies_s)
        if answered == before and not posting.phase.over.done():
            posting.phase.fail(
                LoadFailed(f"{envelopes - answered:,} of {envelopes:,} requests were not answered")
            )
        before = answered
    posting.phase.over.result()


async def _verify(witness: Talker, envelopes: int) -> None:
    until_s = time.perf_counter() + _SETTLE_S
    while witness.ours != envelopes:
        if time.perf_counter() > until_s:
            raise LoadFailed(f"of {envelopes:,} envelopes that were accepted, a member saw {witness.ours:,}")
        await asyncio.sleep(0.005)


async def _round(
    posting: _Posting, posters: Sequence[_Poster], witness: Talker, envelopes: int, effort: Effort
) -> Measured:
    meter = Meter(effort.server_pid)
    meter.start()
    try:
        await _post(posting, posters, witness, envelopes, effort)
        measured = meter.stop(envelopes, 0, latencies_s=posting.latencies_s)
    finally:
        meter.give_up()
    await _verify(witness, envelopes)
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
