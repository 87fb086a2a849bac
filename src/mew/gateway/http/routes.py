"""PURE. What there is to ask over HTTP. The door binds a handler to each; the OpenAPI document lists the same."""

from typing import Final

from . import schemas as shapes
from .openapi import ApiRoute

__all__ = [
    "END_SESSION",
    "ENVELOPES",
    "HEALTH",
    "INDEX",
    "MAKE_LINK",
    "MESSAGES",
    "METRICS",
    "OPENAPI",
    "OPEN_SESSION",
    "PARTICIPANTS",
    "POST_MESSAGE",
    "PROPOSALS",
    "READY",
    "SOCKET",
    "SPACES",
]

_ASKING: Final = (400, 401, 403, 404, 429, 503)

POST_MESSAGE: Final = ApiRoute(
    "POST",
    "/participants/{participant}/messages",
    "sendEnvelope",
    "Send an envelope, as over WebSocket (§5.3). Its answer comes once it stands in the order of the space.",
    shapes.Receipt,
    problems=(400, 401, 403, 404, 408, 409, 413, 429, 503),
    query=shapes.SpaceQuery,
    takes_envelope=True,
)
MESSAGES: Final = ApiRoute(
    "GET",
    "/participants/{participant}/messages",
    "readEnvelopes",
    "The envelopes that this participant may see, oldest first; waits for new ones with `wait_s`.",
    shapes.MessagesPage,
    problems=_ASKING,
    query=shapes.MessagesQuery,
)
SPACES: Final = ApiRoute(
    "GET",
    "/spaces",
    "listSpaces",
    "The spaces that this token opens.",
    shapes.SpacesPage,
    (400, 401, 403, 429, 503),
)
ENVELOPES: Final = ApiRoute(
    "GET",
    "/spaces/{space}/envelopes",
    "searchEnvelopes",
    "The history of a space, as far as it is kept and one may see it.",
    shapes.EnvelopesPage,
    problems=_ASKING,
    query=shapes.EnvelopesQuery,
)
PARTICIPANTS: Final = ApiRoute(
    "GET",
    "/spaces/{space}/participants",
    "listParticipants",
    "Everyone who belongs to a space, connected or not.",
    shapes.ParticipantsPage,
    problems=_ASKING,
)
PROPOSALS: Final = ApiRoute(
    "GET",
    "/spaces/{space}/proposals",
    "listProposals",
    "The proposals in the history of a space and what became of them, oldest first.",
    shapes.ProposalsPage,
    problems=_ASKING,
    query=shapes.ProposalsQuery,
)
MAKE_LINK: Final = ApiRoute(
    "POST",
    "/spaces/{space}/links",
    "makeLink",
    "A code that signs one in on the page, once and not for long. Not with a JWT or the token of a session.",
    shapes.LinkMade,
    problems=_ASKING,
    query=shapes.LinkQuery,
)
OPEN_SESSION: Final = ApiRoute(
    "POST",
    "/sessions",
    "openSession",
    "Exchange the code of a link for a token.",
    shapes.SessionOpened,
    problems=(400, 401, 403, 408, 413, 429, 503),
    takes=shapes.LinkCode,
    is_open=True,
)
END_SESSION: Final = ApiRoute(
    "POST",
    "/sessions/end",
    "endSession",
    "Make the token of a session, which this is asked with, worthless.",
    shapes.SessionEnded,
    problems=(400, 401, 403, 429, 503),
)
HEALTH: Final = ApiRoute(
    "GET", "/health", "health", "Whether the gateway runs at all.", shapes.Health, is_open=True
)
READY: Final = ApiRoute(
    "GET",
    "/ready",
    "ready",
    "Whether every space is served; not while one has failed or the gateway stops.",
    shapes.Ready,
    (503,),
    is_open=True,
)
METRICS: Final = ApiRoute("GET", "/metrics", "metrics", "Metrics for Prometheus.", "text/plain", is_open=True)
OPENAPI: Final = ApiRoute(
    "GET", "/openapi.json", "openapi", "This document.", "application/json", is_open=True
)
SOCKET: Final = ApiRoute(
    "GET",
    "/ws",
    "connect",
    "A WebSocket, with `space` and perhaps `after` (§5.2). Without an upgrade there is nothing here.",
    "text/plain",
    problems=(426,),
    is_open=True,
)
INDEX: Final = ApiRoute("GET", "/", "index", "What this is and where to go on.", "text/plain", is_open=True)
