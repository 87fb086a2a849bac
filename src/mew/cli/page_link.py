"""A link that signs somebody in on the page of a gateway, once (decision 0012)."""

import asyncio
from typing import Any, Final

import aiohttp
from yarl import URL

from mew.client.errors import ConnectError
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .errors import CommandError
from .http_body import body_of

__all__ = ["page_link"]

_ANSWER_S: Final = 10.0
_BYTES_MAX: Final = 1 << 20
_SCHEMES: Final = {"ws": "http", "wss": "https"}
_OLDER: Final = "this gateway gives no links: it is of another make, or older; paste your token into its page"


async def page_link(url: str, space: str | None, token: str) -> str:
    """Ask the gateway for a link; `space` may be left out where the token opens only one.

    It works once, for ten minutes. What signs in with it is behind the `#`, which browsers send to nobody.

    Raises:
        ConnectError: it cannot be reached, or does not take the token.
        CommandError: it gives no link for this token, or it must be said which space is meant.
    """
    page = _page(url)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token.strip()}"}) as session:
        named = space or await _only_space(session, page)
        made = await _ask(session, "POST", page / "spaces" / named / "links")
    code = made.get("code")
    if not isinstance(code, str):
        raise CommandError(_OLDER)
    public = made.get("page")
    return str((_page(public) if isinstance(public, str) else page).with_fragment(f"link={code}"))


def _page(url: str) -> URL:
    given = URL(url)
    return given.with_scheme(_SCHEMES.get(given.scheme, given.scheme)).with_path("/").with_query(None)


async def _only_space(session: aiohttp.ClientSession, page: URL) -> str:
    listed = (await _ask(session, "GET", page / "spaces")).get("spaces", ())
    names = [str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one]
    if len(names) != 1:
        raise CommandError(f"there are the spaces {', '.join(names)}; choose one with --space")
    return names[0]


async def _ask(session: aiohttp.ClientSession, method: str, where: URL) -> dict[str, Any]:
    try:
        async with (
            asyncio.timeout(_ANSWER_S),
            session.request(method, where, allow_redirects=False) as answer,
        ):
            status, said = answer.status, _object(await body_of(answer, _BYTES_MAX))
    except TimeoutError:
        message = f"{where.origin()} did not answer within {_ANSWER_S:g} s"
        raise ConnectError(message, come_back=True) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ConnectError(f"{where.origin()} cannot be reached: {error}", come_back=True) from None
    if status == 200:
        return said
    detail = said.get("detail")
    if not isinstance(detail, str) or said.get("error") in ("not_found", "method_not_allowed"):
        raise CommandError(_OLDER)
    if status in (401, 429, 503):
        raise ConnectError(detail, come_back=status != 401, status=status)
    raise CommandError(detail)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = decode_json(body)
    except ProtocolError:
        return {}
    return found if isinstance(found, dict) else {}
