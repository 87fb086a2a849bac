"""Access control for WebSocket and HTTP: token, space and origin of a request (§5.1, §5.2)."""

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from mew.gateway.config.settings import ServerConfig
from mew.gateway.room.rate_limit import RateLimiters
from mew.gateway.room.room import Room
from mew.protocol.envelope import ParticipantId

from .authenticator import (
    Authenticator,
    AuthUnavailable,
    Claims,
    Identity,
    StaticTokens,
    Throttle,
    TokenSource,
    network_of,
)
from .sessions import PageSessions
from .tokens import hash_token

__all__ = ["BEARER_SUBPROTOCOL", "AccessGuard", "Admission", "Denied", "token_of"]

BEARER_SUBPROTOCOL: Final = "mew.bearer."
_VERIFIED_MAX: Final = 4096
_SIGNATURES_PER_S: Final = 20  # that turn out wrong, for each address
_SIGNATURES_BURST: Final = 100
_NO_TOKEN: Final = (
    "send a bearer token: 'Authorization: Bearer TOKEN', or in a browser the subprotocols"
    " 'mew.v0.4' and 'mew.bearer.TOKEN'; to join by a first frame leave 'space' out of the URL"
)


@dataclass(frozen=True, slots=True)
class Admission:
    """An authenticated participant and the room it may enter."""

    room: Room
    who: ParticipantId


class Denied(Exception):
    """Access denied: an HTTP status, a stable code and a message."""

    def __init__(self, status: int, code: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class AccessGuard:
    """Decide who may enter which room."""

    def __init__(
        self,
        rooms: Mapping[str, Room],
        server: ServerConfig,
        *,
        configured: StaticTokens,
        sessions: PageSessions,
        authenticator: Authenticator | None = None,
    ) -> None:
        """`sessions` are exchanged for invitation tokens or `configured` ones."""
        self._rooms = rooms
        self._throttle = Throttle()
        self._signatures = RateLimiters()
        self._verified: dict[str, None] = {}  # hashes of signed tokens that were valid, the last used last
        self.sessions = sessions
        self.configured = configured
        self.authenticator = authenticator
        self.server = server

    def room(self, name: str | None) -> Room:
        """Return the room of this name; without a name, the only room.

        Raises:
            Denied: there is no such space.
        """
        if name is None and len(self._rooms) == 1:
            return next(iter(self._rooms.values()))
        if name is None:
            raise Denied(
                400, "space_missing", "this gateway serves several spaces; name one with ?space=NAME"
            )
        if name not in self._rooms:
            raise Denied(404, "no_such_space", f"there is no space {name[:64]!r} here")
        return self._rooms[name]

    async def admit(self, request: web.BaseRequest, token: str | None, space: str | None) -> Admission:
        """Authenticate the holder of a token for one space.

        Raises:
            Denied: token missing or unknown, participant kicked, no such space, or verification unavailable.
        """
        token = _required(token)
        room = self.room(space)
        digest = hash_token(token)
        who = self._find(room, digest)
        if who is None and await room.catch_up():  # another node may have invited it just now
            who = self._find(room, digest)
        if who is None and self._is_signed(token):
            claims = await self._verify(request, token, digest)
            who = self._described(room, claims, digest)
        if who is None:
            raise await self.failed(request, "bad_token", f"this token is not one of space {room.id!r}")
        return Admission(room, who)

    async def admit_anywhere(self, request: web.BaseRequest, token: str | None) -> list[Admission]:
        """Return every room the token gives access to, at least one. Verifies a signature once.

        Raises:
            Denied: token missing or valid for no room, or verification unavailable.
        """
        token = _required(token)
        digest = hash_token(token)
        claims = await self._verify(request, token, digest) if self._is_signed(token) else None
        admissions: list[Admission] = []
        for room in tuple(self._rooms.values()):
            try:
                who = self._find(room, digest) or self._described(room, claims, digest)
            except Denied:  # removed from this one
                continue
            if who is not None:
                admissions.append(Admission(room, who))
        if not admissions:
            raise await self.failed(request, "bad_token", "this token opens no space here")
        return admissions

    def lasting(self, room: Room, digest: str) -> ParticipantId | None:
        """Return the holder of a configured or invitation token with this hash.

        Raises:
            Denied: its holder was removed.
        """
        return room.space.invited(digest) or self._allowed(
            room, digest, self.configured.identify(digest, room.id)
        )

    def check_origin(self, request: web.BaseRequest) -> None:
        """Accept requests from our own page and allowed origins only.

        Raises:
            Denied: another origin, or `null`.
        """
        origin = request.headers.get("Origin")
        if origin is None or origin in self.server.allowed_origins:
            return
        if self._is_own(origin, request):
            return
        raise Denied(403, "origin_refused", f"origin {origin[:128]!r} is not in 'allowed_origins'")

    def address(self, request: web.BaseRequest) -> str:
        """The client's address, taken from `X-Forwarded-For` of trusted proxies."""
        address = request.remote or ""
        forwarded = request.headers.get("X-Forwarded-For", "")
        for hop in reversed([hop.strip() for hop in forwarded.split(",") if hop.strip()]):
            if not self._is_trusted(address):
                break
            address = hop
        return address

    async def failed(self, request: web.BaseRequest, code: str, message: str) -> Denied:
        """Return the error for a wrong token or code, after a delay that grows per address.

        The number of delayed answers is bounded; beyond it the answer is 429 at once.
        """
        address = self.address(request)
        delay_s = self._throttle.failed(address, asyncio.get_running_loop().time())
        if delay_s:
            if self._throttle.is_full(address):
                many = "too many wrong tokens came from your address"
                return Denied(429, "too_many_attempts", many, retry_after_s=Throttle.MOST_S)
            with self._throttle.waiting(address):
                await asyncio.sleep(delay_s)
        return Denied(401, code, message)

    def _find(self, room: Room, digest: str) -> ParticipantId | None:
        """Look up a token by its hash: a session, an invitation or a configured token.

        Raises:
            Denied: its holder was removed.
        """
        session = self.sessions.find(digest, room.id)
        if session is None:
            return self.lasting(room, digest)
        holder = self.lasting(room, session.stands_for)
        return holder if holder == session.participant else None

    def _is_signed(self, token: str) -> bool:
        return self.authenticator is not None and self.authenticator.is_candidate(token)

    async def _verify(self, request: web.BaseRequest, token: str, digest: str) -> Claims | None:
        """Verify a signature. Failures are rate-limited per address, because verification is expensive.

        Raises:
            Denied: too many failures from the address, or verification unavailable.
        """
        assert self.authenticator is not None, "nobody to ask"
        limiter = self._signatures.of(
            network_of(self.address(request)), per_second=_SIGNATURES_PER_S, burst=_SIGNATURES_BURST
        )
        is_charged = limiter.take(asyncio.get_running_loop().time())
        if not is_charged and digest not in self._verified:
            message = (
                "too many tokens with a wrong signature came from your address; this one was not checked"
            )
            raise Denied(429, "too_many_attempts", message, retry_after_s=limiter.wait_s)
        try:
            claims = await self.authenticator.verify(token)
        except AuthUnavailable as error:
            raise Denied(503, "auth_unavailable", str(error), retry_after_s=5) from None
        if claims is not None:
            limiter.put_back(is_charged)
            self._verified.pop(digest, None)
            self._verified[digest] = None
            if len(self._verified) > _VERIFIED_MAX:
                del self._verified[next(iter(self._verified))]
        return claims

    def _described(self, room: Room, claims: Claims | None, digest: str) -> ParticipantId | None:
        """Return whom verified claims describe in a room.

        Raises:
            Denied: it was removed.
        """
        if claims is None or self.authenticator is None:
            return None
        return self._allowed(room, digest, self.authenticator.identity(claims, room.id))

    def _allowed(self, room: Room, digest: str, identity: Identity | None) -> ParticipantId | None:
        who = None if identity is None else identity.participant
        if room.space.is_barred(who or "", digest):
            raise Denied(403, "kicked", "this participant was removed from the space")
        if identity is None:
            return None
        if (similar := room.space.similar(identity.participant)) is not None:
            message = f"{identity.participant!r} is easily taken for {similar!r}, who is in the space already"
            raise Denied(403, "similar_id", message)
        if identity.source is TokenSource.JWT or identity.participant in room.space.state.identities:
            room.identify(identity.participant, identity.capabilities)
        return identity.participant

    def _is_own(self, origin: str, request: web.BaseRequest) -> bool:
        """Say whether the page was served by this gateway, at the address it was asked at or at `public_url`.

        A proxy may put its own address in `Host`. A foreign name that resolves here (DNS rebinding) is not ours.
        """
        try:
            parts = urlsplit(origin)
        except ValueError:  # brackets without an address
            return False
        public = urlsplit(self.server.public_url or "")
        if public.netloc and (parts.scheme, parts.netloc.lower()) == (public.scheme, public.netloc.lower()):
            return True
        if parts.scheme not in ("http", "https") or parts.netloc.lower() != request.host.lower():
            return False
        name = parts.hostname or ""
        return name in ("localhost", self.server.host, public.hostname) or _is_ip_address(name)

    def _is_trusted(self, address: str) -> bool:
        if not _is_ip_address(address):
            return False
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in self.server.trusted_proxies)


def _required(token: str | None) -> str:
    if not token:
        raise Denied(401, "no_token", _NO_TOKEN)
    return token


def token_of(request: web.BaseRequest) -> str | None:
    """Read the bearer token from the `Authorization` header or the subprotocols, never from the URL."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for offered in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if offered.strip().startswith(BEARER_SUBPROTOCOL):
            return offered.strip().removeprefix(BEARER_SUBPROTOCOL)
    return None


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
