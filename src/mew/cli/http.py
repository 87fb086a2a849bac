"""What a gateway tells over HTTP, to who has a token."""

import asyncio
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from mew.client.client import Client
from mew.client.errors import ConnectError
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .http_body import body_of
from .locate.login import Login

__all__ = ["Answer", "ask_gateway", "members", "secret"]

_ANSWER_S: Final = 10.0
_BYTES_MAX: Final = 16 << 20
_HTTP: Final = {"ws": "http", "wss": "https"}


class Answer(NamedTuple):
    """What came: the status, the headers, and the body read as JSON; None where it is none."""

    status: int
    headers: dict[str, str]
    body: Any


class _Paused(Struct, frozen=True):
    by: str
    until: datetime | None = None


class _Member(Struct, frozen=True):
    id: str
    connected: bool
    capabilities: list[dict[str, Any]]
    paused: _Paused | None = None
    shut_down: bool = False


class _Participants(Struct, frozen=True):
    """As `GET /spaces/{space}/participants` has it; more may be there."""

    participants: list[_Member]


async def ask_gateway(login: Login, path: str, *, with_token: bool = True) -> Answer:
    """GET a path of the gateway.

    Raises:
        ConnectError: it cannot be reached, or there is no token to show.
    """
    url = URL(login.url)
    where = url.with_scheme(_HTTP.get(url.scheme, url.scheme)).with_path(path).with_query(None)
    headers = {"Authorization": f"Bearer {secret(login)}"} if with_token else {}
    try:
        async with (
            asyncio.timeout(_ANSWER_S),
            aiohttp.ClientSession() as session,
            session.get(where, headers=headers, allow_redirects=False) as answer,
        ):
            body = await body_of(answer, _BYTES_MAX)
            return Answer(answer.status, dict(answer.headers), _json(body))
    except TimeoutError:
        raise ConnectError(
            f"{where.origin()} did not answer within {_ANSWER_S:g} s", come_back=True
        ) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ConnectError(f"{where.origin()} cannot be reached: {error}", come_back=True) from None


async def members(me: Client, login: Login | None) -> list[dict[str, Any]]:
    """Everyone who belongs to the space, as `GET /spaces/{space}/participants` has it, those here first.

    A gateway of another make may not tell: then it is those who are here.
    """
    if login is not None:
        answer = await ask_gateway(login, f"/spaces/{me.space}/participants")
        if answer.status == 200:
            with suppress(msgspec.ValidationError):
                msgspec.convert(answer.body, _Participants)
                listed: list[dict[str, Any]] = answer.body["participants"]
                return listed
    return [
        {"id": who, "connected": True, "capabilities": [capability.source for capability in held]}
        for who, held in me.participants.items()
    ]


def secret(login: Login) -> str:
    """The token of a login.

    Raises:
        ConnectError: its file cannot be read.
    """
    if isinstance(login.token, str):
        return login.token.strip()
    return _held(login.token)


def _held(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise ConnectError(f"no token: {file} cannot be read", come_back=False) from None


def _json(body: bytes) -> Any:
    try:
        return decode_json(body)
    except ProtocolError:
        return None
