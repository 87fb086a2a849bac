"""Signing in on the page: who holds a token asks for a link, and the page exchanges it for a token of its own."""

from collections.abc import Callable
from datetime import datetime, timedelta

from aiohttp import web

from .guard import AccessGuard, Admission, Denied
from .sessions import PageSession, SignInLink, SignInLinks
from .tokens import hash_token

__all__ = ["SignIn"]


class SignIn:
    """Codes of links, and what they are exchanged for."""

    def __init__(self, guard: AccessGuard, now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._links = SignInLinks(now)

    def make_link(self, admission: Admission, token: str, lifetime: timedelta) -> tuple[str, SignInLink]:
        """A code for who was admitted with this token, good for so long.

        Raises:
            Denied: the token is one that nothing could stand for: a JWT, which ends by itself, or that of a session.
        """
        digest = hash_token(token)
        if self._guard.lasting(admission.room, digest) != admission.who:
            message = "links are for tokens of the space.yaml and of invitations, not for a JWT or a session"
            raise Denied(403, "link_refused", message)
        return self._links.make(admission.room.id, admission.who, digest, lifetime)

    async def exchange(self, request: web.BaseRequest, code: str) -> tuple[str, PageSession]:
        """The token for a code, which is used up.

        Raises:
            Denied: the code was used before, is too old or never was one, or who asked for it is out.
        """
        link = self._links.take(code)
        if link is None or not self._is_good(link):
            message = "this link was used before, is too old, or never was one; ask for another"
            raise await self._guard.failed(request, "bad_link", message)
        return await self._guard.sessions.open(link)

    async def end(self, request: web.BaseRequest, token: str | None) -> None:
        """Make the token of a session worthless.

        Raises:
            Denied: it is none.
        """
        if token is not None and await self._guard.sessions.end(hash_token(token)):
            return
        await self._guard.admit_anywhere(request, token)
        raise Denied(403, "not_a_session", "this token is not one that a link was exchanged for")

    def _is_good(self, link: SignInLink) -> bool:
        try:
            holder = self._guard.lasting(self._guard.room(link.space), link.stands_for)
        except Denied:
            return False
        return holder == link.participant
