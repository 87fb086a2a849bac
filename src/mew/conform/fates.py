"""What becomes of what is said, where it may or may not get through."""

import asyncio
from enum import Enum, auto
from typing import Any

from .matching import is_id, refuses
from .sayings import HELLO, Say
from .verdicts import Violation
from .wire import Actor, Fits

__all__ = ["Fate", "fate", "gets_through"]


class Fate(Enum):
    """What became of an envelope. One that is lost was neither shown nor refused."""

    ARRIVED = auto()
    REFUSED = auto()
    LOST = auto()


async def fate(speaker: Actor, witness: Actor, say: Say) -> Fate:
    """Say something, and wait for what becomes of it."""
    sent = await say.by(speaker)
    async with asyncio.TaskGroup() as waits:
        arrived = waits.create_task(_or_none(witness, is_id(sent["id"])))
        refusal = waits.create_task(_or_none(speaker, refuses(sent)))
        for ended in asyncio.as_completed((arrived, refusal)):
            first = await ended
            if first is not None:
                arrived.cancel()
                refusal.cancel()
                return Fate.ARRIVED if first.get("id") == sent["id"] else Fate.REFUSED
    return Fate.LOST


async def _or_none(actor: Actor, fits: Fits) -> dict[str, Any] | None:
    try:
        return await actor.hear(fits, "it")
    except Violation:
        return None


async def gets_through(speaker: Actor, witness: Actor, say: Say = HELLO) -> bool:
    """Say something, and whether it reaches the witness."""
    return await fate(speaker, witness, say) is Fate.ARRIVED
