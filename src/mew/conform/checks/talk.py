"""Chat, acknowledgements and reasoning that everyone may follow (§3.4, §3.5)."""

from typing import Any, Final

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.expectations import expect_accepted, expect_delivered, expect_shown
from mew.conform.outcome import NotOffered
from mew.conform.runner import check

_HI: Final = {"text": "hi"}


@check("chat.format")
async def a_chat_needs_no_format(ctx: CheckContext) -> None:
    """A chat without `format`, as plain text, and as markdown is delivered, and none is given a format."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    payloads = (
        {"text": "hi"},
        {"text": "hi", "format": "plain"},
        {"text": "# hi\n\n*there* <b>&amp;</b>", "format": "markdown"},
        {"text": "# not markdown: no format"},
    )
    for sender, receivers in ((owner, (peer, listener)), (listener, (owner, peer))):
        sent = [await sender.send("chat", payload) for payload in payloads]
        await expect_delivered(ctx, sender, sent, *receivers)


@check("chat.broadcast")
async def a_chat_goes_to_everyone_or_to_some(ctx: CheckContext) -> None:
    """A chat with `to` left out or empty reaches everyone, and one with `to` those it names."""
    owner, peer, proposer, listener = await ctx.clients("owner", "peer", "proposer", "listener")
    for sender in (owner, listener):
        others = [one for one in (owner, peer, proposer, listener) if one is not sender]
        to_all = [await sender.send("chat", _HI), await sender.send("chat", _HI, to=[])]
        await expect_delivered(ctx, sender, to_all, *others)
        for some in (others[:1], others[1:2], others[:2], others[::-1]):
            sent = await sender.send("chat", _HI, to=[one.id for one in some])
            await expect_delivered(ctx, sender, [sent], *some)


@check("acknowledge.status")
async def an_acknowledgement_has_any_status(ctx: CheckContext) -> None:
    """An acknowledgement reaches whom it is addressed to, with whatever status it gives, and with none."""
    owner, peer = await ctx.clients("owner", "peer")
    said = await owner.send("chat", _HI)
    await expect_shown(said, peer)
    statuses = ("received", "read", "seen", "READ", "vendor:filed 🐱", "")
    payloads = [*({"status": status} for status in statuses), {}, {"status": "read", "at": [1, {"by": "me"}]}]
    sent = [
        await peer.send("chat/acknowledge", payload, to=[owner.id], correlation_id=[said["id"]])
        for payload in payloads
    ]
    if not await expect_accepted(ctx, peer, sent[0], owner):
        raise NotOffered("nobody is shown a chat/acknowledge here, not even who is addressed")
    await expect_delivered(ctx, peer, sent[1:], owner)


@check("acknowledge.suppressed")
async def an_acknowledgement_is_shown_whole_or_not_at_all(ctx: CheckContext) -> None:
    """An acknowledgement to everyone is accepted; who receives it, and nobody has to, receives it once and whole."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    said = await owner.send("chat", _HI)
    await expect_shown(said, peer, listener)
    sent = await peer.send("chat/acknowledge", {"status": "read"}, correlation_id=[said["id"]])
    await expect_accepted(ctx, peer, sent, owner, listener)


_SEQUENCE: Final = ("reasoning/start", "reasoning/thought", "reasoning/conclusion", "reasoning/cancel")


@check("reasoning.observable")
async def reasoning_is_seen_by_everyone(ctx: CheckContext) -> None:
    """Every kind of reasoning reaches all the others, with its context and what it is about, in parallel too."""
    owner, peer, proposer, listener = await ctx.clients("owner", "peer", "proposer", "listener")
    asked = await owner.send("mcp/request", {"method": "tools/list"}, to=[peer.id, proposer.id])
    await expect_shown(asked, peer, proposer)
    starts = {}
    for thinker in (peer, proposer):
        start = await thinker.send("reasoning/start", {"message": "hm"}, correlation_id=[asked["id"]])
        others = [one for one in (owner, peer, proposer, listener) if one is not thinker]
        await expect_delivered(ctx, thinker, [start], *others)
        starts[thinker] = start
    for kind in _SEQUENCE:
        for thinker, start in starts.items():
            others = [one for one in (owner, peer, proposer, listener) if one is not thinker]
            sent = [
                await thinker.send(kind, {"message": "so"}, context=start["id"]),
                await thinker.send(kind, {"message": "so"}, context=f"{start['id']}/part/1"),
                await thinker.send(kind, {}, context=start["id"], correlation_id=[asked["id"], start["id"]]),
            ]
            await expect_delivered(ctx, thinker, sent, *others)


async def _start(thinker: ScriptedClient, **fields: Any) -> dict[str, Any]:
    return await thinker.send("reasoning/start", {"message": "thinking about it"}, **fields)


@check("reasoning.thoughts")
async def any_number_of_thoughts_passes(ctx: CheckContext) -> None:
    """A sequence of reasoning may have no thought, one, or many, of the same words too; each is delivered."""
    peer, owner, listener = await ctx.clients("peer", "owner", "listener")
    for thoughts in (0, 1, 30):
        start = await _start(peer)
        within = {"context": start["id"]}
        sent = [start]
        for number in range(thoughts):
            message = "the same again" if number % 3 else f"thought {number}"
            sent.append(await peer.send("reasoning/thought", {"message": message}, **within))
        sent.append(await peer.send("reasoning/conclusion", {"message": "done"}, **within))
        await expect_delivered(ctx, peer, sent, owner, listener)


@check("reasoning.chat-in-context")
async def a_chat_may_belong_to_a_sequence(ctx: CheckContext) -> None:
    """A chat with the `context` of a sequence is delivered with it: from who reasons, and from who answers."""
    peer, owner, listener = await ctx.clients("peer", "owner", "listener")
    start = await _start(peer)
    await expect_delivered(ctx, peer, [start], owner, listener)
    for context in (start["id"], f"{start['id']}/aside"):
        asked = await peer.send("chat", {"text": "is it?"}, context=context)
        await expect_delivered(ctx, peer, [asked], owner, listener)
        answer = await listener.send("chat", {"text": "it is"}, context=context, correlation_id=[asked["id"]])
        await expect_delivered(ctx, listener, [answer], owner, peer)
        thanks = await peer.send("chat", {"text": "thanks"}, context=context, to=[listener.id])
        await expect_delivered(ctx, peer, [thanks], listener)


@check("reasoning.conclusion")
async def a_sequence_may_be_concluded_or_not(ctx: CheckContext) -> None:
    """A conclusion is delivered; where none comes, a next sequence may begin and be concluded all the same."""
    peer, owner, listener = await ctx.clients("peer", "owner", "listener")
    first, second = await _start(peer), await _start(peer)
    thought = await peer.send("reasoning/thought", {"message": "first"}, context=first["id"])
    ends = [
        await peer.send("reasoning/conclusion", {"message": "second"}, context=second["id"]),
        await peer.send("reasoning/conclusion", {}, context=(await _start(peer))["id"]),
    ]
    await expect_delivered(ctx, peer, [first, second, thought, *ends], owner, listener)
    answer = await peer.send("chat", {"text": "so much for that"}, correlation_id=[first["id"]])
    await expect_delivered(ctx, peer, [answer], owner, listener)


@check("reasoning.autonomous")
async def reasoning_may_start_by_itself(ctx: CheckContext) -> None:
    """A `reasoning/start` that answers nothing is delivered, as a first word and beside other sequences."""
    owner, listener = await ctx.clients("owner", "listener")
    for name in ("peer", "proposer"):
        thinker = await ctx.client(name)
        starts = [await _start(thinker), await _start(thinker, correlation_id=[]), await _start(thinker)]
        thoughts = [
            await thinker.send("reasoning/thought", {"message": "hm"}, context=start["id"])
            for start in starts
        ]
        await expect_delivered(ctx, thinker, [*starts, *thoughts], owner, listener)


@check("reasoning.cancel-correlates")
async def a_cancellation_may_name_what_was_reasoned_about(ctx: CheckContext) -> None:
    """A `reasoning/cancel` is delivered with the request or proposal it names, and without any."""
    owner, peer, proposer, listener = await ctx.clients("owner", "peer", "proposer", "listener")
    call = {"method": "tools/call", "params": {"name": "a", "arguments": {}}}
    causes = [
        await owner.send("mcp/request", call, to=[peer.id]),
        await proposer.send("mcp/proposal", call, to=[peer.id]),
    ]
    for cause in causes:
        await expect_shown(cause, peer)
    for named in ([causes[0]["id"]], [causes[1]["id"]], [cause["id"] for cause in causes], [], ...):
        start = await _start(peer, correlation_id=named)
        cancelled = await peer.send(
            "reasoning/cancel", {"reason": "superseded"}, context=start["id"], correlation_id=named
        )
        await expect_delivered(ctx, peer, [start, cancelled], owner, listener)
