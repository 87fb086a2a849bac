"""The HTTP door (§5.3): envelopes in and out without a connection, and what else one may ask of a gateway."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib.metadata import version
from typing import Final, TypeAlias, TypeVar

from aiohttp import web
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from mew.gateway.auth.guard import AccessGuard, Admission, Denied, token_of
from mew.gateway.auth.sign_in import SignIn
from mew.gateway.auth.tokens import hash_token
from mew.gateway.history.archive import ArchiveBusy
from mew.gateway.history.journal_query import QueryTimeout
from mew.gateway.history.query import HistoryPage, HistoryQuery
from mew.gateway.node import Node
from mew.gateway.room.admission import complete
from mew.gateway.room.rate_limit import RateLimiter, RateLimiters
from mew.gateway.room.room import Room
from mew.page.serving import BuiltPage, wants_page
from mew.protocol.codec import encode
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.json import decode_payload, encode_json
from mew.protocol.kinds import InviteAck, Kind
from mew.space import RefusalDetails

from . import routes
from . import schemas as shapes
from .listings import list_participants, list_proposals
from .metrics import Metrics
from .openapi import ApiRoute, document
from .problems import HEADERS, problem, problems, refusal
from .responses import ResponseBudget

__all__ = ["HttpApi", "problems"]

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Count: TypeAlias = Counter[tuple[str, ParticipantId]]
_Shape = TypeVar("_Shape", bound=Struct)
_Value = TypeVar("_Value")

_BODY_S: Final = 30.0
_CODE_BYTES_MAX: Final = 1024
_LOOKUPS_PER_S: Final = 20
_LOOKUPS_BURST: Final = 100
_PREFLIGHT_S: Final = 600
_INDEX: Final = """\
mew gateway {version}: spaces of the MEW Protocol v0.4

Page       GET / in a browser; 'mew page' prints a link that signs you in
WebSocket  GET /ws?space=NAME with 'Authorization: Bearer TOKEN'
HTTP       POST or GET /participants/ID/messages?space=NAME with the same header
API        GET /openapi.json
"""


class HttpApi:
    """Answers plain HTTP. One table says what there is: it is registered and documented from there."""

    def __init__(self, guard: AccessGuard, node: Node, answers: ResponseBudget) -> None:
        self._guard = guard
        self._node = node
        self._answers = answers
        self._sign_in = SignIn(guard, node.now)
        self._page = BuiltPage.load()
        self._version = version("mew-protocol")
        self._metrics = Metrics(node, self._version, self._polls)
        self._limiters = RateLimiters()
        self._lookups = RateLimiters()  # apart: made-up tokens push nobody's own out
        self._sending: _Count = Counter()
        self._waiting: _Count = Counter()
        self._reading: _Count = Counter()
        self._table: Mapping[ApiRoute, _Handler] = {
            routes.POST_MESSAGE: self._post_message,
            routes.MESSAGES: self._messages,
            routes.SPACES: self._spaces,
            routes.ENVELOPES: self._envelopes,
            routes.PARTICIPANTS: self._participants,
            routes.PROPOSALS: self._proposals,
            routes.MAKE_LINK: self._make_link,
            routes.OPEN_SESSION: self._open_session,
            routes.END_SESSION: self._end_session,
            routes.HEALTH: self._health,
            routes.READY: self._ready,
            routes.METRICS: self._scrape,
            routes.OPENAPI: self._describe,
            routes.SOCKET: self._no_upgrade,
            routes.INDEX: self._index,
        }
        self._document = encode_json(document(self._table, self._version))

    def add_routes(self, router: web.UrlDispatcher) -> None:
        methods: dict[str, list[str]] = {}
        for route, handler in self._table.items():
            methods.setdefault(route.path, ["OPTIONS"]).append(route.method)
            add = router.add_get if route.method == "GET" else router.add_post
            is_harmless = route.is_open and route.method == "GET"
            add(_pattern(route.path), self._opened(handler) if is_harmless else self._guarded(handler))
        for path, allowed in methods.items():
            router.add_options(_pattern(path), self._guarded(_preflight(", ".join(sorted(allowed)))))
        router.add_get(BuiltPage.ASSETS, self._page.asset)

    # At the door.

    def _opened(self, handler: _Handler) -> _Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            request[HEADERS] = self._for_pages(request)
            return await handler(request)

        return handle

    def _guarded(self, handler: _Handler) -> _Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            request[HEADERS] = {"Cache-Control": "no-store", **self._for_pages(request)}
            self._guard.check_origin(request)
            return await handler(request)

        return handle

    def _for_pages(self, request: web.Request) -> dict[str, str]:
        """What lets a page on an origin that the operator allows read the answer (CORS)."""
        origin, allowed = request.headers.get("Origin"), self._guard.server.allowed_origins
        if origin is None or origin not in allowed:
            return {"Vary": "Origin"}
        return {
            "Vary": "Origin",
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "Retry-After",
        }

    async def _own(self, request: web.Request) -> Admission:
        """Only with the token of the very participant the path names."""
        admission = await self._admitted(request, request.query.get("space"))
        named = request.match_info["participant"]
        if admission.who != named:
            raise Denied(
                403, "wrong_participant", f"this token is {admission.who!r}'s, not {named[:128]!r}'s"
            )
        return admission

    async def _in_space(self, request: web.Request) -> Admission:
        return await self._admitted(request, request.match_info["space"])

    async def _admitted(self, request: web.Request, space: str | None) -> Admission:
        """Charged before anything is read or looked up: a question costs as much as an envelope, good or bad."""
        admission = await self._guard.admit(request, token_of(request), space)
        limits = admission.room.limits
        whose = (admission.room.id, admission.who)
        _charge(self._limiters.of(whose, per_second=limits.envelopes_per_second, burst=limits.burst))
        return admission

    def _listing(self, request: web.Request, admission: Admission, page: Struct) -> web.Response:
        """An answer that may be large: it counts until it has left."""
        response = _json(page)
        whose = (admission.room.id, admission.who)
        self._answers.charge(request, whose, response.content_length or 0, admission.room.limits.outbox_bytes)
        return response

    # Envelopes in and out (§5.3).

    async def _post_message(self, request: web.Request) -> web.Response:
        admission = await self._own(request)
        _asked(request, shapes.SpaceQuery)
        room, who = admission.room, admission.who
        budget = room.budget_of(who)
        debt_s = budget.debt_s(asyncio.get_running_loop().time())
        if debt_s:
            raise Denied(429, Refusal.RATE_LIMITED, f"too many bytes; again in {debt_s:.2f} s", debt_s)
        with _one_more(self._sending, admission):
            body = await _body(request, room.limits.envelope_bytes, _BODY_S)
        budget.left -= len(body)
        sent = complete(body, who, new_id=str(uuid.uuid4()), ts=self._node.now())
        outcome = await room.post(who, sent.raw)
        if isinstance(outcome, RefusalDetails):
            return refusal(who, room.space, outcome, sent.kind)
        reply = outcome.reply
        token: str | UnsetType = UNSET
        if reply is not None and reply.kind == Kind.INVITE_ACK:
            token = reply.read(InviteAck).token
        shown = UNSET if reply is None else Raw(encode(reply))
        return _json(shapes.Receipt(outcome.envelope.id, "accepted", outcome.at, shown, token))

    async def _messages(self, request: web.Request) -> web.Response:
        admission = await self._own(request)
        asked = _asked(request, shapes.MessagesQuery)
        query = asked.asked_by(admission.who)
        if query.after is None and query.since is None:  # whoever begins to listen is not told the whole past
            page = admission.room.history.select(query)
            await admission.room.committed()
        else:
            page = await self._select(admission, query)
        if not page.envelopes and not page.more and asked.wait_s:
            came = await self._wait(admission, query, asked.wait_s)
            page = page if came is None else replace(came, complete=page.complete)
        following = page.cursor or _known(query, page)
        return self._listing(request, admission, shapes.MessagesPage(_raw(page), following, page.complete))

    async def _wait(self, admission: Admission, query: HistoryQuery, wait_s: float) -> HistoryPage | None:
        """What comes within this time, as soon as there is something for this participant."""
        room = admission.room
        with _one_more(self._waiting, admission), suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while not (self._node.stopping or room.is_closed):
                    start = room.history.end
                    await room.news()
                    if not room.space.is_known(admission.who):
                        raise Denied(403, "kicked", "this participant was removed from the space")
                    page = room.history.select(query, start=start)
                    if page.envelopes:
                        return page
        return None

    async def _select(self, admission: Admission, query: HistoryQuery) -> HistoryPage:
        """From what is in memory and what is in the journal."""
        room = admission.room
        try:
            if room.archive is None:
                page = room.history.select(query)
            else:
                with _one_more(self._reading, admission):
                    page = await room.archive.select(room.history, room.retention, query)
        except ArchiveBusy:
            message = "too many read what was shown earlier; again in 1 s"
            raise Denied(429, Refusal.RATE_LIMITED, message, retry_after_s=1) from None
        except QueryTimeout:
            message = "it takes too long to find that envelope; go by `next` of a page, or by time"
            raise Denied(503, Refusal.UNAVAILABLE, message, retry_after_s=1) from None
        await room.committed()
        return page

    def _polls(self, room: Room) -> int:
        return sum(count for (space, _), count in self._waiting.items() if space == room.id)

    # A space.

    async def _spaces(self, request: web.Request) -> web.Response:
        token = token_of(request)
        if token is not None:  # it may open any number of spaces, with limits of their own
            _charge(self._lookups.of(hash_token(token), per_second=_LOOKUPS_PER_S, burst=_LOOKUPS_BURST))
        admissions = await self._guard.admit_anywhere(request, token)
        _asked(request, shapes.NoQuery)
        rules = [(admission.room.space.state.rules, admission.who) for admission in admissions]
        return _json(
            shapes.SpacesPage([shapes.ListedSpace(r.id, r.name, r.description, who) for r, who in rules])
        )

    async def _envelopes(self, request: web.Request) -> web.Response:
        admission = await self._in_space(request)
        asked = _asked(request, shapes.EnvelopesQuery)
        try:
            query = asked.asked_by(admission.who)
        except shapes.InvalidQuery as error:
            raise Denied(400, "invalid_query", str(error)) from None
        page = await self._select(admission, query)
        return self._listing(request, admission, shapes.EnvelopesPage(_raw(page), page.next, page.complete))

    async def _participants(self, request: web.Request) -> web.Response:
        admission = await self._in_space(request)
        _asked(request, shapes.NoQuery)
        await admission.room.committed()
        listed = list_participants(admission.room.space, self._node.now())
        return self._listing(request, admission, shapes.ParticipantsPage(listed))

    async def _proposals(self, request: web.Request) -> web.Response:
        admission = await self._in_space(request)
        asked = _asked(request, shapes.ProposalsQuery)
        history = admission.room.history
        listed = list_proposals(
            (record for record in history if record.is_for(admission.who)),
            self._node.now(),
            status=_given(asked.status),
            before=_given(asked.before),
            limit=asked.limit,
        )
        older = listed.proposals[0].id if listed.more else None
        complete = (
            listed.complete
            and history.reaches_back_to(None)
            and not history.has_lost(HistoryQuery(who=admission.who))
        )
        await admission.room.committed()
        return self._listing(request, admission, shapes.ProposalsPage(listed.proposals, older, complete))

    # Signing in on the page.

    async def _make_link(self, request: web.Request) -> web.Response:
        admission = await self._in_space(request)
        lifetime = timedelta(seconds=_asked(request, shapes.LinkQuery).lifetime_s)
        code, link = self._sign_in.make_link(admission, token_of(request) or "", lifetime)
        return _json(shapes.LinkMade(code, link.expires, self._guard.server.public_url))

    async def _open_session(self, request: web.Request) -> web.Response:
        _asked(request, shapes.NoQuery)
        body = Raw(await _body(request, _CODE_BYTES_MAX, self._guard.server.join_timeout_s))
        try:
            asked = decode_payload(body, shapes.LinkCode)
        except ProtocolError as error:
            raise Denied(400, error.refusal, str(error)) from None
        token, session = await self._sign_in.exchange(request, asked.code)
        return _json(shapes.SessionOpened(token, session.space, session.participant, session.expires))

    async def _end_session(self, request: web.Request) -> web.Response:
        _asked(request, shapes.NoQuery)
        await self._sign_in.end(request, token_of(request))
        return _json(shapes.SessionEnded("ended"))

    # The gateway.

    async def _health(self, request: web.Request) -> web.Response:
        return _json(shapes.Health("ok", self._version))

    async def _ready(self, request: web.Request) -> web.Response:
        if self._node.stopping:
            return problem(503, Refusal.UNAVAILABLE, "the gateway is stopping")
        warnings = tuple(self._node.disk.warnings.values())
        if self._node.failed:
            names, reasons = sorted(self._node.failed), sorted(set(self._node.failed.values()))
            detail = f"spaces that have failed: {', '.join(names)} ({'; '.join(reasons)})"
            if not self._node.is_shared or not self._node.failed.keys() < self._node.rooms.keys():
                return problem(503, Refusal.UNAVAILABLE, detail)
            warnings += (detail,)  # one bad space must not take every node from the load balancer
        return _json(shapes.Ready("ready", len(self._node.rooms), warnings))

    async def _scrape(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": Metrics.CONTENT_TYPE}
        return web.Response(body=await self._metrics.exposition(), headers=headers)

    async def _describe(self, request: web.Request) -> web.Response:
        return web.Response(body=self._document, content_type="application/json")

    async def _no_upgrade(self, request: web.Request) -> web.Response:
        raise Denied(
            426, "upgrade_required", "this is a WebSocket; connect with a client that asks for an upgrade"
        )

    async def _index(self, request: web.Request) -> web.Response:
        request[HEADERS]["Vary"] = "Origin, Accept, Accept-Encoding"
        if wants_page(request):
            return self._page.index(request)
        return web.Response(text=_INDEX.format(version=self._version))


def _pattern(path: str) -> str:
    """aiohttp's own pattern of a segment leaves out braces, which a space's id may have."""
    return path.replace("{space}", "{space:[^/]+}")


def _preflight(allowed: str) -> _Handler:
    async def answer(request: web.Request) -> web.Response:
        headers = {
            "Allow": allowed,
            "Access-Control-Allow-Methods": allowed,
            "Access-Control-Allow-Headers": "Authorization, Content-Type",
            "Access-Control-Max-Age": str(_PREFLIGHT_S),
        }
        return web.Response(status=204, headers=headers)

    return answer


def _charge(limiter: RateLimiter) -> None:
    if not limiter.take(asyncio.get_running_loop().time()):
        wait_s = limiter.wait_s
        raise Denied(429, Refusal.RATE_LIMITED, f"too many requests; again in {wait_s:.2f} s", wait_s)


@contextmanager
def _one_more(count: _Count, admission: Admission) -> Iterator[None]:
    """A request that takes its time, within what one participant may have of them."""
    whose = (admission.room.id, admission.who)
    if count[whose] >= admission.room.limits.connections_per_participant:
        message = f"{admission.who!r} has {count[whose]} requests under way"
        raise Denied(429, "too_many_connections", message, retry_after_s=10)
    count[whose] += 1
    try:
        yield
    finally:
        count[whose] -= 1
        if not count[whose]:
            del count[whose]


async def _body(request: web.Request, bytes_max: int, timeout_s: float) -> bytes:
    """The whole body, within these bounds."""
    too_large = Denied(413, Refusal.TOO_LARGE, f"this may have {bytes_max} bytes")
    if (request.content_length or 0) > bytes_max:
        raise too_large
    received = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.content.iter_any():
                received += chunk
                if len(received) > bytes_max:
                    raise too_large
    except TimeoutError:
        raise Denied(408, "request_timeout", f"the body did not come within {timeout_s:g} s") from None
    except (web.RequestPayloadError, ConnectionError) as error:
        request.content.feed_eof()  # or aiohttp would look for the rest of it, and log that it failed again
        raise Denied(400, Refusal.MALFORMED, "the body broke off") from error
    return bytes(received)


def _asked(request: web.Request, shape: type[_Shape]) -> _Shape:
    try:
        return shapes.read_query(request.query, shape)
    except shapes.InvalidQuery as error:
        raise Denied(400, "invalid_query", str(error)) from None


def _given(value: _Value | UnsetType) -> _Value | None:
    return None if isinstance(value, UnsetType) else value


def _raw(page: HistoryPage) -> list[Raw]:
    return [Raw(record.raw) for record in page.envelopes]


def _known(query: HistoryQuery, page: HistoryPage) -> str | None:
    """Where to go on when nothing came: where one was, unless that is gone."""
    return query.after if page.complete else None


def _json(answer: Struct) -> web.Response:
    return web.Response(body=encode_json(answer), content_type="application/json")
