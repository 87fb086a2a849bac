"""The transport over WebSocket (§5.2), with aiohttp, and the address of the gateway to use it with."""

import asyncio
import math
import os
import ssl
from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import Final, Literal, NamedTuple

import aiohttp
import msgspec
from aiohttp import WSMsgType
from aiohttp.http import WSMessageTextBytes
from msgspec import Struct
from yarl import URL

from mew.client.errors import ConnectError
from mew.protocol.envelope import PROTOCOL, EnvelopeId
from mew.protocol.json import NOT_JSON, encode_json
from mew.protocol.visible import visible

from .transport import LinkClosed, PastPage

__all__ = ["Address", "Via", "WebSocketTransport", "address"]


class Address(NamedTuple):
    """Where to connect, and as whom."""

    url: str
    space: str | None
    token: str | Path | None
    participant: str | None = None


def address(
    url: str | None,
    space: str | None,
    token: str | Path | None,
    participant: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """What was given; without a URL, what is missing comes from `MEW_GATEWAY`, `MEW_SPACE`, `MEW_AS`, and
    `MEW_TOKEN_FILE` or `MEW_TOKEN`, as `mew up` sets them.

    Raises:
        ValueError: there is no URL, and none in the environment.
    """
    if url is not None:
        return Address(url, space, token, participant)
    there = environ.get("MEW_GATEWAY")
    if not there:
        raise ValueError("no URL was given, and MEW_GATEWAY is not set: give one, or start it with 'mew up'")
    if token is None:
        file = environ.get("MEW_TOKEN_FILE")
        token = Path(file) if file else environ.get("MEW_TOKEN")
    return Address(there, space or environ.get("MEW_SPACE"), token, participant or environ.get("MEW_AS"))


SUBPROTOCOL: Final = "mew.v0.4"
_MESSAGE_BYTES_MAX: Final = 64 << 20
_CONNECT_S: Final = 10.0
_CLOSE_S: Final = 2.0
_JOIN_AFTER_S: Final = 2.0  # a gateway that says nothing for that long waits for a join
_ALIVE_S: Final = 30.0
_SCHEMES: Final = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_HTTP: Final = {"ws": "http", "wss": "https"}
_PAGE_S: Final = 30.0
_PATIENCE_S: Final = 30.0  # with a gateway that says: not now
_RETRY_S: Final = 1.0
_RETRY_LEAST_S: Final = 0.1
_RETRY_MOST_S: Final = 3600.0
_COME_BACK_STATUSES: Final = frozenset({408, 425, 429})
_ABNORMAL: Final = 1006


class Via(Enum):
    """How the token travels: with the handshake as a header or a subprotocol, or in the first frame.

    A gateway that does not answer a token in a header is sent a join as well: others than ours wait for that.
    """

    HEADER = "header"
    SUBPROTOCOL = "subprotocol"
    FIRST_FRAME = "first frame"


class WebSocketTransport:
    """Connections to `url`, for whom `token` is; a `Path` is a file that holds it, read for each connection."""

    def __init__(
        self,
        url: str,
        *,
        space: str | None = None,
        token: str | Path | None = None,
        participant: str | None = None,
        via: Via = Via.HEADER,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Connects to nothing yet. `participant` is for gateways that do not know it by the token.

        Raises:
            ValueError: the URL is not one of a gateway, or has a token in it.
        """
        self._url = _address(url)
        named = self._url.query.get("space")
        if None not in (space, named) and space != named:
            raise ValueError(f"the URL says space {named!r}, and space= says {space!r}")
        self.space = named if space is None else space
        self._token = token
        self._participant = participant
        self._via = via
        self._tls = tls
        self._http: aiohttp.ClientSession | None = None

    async def open(self, after: EnvelopeId | None) -> "WebSocketLink":
        try:
            async with asyncio.timeout(_CONNECT_S):
                socket = await self._connect(self._session(), after)
            first = await self._first(socket) if self._via is Via.HEADER else None
            if self._via is Via.FIRST_FRAME:
                await socket.send_str(self._join())
        except aiohttp.WSServerHandshakeError as error:
            raise self._denied(error.status) from None
        except TimeoutError:
            raise ConnectError(
                f"{self._where} did not answer within {_CONNECT_S:g} s", come_back=True
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectError(f"{self._where} cannot be reached: {error}", come_back=True) from None
        return WebSocketLink(socket, knows_ids=self._via is not Via.FIRST_FRAME, first=first)

    async def _first(
        self, socket: aiohttp.ClientWebSocketResponse[Literal[False]]
    ) -> aiohttp.WSMessage | WSMessageTextBytes | None:
        """The first message, which is the welcome; None if the gateway waits for a join, as it will from now on."""
        try:
            async with asyncio.timeout(_JOIN_AFTER_S):
                return await socket.receive()
        except TimeoutError:
            self._via = Via.FIRST_FRAME
            return None

    def _join(self) -> str:
        said = {
            "type": "join",
            "protocol": PROTOCOL,
            "space": self.space,
            "token": self._secret(),
            "participantId": self._participant,
        }
        return encode_json({name: value for name, value in said.items() if value is not None}).decode()

    async def page(self, query: Mapping[str, str], space: str = "") -> PastPage:
        """Over HTTP, at the same host and with the same token; how that travels is the same for every `via`."""
        named = space or self.space
        if named is None:
            raise ConnectError("which space? give it as space=", come_back=False, status=400)
        folder = self._url.path.removesuffix("/ws") if self._url.path.endswith("/ws") else ""
        where = self._url.with_scheme(_HTTP[self._url.scheme]).with_path(f"{folder}/spaces/{named}/envelopes")
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _PATIENCE_S
        while True:
            status, answer, retry_s = await self._get(where.with_query(query))
            if status == 200:
                return self._read(answer)
            if status == HTTPStatus.NOT_FOUND and not _detail(answer):
                said = f"{self._where}: this gateway has no history (GET /spaces/SPACE/envelopes)"
                raise ConnectError(said, come_back=False, status=status)
            if retry_s is None or loop.time() + retry_s > deadline_s:
                raise self._denied(status, _detail(answer))
            await asyncio.sleep(retry_s)

    async def _get(self, where: URL) -> tuple[int, bytes, float | None]:
        """The status, the body, and when to ask again, where that may help."""
        secret = self._secret()
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        asking = self._session().get(
            where, headers=headers, ssl=True if self._tls is None else self._tls, allow_redirects=False
        )
        try:
            async with asyncio.timeout(_PAGE_S), asking as answer:
                again = _COME_BACK_STATUSES | {503}
                retry_s = _retry_s(answer.headers) if answer.status in again else None
                return answer.status, await answer.read(), retry_s
        except TimeoutError:
            raise ConnectError(f"{self._where} did not answer within {_PAGE_S:g} s", come_back=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectError(f"{self._where} cannot be reached: {error}", come_back=True) from error

    def _read(self, answer: bytes) -> PastPage:
        try:
            return msgspec.json.decode(answer, type=PastPage)
        except NOT_JSON as error:
            said = f"{self._where}: not a page of what was shown: {error}"
            raise ConnectError(said, come_back=False, status=200) from error

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession()
        return self._http

    async def _connect(
        self, http: aiohttp.ClientSession, after: EnvelopeId | None
    ) -> aiohttp.ClientWebSocketResponse[Literal[False]]:
        query, headers, protocols = dict(self._url.query), {}, [SUBPROTOCOL]
        query.pop("space", None)
        if self._via is not Via.FIRST_FRAME:
            if self.space is not None:
                query["space"] = self.space
            if after is not None:
                query["after"] = after
            secret = self._secret()
            if secret is not None and self._via is Via.HEADER:
                headers["Authorization"] = f"Bearer {secret}"
            elif secret is not None:
                protocols.append(f"mew.bearer.{secret}")
        return await http.ws_connect(
            self._url.with_query(query),
            headers=headers,
            protocols=protocols,
            ssl=True if self._tls is None else self._tls,
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
            heartbeat=_ALIVE_S,
            max_msg_size=_MESSAGE_BYTES_MAX,
            compress=0,
            decode_text=False,
        )

    def _secret(self) -> str | None:
        if not isinstance(self._token, Path):
            return None if self._token is None else self._token.strip()
        try:
            return self._token.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConnectError(
                f"no token: {self._token} cannot be read: {error.strerror}", come_back=False
            ) from None

    def _unknown_token(self) -> str:
        if not self._secret():
            return "no token was given"
        if isinstance(self._token, str) and ("/" in self._token or self._token.endswith(".token")):
            return "the gateway does not know this token; if it is the name of a file, give it as a Path"
        return "the gateway does not know this token"

    @property
    def _where(self) -> str:
        return str(self._url.with_query(None))

    def _denied(self, status: int, detail: str = "") -> ConnectError:
        """In the gateway's words, or those of what the statuses mean here (design §3.4) where there is no body."""
        said = {
            401: self._unknown_token(),
            403: "not let in: kicked from the space, or a foreign origin",
            404: "no gateway, or no such space" if self.space is None else f"no space {self.space!r} there",
            429: "too many connections or attempts",
            503: "the gateway or the space takes nobody now",
        }.get(status, f"the gateway answered with HTTP status {status}")
        if detail and status != 401:
            said = detail
        come_back = status in _COME_BACK_STATUSES or status >= 500
        return ConnectError(f"{self._where}: {said}", come_back=come_back, status=status)


class _Problem(Struct, frozen=True):
    detail: str = ""


class WebSocketLink:
    """One WebSocket."""

    def __init__(
        self,
        socket: aiohttp.ClientWebSocketResponse[Literal[False]],
        *,
        knows_ids: bool,
        first: aiohttp.WSMessage | WSMessageTextBytes | None = None,
    ) -> None:
        """`first` was received already."""
        self.knows_ids = knows_ids
        self._socket = socket
        self._received_first = first

    async def receive(self) -> bytes:
        first, self._received_first = self._received_first, None
        message = await self._socket.receive() if first is None else first
        if message.type is WSMsgType.TEXT or message.type is WSMsgType.BINARY:
            received: bytes = message.data
            return received
        raise self._ended(message.data, message.extra)

    async def send(self, message: bytes, *, text: bool = True) -> None:
        try:
            await self._socket.send_frame(message, WSMsgType.TEXT if text else WSMsgType.BINARY)
        except (ConnectionError, aiohttp.ClientError, RuntimeError) as error:
            raise LinkClosed(_ABNORMAL, str(error)) from error

    async def close(self) -> None:
        await self._socket.close()

    def _ended(self, said: object, reason: object) -> LinkClosed:
        if isinstance(
            said, Exception
        ):  # ours, not the gateway's: a code of it would be no word of the gateway
            return LinkClosed(_ABNORMAL, str(said))
        code = self._socket.close_code or _ABNORMAL
        why = reason if isinstance(reason, str) else ""
        return LinkClosed(code, why, come_back=not 4500 <= code < 5000)


def _retry_s(headers: Mapping[str, str]) -> float:
    """Never at once, and not for ever, whatever the other side says."""
    try:
        wait_s = float(headers.get("Retry-After", _RETRY_S))
    except ValueError:  # a date
        return _RETRY_S
    return min(max(wait_s, _RETRY_LEAST_S), _RETRY_MOST_S) if math.isfinite(wait_s) else _RETRY_S


def _detail(answer: bytes) -> str:
    """What a problem (RFC 9457) says for people; nothing where it is none."""
    try:
        return visible(msgspec.json.decode(answer, type=_Problem).detail)
    except NOT_JSON:
        return ""


def _address(url: str) -> URL:
    try:
        found = URL(url)
        scheme = _SCHEMES.get(found.scheme)
    except ValueError as error:
        raise ValueError(f"not the URL of a gateway: {error}") from None
    if scheme is None or not found.host:
        raise ValueError("not the URL of a gateway: it looks like ws://host:8080 or wss://host")
    if found.user or found.password or {"token", "access_token"} & set(found.query):
        raise ValueError("a token does not belong in a URL: give it as token=")
    return (
        found.with_scheme(scheme).with_path("/ws") if found.path in ("", "/") else found.with_scheme(scheme)
    )
