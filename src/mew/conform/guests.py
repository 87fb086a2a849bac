"""Somebody new: invited with what it is to hold, or a spare where the gateway cannot invite."""

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from .cast import SPARES, Role
from .giving import granted
from .matching import answers, part
from .sayings import CHAT, Say
from .stage import Stage
from .verdicts import NotOffered, Violation
from .wire import Actor

__all__ = [
    "a_guest",
    "dismiss",
    "invitation",
    "invite",
    "invited",
    "newcomer",
    "somebody",
    "somebody_new",
]


# By invitation (§3.6.4).


def somebody_new() -> str:
    """An id that nobody has."""
    return f"guest-{uuid.uuid4().hex[:12]}"


def invitation(who: str, *capabilities: Any, **more: Any) -> dict[str, Any]:
    """The payload that invites somebody with these, or with chat."""
    given = list(capabilities) or [CHAT]
    return {"participant_id": who, "initial_capabilities": given, "reason": "conformance", **more}


async def invite(
    stage: Stage, inviter: Actor, payload: Mapping[str, Any], *, owner: Actor | None = None
) -> Role:
    """Whom this invites, as a role; removed when the check is over, by the owner of the first space or this one.

    Raises:
        NotOffered: the gateway does not answer with a token.
    """
    if stage.lessons.no_guests:
        raise NotOffered(stage.lessons.no_guests)
    who = str(payload["participant_id"])
    sent = await inviter.send("space/invite", payload)
    stage.afterwards(partial(dismiss, stage, who, owner))
    try:
        answer = await inviter.hear(
            lambda e: answers(e, sent) and e.get("kind") != "space/invite", "an answer"
        )
    except Violation as error:
        raise NotOffered("the gateway does not answer a space/invite") from error
    token = part(answer, "payload", "token")
    if answer.get("kind") == "system/error" or not isinstance(token, str):
        raise NotOffered("the gateway gives no token for a space/invite")
    stage.transcript.hide(token)
    return Role(who, token, who)


async def dismiss(stage: Stage, who: str, owner: Actor | None = None) -> None:
    """Have somebody removed by the owner of the first space, or this one."""
    by = await stage.enter("owner") if owner is None else owner
    await by.send("space/kick", {"participant_id": who, "reason": "the check is over"})


async def invited(stage: Stage, *capabilities: Any) -> Role:
    """Somebody new as a role, invited by the owner and not connected yet.

    Raises:
        NotOffered: the gateway does not answer an invitation with a token.
    """
    try:
        return await invite(stage, await stage.enter("owner"), invitation(somebody_new(), *capabilities))
    except NotOffered as error:
        if isinstance(error.__cause__, Violation):  # what is refused may be what was given
            stage.lessons.no_guests = str(error)
        raise


async def a_guest(stage: Stage, *capabilities: Any) -> Actor:
    """Somebody new with these capabilities, invited by the owner, connected, and removed when the check is over.

    Raises:
        NotOffered: the gateway does not answer an invitation with a token.
    """
    return await stage.join(await invited(stage, *capabilities))


# By invitation, or by what the kit was given.


async def newcomer(stage: Stage) -> Role:
    """Somebody who may chat and no more, and is not there yet: a guest, or a spare where none can be invited."""
    try:
        return await invited(stage)
    except NotOffered:
        return _spare(stage)


async def somebody(stage: Stage, *capabilities: Any) -> Actor:
    """Somebody who holds these, or may chat: a guest, or a spare with a grant that is taken back afterwards.

    Raises:
        NotOffered: the gateway neither invites with a token nor grants, or will not give these. A spare can always
            chat, so it is no help where chat is not among them.
    """
    try:
        return await a_guest(stage, *capabilities)
    except NotOffered:
        if capabilities and CHAT not in capabilities:
            raise
    spare = await _clean(stage)
    more = [one for one in capabilities if one != CHAT]
    if more:
        works = Say("participant/compact-done")
        await granted(stage, await stage.enter("owner"), spare, *more, works.capability, shown=works)
    return spare


async def _clean(stage: Stage) -> Actor:
    """A spare that holds no more than when it first came: nothing that an earlier check has left it.

    Raises:
        NotOffered: none does.
    """
    while True:
        try:
            spare = await stage.join(_spare(stage))
        except NotOffered as error:
            soiled = [name for name in SPARES if name in stage.lessons.soiled]
            if not soiled:
                raise
            raise NotOffered(
                f"{error}: {' and '.join(soiled)} hold what a check gave and could not take back"
            ) from error
        held = stage.lessons.spares.setdefault(spare.name, spare.capabilities)
        if all(one in held for one in spare.capabilities):
            return spare
        stage.lessons.soiled.add(spare.name)
        await spare.leave()


def _spare(stage: Stage) -> Role:
    free = [name for name in SPARES if name in stage.cast.roles and name not in stage.borrowed]
    if not free:
        raise NotOffered("the gateway gives no token for a space/invite, and there are too few spares")
    stage.borrowed.add(free[0])
    return stage.role(free[0])
