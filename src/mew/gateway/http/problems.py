"""Everything that goes wrong over HTTP leaves in one shape: problem details (RFC 9457) with a stable code."""

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from mew.gateway.auth.guard import Denied
from mew.gateway.room import replies
from mew.journal.port import JournalUnavailable
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.space import RefusalDetails, Space

__all__ = ["HEADERS", "PROBLEM_TYPE", "STATUS", "problem", "problems", "refusal"]

_log = logging.getLogger(__name__)

PROBLEM_TYPE: Final = "application/problem+json"

HEADERS: Final = web.RequestKey("headers", dict[str, str])
"""What a door wants on the response to a request, whatever becomes of it."""

STATUS: Final[Mapping[Refusal, int]] = {
    Refusal.MALFORMED: 400,
    Refusal.WRONG_VERSION: 400,
    Refusal.INVALID_PAYLOAD: 400,
    Refusal.INVALID_CAPABILITY: 400,
    Refusal.WRONG_SENDER: 403,
    Refusal.RESERVED_KIND: 400,
    Refusal.RESERVED_ID: 403,
    Refusal.CAPABILITY_VIOLATION: 403,
    Refusal.GRANT_EXCEEDS_OWN: 403,
    Refusal.NOT_PROPOSER: 403,
    Refusal.NOT_STREAM_OWNER: 403,
    Refusal.UNAUTHORIZED_STREAM_WRITE: 403,
    Refusal.NOT_A_MEMBER: 403,
    Refusal.UNKNOWN_PARTICIPANT: 404,
    Refusal.UNKNOWN_GRANT: 404,
    Refusal.UNKNOWN_STREAM: 404,
    Refusal.DUPLICATE_ID: 409,
    Refusal.ALREADY_EXISTS: 409,
    Refusal.PAUSED: 409,
    Refusal.SHUT_DOWN: 409,
    Refusal.LIMIT_REACHED: 409,
    Refusal.TOO_LARGE: 413,
    Refusal.RATE_LIMITED: 429,
    Refusal.UNAVAILABLE: 503,
}

_RETRY_UNAVAILABLE_S: Final = 5.0


@web.middleware
async def problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn whatever a handler raises into problem details; nothing else is ever told to the outside."""
    try:
        response = await handler(request)
    except Exception as error:
        if isinstance(error, ConnectionError) and _has_hung_up(request):
            return web.Response()  # which nobody gets: what is raised, aiohttp would log as a failure of ours
        if request.writer.output_size:
            raise  # an answer is under way already: the connection can only be closed
        if isinstance(error, Denied):
            where = {"address": request.remote, "path": request.path, "status": error.status}
            _log.info("turned away", extra={**where, "error": error.code})
        response = _of(error)
    if not response.prepared:
        response.headers.update(request.get(HEADERS, {}))
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def problem(
    status: int,
    error: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> web.Response:
    """`error` is a stable code, `detail` a sentence; `retry_after_s` is told in the header too."""
    body = {
        "type": f"urn:mew:error:{error}",
        "title": error.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "error": error,
        **more,
    }
    response = web.Response(body=encode_json(body), status=status, content_type=PROBLEM_TYPE, headers=headers)
    if "retry_after_s" in more:
        response.headers["Retry-After"] = str(max(1, math.ceil(more["retry_after_s"])))
    if status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = 'Bearer realm="mew"'
    return response


def refusal(who: ParticipantId, space: Space, refused: RefusalDetails, kind: str) -> web.Response:
    """A refused envelope: what `system/error` says over WebSocket."""
    said = replies.problem(who, space, refused, kind)
    error, detail = said.pop("error"), said.pop("message")
    return problem(STATUS[refused.refusal], error, detail, **said)


def _has_hung_up(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _of(error: Exception) -> web.Response:
    match error:
        case Denied():
            return problem(error.status, error.code, str(error), **_retry(error.retry_after_s))
        case JournalUnavailable():
            detail = "the space is not available now; an envelope just sent may or may not have been accepted"
            return problem(503, Refusal.UNAVAILABLE, detail, **_retry(_RETRY_UNAVAILABLE_S))
        case web.HTTPException():
            return _of_status(error.status, error.headers)
        case _:
            _log.error("a request failed", exc_info=error)
            return _of_status(500, {})


def _retry(after_s: float | None) -> dict[str, Any]:
    return {} if after_s is None else {"retry_after_s": after_s}


def _of_status(status: int, headers: Mapping[str, str]) -> web.Response:
    known = HTTPStatus(status)
    kept = {name: value for name, value in headers.items() if name.lower() in ("allow", "location")}
    error = known.phrase.lower().replace(" ", "_")
    return problem(status, error, known.description or known.phrase, headers=kept)
