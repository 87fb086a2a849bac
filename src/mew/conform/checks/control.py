"""The control of participants: what is passed on, and what the gateway enforces (§3.9)."""

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from mew.conform.connection import Actor
from mew.conform.context import Stage
from mew.conform.drafts import CHAT, HELLO, PROPOSAL, REASONING, Say, allows, request
from mew.conform.expectations import Fate, arrive, fate, gets_through, refused, shown, taken, unchanged
from mew.conform.fixtures import a_guest, granted, newcomer, revoke, somebody
from mew.conform.http_api import open_door
from mew.conform.match import is_id, leaves, refuses
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.runner import check

_METRICS: Final = {"messages_in_context": 12, "tokens": 12345, "max_tokens": 20000}
_LEFT_OUT: Final[Any] = ...


async def _reach(stage: Stage, kind: str, *payloads: Any) -> None:
    """The owner orders it of a peer with each of these payloads, and the peer receives the order as it was given."""
    owner, peer = await stage.enter_all("owner", "peer")
    sent = [await owner.send(kind, to=[peer.id], payload=payload) for payload in payloads]
    await arrive(stage, owner, sent, peer)


@check("status-request.name")
async def the_kind_is_request_status_with_a_hyphen(stage: Stage) -> None:
    """`participant/request-status` passes under that name; who may send it may not send `participant/requestStatus`."""
    owner, peer = await stage.enter_all("owner", "peer")
    sent = await owner.send("participant/request-status", to=[peer.id])
    await arrive(stage, owner, [sent], peer)
    kind = "participant/request-status"
    drafts = ("participant/requestStatus", "participant/request_status", "participant/Request-Status")
    asking = await somebody(stage, CHAT, {"kind": kind})
    sent = await asking.send(kind, to=[peer.id])
    await arrive(stage, asking, [sent], peer)
    for draft in drafts:
        await refused(stage, asking, await asking.send(draft, to=[peer.id]), peer, owner)
    drafting = await somebody(stage, CHAT, *({"kind": draft} for draft in drafts))
    await refused(stage, drafting, await drafting.send(kind, to=[peer.id]), peer, owner)


@check("status-request.fields")
async def a_status_request_may_name_fields(stage: Stage) -> None:
    """A request for a status is delivered with `fields`, with ones nobody knows, and with none."""
    fields: tuple[list[str], ...] = (["tokens"], ["tokens", "latency"], [], ["vendor_metric", "zähler"])
    await _reach(stage, "participant/request-status", {}, *({"fields": some} for some in fields))


# A status may be kept from those whom it does not concern (§3.9.4), and so may all of them.


async def _asked(stage: Stage, owner: Actor, peer: Actor) -> dict[str, Any]:
    """A request for a status that the peer answers, and the owner is shown the answer.

    Raises:
        NotOffered: the gateway keeps it even from who asked, and is addressed.
    """
    asked = await owner.send("participant/request-status", to=[peer.id])
    await shown(asked, peer)
    answer = await peer.send("participant/status", _METRICS, to=[owner.id], correlation_id=[asked["id"]])
    if not await taken(stage, peer, answer, owner):
        raise NotOffered("nobody is shown a participant/status here, not even who asked for it")
    return asked


@check("status.proactive")
async def a_status_may_come_unasked(stage: Stage) -> None:
    """A status that nobody asked for is accepted, and reaches whom it is addressed to."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    await _asked(stage, owner, peer)
    sent = [
        await peer.send("participant/status", _METRICS, to=[owner.id]),
        await peer.send("participant/status", _METRICS, to=[owner.id], correlation_id=[]),
    ]
    await arrive(stage, peer, sent, owner)
    await taken(stage, peer, await peer.send("participant/status", _METRICS), owner, listener)


@check("status.other-metrics")
async def a_status_may_have_other_metrics(stage: Stage) -> None:
    """A status is delivered with metrics nobody standardised, and each has its value still."""
    owner, peer = await stage.enter_all("owner", "peer")
    await _asked(stage, owner, peer)
    metrics: tuple[dict[str, Any], ...] = (
        {"latency_ms": 350.25, "queue_depth": 0, "is_idle": True},
        {"status": "compacting", "models": ["a", {"name": "b", "tokens": 1}], "cost_usd": 0.000125},
        {"messages_in_context": 0},
        {"vendor_größe": "µ", "nothing": None, "largest": 9007199254740991},
    )
    sent = [await peer.send("participant/status", _METRICS | more, to=[owner.id]) for more in metrics]
    sent.append(await peer.send("participant/status", {"only": "mine"}, to=[owner.id]))
    await arrive(stage, peer, sent, owner)


@check("status.broadcast")
async def a_status_may_be_for_everyone(stage: Stage) -> None:
    """A status without `to`, or with an empty one, is accepted though one participant asked, and that one gets it."""
    owner, peer = await stage.enter_all("owner", "peer")
    asked = await _asked(stage, owner, peer)
    sent = [
        await peer.send("participant/status", _METRICS, correlation_id=[asked["id"]]),
        await peer.send("participant/status", _METRICS, correlation_id=[asked["id"]], to=[]),
    ]
    await arrive(stage, peer, sent, owner)


@check("status.dissemination-limited")
async def who_asked_for_a_status_gets_it(stage: Stage) -> None:
    """Who asked for a status receives it; the others receive it whole, or not at all."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    asked = await _asked(stage, owner, peer)
    sent = await peer.send("participant/status", _METRICS, correlation_id=[asked["id"]])
    await arrive(stage, peer, [sent], owner)
    await taken(stage, peer, sent, listener)


@check("forget.entries")
async def a_forget_needs_no_entries(stage: Stage) -> None:
    """A `participant/forget` is delivered with `entries` and without, in both directions."""
    payloads = [
        {"direction": direction, **entries}
        for direction in ("oldest", "newest")
        for entries in ({}, {"entries": 10}, {"entries": 0})
    ]
    await _reach(stage, "participant/forget", *payloads)


@check("compact.reason", "compact.target-tokens")
async def a_compaction_needs_no_reason_and_no_target(stage: Stage) -> None:
    """A `participant/compact` is delivered with `reason`, `target_tokens`, both or neither, and as it was."""
    await _reach(
        stage,
        "participant/compact",
        {},
        {"reason": "token_pressure"},
        {"reason": "because I say so 🐱"},
        {"target_tokens": 16000},
        {"target_tokens": 0},
        {"reason": "token_pressure", "target_tokens": 16000},
    )


@check("compact-done.freed")
async def a_compaction_may_say_what_it_freed(stage: Stage) -> None:
    """A `participant/compact-done` reaches who asked, with `freed_tokens` and `freed_messages`, one, or neither."""
    asker, worker = await stage.enter_all("peer", "owner")
    with suppress(NotOffered):
        asker, worker = worker, await somebody(stage, CHAT, {"kind": "participant/compact-done"})
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
    await arrive(stage, worker, sent, asker)


@check("clear.payload")
async def a_clear_needs_no_payload(stage: Stage) -> None:
    """A `participant/clear` without `payload`, and with an empty one, is delivered."""
    await _reach(stage, "participant/clear", _LEFT_OUT, {})


@check("restart.hints")
async def a_restart_may_have_hints_or_no_payload(stage: Stage) -> None:
    """A `participant/restart` is delivered without `payload`, with an empty one, and with fields nobody knows."""
    hints: dict[str, Any] = {"mode": "cold", "vendor": {"keep": ["memory"], "after_s": 1.5}, "reason": None}
    await _reach(stage, "participant/restart", _LEFT_OUT, {}, hints)


@check("shutdown.context")
async def a_shutdown_may_have_context_or_no_payload(stage: Stage) -> None:
    """A `participant/shutdown` is delivered without `payload`, with an empty one, and with fields nobody knows."""
    owner, role = await stage.enter("owner"), await newcomer(stage)
    context: dict[str, Any] = {"reason": "maintenance", "grace": {"seconds": 5, "drain": [True, None]}}
    for payload in (_LEFT_OUT, {}, context):
        target = await stage.join(role)  # and so begins anew
        sent = await owner.send("participant/shutdown", to=[target.id], payload=payload)
        (arrived,) = await shown(sent, target)
        unchanged(sent, arrived, target)
        await target.leave()


_WORK: Final = (HELLO, request("tools/list"), PROPOSAL, REASONING)
_ACKNOWLEDGING_OR_CANCELLING: Final = (
    Say("chat/acknowledge", {"status": "received"}),
    Say("chat/cancel", {"reason": "timeout"}),
    Say("reasoning/cancel", {"reason": "superseded"}),
    Say("mcp/withdraw", {"reason": "no_longer_needed"}),
    Say("capability/grant-ack", {"status": "accepted"}),
    Say("participant/compact-done", {"skipped": True}),
)
_RESUME: Final = Say("participant/resume")
_TIMEOUT_S: Final = 1
_POLL_S: Final = 0.05


async def _subject(stage: Stage, stand_in: str = "peer") -> Actor:
    """Whom the order is for: a guest, or where none can be invited a role, that is left as it was."""
    try:
        return await a_guest(
            stage, *(say.capability for say in (*_WORK, *_ACKNOWLEDGING_OR_CANCELLING, _RESUME))
        )
    except NotOffered:
        return await stage.enter(stand_in)


async def _order(
    stage: Stage, owner: Actor, kind: str, payload: Any, *subjects: Actor, **fields: Any
) -> dict[str, Any]:
    """The owner orders it, and all it is for know of it."""
    sent = await owner.send(kind, payload, to=[subject.id for subject in subjects], **fields)
    await arrive(stage, owner, [sent], *subjects)
    return sent


async def _pause(stage: Stage, owner: Actor, *subjects: Actor, **payload: Any) -> dict[str, Any]:
    """They are paused, at the most until the check is over."""
    to = [subject.id for subject in subjects]
    stage.afterwards(lambda: owner.send("participant/resume", {}, to=to))
    return await _order(stage, owner, "participant/pause", {"reason": "rate_limit", **payload}, *subjects)


async def _kept_back(stage: Stage, speaker: Actor, say: Say, witness: Actor, other: Actor, why: str) -> None:
    """The speaker, who may not chat just now, is told that this is refused, and the witness does not receive it.

    Raises:
        Violation: it was let through.
    """
    sent = await say.by(speaker)
    answer = await speaker.hear(
        lambda e: e.get("id") == sent["id"] or refuses(sent)(e), f"a system/error about {sent['id']}: {why}"
    )
    await stage.settle(other, witness, speaker)
    demand(answer.get("kind") == "system/error", f"the {say.kind} of {speaker.name} was accepted: {why}")
    demand(
        not witness.heard(is_id(sent["id"])),
        f"{speaker.name} was told that its {say.kind} is refused, and {witness.name} received it: {why}",
    )


async def _came_back(stage: Stage, owner: Actor, actor: Actor) -> bool:
    """Whether it was cut off for what it said; it is there again now, and perhaps with all forgotten."""
    before = len(actor.welcomes)
    await stage.settle(owner, actor)
    return len(actor.welcomes) > before


@check("pause.enforced")
async def a_pause_holds_back_work_and_nothing_else(stage: Stage) -> None:
    """An enforced pause is for all work of the participant, and for none of its acknowledgements and cancellations."""
    owner, listener = await stage.enter_all("owner", "listener")
    subject, *more = await stage.twice(await _subject(stage), owner)
    proposal = await PROPOSAL.by(subject)
    await arrive(stage, subject, [proposal], listener)
    forbidden = await listener.send("participant/pause", {"reason": "other"}, to=[subject.id])
    await refused(stage, listener, forbidden, owner, subject)
    demand(
        await gets_through(subject, listener),
        f"{subject.name} is held back by a participant/pause whose sender may not send it",
    )
    await _pause(stage, owner, subject)
    if await gets_through(subject, listener):
        raise NotOffered("the gateway does not enforce pauses")
    if await _came_back(stage, owner, subject):
        raise NotOffered("the gateway disconnects who speaks while it is paused")
    why = f"{subject.name} is paused, and the gateway enforces it (§3.9.1)"
    for say in _WORK:
        if allows(subject.capabilities, say):
            await _kept_back(stage, subject, say, listener, owner, why)
            for twin in more:
                await _kept_back(stage, twin, say, listener, owner, f"{why}, on each connection")
    for say in _ACKNOWLEDGING_OR_CANCELLING:
        about = {"correlation_id": [proposal["id"]], "context": proposal["id"], "to": [owner.id]}
        if allows(subject.capabilities, say):
            came_to = await fate(subject, owner, Say(say.kind, say.payload, about))
            demand(
                came_to is not Fate.REFUSED,
                f"{say.kind} acknowledges or cancels, and a pause is not for that; it was refused",
            )
    await _cannot_be_evaded(stage, subject, listener, owner, why)
    demand(
        await gets_through(listener, owner) and await gets_through(owner, listener),
        f"{subject.name} is paused, and another is held back",
    )
    await _order(stage, owner, "participant/resume", {}, subject)
    demand(await gets_through(subject, listener), f"{subject.name} was resumed and is still held back")


async def _cannot_be_evaded(stage: Stage, subject: Actor, listener: Actor, owner: Actor, why: str) -> None:
    await fate(subject, owner, Say("participant/resume", {}, {"to": [subject.id, owner.id]}))
    await _kept_back(
        stage, subject, HELLO, listener, owner, f"{why}; it sent a participant/resume for itself"
    )
    await _refused_over_http(stage, subject, why)


async def _refused_over_http(stage: Stage, subject: Actor, why: str) -> None:
    with suppress(NotOffered):  # there is no such way round
        door = await open_door(stage)
        answer = await door.post(subject, {"kind": HELLO.kind, "payload": HELLO.payload})
        demand(not answer.is_accepted, f"{why}; over HTTP its chat was accepted with {answer.status}")


@check("pause.timeout")
async def a_pause_may_end_by_itself(stage: Stage) -> None:
    """A pause is delivered with `timeout_seconds` and without; where it is enforced, only the first ends by itself."""
    owner, listener = await stage.enter_all("owner", "listener")
    timed, lasting = await _subject(stage), await _subject(stage, "spare-1")
    began_s = time.monotonic()
    await _pause(stage, owner, lasting)
    await _pause(stage, owner, timed, timeout_seconds=_TIMEOUT_S)
    if await gets_through(timed, listener):
        took_s = time.monotonic() - began_s
        demand(
            await gets_through(lasting, listener),
            f"a pause of {_TIMEOUT_S} s had ended after {took_s:.2f} s, one without a timeout had not",
        )
        return  # it is not enforced, and so for the participant alone to heed
    if await _came_back(stage, owner, timed):
        raise NotOffered("the gateway disconnects who speaks while it is paused")
    while not await gets_through(timed, listener):
        over_s = time.monotonic() - began_s - _TIMEOUT_S
        demand(
            over_s < stage.cast.patience_s,
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
async def a_resumed_participant_speaks_again(stage: Stage) -> None:
    """A resume reaches its participant and lifts the pause, of those it names and of no others."""
    owner, listener = await stage.enter_all("owner", "listener")
    one, two = await _subject(stage), await _subject(stage, "spare-1")
    for with_cause in (True, False):
        paused = await _pause(stage, owner, one, two)
        cause = {"correlation_id": [paused["id"]]} if with_cause else {}
        enforced = not await gets_through(one, listener) and not await _came_back(stage, owner, one)
        forbidden = await listener.send("participant/resume", {}, to=[one.id], **cause)
        await refused(stage, listener, forbidden, owner, one)
        demand(
            not enforced or not await gets_through(one, listener),
            "a participant/resume whose sender may not send it lifted a pause",
        )
        await _order(stage, owner, "participant/resume", {}, one, **cause)
        demand(
            await gets_through(one, listener),
            f"{one.name} was resumed, with {'a' if with_cause else 'no'} correlation_id, and is still held back",
        )
        demand(
            not enforced or not await gets_through(two, listener),
            f"{two.name} may speak again though only {one.name} was resumed",
        )
        await _came_back(stage, owner, two)
        await _order(stage, owner, "participant/resume", {}, two)
        demand(await gets_through(two, listener), f"{two.name} was resumed and is still held back")


@check("shutdown.enforced")
async def who_was_shut_down_is_refused_until_it_rejoins(stage: Stage) -> None:
    """After a shutdown what the participant sends is refused on each connection, until it has left and joined again."""
    owner, listener, bystander = await stage.enter_all("owner", "listener", "proposer")
    connections = await stage.twice(await _subject(stage, "spare-1"), owner)
    subject = connections[0]
    forbidden = await listener.send("participant/shutdown", {}, to=[subject.id])
    await refused(stage, listener, forbidden, owner)
    demand(
        await gets_through(subject, listener),
        f"{subject.name} is refused after a participant/shutdown whose sender may not send it",
    )
    sent = await owner.send("participant/shutdown", {}, to=[subject.id])
    await shown(sent, subject)
    why = f"{subject.name} was shut down and has not joined again (§3.9.10)"
    for connection in connections:
        for say in _WORK:
            if allows(subject.capabilities, say):
                await _refused_or_closed(stage, connection, say, listener, owner, why)
            if connection.is_closed or await _came_back(stage, owner, connection):
                break
    await _refused_over_http(stage, subject, why)
    demand(
        await gets_through(bystander, listener) and await gets_through(owner, listener),
        f"{subject.name} was shut down, and another is refused",
    )
    for connection in connections:
        await connection.leave()
    with suppress(Violation):
        await owner.hear(leaves(subject.id), "that it left")
    await stage.come_back(subject)
    demand(
        await gets_through(subject, listener), f"{subject.name} left and joined again, and is still refused"
    )


async def _refused_or_closed(
    stage: Stage, speaker: Actor, say: Say, witness: Actor, other: Actor, why: str
) -> None:
    """To be disconnected is to be refused too: until it joins again nothing can be sent."""
    before, came_to = len(witness.received), Fate.LOST
    if not speaker.is_closed:
        with suppress(Violation):  # it was closed just now
            came_to = await fate(speaker, witness, say)
        demand(came_to is not Fate.ARRIVED, f"the {say.kind} of {speaker.name} was accepted: {why}")
        demand(
            came_to is Fate.REFUSED or speaker.is_closed,
            f"expected that {speaker.name} receives a system/error about its {say.kind}: {why}",
        )
    await stage.settle(other, witness)
    said = [e for e in witness.received[before:] if e.get("from") == speaker.id]
    demand(not said, f"{witness.name} received {said[:1]}: {why}")


@check("restart.grants-remain")
async def grants_outlive_a_restart(stage: Stage) -> None:
    """What was granted passes after a restart as before it, what was revoked does not, and what one had stays."""
    owner, listener = await stage.enter_all("owner", "listener")
    subject = await somebody(stage)
    kept = await granted(stage, owner, subject, PROPOSAL.capability, shown=PROPOSAL)
    taken = await granted(stage, owner, subject, REASONING.capability, shown=REASONING)
    await revoke(stage, owner, subject, grant_id=taken)
    await _order(stage, owner, "participant/restart", {}, subject)
    demand(
        await gets_through(subject, listener),
        "after a restart a participant is refused what it had before it was granted more",
    )
    await refused(stage, subject, await REASONING.by(subject), listener)
    if not await gets_through(subject, listener, PROPOSAL):
        raise NotOffered("the gateway takes back what was granted when a participant is restarted")
    await revoke(stage, owner, subject, grant_id=kept)
    await refused(stage, subject, await PROPOSAL.by(subject), listener)
