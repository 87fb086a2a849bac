"""What becomes of what is sent: it gets through once and unchanged, or is refused and reaches nobody."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Any, Final

from mew.protocol.visible import cut

from .connection import Actor
from .context import Stage
from .drafts import HELLO, Say
from .match import Fits, answers, is_id, part, refuses
from .outcome import NotOffered, Violation, demand
from .report import where_they_differ
from .roles import SPARES

__all__ = [
    "Fate",
    "arrive",
    "blocked",
    "fate",
    "gets_through",
    "heard",
    "held_to",
    "passes",
    "refused",
    "shown",
    "taken",
    "unchanged",
    "unheard",
    "unseen",
]


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


async def refused(
    stage: Stage, speaker: Actor, sent: Envelope, *others: Actor, what: str = ""
) -> dict[str, Any]:
    """The gateway shows this to nobody, and tells the speaker so; return the error.

    Raises:
        Violation: it did something else.
    """
    what = what or f"the {sent['kind']} {sent['id']}"
    await unseen(stage, speaker, sent, *others, what=what)
    return await speaker.hear(refuses(sent), f"a system/error about {what}")


async def blocked(stage: Stage, speaker: Actor, hearer: Actor, say: Say, why: str) -> None:
    """The gateway refuses what the speaker says.

    Raises:
        Violation: it does not.
    """
    what = f"{say}, which {speaker.name} may not send {why}"
    await refused(stage, speaker, await say.by(speaker), hearer, what=what)


async def unseen(stage: Stage, speaker: Actor, sent: Envelope, *others: Actor, what: str = "") -> None:
    """Nobody of these receives what the speaker sent; the gateway may have cut it off for that.

    Raises:
        Violation: somebody did.
    """
    await stage.come_through(speaker, *others)
    what = what or f"the {sent['kind']} {sent['id']}"
    for other in others:
        seen = other.heard(lambda e: e.get("id") == sent.get("id") and e.get("kind") == sent["kind"])
        demand(not seen, f"expected that the gateway refuses {what}; {other.name} received it: {seen[:1]}")


async def unheard(stage: Stage, speaker: Actor, mark: str, what: str, *hearers: Actor) -> None:
    """Nothing with this word in it reaches them, in whatever form; errors may quote it.

    Raises:
        Violation: something does.
    """
    await stage.come_through(speaker, *hearers)
    for hearer in hearers:
        texts = [
            text
            for text, envelope in zip(hearer.texts, hearer.received, strict=True)
            if mark in text and envelope.get("kind") != "system/error"
        ]
        texts += [str(frame) for frame in hearer.frames if mark in str(frame)]
        demand(not texts, f"{what} must reach no one; {hearer.name} received {''.join(texts[:1])}")


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


_SHOWN_CHARS_MAX: Final = 200


async def held_to(
    stage: Stage,
    speaker: Actor,
    witness: Actor,
    held: Sequence[Any],
    *,
    passing: Sequence[Say],
    refused: Iterable[Say] = (),
) -> None:
    """With what the speaker holds, all of the one reaches the witness, and nothing of the other.

    Whether the speaker is told of it is another question. The first of those that pass marks the end.

    Raises:
        Violation: it is not so.
        NotOffered: it cannot be tried, as the gateway gives everyone more than was asked for.
    """
    under = f"with {cut(json.dumps(list(held)), _SHOWN_CHARS_MAX)}"
    passing = [say.completed for say in passing]
    for say, sent in [(say, await say.by(speaker)) for say in passing]:
        await heard(speaker, sent, witness, f"{say}, which {speaker.name} may send {under} (§4.1)")
    for say in refused:
        sent = await say.by(speaker)
        await stage.come_through(speaker, witness, mark=passing[0])
        if witness.heard(is_id(sent["id"])):
            await _excuse(stage, speaker, held, say)
            raise Violation(
                f"{under}, {speaker.name} may not send {say} (§4.1); {witness.name} received it: {sent['id']}"
            )


async def _excuse(stage: Stage, speaker: Actor, held: Sequence[Any], say: Say) -> None:
    """A guest may have what everyone has, and the listener shows what that is."""
    if speaker.name in stage.cast.roles and speaker.name not in SPARES:
        return
    everyone = (await stage.enter("listener")).capabilities if "listener" in stage.cast.roles else []
    for one in speaker.capabilities:
        if one not in held and one in everyone and fnmatchcase(say.kind, str(part(one, "kind"))):
            raise NotOffered(f"everyone holds {json.dumps(one)} here, so that {say} is allowed to all")
