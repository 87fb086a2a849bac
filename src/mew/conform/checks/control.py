"""The control of participants that the gateway only passes on (§3.9.3 to §3.9.10); see also silence.py."""

from contextlib import suppress
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.guests import newcomer, somebody
from mew.conform.passing import arrive, shown, taken, unchanged
from mew.conform.refusing import refused
from mew.conform.sayings import CHAT
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered
from mew.conform.wire import Actor

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
