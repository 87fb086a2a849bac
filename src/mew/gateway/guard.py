"""Who may come in: token, space and origin of whoever knocks, the same for both doors (§5.1, §5.2)."""

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from mew.protocol.envelope import ParticipantId

from .auth import Authenticator, AuthUnavailable, Identity, StaticTokens, Throttle, TokenSource
from .room import Room
from .sessions import Sessions
from .settings import ServerConfig
from .tokens import hash_token

__all__ = ["BEARER_SUBPROTOCOL", "Admission", "Denied", "Guard", "token_of"]

BEARER_SUBPROTOCOL: Final = "mew.bearer."
_RIGHT_MAX: Final = 4096
_NO_TOKEN: Final = (
    "a bearer token is needed: 'Authorization: Bearer TOKEN', or in a browser the subprotocols"
    " 'mew.v0.4' and 'mew.bearer.TOKEN'; to join by a first frame leave 'space' out of the URL"
)


@dataclass(frozen=True, slots=True)
class Admission:
    """A participant at the door of a room."""

    room: Room
    who: ParticipantId


class Denied(Exception):
    """Not let in: an HTTP status, a stable code and a sentence."""

    def __init__(self, status: int, code: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class Guard:
    """Decides who gets into which room."""

    def __init__(
        self,
        rooms: Mapping[str, Room],
        authenticator: Authenticator,
        server: ServerConfig,
        *,
        configured: StaticTokens,
        sessions: Sessions,
    ) -> None:
        """`sessions` stand for tokens of invitations, or for those that are `configured`."""
        self._rooms = rooms
        self._throttle = Throttle()
        self._right: dict[str, None] = {}  # hashes of tokens that were right, the last used last
        self.sessions = sessions
        self.configured = configured
        self.authenticator = authenticator
        self.server = server

    def room(self, name: str | None) -> Room:
        """The room of this name; of none where there is only one.

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
        """Let the holder of a token in.

        Raises:
            Denied: no or an unknown token, kicked, no such space, or it cannot be checked now.
        """
        token = self._worth_checking(request, token)
        room = self.room(space)
        admission = await self._identify(room, token)
        if admission is None:
            raise await self.failed(request, "bad_token", f"this token is not one of space {room.id!r}")
        self._remember(token)
        return admission

    async def admit_anywhere(self, request: web.BaseRequest, token: str | None) -> list[Admission]:
        """Where the holder of a token may go: at least one room.

        Raises:
            Denied: no token, one that opens no room, or it cannot be checked now.
        """
        token = self._worth_checking(request, token)
        admissions: list[Admission] = []
        for room in tuple(self._rooms.values()):
            try:
                admission = await self._identify(room, token)
            except Denied as denied:
                if denied.status != 403:
                    raise
            else:
                admissions += [] if admission is None else [admission]
        if not admissions:
            raise await self.failed(request, "bad_token", "this token opens no space here")
        self._remember(token)
        return admissions

    def lasting(self, room: Room, digest: str) -> ParticipantId | None:
        """Who holds the token with this hash, if it was configured or made for an invitation, and is good.

        Raises:
            Denied: its holder was removed.
        """
        return room.space.invited(digest) or self._allowed(
            room, digest, self.configured.identify_hash(digest, room.id)
        )

    def check_origin(self, request: web.BaseRequest) -> None:
        """Browsers say which page they act for; only our own and those the operator allows may.

        Raises:
            Denied: another page, or one without an origin.
        """
        origin = request.headers.get("Origin")
        if origin is None or origin in self.server.allowed_origins:
            return
        if self._is_own(origin, request):
            return
        raise Denied(403, "origin_refused", f"origin {origin[:128]!r} is not in 'allowed_origins'")

    def address(self, request: web.BaseRequest) -> str:
        """Where a request comes from, as far as proxies that we trust tell."""
        address = request.remote or ""
        forwarded = request.headers.get("X-Forwarded-For", "")
        for hop in reversed([hop.strip() for hop in forwarded.split(",") if hop.strip()]):
            if not self._is_trusted(address):
                break
            address = hop
        return address

    def check_attempts(self, request: web.BaseRequest) -> None:
        """While many wrong tokens or codes from an address wait for their answers, none is looked at.

        Raises:
            Denied: so it is now.
        """
        if self._throttle.is_full(self.address(request)):
            message = "too many wrong tokens came from your address; this one was not looked at"
            raise Denied(429, "too_many_attempts", message, retry_after_s=Throttle.MOST_S)

    async def failed(self, request: web.BaseRequest, code: str, message: str) -> Denied:
        """What to raise for a wrong token or code. It comes ever later; who has a right one does not wait."""
        address = self.address(request)
        delay_s = self._throttle.failed(address, asyncio.get_running_loop().time())
        if delay_s:
            with self._throttle.waiting(address):
                await asyncio.sleep(delay_s)
        return Denied(401, code, message)

    def _worth_checking(self, request: web.BaseRequest, token: str | None) -> str:
        """A token that was right before always is."""
        if not token:
            raise Denied(401, "no_token", _NO_TOKEN)
        if hash_token(token) not in self._right:
            self.check_attempts(request)
        return token

    def _remember(self, token: str) -> None:
        digest = hash_token(token)
        self._right.pop(digest, None)
        self._right[digest] = None
        if len(self._right) > _RIGHT_MAX:
            del self._right[next(iter(self._right))]

    async def _identify(self, room: Room, token: str) -> Admission | None:
        digest = hash_token(token)
        session = self.sessions.find(digest, room.id)
        if session is not None:
            holder = self.lasting(room, session.stands_for)
            return Admission(room, holder) if holder == session.participant else None
        invited = room.space.invited(digest)
        if invited is not None:
            return Admission(room, invited)
        try:
            identity = await self.authenticator.identify(token, room.id)
        except AuthUnavailable as error:
            raise Denied(503, "auth_unavailable", str(error), retry_after_s=5) from None
        who = self._allowed(room, digest, identity)
        return None if who is None else Admission(room, who)

    def _allowed(self, room: Room, digest: str, identity: Identity | None) -> ParticipantId | None:
        who = None if identity is None else identity.participant
        if room.space.is_barred(who or "", digest):
            raise Denied(403, "kicked", "this participant was removed from the space")
        if identity is None:
            return None
        if identity.source is TokenSource.JWT or identity.participant in room.space.state.identities:
            room.identify(identity.participant, identity.capabilities)
        return identity.participant

    def _is_own(self, origin: str, request: web.BaseRequest) -> bool:
        """The page came from this very address. A name that merely points here (DNS rebinding) is not ours."""
        try:
            parts = urlsplit(origin)
        except ValueError:  # brackets without an address
            return False
        if parts.scheme not in ("http", "https") or parts.netloc.lower() != request.host.lower():
            return False
        name = parts.hostname or ""
        public = urlsplit(self.server.public_url or "").hostname
        return name in ("localhost", self.server.host, public) or _is_ip_address(name)

    def _is_trusted(self, address: str) -> bool:
        if not _is_ip_address(address):
            return False
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in self.server.trusted_proxies)


def token_of(request: web.BaseRequest) -> str | None:
    """The bearer token in the `Authorization` header or among the subprotocols; never from the URL."""
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
