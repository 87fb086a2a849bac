"""Asking another participant: MCP requests, and the answers to them (§3.1).

An answer is taken only from whom the request was addressed to, naming the request (design §3.18).
"""

import asyncio
import difflib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, TypeGuard

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import answered, awaiting, gone
from mew.client.errors import Absent, Disconnected, MewError, Refused, RpcError, Unanswered
from mew.client.streams.streams import Streams
from mew.protocol.capability import short_form
from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.protocol.kinds import ErrorPayload, Kind, McpRequest, McpResponse, Presence

from .large_result import LargeResultDownload, large_result_in

__all__ = [
    "PROGRESS",
    "OnProgress",
    "Requests",
    "lacking",
    "operation",
    "tell_progress",
    "tool_call",
    "with_progress_token",
]

OnProgress = Callable[[float, float | None, str | None], None]
"""Told how far the work is, how much there is in all, and a sentence about it, as far as known. Must not wait."""

PROGRESS: Final = "notifications/progress"
_PAGES_MAX: Final = 1_000
_LISTING_BYTES_MAX: Final = 8 << 20
_INVALID: Final = -32603
_UNKNOWN_METHOD: Final = -32601
_JOIN_S: Final = 5.0
_SHOWN_MAX: Final = 8
_HEARD: Final = (Kind.MCP_RESPONSE, Kind.MCP_REQUEST, Kind.PRESENCE)
_NOT_CANCELLABLE: Final = "initialize"  # by MCP


class Requests:
    """Any number of requests at a time, over one connection."""

    def __init__(self, connection: ClientConnection, streams: Streams | None = None) -> None:
        """With `streams`, a result that is too large for an envelope is read from the one that brings it."""
        self._connection = connection
        self._streams = streams
        # Not from 1: a second connection of ours must not cancel what the first asked for.
        self._numbers = count(secrets.randbits(31))
        self._pending: dict[str, _Pending] = {}
        self._watched: asyncio.Future[Disconnected] | None = None
        connection.listen(self._listen, _HEARD)

    async def request(
        self,
        to: str | Sequence[str],
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float = 60.0,
        on_progress: OnProgress | None = None,
        context: str | None = None,
        correlation_id: Sequence[str] = (),
        via: str | None = None,
        anyway: bool = False,
    ) -> Any:
        """Ask a participant, and return the JSON-RPC `result`; of several that are asked, the first that answers.

        `via` names the surface on which somebody approved it, where it carries out a proposal; `anyway`: although that
        was withdrawn.

        Cancelled or out of time, it tells the addressee that no answer is wanted any more, where it may. Who is not
        here is waited for, up to 5 seconds; who leaves may come back and answer.

        Raises:
            RpcError: the answer is an error.
            Absent: nobody of that name is in the space.
            Unanswered: no answer came in time.
            Refused: the gateway said no.
            StreamBroken: the result came over a stream, and not all of it arrived.
            Disconnected: the connection ended for good.
        """
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        addressees = (to,) if isinstance(to, str) else tuple(to)
        await self.present(*addressees, within_s=timeout_s)
        number = next(self._numbers)
        if on_progress is not None:
            params = with_progress_token(params, number)
        payload = {"jsonrpc": "2.0", "id": number, **operation(method, params)}
        if via is not None:
            payload["via"] = via
        if anyway:
            payload["anyway"] = True
        envelope = self._connection.compose(
            Kind.MCP_REQUEST, payload, to=addressees, correlation_id=correlation_id, context=context
        )
        pending = _Pending(envelope, method, number, on_progress)
        with self._awaited(pending):
            try:
                async with asyncio.timeout_at(deadline_s) as scope:
                    await self._connection.send(envelope)
                    pending.accepted = True
                    response = await pending.answer
                    if pending.delivery is not None:
                        scope.reschedule(None)  # it has come, and is on its way
                        return await pending.delivery.result()
            except TimeoutError:
                self._cancel(pending, "no answer in time")
                raise Unanswered(self._missing(pending, timeout_s)) from None
            except asyncio.CancelledError:
                self._cancel(pending, "no longer wanted")
                raise
        return _result(response)

    async def listing(
        self, to: str, what: str, method: str | None = None, *, timeout_s: float = 60.0
    ) -> list[dict[str, Any]]:
        """All `tools`, `resources` or `prompts` that a participant lists, page after page; `timeout_s` is for each.

        Raises:
            RpcError: as `request`; or what it answers is no listing, or one of more than 8 MiB or 1,000 pages.
            Absent, Unanswered, Refused, Disconnected: as `request`.
        """
        method = method or f"{what}/list"
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        size_bytes = 0
        for _ in range(_PAGES_MAX):
            page = await self.request(to, method, params, timeout_s=timeout_s)
            listed = page.get(what) if isinstance(page, dict) else None
            if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
                raise RpcError(_INVALID, f"what {to!r} answers to {method} is no listing")
            size_bytes += len(encode_json(page))
            if size_bytes > _LISTING_BYTES_MAX:
                break
            found += listed
            if page.get("nextCursor") is None:
                return found
            params = {"cursor": page["nextCursor"]}
        raise RpcError(_INVALID, f"{to!r} lists {what} without end")

    async def notify(
        self,
        to: str | None,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        context: str | None = None,
        correlation_id: Sequence[str] = (),
    ) -> None:
        """Send an MCP notification to one participant, or to everyone; returns once it was accepted.

        Raises:
            Refused: the gateway said no.
            Disconnected: the connection ended for good.
        """
        addressees = () if to is None else (to,)
        payload = {"jsonrpc": "2.0", **operation(method, params)}
        await self._connection.send(
            self._connection.compose(
                Kind.MCP_REQUEST, payload, to=addressees, correlation_id=correlation_id, context=context
            )
        )

    async def present(self, *who: str, within_s: float = _JOIN_S) -> None:
        """Return when all of them are in the space: at once, or when they join within that time, 5 seconds at most.

        Raises:
            Absent: one is not; with the nearest name, or who is there.
            Disconnected: the connection ended for good.
        """
        connection = self._connection

        def missing() -> list[str]:
            return [name for name in who if gone(connection, name)]

        if not missing():
            return
        with awaiting(connection, lambda *_: None if missing() else True) as joined:
            try:
                await answered(joined, min(within_s, _JOIN_S), "they did not join")
            except Unanswered:
                raise Absent(_absence(missing()[0], list(connection.session.roster))) from None

    def delivery(self, answer: Envelope, response: McpResponse) -> LargeResultDownload | None:
        """What brings the result of a response that only announces it; to be asked as soon as it is seen."""
        parcel = None if self._streams is None else large_result_in(response.result)
        if parcel is None or self._streams is None:
            return None
        return LargeResultDownload(self._streams, parcel, answer.sender)

    def give_up(self, about: str, error: MewError) -> None:
        """Do not send the requests about this that have not left yet; who made them is told the error."""
        for pending in tuple(self._pending.values()):
            if about in pending.envelope.correlation_id and not pending.accepted:
                self._connection.take_back(pending.envelope.id, error)

    @contextmanager
    def _awaited(self, pending: "_Pending") -> Iterator[None]:
        connection = self._connection
        if self._watched is not connection.ended:
            self._watched = connection.ended
            self._watched.add_done_callback(self._over)
        self._pending[pending.envelope.id] = pending
        try:
            with connection.expecting():
                yield
        finally:
            del self._pending[pending.envelope.id]
            pending.answer.cancel()

    def _over(self, ended: asyncio.Future[Disconnected]) -> None:
        if not ended.cancelled():
            for pending in self._pending.values():
                if not pending.answer.done():
                    pending.answer.set_exception(ended.result().copy())
                    pending.answer.exception()  # `send` may have raised it first

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if not self._pending:
            return
        match payload:
            case McpResponse():
                for envelope_id in envelope.correlation_id:
                    pending = self._pending.get(envelope_id)
                    if pending is not None and pending.takes(envelope, payload):
                        pending.delivery = self.delivery(envelope, payload)
                        pending.answer.set_result(payload)
            case McpRequest(method=method, params=dict(params)) if method == PROGRESS:
                self._progressed(envelope, params)
            case Presence(event="leave", participant=participant):
                for pending in self._pending.values():
                    pending.has_left = pending.has_left or participant.id in pending.envelope.to

    def _progressed(self, envelope: Envelope, params: dict[str, Any]) -> None:
        for pending in tuple(self._pending.values()):
            is_meant = pending.number == params.get("progressToken") and pending.is_from(envelope)
            if pending.on_progress is not None and is_meant:
                tell_progress(pending.on_progress, params)

    def _cancel(self, pending: "_Pending", reason: str) -> None:
        """Tell the addressee, without waiting: what it is working on may be long."""
        if pending.answer.done() and not pending.answer.cancelled():
            return  # it came after all
        connection, asked = self._connection, pending.envelope
        params = {"requestId": pending.number, "reason": reason}
        payload = {"jsonrpc": "2.0", **operation("notifications/cancelled", params)}
        if pending.method == _NOT_CANCELLABLE or not connection.session.may(
            Kind.MCP_REQUEST, asked.to, payload
        ):
            return
        context = None if asked.context is UNSET else asked.context
        connection.post(
            connection.compose(
                Kind.MCP_REQUEST, payload, to=asked.to, correlation_id=[asked.id], context=context
            )
        )

    def _missing(self, pending: "_Pending", timeout_s: float) -> str:
        to = ", ".join(map(repr, pending.envelope.to))
        what = f"{pending.method} within {timeout_s:g} s"
        if not pending.accepted:
            why = "we are paused or too fast" if self._connection.connected else "there is no connection"
            return f"the gateway did not accept {what}: {why}"
        if all(gone(self._connection, who) for who in pending.envelope.to):
            return f"{to} has left the space and did not answer {what}"
        if pending.has_left:
            return f"{to} left the space, came back and did not answer {what}"
        return f"{to} did not answer {what}"


class _Pending:
    """A request that waits for its answer."""

    def __init__(self, envelope: Envelope, method: str, number: int, on_progress: OnProgress | None) -> None:
        self.envelope = envelope
        self.method = method
        self.number = number
        self.on_progress = on_progress
        self.accepted = False
        self.has_left = False
        self.answer: asyncio.Future[McpResponse] = asyncio.get_running_loop().create_future()
        self.delivery: LargeResultDownload | None = None
        self._unable: set[str] = set()

    def takes(self, answer: Envelope, response: McpResponse) -> bool:
        """Whether this is the answer. Of several that are asked, who does not know the method leaves it to others."""
        if self.answer.done() or not self.is_from(answer):
            return False
        if response.error is not UNSET and response.error.code == _UNKNOWN_METHOD:
            self._unable.add(answer.sender)
            return self._unable >= set(self.envelope.to)
        return True

    def is_from(self, answer: Envelope) -> bool:
        """Whether an answer comes from whom it was asked."""
        return answer.sender in self.envelope.to


def lacking(kind: str, payload: dict[str, Any], *, instead: str | None = None) -> Refused:
    """The refusal the gateway would give for want of a capability; `instead` is a kind that would do as well."""
    lacked = short_form(kind, payload)
    other = "" if instead is None else f" or {short_form(instead, payload)!r}"
    return Refused(
        EnvelopeId(""),
        ErrorPayload(
            error=Refusal.CAPABILITY_VIOLATION,
            message=f"you lack a capability such as {lacked!r}{other}; nothing was sent",
            attempted_kind=kind,
            lacked=lacked,
        ),
    )


def operation(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    """What a request and a proposal have in common (§3.2)."""
    return {"method": method} if params is None else {"method": method, "params": params}


def tool_call(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """The params of `tools/call` and `prompts/get`.

    Raises:
        TypeError: the arguments are not a mapping from names.
    """
    if not isinstance(arguments, Mapping | None):
        raise TypeError(f"arguments are a mapping such as {{'path': 'a.txt'}}, not {arguments!r}")
    return {"name": name, "arguments": dict(arguments or {})}


def with_progress_token(params: dict[str, Any] | None, token: str | int) -> dict[str, Any]:
    """The params of a request whose sender wants to be told how far it is."""
    given = params or {}
    return {**given, "_meta": {**given.get("_meta", {}), "progressToken": token}}


def tell_progress(on_progress: OnProgress, params: dict[str, Any]) -> None:
    """What a `notifications/progress` says, if it is one."""
    done, total, message = params.get("progress"), params.get("total"), params.get("message")
    if _is_number(done):
        on_progress(done, total if _is_number(total) else None, message if isinstance(message, str) else None)


def _result(response: McpResponse) -> Any:
    """What a response says.

    Raises:
        RpcError: it is an error.
    """
    error = response.error
    if error is UNSET:
        return response.result
    raise RpcError(error.code, error.message, None if error.data is UNSET else error.data)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _absence(who: str, present: list[str]) -> str:
    nearest = difflib.get_close_matches(who, present, n=1)
    if nearest:
        return f"nobody called {who!r} is in the space; did you mean {nearest[0]!r}?"
    shown = ", ".join(present[:_SHOWN_MAX]) + (", …" if len(present) > _SHOWN_MAX else "")
    return f"nobody called {who!r} is in the space; here are: {shown}"
