"""Giving and taking (§3.6.1, §3.6.2): capabilities granted, shown to count, and revoked."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from .passing import passes
from .sayings import Say, allows
from .stage import Stage
from .verdicts import NotOffered, Violation
from .wire import Actor

__all__ = ["grant", "granted", "revoke"]


async def grant(stage: Stage, granter: Actor, whom: Actor, *capabilities: Any, **fields: Any) -> str:
    """Grant, and return the grant's id once the recipient could know; it is taken back when the check is over."""
    payload = {"recipient": whom.id, "capabilities": list(capabilities), "reason": "conformance"}
    sent = await granter.send("capability/grant", payload, **{"to": [whom.id], **fields})
    undo = {"recipient": whom.id, "grant_id": sent["id"], "reason": "the check is over"}
    stage.afterwards(partial(_take_back, stage, granter, undo))
    witness = await stage.enter("owner") if whom is granter else whom  # nobody need hear itself
    if witness is not granter:
        await stage.come_through(granter, witness)
    grant_id: str = sent["id"]
    return grant_id


async def _take_back(stage: Stage, granter: Actor, undo: Mapping[str, Any]) -> None:
    """By who gave it, where it may, and by the owner: what stays would be held against the gateway later."""
    owner = await stage.enter("owner")
    may = granter is not owner and allows(granter.capabilities, Say("capability/revoke", dict(undo)))
    for revoker in (*([granter] if may else []), owner):
        await revoker.send("capability/revoke", undo)
        others = [one for one in stage.actors if one.welcome and one.id != revoker.id and not one.is_gone]
        for other in others[:1]:
            await stage.settle(other, revoker)  # which may be cut off, if there was nothing to take


async def granted(stage: Stage, granter: Actor, whom: Actor, *capabilities: Any, shown: Say) -> str:
    """Grant, and return the grant's id once it counts, as what is then shown passes.

    Raises:
        NotOffered: it never does.
    """
    grant_id = await grant(stage, granter, whom, *capabilities)
    try:
        await passes(stage, whom, granter, shown, f"after it was granted {capabilities}")
    except Violation as error:
        raise NotOffered(f"what participants hold does not change here: {error}") from error
    return grant_id


async def revoke(stage: Stage, revoker: Actor, whom: Actor, **what: Any) -> None:
    """Revoke what `grant_id` or `capabilities` says, and return once the recipient could know."""
    payload = {"recipient": whom.id, **what, "reason": "conformance"}
    await revoker.send("capability/revoke", payload, to=[whom.id])
    await stage.come_through(revoker, whom)
