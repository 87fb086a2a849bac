"""One connection to a server: raw requests out, its requests and notifications in."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
)

from mew.client.errors import RpcError
from mew.mcp_bridge.marks import unmarked_fields
from mew.mcp_bridge.server.transport.transport import ServerTransport
from mew.protocol.visible import named, visible

from .errors import failure
from .handshake import HandshakeResult, modern_meta, negotiate
from .inflight import InflightRequest, current_request

__all__ = ["HandshakeFailed", "LinkLost", "NotificationHandler", "ServerLink", "open_link"]

_log = logging.getLogger(__name__)

# What a request of the second generation says of who sends it: to the server, that is us.
_STAMPS: Final = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY})
_END_S: Final = 2.0
_PING_S: Final = 30.0
_TOOLS_MAX: Final = 10_000
_OURS: Final = "mew"  # in the data of an error: what `failure` says

# What the SDK makes up where the server gave no answer of its own.
_CLOSED: Final = "Connection closed"
_BROKEN: Final = "SSE stream"
_NO_MCP: Final = "Server returned an error response"


class LinkLost(Exception):
    """The server was over before it answered. `unheard`: it never saw the request, which may be sent again."""

    def __init__(self, *, unheard: bool = False) -> None:
        super().__init__()
        self.unheard = unheard


class HandshakeFailed(Exception):
    """There was no handshake; `words` follow `the server`. None: because it was over."""

    def __init__(self, words: str | None) -> None:
        super().__init__(words)
        self.words = words


class NotificationHandler(Protocol):
    """Receives what a server sends: its requests and its notifications."""

    async def asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer what the server asks of its client.

        Raises:
            RpcError: the error to answer with.
        """
        ...

    def told(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification, in the order they came. Must not wait."""


class ServerLink:
    """Any number of requests at a time, until `ended`."""

    def __init__(self, dispatcher: JSONRPCDispatcher, wire: ServerTransport, ours: dict[str, Any]) -> None:
        self.terms = HandshakeResult("", {}, {})
        """What both came to in their handshake."""
        self.ended = asyncio.Event()
        self.words: str | None = None
        """How it ended, in words that follow `the server`, where that is known here."""
        self._dispatcher = dispatcher
        self._is_http = wire.is_http
        self._ours = ours
        self._doubted = asyncio.Event()
        self._header_maps: dict[str, dict[tuple[str, ...], str]] = {}

    async def request(
        self, method: str, params: dict[str, Any], *, request_id: str | None = None
    ) -> dict[str, Any]:
        """The result, as it came; cancelled, the server is told so. It may take for ever.

        Raises:
            RpcError: the server's own error, or it could not be reached with this request.
            Lost: this life of the server is over.
        """
        one = current_request.get() or InflightRequest()
        one.status, one.unreachable, one.session_lost = None, None, False
        stamped, options = self._stamped(method, params)
        if request_id is not None:
            options["request_id"] = request_id
        try:
            return await self._dispatcher.send_raw_request(method, stamped, options)
        except MCPError as error:
            raise await self._told_apart(error, one, method) from None

    def learn(self, tools: list[Any]) -> list[Any]:
        """The tools as a client may show them (2026-07-28), and which of their arguments travel as headers too.

        One that wants headers in a way that MCP does not know is left out, as MCP demands of clients.
        """
        if not self.terms.is_modern:
            return tools
        fit = [tool for tool in tools if not isinstance(tool, dict) or _is_fit(tool)]
        for tool in fit:
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and len(self._header_maps) < _TOOLS_MAX:
                self._header_maps[name] = x_mcp_header_map(tool.get("inputSchema"))
        return fit

    async def over(self) -> None:
        """Until it is. A session over HTTP does not say when it ends: it is asked now and then."""
        if not self._is_http or self.terms.is_modern:
            await self.ended.wait()
            return
        while not self.ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_PING_S):
                    await self._doubted.wait()
            self._doubted.clear()
            if not self.ended.is_set() and not await self._is_there():
                self.end("could not be reached any more")

    def end(self, words: str | None = None) -> None:
        """It is over, whatever else."""
        if not self.ended.is_set():
            self.words = words
        self.ended.set()
        self._doubted.set()

    async def _is_there(self) -> bool:
        one = InflightRequest()
        before = current_request.set(one)
        try:
            async with asyncio.timeout(_PING_S):
                await self.request("ping", {})
        except (RpcError, LinkLost, TimeoutError):
            return one.failure is None and not self.ended.is_set()  # an error is an answer
        finally:
            current_request.reset(before)
        return True

    def _stamped(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], CallOptions]:
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.terms.version}
        options: CallOptions = {"headers": headers}
        if not self.terms.is_modern:
            return _unstamped(params), options
        stamps = modern_meta(self.terms.version, self._ours)
        headers[MCP_METHOD_HEADER] = method
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            arguments = params.get("arguments")
            if method == "tools/call" and isinstance(arguments, dict):
                headers.update(mcp_param_headers(self._header_maps.get(name, {}), arguments))
        return {**params, "_meta": {**(params.get("_meta") or {}), **stamps}}, options

    async def _told_apart(self, error: MCPError, one: InflightRequest, method: str) -> Exception:
        """The server's own errors as they are; those that the SDK makes up, for what they are."""
        if one.session_lost:
            self.end("ended the session")
            return LinkLost(unheard=True)
        if error.code == CONNECTION_CLOSED and error.message == _CLOSED:
            try:
                async with asyncio.timeout(_END_S):
                    await self.ended.wait()
                return LinkLost()
            except TimeoutError:
                return _its_own(error)  # after all
        if self._is_http and error.message == _NO_MCP and one.failure is not None:
            self._doubted.set()
            status = {} if one.status is None else {"status": one.status}
            return failure("server_unreachable", f"the server {one.failure}", **status)
        if self._is_http and error.code == CONNECTION_CLOSED and error.message.startswith(_BROKEN):
            self._doubted.set()
            return failure(
                "server_died", f"the server broke off while it worked on {method}", coming_back=True
            )
        return _its_own(error)


@asynccontextmanager
async def open_link(
    wire: ServerTransport, handler: NotificationHandler, ours: dict[str, Any], *, modern: bool
) -> AsyncIterator[ServerLink]:
    """Shake hands, and speak with the server inside this block.

    Raises:
        Unfit: nothing comes of it.
    """
    dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(wire.read, wire.write, on_stream_exception=_note_fault)
    link = ServerLink(dispatcher, wire, ours)
    unfit: HandshakeFailed | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(_run, dispatcher, link, handler)
        try:
            link.terms = await _handshake(dispatcher, ours, modern=modern)
        except HandshakeFailed as error:
            unfit = error  # raised below: a task group would wrap it
        else:
            yield link
        finally:
            tasks.cancel_scope.cancel()
    if unfit is not None:
        raise unfit


async def _run(
    dispatcher: JSONRPCDispatcher,
    link: ServerLink,
    handler: NotificationHandler,
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    async def asked(_: DispatchContext[TransportContext], method: str, params: Any) -> dict[str, Any]:
        try:
            return await handler.asked(method, dict(params or {}))
        except RpcError as error:
            raise MCPError(error.integer_code, error.message, error.data) from None

    async def told(_: DispatchContext[TransportContext], method: str, params: Any) -> None:
        handler.told(method, dict(params or {}))

    def progressed(method: str, params: Mapping[str, Any] | None) -> bool:
        """At once, so that none comes after the answer; the others in their context, which says whose they are."""
        if method == "notifications/progress":
            handler.told(method, dict(params or {}))
        return method in ("notifications/progress", "notifications/cancelled")

    try:
        await dispatcher.run(asked, told, progressed, task_status=task_status)
    finally:
        link.end()


async def _handshake(dispatcher: JSONRPCDispatcher, ours: dict[str, Any], *, modern: bool) -> HandshakeResult:
    one = InflightRequest()
    before = current_request.set(one)
    try:
        return await negotiate(dispatcher, ours, modern=modern)
    except MCPError as error:
        if error.code == CONNECTION_CLOSED and error.message == _CLOSED:
            raise HandshakeFailed(None) from None
        raise HandshakeFailed(one.failure or f"refused the handshake: {visible(error.message)}") from None
    except ValueError as error:
        raise HandshakeFailed(f"cannot be used: {error}") from None
    finally:
        current_request.reset(before)


def _unstamped(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    if not meta or not _STAMPS.intersection(meta):
        return params
    return {**params, "_meta": {name: value for name, value in meta.items() if name not in _STAMPS}}


def _its_own(error: MCPError) -> RpcError:
    """What the server says; that it died, or was rejected, only we say, under `mew`."""
    data = error.data
    if isinstance(data, dict):
        data = {name: value for name, value in unmarked_fields(data).items() if name != _OURS}
    return RpcError(error.code, error.message, data)


def _is_fit(tool: dict[str, Any]) -> bool:
    reason = find_invalid_x_mcp_header(tool.get("inputSchema"))
    if reason is not None:
        _log.warning("tool %s is left out: %s", named(str(tool.get("name"))), visible(reason))
    return reason is None


async def _note_fault(error: Exception) -> None:
    _log.debug("something of the server's could not be read: %s", type(error).__name__)
