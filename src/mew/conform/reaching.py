"""Before the checks: that a gateway is there, and lets each role in with its token. What is not so is no violation."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import aiohttp

from .cast import DOOMED, BadCast, Cast, Role, http_beside
from .handshake import Refused, Unreachable
from .stage import Stage
from .verdicts import Violation
from .wire import Actor

__all__ = ["reached"]

_UNAUTHORIZED: Final = (401, 403)
_NOT_FOUND: Final = 404
_POLICY: Final = 1008
_OWN_CODES: Final = range(3000, 5000)


async def reached(cast: Cast) -> Cast:
    """The cast as it can be played; without an HTTP API that nobody named and that is not there.

    A gateway that takes a connection and then misbehaves is there: what it does wrong is for the checks to say.

    Raises:
        BadCast: nobody is there, nobody is let in, or a token is wrong.
    """
    async with Stage(cast) as stage:
        closed: dict[str, str] = {}
        for named, role, space in _everybody(cast):
            why = await _refusal(stage, role, space)
            if role.name == "owner" and space is None and why is None and not stage.actors[0].welcome:
                return cast  # it takes connections, and welcomes nobody
            if why is not None and role.name != DOOMED:  # who may have been kicked in an earlier run
                closed[named] = why
        if closed:
            raise BadCast(_told(closed))
        return await _with_http(stage)


def _everybody(cast: Cast) -> Iterator[tuple[str, Role, str | None]]:
    """The owner first: who is not let in at all is told of it."""
    for name, role in sorted(cast.roles.items(), key=lambda one: one[0] != "owner"):
        yield repr(name), role, None
    if cast.elsewhere is not None:
        for name, role in cast.elsewhere.roles.items():
            yield f"{name!r} in the space {cast.elsewhere.space!r}", role, cast.elsewhere.space


async def _refusal(stage: Stage, role: Role, space: str | None) -> str | None:
    """How the gateway says that this token is none; None: it does not.

    Raises:
        BadCast: there is no gateway, no such space, or the token is somebody else's.
    """
    named = space or stage.cast.space
    try:
        actor = await stage.come(role, space=space)
    except Unreachable as error:
        raise BadCast(str(error)) from error
    except Refused as error:
        if error.status in _UNAUTHORIZED:
            return str(error)
        if role.name != "owner" and error.status != _NOT_FOUND:
            return None
        raise BadCast(
            f"{stage.cast.url}/ws?space={named} answers the role {role.name!r} with {error} and no WebSocket: "
            f"is a gateway there, and does it have the space {named!r}?"
        ) from error
    why = await _closed(stage, actor)
    if why is None and actor.id and role.id not in (None, actor.id):
        raise BadCast(f"the token of the role {role.name!r} is that of {actor.id!r}, not of {role.id!r}")
    await actor.leave()
    return why


async def _closed(stage: Stage, actor: Actor) -> str | None:
    """How it was shown the door instead of being welcomed, if it was."""
    try:
        await stage.welcomed(actor)
    except Violation:
        if not actor.is_closed:
            return None
        code = await actor.disconnected("")
        if code == _POLICY or code in _OWN_CODES or actor.received:
            return f"closed with code {code}"
    return None


def _told(closed: dict[str, str]) -> str:
    how = " and ".join(dict.fromkeys(closed.values()))
    names = ", ".join(closed)
    return f"the gateway refuses the token of the role{'s' if len(closed) > 1 else ''} {names}: {how}"


async def _with_http(stage: Stage) -> Cast:
    cast = stage.cast
    if cast.http is None:
        return cast
    try:
        async with stage.session.get(cast.http, allow_redirects=False):
            return cast
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        if cast.http == http_beside(cast.url):
            return replace(cast, http=None)
        why = "it does not answer" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise BadCast(f"http = {cast.http!r} cannot be reached: {why}") from error
