"""What becomes of what is sent: it gets through once and unchanged, or is refused and reaches nobody."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Any, Final

from mew.protocol.visible import cut

from .connection import ScriptedClient
from .context import CheckContext
from .drafts import HELLO, Draft
from .match import Predicate, answers, is_id, part, refuses
from .outcome import NotOffered, Violation, demand
from .report import where_they_differ
from .roles import SPARES

__all__ = [
    "Delivery",
    "delivery_of",
    "expect_accepted",
    "expect_delivered",
    "expect_draft_refused",
    "expect_enforced",
    "expect_passes",
    "expect_received",
    "expect_refused",
    "expect_shown",
    "expect_unheard",
    "expect_unseen",
    "gets_through",
    "unchanged",
]


_FIELDS: Final = ("kind", "from", "to", "context", "correlation_id", "payload")
_EMPTY: Final[Mapping[str, Any]] = {"to": [], "correlation_id": [], "payload": {}}
"""To say nothing in them is to leave them out."""
_TRIES: Final = 4

Envelope = Mapping[str, Any]


async def expect_shown(sent: Envelope, *receivers: ScriptedClient) -> list[dict[str, Any]]:
    """What each of these receives of it, waited for.

    Raises:
        Violation: somebody did not receive it.
    """
    return [
        await receiver.expect(is_id(sent["id"]), f"the {sent['kind']} {sent['id']}") for receiver in receivers
    ]


async def expect_delivered(
    ctx: CheckContext, sender: ScriptedClient, sent: Iterable[Envelope], *receivers: ScriptedClient
) -> None:
    """Each of these is received by everyone here that it is for, once, and says what it said.

    It is for all, or for whom its `to` names: whether others see it too is a question of its own (§8.1).

    Raises:
        Violation: one does not arrive, twice, or changed.
    """
    everything = list(sent)
    for one in everything:
        addressed = [receiver for receiver in receivers if not one.get("to") or receiver.id in one["to"]]
        assert addressed, f"nobody of {[receiver.name for receiver in receivers]} is in `to` of {one}"
        for receiver in addressed:
            await expect_received(sender, one, receiver)
    await ctx.barrier(sender, *receivers)
    for one in everything:
        for receiver in receivers:
            arrived = receiver.matching(is_id(one["id"]))
            for envelope in arrived:
                unchanged(one, envelope, receiver)
            what = f"the {one['kind']} {one['id']}"
            demand(len(arrived) < 2, f"{receiver.name} received {what} {len(arrived)} times, not once")


async def expect_received(
    sender: ScriptedClient, sent: Envelope, receiver: ScriptedClient, what: str = ""
) -> dict[str, Any]:
    """What the hearer receives of it, waited for.

    Raises:
        Violation: nothing; it says why the gateway refused it, where it did.
    """
    what = what or f"the {sent['kind']} {sent['id']} that {sender.name} sent"
    try:
        return await receiver.expect(is_id(sent["id"]), what)
    except Violation as error:
        named = "" if sent["id"] in what else f" ({sent['id']})"
        refusals = sender.matching(lambda e: e.get("kind") == "system/error" and answers(e, sent))
        refused = f"; the gateway refused it: {refusals[0].get('payload')}" if refusals else ""
        raise Violation(f"{error}{named}{refused}") from None


def unchanged(sent: Envelope, arrived: Envelope, receiver: ScriptedClient) -> None:
    """What came says what was sent.

    Raises:
        Violation: it does not.
    """
    for field in _FIELDS:
        empty = _EMPTY.get(field)
        before, after = sent.get(field, empty), arrived.get(field, empty)
        what = f"the {sent['kind']} {sent['id']} with another {field}"
        was, now = where_they_differ(before, after)
        demand(before == after, f"{receiver.name} received {what}: {was} was sent, {now} came")


async def expect_passes(
    ctx: CheckContext, sender: ScriptedClient, receiver: ScriptedClient, draft: Draft, why: str
) -> None:
    """The gateway lets this through, soon: what allows it may take a moment to be in force.

    Raises:
        Violation: it does not.
    """
    sent: Envelope = {}
    for _ in range(_TRIES):
        sent = await draft.send_by(sender)
        await ctx.barrier(sender, receiver)
        if receiver.matching(is_id(sent["id"])):
            return
        await asyncio.sleep(ctx.config.timeout_s / _TRIES)
    missing = f"{receiver.name} did not receive it: {sent['id']}"
    raise Violation(f"expected that {sender.name} may send {draft} {why}; {missing}")


async def expect_accepted(
    ctx: CheckContext, sender: ScriptedClient, sent: Envelope, *receivers: ScriptedClient
) -> list[ScriptedClient]:
    """Who of these receives what may be kept from them (§3.4.1, §3.9.4): once and unchanged; it is not refused.

    Raises:
        Violation: it is refused, or arrives twice or changed.
    """
    await ctx.barrier(sender, *receivers)
    await ctx.barrier(receivers[0], sender)  # an error was on its way to the sender before this
    error = sender.take(refuses(sent))
    demand(error is None, f"the gateway refused a {sent['kind']}: {error}")
    found = [receiver for receiver in receivers if receiver.matching(is_id(sent["id"]))]
    if found:
        await expect_delivered(ctx, sender, [sent], *found)
    return found


async def expect_refused(
    ctx: CheckContext, sender: ScriptedClient, sent: Envelope, *others: ScriptedClient, what: str = ""
) -> dict[str, Any]:
    """The gateway shows this to nobody, and tells the speaker so; return the error.

    Raises:
        Violation: it did something else.
    """
    what = what or f"the {sent['kind']} {sent['id']}"
    await expect_unseen(ctx, sender, sent, *others, what=what)
    return await sender.expect(refuses(sent), f"a system/error about {what}")


async def expect_draft_refused(
    ctx: CheckContext, sender: ScriptedClient, receiver: ScriptedClient, draft: Draft, why: str
) -> None:
    """The gateway refuses what the speaker says.

    Raises:
        Violation: it does not.
    """
    what = f"{draft}, which {sender.name} may not send {why}"
    await expect_refused(ctx, sender, await draft.send_by(sender), receiver, what=what)


async def expect_unseen(
    ctx: CheckContext, sender: ScriptedClient, sent: Envelope, *others: ScriptedClient, what: str = ""
) -> None:
    """Nobody of these receives what the speaker sent; the gateway may have cut it off for that.

    Raises:
        Violation: somebody did.
    """
    await ctx.round_trip(sender, *others)
    what = what or f"the {sent['kind']} {sent['id']}"
    for other in others:
        seen = other.matching(lambda e: e.get("id") == sent.get("id") and e.get("kind") == sent["kind"])
        demand(not seen, f"expected that the gateway refuses {what}; {other.name} received it: {seen[:1]}")


async def expect_unheard(
    ctx: CheckContext, sender: ScriptedClient, mark: str, what: str, *receivers: ScriptedClient
) -> None:
    """Nothing with this word in it reaches them, in whatever form; errors may quote it.

    Raises:
        Violation: something does.
    """
    await ctx.round_trip(sender, *receivers)
    for receiver in receivers:
        texts = [
            text
            for text, envelope in zip(receiver.texts, receiver.received, strict=True)
            if mark in text and envelope.get("kind") != "system/error"
        ]
        texts += [str(frame) for frame in receiver.frames if mark in str(frame)]
        demand(not texts, f"{what} must reach no one; {receiver.name} received {''.join(texts[:1])}")


class Delivery(Enum):
    """What became of an envelope. One that is lost was neither shown nor refused."""

    ARRIVED = auto()
    REFUSED = auto()
    LOST = auto()


async def delivery_of(sender: ScriptedClient, observer: ScriptedClient, draft: Draft) -> Delivery:
    """Say something, and wait for what becomes of it."""
    sent = await draft.send_by(sender)
    async with asyncio.TaskGroup() as waits:
        arrived = waits.create_task(_or_none(observer, is_id(sent["id"])))
        refusal = waits.create_task(_or_none(sender, refuses(sent)))
        for ended in asyncio.as_completed((arrived, refusal)):
            first = await ended
            if first is not None:
                arrived.cancel()
                refusal.cancel()
                return Delivery.ARRIVED if first.get("id") == sent["id"] else Delivery.REFUSED
    return Delivery.LOST


async def _or_none(client: ScriptedClient, fits: Predicate) -> dict[str, Any] | None:
    try:
        return await client.expect(fits, "it")
    except Violation:
        return None


async def gets_through(sender: ScriptedClient, observer: ScriptedClient, draft: Draft = HELLO) -> bool:
    """Say something, and whether it reaches the witness."""
    return await delivery_of(sender, observer, draft) is Delivery.ARRIVED


_SHOWN_CHARS_MAX: Final = 200


async def expect_enforced(
    ctx: CheckContext,
    sender: ScriptedClient,
    observer: ScriptedClient,
    held: Sequence[Any],
    *,
    passing: Sequence[Draft],
    refused: Iterable[Draft] = (),
) -> None:
    """With what the speaker holds, all of the one reaches the witness, and nothing of the other.

    Whether the speaker is told of it is another question. The first of those that pass marks the end.

    Raises:
        Violation: it is not so.
        NotOffered: it cannot be tried, as the gateway gives everyone more than was asked for.
    """
    under = f"with {cut(json.dumps(list(held)), _SHOWN_CHARS_MAX)}"
    passing = [draft.completed for draft in passing]
    for draft, sent in [(draft, await draft.send_by(sender)) for draft in passing]:
        await expect_received(sender, sent, observer, f"{draft}, which {sender.name} may send {under} (§4.1)")
    for draft in refused:
        sent = await draft.send_by(sender)
        await ctx.round_trip(sender, observer, mark=passing[0])
        if observer.matching(is_id(sent["id"])):
            await _excuse(ctx, sender, held, draft)
            raise Violation(
                f"{under}, {sender.name} may not send {draft} (§4.1); {observer.name} received it: {sent['id']}"
            )


async def _excuse(ctx: CheckContext, sender: ScriptedClient, held: Sequence[Any], draft: Draft) -> None:
    """A guest may have what everyone has, and the listener shows what that is."""
    if sender.name in ctx.config.roles and sender.name not in SPARES:
        return
    everyone = (await ctx.client("listener")).capabilities if "listener" in ctx.config.roles else []
    for one in sender.capabilities:
        if one not in held and one in everyone and fnmatchcase(draft.kind, str(part(one, "kind"))):
            raise NotOffered(f"everyone holds {json.dumps(one)} here, so that {draft} is allowed to all")
