"""The HTTP door of a gateway (§5.3), as it is: with the space in the URL or without, its list wherever it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp

from .connection import ScriptedClient
from .context import CheckContext
from .match import moment
from .outcome import NotOffered, Violation
from .roles import SPARES, Role

__all__ = ["MessagesApi", "open_messages_api"]


_NOT_THERE: Final = (404, 405, 410, 426, 501)
_ANSWER_BYTES_MAX: Final = 16 << 20
_MARGIN: Final = timedelta(seconds=2)  # the `Date` of a response is in whole seconds


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What the gateway answered; `json` is None where it is none."""

    status: int
    headers: Mapping[str, str]
    text: str
    json: Any

    @property
    def is_accepted(self) -> bool:
        return self.status in range(200, 300)

    @property
    def is_refused(self) -> bool:
        return self.status in range(400, 600)


@dataclass(frozen=True, slots=True)
class MessagesApi:
    """Where envelopes go in and out. `query`: what names the space in the URL, where it must be named."""

    ctx: CheckContext
    query: Mapping[str, str]

    async def ask(
        self,
        method: str,
        who: str,
        role: Role | None,
        *,
        body: Any = None,
        raw: bytes | None = None,
        since: datetime | None = None,
    ) -> HttpAnswer:
        """Ask, with the token of a role.

        Raises:
            NotOffered: the kit was told of no HTTP API.
            Violation: it could not be reached.
        """
        if self.ctx.config.http is None:
            raise NotOffered("no HTTP API is configured")
        query = dict(self.query) if since is None else {"since": since.isoformat(), **self.query}
        path = f"/participants/{quote(who, safe='')}/messages{'?' if query else ''}{urlencode(query)}"
        headers = {"Content-Type": "application/json"} if body is not None or raw is not None else {}
        if role is not None:
            headers["Authorization"] = f"Bearer {role.token}"
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        asker, transcript = "nobody" if role is None else role.name, self.ctx.transcript
        transcript.sent(asker, f"{method} {path} {(content or b'').decode(errors='replace')}".rstrip())
        try:
            async with self.ctx.session.request(
                method, f"{self.ctx.config.http}{path}", headers=headers, data=content, allow_redirects=False
            ) as response:
                text = (await _start_of(response)).decode(errors="replace")
                answer = HttpAnswer(response.status, dict(response.headers), text, _json(text))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Violation(
                f"{method} {path} could not be asked: {str(error) or type(error).__name__}"
            ) from error
        transcript.received(asker, f"HTTP {answer.status} {text}")
        return answer

    async def post(self, client: ScriptedClient, body: Any) -> HttpAnswer:
        return await self.ask("POST", client.id, client.role, body=body)

    async def fetched(self, client: ScriptedClient, since: datetime) -> list[dict[str, Any]]:
        """What a participant gets that was sent since then.

        Raises:
            Violation: no list of envelopes.
        """
        answer = await self.ask("GET", client.id, client.role, since=since)
        found = _list_in(answer.json)
        if not answer.is_accepted or found is None:
            raise Violation(
                f"GET /participants/{client.id}/messages?since=… got {answer.status} and no list of envelopes "
                f"(§5.3): {answer.text[:200]!r}"
            )
        return found

    async def now(self, client: ScriptedClient) -> datetime:
        """The gateway's time before anything that is sent from here on: by a receipt, a welcome, or an HTTP `Date`."""
        answer = await self.post(client, {"kind": "chat", "payload": {"text": "what time is it?"}})
        at = moment(answer.json.get("timestamp")) if isinstance(answer.json, dict) else None
        if at is None and SPARES[0] in self.ctx.config.roles:
            at = moment((await self.ctx.client(SPARES[0])).welcome.get("ts"))
        if at is not None:
            return at
        told = next((value for name, value in answer.headers.items() if name.lower() == "date"), None)
        return (datetime.now(UTC) if told is None else parsedate_to_datetime(told)) - _MARGIN


async def open_messages_api(ctx: CheckContext, *, polling: bool = False) -> MessagesApi:
    """The door, if there is one for this.

    Raises:
        NotOffered: there is none.
        Violation: there is one, and it does not take what it must.
    """
    owner = await ctx.client("owner")
    method, body = ("GET", None) if polling else ("POST", {"kind": "chat", "payload": {"text": "by HTTP"}})
    statuses = []
    for query in ({}, {"space": ctx.config.space}):
        api = MessagesApi(ctx, query)
        answer = await api.ask(method, owner.id, owner.role, body=body)
        if answer.is_accepted:
            return api
        statuses.append(answer.status)
    if any(status in _NOT_THERE for status in statuses):
        raise NotOffered(
            f"{method} {ctx.config.http}/participants/{{participant_id}}/messages gets {statuses[-1]}: there is no "
            "such HTTP API, or `http` in the config points at another web server"
        )
    raise Violation(f"{method} /participants/{owner.id}/messages of the owner got {statuses[-1]} (§5.3)")


async def _start_of(response: aiohttp.ClientResponse) -> bytes:
    read = bytearray()
    async for chunk in response.content.iter_any():
        read += chunk
        if len(read) > _ANSWER_BYTES_MAX:
            break
    return bytes(read)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _list_in(document: Any) -> list[dict[str, Any]] | None:
    """The envelopes in an answer, whose form the document leaves open: a list, or the one list in an object."""
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = next((one for one in lists if one), lists[0] if lists else None)
    return [one for one in document if isinstance(one, dict)] if isinstance(document, list) else None
