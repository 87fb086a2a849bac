"""What is said gets through: it reaches whom it is for, once and unchanged."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .evidence import where_they_differ
from .matching import answers, is_id, refuses
from .sayings import Say
from .stage import Stage
from .verdicts import Violation, demand
from .wire import Actor

__all__ = ["arrive", "heard", "passes", "shown", "taken", "unchanged"]

_FIELDS: Final = ("kind", "from", "to", "context", "correlation_id", "payload")
_EMPTY: Final[Mapping[str, Any]] = {"to": [], "correlation_id": [], "payload": {}}
"""To say nothing in them is to leave them out."""
_TRIES: Final = 4

Envelope = Mapping[str, Any]


async def shown(sent: Envelope, *hearers: Actor) -> list[dict[str, Any]]:
    """What each of these receives of it, waited for.

    Raises:
        Violation: somebody did not receive it.
    """
    return [await hearer.hear(is_id(sent["id"]), f"the {sent['kind']} {sent['id']}") for hearer in hearers]


async def arrive(stage: Stage, speaker: Actor, sent: Iterable[Envelope], *hearers: Actor) -> None:
    """Each of these is received by everyone here that it is for, once, and says what it said.

    It is for all, or for whom its `to` names: whether others see it too is a question of its own (§8.1).

    Raises:
        Violation: one does not arrive, twice, or changed.
    """
    everything = list(sent)
    for one in everything:
        addressed = [hearer for hearer in hearers if not one.get("to") or hearer.id in one["to"]]
        assert addressed, f"nobody of {[hearer.name for hearer in hearers]} is in `to` of {one}"
        for hearer in addressed:
            await heard(speaker, one, hearer)
    await stage.settle(speaker, *hearers)
    for one in everything:
        for hearer in hearers:
            arrived = hearer.heard(is_id(one["id"]))
            for envelope in arrived:
                unchanged(one, envelope, hearer)
            what = f"the {one['kind']} {one['id']}"
            demand(len(arrived) < 2, f"{hearer.name} received {what} {len(arrived)} times, not once")


async def heard(speaker: Actor, sent: Envelope, hearer: Actor, what: str = "") -> dict[str, Any]:
    """What the hearer receives of it, waited for.

    Raises:
        Violation: nothing; it says why the gateway refused it, where it did.
    """
    what = what or f"the {sent['kind']} {sent['id']} that {speaker.name} sent"
    try:
        return await hearer.hear(is_id(sent["id"]), what)
    except Violation as error:
        named = "" if sent["id"] in what else f" ({sent['id']})"
        refusals = speaker.heard(lambda e: e.get("kind") == "system/error" and answers(e, sent))
        refused = f"; the gateway refused it: {refusals[0].get('payload')}" if refusals else ""
        raise Violation(f"{error}{named}{refused}") from None


def unchanged(sent: Envelope, arrived: Envelope, hearer: Actor) -> None:
    """What came says what was sent.

    Raises:
        Violation: it does not.
    """
    for field in _FIELDS:
        empty = _EMPTY.get(field)
        before, after = sent.get(field, empty), arrived.get(field, empty)
        what = f"the {sent['kind']} {sent['id']} with another {field}"
        was, now = where_they_differ(before, after)
        demand(before == after, f"{hearer.name} received {what}: {was} was sent, {now} came")


async def passes(stage: Stage, speaker: Actor, hearer: Actor, say: Say, why: str) -> None:
    """The gateway lets this through, soon: what allows it may take a moment to be in force.

    Raises:
        Violation: it does not.
    """
    sent: Envelope = {}
    for _ in range(_TRIES):
        sent = await say.by(speaker)
        await stage.settle(speaker, hearer)
        if hearer.heard(is_id(sent["id"])):
            return
        await asyncio.sleep(stage.cast.patience_s / _TRIES)
    missing = f"{hearer.name} did not receive it: {sent['id']}"
    raise Violation(f"expected that {speaker.name} may send {say} {why}; {missing}")


async def taken(stage: Stage, speaker: Actor, sent: Envelope, *hearers: Actor) -> list[Actor]:
    """Who of these receives what may be kept from them (§3.4.1, §3.9.4): once and unchanged; it is not refused.

    Raises:
        Violation: it is refused, or arrives twice or changed.
    """
    await stage.settle(speaker, *hearers)
    await stage.settle(hearers[0], speaker)  # an error was on its way to the speaker before this
    error = speaker.already(refuses(sent))
    demand(error is None, f"the gateway refused a {sent['kind']}: {error}")
    receivers = [hearer for hearer in hearers if hearer.heard(is_id(sent["id"]))]
    if receivers:
        await arrive(stage, speaker, [sent], *receivers)
    return receivers
