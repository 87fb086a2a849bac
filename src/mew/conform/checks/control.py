"""The control of participants: what is passed on, and what the gateway enforces (§3.9)."""

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import CHAT, HELLO, PROPOSAL, REASONING, Draft, allows, request
from mew.conform.expectations import (
    Delivery,
    delivery_of,
    expect_accepted,
    expect_delivered,
    expect_refused,
    expect_shown,
    gets_through,
    unchanged,
)
from mew.conform.fixtures import a_guest, granted, newcomer, revoke, somebody
from mew.conform.http_api import open_messages_api
from mew.conform.match import is_id, is_kind, leaves, refuses
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.runner import check

_METRICS: Final = {"messages_in_context": 12, "tokens": 12345, "max_tokens": 20000}
_LEFT_OUT: Final[Any] = ...


async def _reach(ctx: CheckContext, kind: str, *payloads: Any) -> None:
    """The owner orders it of a peer with each of these payloads, and the peer receives the order as it was given."""
    owner, peer = await ctx.clients("owner", "peer")
    sent = [await owner.send(kind, to=[peer.id], payload=payload) for payload in payloads]
    await expect_delivered(ctx, owner, sent, peer)


@check("status-request.name")
async def the_kind_is_request_status_with_a_hyphen(ctx: CheckContext) -> None:
    """`participant/request-status` passes under that name; who may send it may not send `participant/requestStatus`."""
    owner, peer = await ctx.clients("owner", "peer")
    sent = await owner.send("participant/request-status", to=[peer.id])
    await expect_delivered(ctx, owner, [sent], peer)
    kind = "participant/request-status"
    drafts = ("participant/requestStatus", "participant/request_status", "participant/Request-Status")
    asking = await somebody(ctx, CHAT, {"kind": kind})
    sent = await asking.send(kind, to=[peer.id])
    await expect_delivered(ctx, asking, [sent], peer)
    for draft in drafts:
        await expect_refused(ctx, asking, await asking.send(draft, to=[peer.id]), peer, owner)
    drafting = await somebody(ctx, CHAT, *({"kind": draft} for draft in drafts))
    await expect_refused(ctx, drafting, await drafting.send(kind, to=[peer.id]), peer, owner)


@check("status-request.fields")
async def a_status_request_may_name_fields(ctx: CheckContext) -> None:
    """A request for a status is delivered with `fields`, with ones nobody knows, and with none."""
    fields: tuple[list[str], ...] = (["tokens"], ["tokens", "latency"], [], ["vendor_metric", "zähler"])
    await _reach(ctx, "participant/request-status", {}, *({"fields": some} for some in fields))


# A status may be kept from those whom it does not concern (§3.9.4), and so may all of them.


async def _asked(ctx: CheckContext, owner: ScriptedClient, peer: ScriptedClient) -> dict[str, Any]:
    """A request for a status that the peer answers, and the owner is shown the answer.

    Raises:
        NotOffered: the gateway keeps it even from who asked, and is addressed.
    """
    asked = await owner.send("participant/request-status", to=[peer.id])
    await expect_shown(asked, peer)
    answer = await peer.send("participant/status", _METRICS, to=[owner.id], correlation_id=[asked["id"]])
    if not await expect_accepted(ctx, peer, answer, owner):
        raise NotOffered("nobody is shown a participant/status here, not even who asked for it")
    return asked


@check("status.proactive")
async def a_status_may_come_unasked(ctx: CheckContext) -> None:
    """A status that nobody asked for is accepted, and reaches whom it is addressed to."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    await _asked(ctx, owner, peer)
    sent = [
        await peer.send("participant/status", _METRICS, to=[owner.id]),
        await peer.send("participant/status", _METRICS, to=[owner.id], correlation_id=[]),
    ]
    await expect_delivered(ctx, peer, sent, owner)
    await expect_accepted(ctx, peer, await peer.send("participant/status", _METRICS), owner, listener)


@check("status.other-metrics")
async def a_status_may_have_other_metrics(ctx: CheckContext) -> None:
    """A status is delivered with metrics nobody standardised, and each has its value still."""
    owner, peer = await ctx.clients("owner", "peer")
    await _asked(ctx, owner, peer)
    metrics: tuple[dict[str, Any], ...] = (
        {"latency_ms": 350.25, "queue_depth": 0, "is_idle": True},
        {"status": "compacting", "models": ["a", {"name": "b", "tokens": 1}], "cost_usd": 0.000125},
        {"messages_in_context": 0},
        {"vendor_größe": "µ", "nothing": None, "largest": 9007199254740991},
    )
    sent = [await peer.send("participant/status", _METRICS | more, to=[owner.id]) for more in metrics]
    sent.append(await peer.send("participant/status", {"only": "mine"}, to=[owner.id]))
    await expect_delivered(ctx, peer, sent, owner)


@check("status.broadcast")
async def a_status_may_be_for_everyone(ctx: CheckContext) -> None:
    """A status without `to`, or with an empty one, is accepted though one participant asked, and that one gets it."""
    owner, peer = await ctx.clients("owner", "peer")
    asked = await _asked(ctx, owner, peer)
    sent = [
        await peer.send("participant/status", _METRICS, correlation_id=[asked["id"]]),
        await peer.send("participant/status", _METRICS, correlation_id=[asked["id"]], to=[]),
    ]
    await expect_delivered(ctx, peer, sent, owner)


@check("status.dissemination-limited")
async def who_asked_for_a_status_gets_it(ctx: CheckContext) -> None:
    """Who asked for a status receives it; the others receive it whole, or not at all."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    asked = await _asked(ctx, owner, peer)
    sent = await peer.send("participant/status", _METRICS, correlation_id=[asked["id"]])
    await expect_delivered(ctx, peer, [sent], owner)
    await expect_accepted(ctx, peer, sent, listener)


@check("forget.entries")
async def a_forget_needs_no_entries(ctx: CheckContext) -> None:
    """A `participant/forget` is delivered with `entries` and without, in both directions."""
    payloads = [
        {"direction": direction, **entries}
        for direction in ("oldest", "newest")
        for entries in ({}, {"entries": 10}, {"entries": 0})
    ]
    await _reach(ctx, "participant/forget", *payloads)


@check("compact.reason", "compact.target-tokens")
async def a_compaction_needs_no_reason_and_no_target(ctx: CheckContext) -> None:
    """A `participant/compact` is delivered with `reason`, `target_tokens`, both or neither, and as it was."""
    await _reach(
        ctx,
        "participant/compact",
        {},
        {"reason": "token_pressure"},
        {"reason": "because I say so 🐱"},
        {"target_tokens": 16000},
        {"target_tokens": 0},
        {"reason": "token_pressure", "target_tokens": 16000},
    )


@check("compact-done.freed")
async def a_compaction_may_say_what_it_freed(ctx: CheckContext) -> None:
    """A `participant/compact-done` reaches who asked, with `freed_tokens` and `freed_messages`, one, or neither."""
    asker, worker = await ctx.clients("peer", "owner")
    with suppress(NotOffered):
        asker, worker = worker, await somebody(ctx, CHAT, {"kind": "participant/compact-done"})
    freed: tuple[dict[str, int], ...] = (
        {},
        {"freed_tokens": 2048},
        {"freed_messages": 12},
        {"freed_tokens": 0, "freed_messages": 0},
    )
    payloads = [{"status": "compacted", **some} for some in freed] + [{"skipped": True}, {}]
    sent = [
        await worker.send("participant/compact-done", payload, to=[asker.id], correlation_id=["compact-1"])
        for payload in payloads
    ]
    await expect_delivered(ctx, worker, sent, asker)


@check("clear.payload")
async def a_clear_needs_no_payload(ctx: CheckContext) -> None:
    """A `participant/clear` without `payload`, and with an empty one, is delivered."""
    await _reach(ctx, "participant/clear", _LEFT_OUT, {})


@check("restart.hints")
async def a_restart_may_have_hints_or_no_payload(ctx: CheckContext) -> None:
    """A `participant/restart` is delivered without `payload`, with an empty one, and with fields nobody knows."""
    hints: dict[str, Any] = {"mode": "cold", "vendor": {"keep": ["memory"], "after_s": 1.5}, "reason": None}
    await _reach(ctx, "participant/restart", _LEFT_OUT, {}, hints)


@check("shutdown.context")
async def a_shutdown_may_have_context_or_no_payload(ctx: CheckContext) -> None:
    """A `participant/shutdown` is delivered without `payload`, with an empty one, and with fields nobody knows."""
    owner, role = await ctx.client("owner"), await newcomer(ctx)
    context: dict[str, Any] = {"reason": "maintenance", "grace": {"seconds": 5, "drain": [True, None]}}
    for payload in (_LEFT_OUT, {}, context):
        target = await ctx.join(role)  # and so begins anew
        sent = await owner.send("participant/shutdown", to=[target.id], payload=payload)
        (arrived,) = await expect_shown(sent, target)
        unchanged(sent, arrived, target)
        await target.leave()


_WORK: Final = (HELLO, request("tools/list"), PROPOSAL, REASONING)
_ACKNOWLEDGING_OR_CANCELLING: Final = (
    Draft("chat/acknowledge", {"status": "received"}),
    Draft("chat/cancel", {"reason": "timeout"}),
    Draft("reasoning/cancel", {"reason": "superseded"}),
    Draft("mcp/withdraw", {"reason": "no_longer_needed"}),
    Draft("capability/grant-ack", {"status": "accepted"}),
    Draft("participant/compact-done", {"skipped": True}),
)
_RESUME: Final = Draft("participant/resume")
_TIMEOUT_S: Final = 1
_POLL_S: Final = 0.05


async def _subject(ctx: CheckContext, stand_in: str = "peer") -> ScriptedClient:
    """Whom the order is for: a guest, or where none can be invited a role, that is left as it was."""
    try:
        return await a_guest(
            ctx, *(draft.capability for draft in (*_WORK, *_ACKNOWLEDGING_OR_CANCELLING, _RESUME))
        )
    except NotOffered:
        return await ctx.client(stand_in)


async def _order(
    ctx: CheckContext,
    owner: ScriptedClient,
    kind: str,
    payload: Any,
    *subjects: ScriptedClient,
    **fields: Any,
) -> dict[str, Any]:
    """The owner orders it, and all it is for know of it."""
    sent = await owner.send(kind, payload, to=[subject.id for subject in subjects], **fields)
    await expect_delivered(ctx, owner, [sent], *subjects)
    return sent


async def _pause(
    ctx: CheckContext, owner: ScriptedClient, *subjects: ScriptedClient, **payload: Any
) -> dict[str, Any]:
    """They are paused, at the most until the check is over."""
    to = [subject.id for subject in subjects]
    ctx.add_cleanup(lambda: owner.send("participant/resume", {}, to=to))
    return await _order(ctx, owner, "participant/pause", {"reason": "rate_limit", **payload}, *subjects)


async def _kept_back(
    ctx: CheckContext,
    sender: ScriptedClient,
    draft: Draft,
    observer: ScriptedClient,
    other: ScriptedClient,
    why: str,
) -> None:
    """The speaker, who may not chat just now, is told that this is refused, and the witness does not receive it.

    Raises:
        Violation: it was let through.
    """
    sent = await draft.send_by(sender)
    answer = await sender.expect(
        lambda e: e.get("id") == sent["id"] or refuses(sent)(e), f"a system/error about {sent['id']}: {why}"
    )
    await ctx.barrier(other, observer, sender)
    demand(answer.get("kind") == "system/error", f"the {draft.kind} of {sender.name} was accepted: {why}")
    demand(
        not observer.matching(is_id(sent["id"])),
        f"{sender.name} was told that its {draft.kind} is refused, and {observer.name} received it: {why}",
    )


async def _came_back(ctx: CheckContext, owner: ScriptedClient, client: ScriptedClient) -> bool:
    """Whether it was cut off for what it said; it is there again now, and perhaps with all forgotten."""
    before = len(client.welcomes)
    await ctx.barrier(owner, client)
    return len(client.welcomes) > before


@check("pause.enforced")
async def a_pause_holds_back_work_and_nothing_else(ctx: CheckContext) -> None:
    """An enforced pause is for all work of the participant, and for none of its acknowledgements and cancellations."""
    owner, listener = await ctx.clients("owner", "listener")
    subject, *more = await ctx.connect_twice(await _subject(ctx), owner)
    proposal = await PROPOSAL.send_by(subject)
    await expect_delivered(ctx, subject, [proposal], listener)
    forbidden = await listener.send("participant/pause", {"reason": "other"}, to=[subject.id])
    await expect_refused(ctx, listener, forbidden, owner, subject)
    demand(
        await gets_through(subject, listener),
        f"{subject.name} is held back by a participant/pause whose sender may not send it",
    )
    await _pause(ctx, owner, subject)
    if await gets_through(subject, listener):
        raise NotOffered("the gateway does not enforce pauses")
    if await _came_back(ctx, owner, subject):
        raise NotOffered("the gateway disconnects who speaks while it is paused")
    why = f"{subject.name} is paused, and the gateway enforces it (§3.9.1)"
    for draft in _WORK:
        if allows(subject.capabilities, draft):
            await _kept_back(ctx, subject, draft, listener, owner, why)
            for twin in more:
                await _kept_back(ctx, twin, draft, listener, owner, f"{why}, on each connection")
    for draft in _ACKNOWLEDGING_OR_CANCELLING:
        about = {"correlation_id": [proposal["id"]], "context": proposal["id"], "to": [owner.id]}
        if allows(subject.capabilities, draft):
            came_to = await delivery_of(subject, owner, Draft(draft.kind, draft.payload, about))
            demand(
                came_to is not Delivery.REFUSED,
                f"{draft.kind} acknowledges or cancels, and a pause is not for that; it was refused",
            )
    await _cannot_be_evaded(ctx, subject, listener, owner, why)
    demand(
        await gets_through(listener, owner) and await gets_through(owner, listener),
        f"{subject.name} is paused, and another is held back",
    )
    await _order(ctx, owner, "participant/resume", {}, subject)
    demand(await gets_through(subject, listener), f"{subject.name} was resumed and is still held back")


async def _cannot_be_evaded(
    ctx: CheckContext, subject: ScriptedClient, listener: ScriptedClient, owner: ScriptedClient, why: str
) -> None:
    await delivery_of(subject, owner, Draft("participant/resume", {}, {"to": [subject.id, owner.id]}))
    await _kept_back(ctx, subject, HELLO, listener, owner, f"{why}; it sent a participant/resume for itself")
    await _refused_over_http(ctx, subject, owner, why)


async def _refused_over_http(
    ctx: CheckContext, subject: ScriptedClient, owner: ScriptedClient, why: str
) -> None:
    with suppress(NotOffered):  # there is no such way round
        api = await open_messages_api(ctx)
        answer = await api.post(subject, {"kind": HELLO.kind, "payload": HELLO.payload})
        demand(not answer.is_accepted, f"{why}; over HTTP its chat was accepted with {answer.status}")
        mark = await HELLO.send_by(owner)
        with suppress(Violation):  # it may have been disconnected
            await subject.expect(is_id(mark["id"]), "a chat of the owner")
        while subject.take(is_kind("system/error")):
            continue  # about what was posted: it must not be read as the answer to what comes next


@check("pause.timeout")
async def a_pause_may_end_by_itself(ctx: CheckContext) -> None:
    """A pause is delivered with `timeout_seconds` and without; where it is enforced, only the first ends by itself."""
    owner, listener = await ctx.clients("owner", "listener")
    timed, lasting = await _subject(ctx), await _subject(ctx, "spare-1")
    began_s = time.monotonic()
    await _pause(ctx, owner, lasting)
    await _pause(ctx, owner, timed, timeout_seconds=_TIMEOUT_S)
    if await gets_through(timed, listener):
        took_s = time.monotonic() - began_s
        demand(
            await gets_through(lasting, listener),
            f"a pause of {_TIMEOUT_S} s had ended after {took_s:.2f} s, one without a timeout had not",
        )
        return  # it is not enforced, and so for the participant alone to heed
    if await _came_back(ctx, owner, timed):
        raise NotOffered("the gateway disconnects who speaks while it is paused")
    while not await gets_through(timed, listener):
        over_s = time.monotonic() - began_s - _TIMEOUT_S
        demand(
            over_s < ctx.config.timeout_s,
            f"a pause with timeout_seconds {_TIMEOUT_S} is still enforced {over_s:.2f} s after it is over",
        )
        await asyncio.sleep(_POLL_S)
    took_s = time.monotonic() - began_s
    demand(
        took_s > _TIMEOUT_S / 2,
        f"a pause with timeout_seconds {_TIMEOUT_S} ended after {took_s:.2f} s",
    )
    demand(
        not await gets_through(lasting, listener),
        "a pause without timeout_seconds ended before anyone resumed the participant",
    )


@check("resume.lifts")
async def a_resumed_participant_speaks_again(ctx: CheckContext) -> None:
    """A resume reaches its participant and lifts the pause, of those it names and of no others."""
    owner, listener = await ctx.clients("owner", "listener")
    one, two = await _subject(ctx), await _subject(ctx, "spare-1")
    for with_cause in (True, False):
        paused = await _pause(ctx, owner, one, two)
        cause = {"correlation_id": [paused["id"]]} if with_cause else {}
        enforced = not await gets_through(one, listener) and not await _came_back(ctx, owner, one)
        forbidden = await listener.send("participant/resume", {}, to=[one.id], **cause)
        await expect_refused(ctx, listener, forbidden, owner, one)
        demand(
            not enforced or not await gets_through(one, listener),
            "a participant/resume whose sender may not send it lifted a pause",
        )
        await _order(ctx, owner, "participant/resume", {}, one, **cause)
        demand(
            await gets_through(one, listener),
            f"{one.name} was resumed, with {'a' if with_cause else 'no'} correlation_id, and is still held back",
        )
        demand(
            not enforced or not await gets_through(two, listener),
            f"{two.name} may speak again though only {one.name} was resumed",
        )
        await _came_back(ctx, owner, two)
        await _order(ctx, owner, "participant/resume", {}, two)
        demand(await gets_through(two, listener), f"{two.name} was resumed and is still held back")


@check("shutdown.enforced")
async def who_was_shut_down_is_refused_until_it_rejoins(ctx: CheckContext) -> None:
    """After a shutdown what the participant sends is refused on each connection, until it has left and joined again."""
    owner, listener, bystander = await ctx.clients("owner", "listener", "proposer")
    connections = await ctx.connect_twice(await _subject(ctx, "spare-1"), owner)
    subject = connections[0]
    forbidden = await listener.send("participant/shutdown", {}, to=[subject.id])
    await expect_refused(ctx, listener, forbidden, owner)
    demand(
        await gets_through(subject, listener),
        f"{subject.name} is refused after a participant/shutdown whose sender may not send it",
    )
    sent = await owner.send("participant/shutdown", {}, to=[subject.id])
    await expect_shown(sent, subject)
    why = f"{subject.name} was shut down and has not joined again (§3.9.10)"
    for connection in connections:
        for draft in _WORK:
            if allows(subject.capabilities, draft):
                await _refused_or_closed(ctx, connection, draft, listener, owner, why)
            if connection.is_closed or await _came_back(ctx, owner, connection):
                break
    await _refused_over_http(ctx, subject, owner, why)
    demand(
        await gets_through(bystander, listener) and await gets_through(owner, listener),
        f"{subject.name} was shut down, and another is refused",
    )
    for connection in connections:
        await connection.leave()
    with suppress(Violation):
        await owner.expect(leaves(subject.id), "that it left")
    await ctx.reconnect(subject)
    demand(
        await gets_through(subject, listener), f"{subject.name} left and joined again, and is still refused"
    )


async def _refused_or_closed(
    ctx: CheckContext,
    sender: ScriptedClient,
    draft: Draft,
    observer: ScriptedClient,
    other: ScriptedClient,
    why: str,
) -> None:
    """To be disconnected is to be refused too: until it joins again nothing can be sent."""
    before, came_to = len(observer.received), Delivery.LOST
    if not sender.is_closed:
        with suppress(Violation):  # it was closed just now
            came_to = await delivery_of(sender, observer, draft)
        demand(came_to is not Delivery.ARRIVED, f"the {draft.kind} of {sender.name} was accepted: {why}")
        demand(
            came_to is Delivery.REFUSED or sender.is_closed,
            f"expected that {sender.name} receives a system/error about its {draft.kind}: {why}",
        )
    await ctx.barrier(other, observer)
    said = [e for e in observer.received[before:] if e.get("from") == sender.id]
    demand(not said, f"{observer.name} received {said[:1]}: {why}")


@check("restart.grants-remain")
async def grants_outlive_a_restart(ctx: CheckContext) -> None:
    """What was granted passes after a restart as before it, what was revoked does not, and what one had stays."""
    owner, listener = await ctx.clients("owner", "listener")
    subject = await somebody(ctx)
    kept = await granted(ctx, owner, subject, PROPOSAL.capability, shown=PROPOSAL)
    taken = await granted(ctx, owner, subject, REASONING.capability, shown=REASONING)
    await revoke(ctx, owner, subject, grant_id=taken)
    await _order(ctx, owner, "participant/restart", {}, subject)
    demand(
        await gets_through(subject, listener),
        "after a restart a participant is refused what it had before it was granted more",
    )
    await expect_refused(ctx, subject, await REASONING.send_by(subject), listener)
    if not await gets_through(subject, listener, PROPOSAL):
        raise NotOffered("the gateway takes back what was granted when a participant is restarted")
    await revoke(ctx, owner, subject, grant_id=kept)
    await expect_refused(ctx, subject, await PROPOSAL.send_by(subject), listener)
