"""A server that runs elsewhere, over Streamable HTTP: what became of each request, told apart."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from mew.mcp_bridge.server.inflight import current_request
from mew.mcp_bridge.server.settings import Endpoint

if TYPE_CHECKING:  # the SDK has no public name for it
    from mcp.client._transport import TransportStreams

__all__ = ["open_endpoint"]

_log = logging.getLogger(__name__)

_CONNECT_S: Final = 15.0
_MESSAGE_BYTES_MAX: Final = 64 << 20
_GOODBYE_S: Final = 2.0
_LOOKED_AT_BYTES: Final = 4_096
_EVENTS: Final = "text/event-stream"
_PLAIN: Final = {"Accept-Encoding": "identity"}  # what is packed may be a thousand times as large
_UNREACHABLE: Final = 599  # no status of HTTP: made here, for a request that got none


@asynccontextmanager
async def open_endpoint(endpoint: Endpoint) -> "AsyncIterator[TransportStreams]":
    """Streams to and from a server, as the SDK's dispatcher takes them; nothing is sent yet."""
    # An answer may take as long as its request may: that clock is ours.
    patience = httpx2.Timeout(None, connect=_CONNECT_S)
    headers = {**_PLAIN, **endpoint.headers}
    async with (
        _Forgiving(headers=headers, timeout=patience) as client,
        streamable_http_client(
            endpoint.url, http_client=client, max_sse_event_size=_MESSAGE_BYTES_MAX
        ) as streams,
    ):
        yield streams


class _Forgiving(httpx2.AsyncClient):
    """A request that gets nowhere fails alone: to the SDK's transport, an exception is the end of all of them."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        sent = current_request.get()
        try:
            async with asyncio.timeout(_GOODBYE_S if request.method == "DELETE" else None):
                response = await super().send(request, **options)
            await _limit(response)
        except (httpx2.RequestError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            _log.debug("%s to %s failed: %s", request.method, request.url.host, reason)
            if sent is not None:
                sent.unreachable = reason
            return httpx2.Response(_UNREACHABLE, request=request)
        if sent is not None:
            sent.status = response.status_code
            sent.session_lost = await _is_without_session(response)
        return response


class _Limited(httpx2.AsyncByteStream):
    """A body of an answer, up to the size that a message may have."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size_bytes = 0
        async for piece in self._body:
            size_bytes += len(piece)
            if size_bytes > _MESSAGE_BYTES_MAX:
                raise httpx2.StreamError(f"the answer has more than {_MESSAGE_BYTES_MAX >> 20} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


async def _limit(response: httpx2.Response) -> None:
    """
    Raises:
        DecodingError: it is packed, which nobody asked for.
    """
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        await response.aclose()
        raise httpx2.DecodingError("its answer is packed, which nobody asked for", request=response.request)
    is_stream = response.headers.get("Content-Type", "").lower().startswith(_EVENTS)
    if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Limited(response.stream)


async def _is_without_session(response: httpx2.Response) -> bool:
    """Whether the server knows nothing of our session: 404 by MCP, and with many it is 400 and a word about it."""
    if MCP_SESSION_ID not in response.request.headers:
        return False
    if response.status_code == HTTPStatus.BAD_REQUEST:
        with suppress(httpx2.StreamError):
            return b"session" in (await response.aread())[:_LOOKED_AT_BYTES].lower()
    return response.status_code == HTTPStatus.NOT_FOUND
