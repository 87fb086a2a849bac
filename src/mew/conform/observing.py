"""What the gateway itself says when people come, go, ask it for something and break its rules."""

from contextlib import suppress
from typing import Any

from .giving import grant
from .guests import a_guest
from .matching import is_kind, leaves, listed
from .sayings import PROPOSAL
from .stage import Stage
from .verdicts import NotOffered, Violation
from .wire import Actor

__all__ = ["gateway_says"]


async def gateway_says(stage: Stage) -> list[dict[str, Any]]:
    """A good many of the envelopes that the gateway itself makes: welcomes, presence, errors, answers."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    await listener.send("mcp/request", {"method": "tools/list"}, to=[owner.id])
    await _error(listener)
    for _ in range(2):  # they come and go, and each time it is said
        passing = await stage.enter("proposer")
        await passing.leave()
        with suppress(Violation):
            await peer.hear(leaves(passing.id), "that somebody left")
    await owner.send("stream/request", {"direction": "upload"}, to=["gateway"])
    with suppress(Violation):
        opened = await owner.hear(is_kind("stream/open"), "a stream/open")
        await owner.send("stream/close", opened["payload"], correlation_id=[opened["id"]])
    with suppress(NotOffered):
        await grant(stage, owner, await a_guest(stage), PROPOSAL.capability)
    await owner.send_text('{"protocol": "mew/v0.4", "kind"')
    await _error(owner)
    await stage.come_through(owner, peer, listener)
    people = {actor.id for actor in stage.actors}
    people |= {one for actor in stage.actors for one in listed(actor.welcome)}
    return [
        envelope
        for actor in stage.actors
        for envelope in actor.received
        if str(envelope.get("kind")).startswith("system/") or envelope.get("from") not in people
    ]


async def _error(actor: Actor) -> None:
    with suppress(Violation):
        await actor.hear(is_kind("system/error"), "an error")
