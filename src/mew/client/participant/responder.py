"""Answers the MCP requests that are addressed to us: each once, whatever happens to it (§3.1.2, §3.5.6).

What a participant is asked, it answers whatever the `context`. A request to nobody in particular asks nobody, and is
left alone: if everyone answered, the one who asked would get as many answers as there are participants, and takes
none of them (design §3.18). Notifications are never answered. A request needs no JSON-RPC `id`, which the TypeScript
implementation never sends: its answer has none either, and is correlated by envelope (design §3.19).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.errors import MewError, Refused, RpcError
from mew.client.mcp.call import Answerer, Call, CallCancelled
from mew.client.mcp.large_result import ENVELOPE_BYTES_MAX, MARK, LargeResultUpload, too_large
from mew.proposals.book import ProposalBook
from mew.protocol.envelope import Envelope
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind, McpRequest, McpResponse, Presence

from .outbound import Outbound
from .worker_pool import WorkerPool

__all__ = ["Responder"]

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 64
_WAITING_MAX: Final = 1_024
_NOTIFY_S: Final = 1.0

_UNAVAILABLE: Final = -32000
_INTERNAL: Final = -32603

# What a shorter answer would not meet with as well.
_HOPELESS: Final = frozenset({Refusal.SHUT_DOWN, Refusal.CAPABILITY_VIOLATION, Refusal.NOT_A_MEMBER})


class Responder:
    """At most 64 requests run at once, 1,024 or 16 MiB wait, and beyond that the answer is `busy`. Held until `open`.

    One runs until its answer was accepted.
    """

    def __init__(
        self,
        connection: ClientConnection,
        server: Answerer,
        voice: Outbound,
        *,
        at_once: int = _AT_ONCE,
        waiting_max: int = _WAITING_MAX,
        dispatch: LargeResultUpload | None = None,
        book: ProposalBook | None = None,
        leave: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`dispatch` takes results that are too large for an envelope; `leave` says which methods others answer.

        `book` is up to date when an envelope is heard: what carries out a proposal that it knows to have expired is
        refused, and so is what carries out a withdrawn one, unless the request says `anyway`.
        """
        self._connection = connection
        self._server = server
        self._voice = voice
        self._dispatch = dispatch
        self._book = book
        self._leave = leave
        self._lane = WorkerPool(connection, at_once=at_once, waiting_max=waiting_max, held=True)
        self._asked: dict[str, _Asked] = {}
        self._has_twin = False

    def listen(self, envelope: Envelope, payload: Any) -> None:
        match payload:
            case McpRequest() if self._connection.session.me in envelope.to:
                self._take(envelope, payload)
            case McpRequest(is_notification=True) if not envelope.to:
                self._take(envelope, payload)
            case Presence(event="leave", participant=participant):
                self._server.forget(participant.id)
            case McpResponse() if envelope.sender == self._connection.session.me:
                self._mind_twins(envelope)

    def _mind_twins(self, answer: Envelope) -> None:
        """An answer in our name that another connection gave: both do what is asked, and that is rarely meant."""
        if not self._has_twin and not self._voice.said(answer.id):
            self._has_twin = True
            _log.warning(
                "%s runs twice in this space: both answer what is asked of it, and do it", answer.sender
            )

    def open(self) -> None:
        self._lane.open()

    async def stop(self, reason: str, *, within_s: float) -> None:
        """Answer all that is open with an error, and cancel it; what comes now waits until `open`."""
        self._lane.hold()
        self._lane.drop()
        for asked in tuple(self._asked.values()):
            asked.call.cancelled = True  # for one that runs in a thread
            self._respond(asked, _error(RpcError(_UNAVAILABLE, reason)))
        await self._lane.quiet(within_s)

    def announce(
        self, method: str, params: dict[str, Any] | None = None, *, to: tuple[str, ...] = ()
    ) -> None:
        """Send a notification of our own, where we may."""
        payload = _notification(method, params)
        self._voice.say(Kind.MCP_REQUEST, payload, to=to)

    def _take(self, envelope: Envelope, request: McpRequest) -> None:
        params = {} if request.params is UNSET else request.params
        if request.is_notification:
            if request.method == "notifications/cancelled":
                self._cancel_waiting(envelope.sender, params.get("requestId"))
            self._server.notice(request.method, params, envelope.sender)
            return
        if envelope.id in self._asked or self._leave(request.method):
            return  # it is being answered
        notify = partial(self._notify, envelope)
        request_id = envelope.id if request.id is UNSET else request.id
        call = Call(envelope, method=request.method, params=params, id=request_id, notify=notify)
        asked = _Asked(call, request, params)
        self._asked[envelope.id] = asked
        late = self._late(envelope, request, params)
        if late is not None:
            self._respond(asked, _error(RpcError(_UNAVAILABLE, f"{late}: nothing was done")))
            return
        if not self._lane.offer(partial(self._answer, asked), envelope):
            busy = f"{self._connection.session.me!r} is busy: too many requests wait; ask again later"
            self._respond(asked, _error(RpcError(_UNAVAILABLE, busy)))

    def _late(self, envelope: Envelope, request: McpRequest, params: dict[str, Any]) -> str | None:
        """Why a request is refused that carries out a proposal after its end; None: it is not."""
        if self._book is None:
            return None
        now = datetime.now(UTC)
        for record in filter(None, map(self._book.get, envelope.correlation_id)):
            if not record.is_fulfilled_by(envelope.to, request.method, params):
                continue
            if record.expires_at is not None and record.has_expired(now):
                when = record.expires_at.isoformat(timespec="seconds")
                return f"proposal {record.id} expired at {when}, before it was approved"
            if record.withdrawn is not None and not request.anyway:
                return f"proposal {record.id} was withdrawn before it was approved"
        return None

    def _cancel_waiting(self, sender: str, wanted: Any) -> None:
        """Those that run, the server cancels; MCP wants no answer to either."""
        if not isinstance(wanted, str | int) or isinstance(wanted, bool):
            return
        for asked in tuple(self._asked.values()):
            call = asked.call
            if call.sender == sender and wanted in (call.id, call.envelope.id) and not asked.begun:
                call.cancelled = True
                del self._asked[call.envelope.id]

    async def _answer(self, asked: "_Asked") -> None:
        call = asked.call
        if call.envelope.id not in self._asked:
            return  # cancelled, or answered, while it waited
        asked.begun = True
        try:
            result = _unmarked(await self._server.answer(call.method, asked.params, call))
            if await self._dispatched(asked, result):
                return
            said = {"result": result}
        except CallCancelled:
            self._asked.pop(call.envelope.id, None)
            return
        except RpcError as error:
            said = _error(error)
        except Exception as error:
            _log.error("%s could not be answered", call.method, exc_info=error)
            said = _error(RpcError(_INTERNAL, "internal error"))
        answer = self._respond(asked, said)
        if answer is not None:
            # Until then it counts as one that runs: answers must not pile up while we are paused.
            await asyncio.wait((answer,))

    async def _dispatched(self, asked: "_Asked", result: dict[str, Any]) -> bool:
        """Whether it was too large for an envelope, and a stream brings it."""
        try:
            data = encode_json(result)
        except Exception:  # `_respond` says so
            return False
        asked.size = len(data)
        if self._dispatch is None or len(data) <= ENVELOPE_BYTES_MAX or not self._dispatch.may(asked.call):
            return False
        return await self._dispatch.send(asked.call, result, data, partial(self._announced, asked))

    def _announced(self, asked: "_Asked", result: dict[str, Any]) -> asyncio.Future[Envelope] | None:
        return self._respond(asked, {"result": result})

    def _respond(self, asked: "_Asked", said: dict[str, Any]) -> asyncio.Future[Envelope] | None:
        """Once; who is answered already is not answered again."""
        if self._asked.pop(asked.call.envelope.id, None) is None:
            return None
        asked.call.close()
        try:
            answer = self._say(asked, said)
        except Exception as error:
            _log.error("the answer to %s has no form in JSON", asked.call.method, exc_info=error)
            answer = self._say(asked, _error(RpcError(_INTERNAL, "the answer has no form in JSON")))
        if answer is not None:
            answer.add_done_callback(partial(self._answered, asked))
        return answer

    def _say(self, asked: "_Asked", said: dict[str, Any]) -> asyncio.Future[Envelope] | None:
        call = asked.call
        to, about = (call.sender,), (call.envelope.id,)
        context = None if call.envelope.context is UNSET else call.envelope.context
        payload = asked.request.response(said)
        return self._voice.say(Kind.MCP_RESPONSE, payload, to=to, about=about, context=context)

    def _answered(self, asked: "_Asked", answer: asyncio.Future[Envelope]) -> None:
        """Where the gateway refuses an answer, too large for example, who asked is told that."""
        error = None if answer.cancelled() else answer.exception()
        if isinstance(error, Refused) and error.why not in _HOPELESS:
            _log.warning("the answer to %s was refused: %s", asked.call.method, error)
            why = RpcError(_INTERNAL, f"the answer was refused by the gateway: {error}")
            if error.why is Refusal.TOO_LARGE and asked.size:
                why = too_large(asked.size, self._connection.session.me)
            self._say(asked, _error(why))

    async def _notify(self, request: Envelope, method: str, params: dict[str, Any]) -> None:
        """Tell who asked, where we may and can. The work it is about does not wait for a pause or a connection."""
        until_s = self._connection.session.outgoing.paused_until or 0.0
        if asyncio.get_running_loop().time() < until_s or not self._connection.connected:
            return
        context = None if request.context is UNSET else request.context
        told = self._voice.say(
            Kind.MCP_REQUEST,
            _notification(method, params),
            to=(request.sender,),
            about=(request.id,),
            context=context,
        )
        if told is not None:
            with suppress(MewError, TimeoutError):
                async with asyncio.timeout(_NOTIFY_S):
                    await told


class _Asked:
    """A request that is not answered yet."""

    def __init__(self, call: Call, request: McpRequest, params: dict[str, Any]) -> None:
        self.call = call
        self.request = request
        self.params = params
        self.begun = False
        self.size = 0


def _unmarked(result: dict[str, Any]) -> dict[str, Any]:
    """Without a mark that is ours alone to set: a server behind us may say anything."""
    meta = result.get("_meta")
    if not isinstance(meta, dict) or MARK not in meta:
        return result
    return {**result, "_meta": {name: value for name, value in meta.items() if name != MARK}}


def _notification(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    payload: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return payload if params is None else {**payload, "params": params}


def _error(error: RpcError) -> dict[str, Any]:
    said: dict[str, Any] = {"code": error.code, "message": error.message}
    return {"error": said if error.data is None else {**said, "data": error.data}}
