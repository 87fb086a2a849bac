"""The kinds of envelopes: each is written as the document has it, and each may be sent (§3)."""

from functools import partial
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.guests import dismiss, invitation, somebody, somebody_new
from mew.conform.matching import answers
from mew.conform.observing import gateway_says
from mew.conform.passing import arrive, shown, taken, unchanged
from mew.conform.stage import Stage
from mew.conform.verdicts import demand

_CALL: Final = {"method": "tools/call", "params": {"name": "read_file"}}
_CAPABILITY: Final = {"kind": "mcp/proposal"}
_KINDS: Final = frozenset({"system/presence", "system/welcome", "system/error"})


@check("kind.vocabulary")
async def every_kind_may_be_sent(stage: Stage) -> None:
    """Who may send everything may send each kind of the list that is not the gateway's, and it keeps its name."""
    owner, peer = await stage.enter_all("owner", "peer")
    proposal = await peer.send("mcp/proposal", _CALL)
    own = await owner.send("mcp/proposal", _CALL)
    chat = await peer.send("chat", {"text": "hi"})
    start = await owner.send("reasoning/start", {"message": "hm"})
    call = await owner.send("mcp/request", _CALL, to=[peer.id], correlation_id=[proposal["id"]])
    thinking: dict[str, Any] = {"context": start["id"]}
    sent = [
        *(own, start, call),
        await owner.send("mcp/response", {"result": {}}, to=[peer.id], correlation_id=["no-such-request"]),
        await owner.send("mcp/withdraw", {"reason": "other"}, correlation_id=[own["id"]]),
        await owner.send("mcp/reject", {"reason": "busy"}, to=[peer.id], correlation_id=[proposal["id"]]),
        await owner.send("reasoning/thought", {"message": "hm"}, **thinking),
        await owner.send("reasoning/conclusion", {"message": "so"}, **thinking),
        await owner.send("reasoning/cancel", {"reason": "error"}, **thinking),
        await owner.send("chat", {"text": "hi"}),
        await owner.send("chat/cancel", {"reason": "duplicate"}, correlation_id=[chat["id"]]),
    ]
    await arrive(stage, owner, sent, peer)
    for kind in ("chat/acknowledge", "participant/status"):  # these may be suppressed (§3.4.1, §3.9.4)
        payload = {"status": "received", "messages_in_context": 0}
        quiet = await owner.send(kind, payload, to=[peer.id], correlation_id=[chat["id"]])
        await taken(stage, owner, quiet, peer)


@check("kind.vocabulary")
async def every_kind_that_manages_may_be_sent(stage: Stage) -> None:
    """The kinds that manage participants and capabilities are delivered under their names."""
    owner, peer = await stage.enter_all("owner", "peer")
    who = await somebody(stage)
    gift = {"recipient": who.id, "capabilities": [_CAPABILITY]}
    grant = await owner.send("capability/grant", gift, to=[who.id])
    pause = await owner.send("participant/pause", {"timeout_seconds": 60}, to=[who.id])
    taking = {"recipient": who.id, "capabilities": [_CAPABILITY]}
    orders = [
        *(grant, pause),
        await owner.send("capability/revoke", taking, to=[who.id]),
        await owner.send("participant/resume", {}, to=[who.id], correlation_id=[pause["id"]]),
        await owner.send("participant/request-status", {"fields": ["tokens"]}, to=[who.id]),
        await owner.send("participant/forget", {"direction": "oldest", "entries": 1}, to=[who.id]),
        await owner.send("participant/compact", {"target_tokens": 10}, to=[who.id]),
        await owner.send("participant/clear", ..., to=[who.id]),
        await owner.send("participant/restart", ..., to=[who.id]),
    ]
    await arrive(stage, owner, orders, who)
    invite = await owner.send("space/invite", invitation(newcomer := somebody_new(), _CAPABILITY))
    stage.afterwards(partial(dismiss, stage, newcomer))
    await taken(stage, owner, invite, peer)  # who else sees it is invite.broadcast
    to_all = [
        await owner.send("capability/grant-ack", {"status": "accepted"}, correlation_id=[grant["id"]]),
        await owner.send("participant/compact-done", {"skipped": True}, correlation_id=["no-such-request"]),
    ]
    await arrive(stage, owner, to_all, peer)
    shutdown = await owner.send("participant/shutdown", ..., to=[who.id])
    (arrived,) = await shown(shutdown, who)  # which may be disconnected by it
    unchanged(shutdown, arrived, who)
    if who.name not in stage.cast.roles:  # and can be spared
        kick = await owner.send("space/kick", {"participant_id": who.id, "reason": "conformance"})
        await arrive(stage, owner, [kick], peer)


@check("kind.vocabulary")
async def a_stream_is_asked_for_and_closed(stage: Stage) -> None:
    """`stream/request` is answered with `stream/open`, and `stream/close` is delivered."""
    owner, peer = await stage.enter_all("owner", "peer")
    asked = await owner.send("stream/request", {"direction": "upload"}, to=["gateway"])
    opened = await owner.hear(
        lambda e: e.get("kind") == "stream/open" and answers(e, asked), "a stream/open (§3.10.1)"
    )
    stream = opened["payload"]["stream_id"]
    close = {"stream_id": stream, "reason": "complete"}
    closed = await owner.send("stream/close", close, correlation_id=[opened["id"]])
    await arrive(stage, owner, [closed], peer)


@check("kind.vocabulary")
async def the_gateway_uses_the_kinds_of_the_list(stage: Stage) -> None:
    """What the gateway says of itself has the kinds that the document gives it, written so."""
    said = {str(envelope.get("kind")) for envelope in await gateway_says(stage)}
    demand(
        said >= _KINDS,
        f"expected {', '.join(sorted(_KINDS))} of the gateway; it sent {', '.join(sorted(said))}",
    )
