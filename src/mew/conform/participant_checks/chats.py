"""Chat, acknowledgements and cancellations (§3.4)."""

from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import every, fresh_word, lull, pause, resume, some, time_of_answer

_FORMATS: Final = ("plain", "markdown")


def _needs_answers(ctx: ParticipantContext) -> None:
    if not ctx.traits.replies and not ctx.traits.acknowledges:
        raise NotOffered("the participant neither answers nor acknowledges what is said to it")


def _attends(sent: dict[str, Any]) -> Any:
    """It answers this chat, or acknowledges it."""
    return lambda e: e.get("kind") in ("chat", "chat/acknowledge") and (about(sent)(e) or not causes(e))


async def _say(ctx: ParticipantContext, *, by: str = "owner", **fields: Any) -> dict[str, Any]:
    """What it answers, said in any form."""
    payload = fields.pop("payload", {})
    text = ctx.prompt_of("chat")
    return await ctx.ask("chat", {"text": text, **payload}, by=by, **fields)


@check("chat.own-kind")
async def what_is_said_is_a_chat(ctx: ParticipantContext) -> None:
    """What it says goes as kind `chat`, never under an `mcp/…` kind."""
    _needs_answers(ctx)
    since = ctx.subject.place
    sent = await _say(ctx)
    await ctx.expect(_attends(sent), "an answer to a chat, as kind chat", since=since)
    for envelope in ctx.said(lambda e: str(e.get("kind")).startswith("mcp/"), since=0):
        payload = payload_of(envelope)
        is_mcp = any(name in payload for name in ("method", "result", "error", "reason"))
        withdraws = envelope["kind"] in ("mcp/withdraw", "mcp/reject")
        demand(is_mcp or withdraws, f"no MCP is in this: {envelope}")
        demand(sent["id"] not in causes(envelope), f"a chat is answered under an mcp kind: {envelope}")


@check("chat.text")
async def a_chat_has_a_text(ctx: ParticipantContext) -> None:
    """Every chat that it sends has a string in `payload.text`."""
    for chat in await some(ctx, "chat", "chat"):
        text = payload_of(chat).get("text")
        demand(isinstance(text, str), f"`payload.text` of a chat is a string: {chat}")


@check("chat.format-values")
async def a_format_is_plain_or_markdown(ctx: ParticipantContext) -> None:
    """`payload.format` of its chats, where there is one, is `plain` or `markdown`."""
    for chat in await some(ctx, "chat", "chat"):
        said = payload_of(chat)
        demand("format" not in said or said["format"] in _FORMATS, f"`format` is plain or markdown: {chat}")


@check("chat.format")
async def a_chat_without_a_format_is_attended_to(ctx: ParticipantContext) -> None:
    """A chat without `payload.format`, with `plain` or with `markdown` is attended to."""
    _needs_answers(ctx)
    variants: tuple[dict[str, Any], ...] = ({}, {"format": "plain"}, {"format": "markdown"})
    for payload in variants:
        since = ctx.subject.place
        sent = await _say(ctx, payload=payload)
        await ctx.expect(_attends(sent), f"an answer to a chat with {payload or 'no format'}", since=since)


@check("chat.broadcast")
async def a_chat_may_be_for_all_or_some(ctx: ParticipantContext) -> None:
    """It attends to what is said to it by whoever says it; what it says is for all, or for some by name."""
    _needs_answers(ctx)
    for who in ("owner", "novice"):
        since = ctx.subject.place
        sent = await _say(ctx, by=who, to=[ctx.subject.id, "stranger"])
        await ctx.expect(_attends(sent), f"an answer to a chat of {who} to it and another", since=since)
    await _say(ctx, to=...)
    await _say(ctx, to=[])
    await ctx.barrier()
    for chat in every(ctx, "chat"):
        named = chat.get("to", [])
        fits = isinstance(named, list) and all(isinstance(who, str) and who for who in named)
        demand(fits, f"`to` of a chat is empty, left out, or names participants: {chat}")


@check("acknowledge.correlates")
async def an_acknowledgement_names_its_chat(ctx: ParticipantContext) -> None:
    """Every `chat/acknowledge` names what it acknowledges, which the participant was shown, in `correlation_id`."""
    await some(ctx, "chat/acknowledge", "acknowledge" if _has(ctx, "acknowledge") else "chat")
    shown: set[Any] = set()
    for frame in ctx.subject.frames:
        envelope = frame.envelope or {}
        if frame.way == "shown":
            shown.add(envelope.get("id"))
        elif envelope.get("kind") == "chat/acknowledge":
            named = causes(envelope)
            demand(named and shown.issuperset(named), f"it names nothing that it was shown: {frame.data!r}")
    if _has(ctx, "acknowledge"):
        since = ctx.subject.place
        sent = await ctx.prompt("acknowledge")
        said = await ctx.expect(is_kind("chat/acknowledge"), "chat/acknowledge", since=since)
        demand(sent["id"] in causes(said), f"expected it to name the chat {sent['id']}, not {causes(said)}")


def _has(ctx: ParticipantContext, name: str) -> bool:
    return name in ctx.test_run.prompts.said


@check("acknowledge.no-conversation")
async def an_acknowledgement_is_the_last_word(ctx: ParticipantContext) -> None:
    """Who acknowledges a chat says no more about it, and an acknowledgement is not answered with one."""
    if _has(ctx, "acknowledge"):
        since = ctx.subject.place
        sent = await ctx.prompt("acknowledge")
        await ctx.expect(both(is_kind("chat/acknowledge"), about(sent)), "chat/acknowledge", since=since)
        ctx.never(both(is_kind("chat"), about(sent)), "who acknowledges a chat says no more about it")
        again = both(is_kind("chat/acknowledge"), about(sent))
        await ctx.barrier()
        many = len(ctx.said(again))
        demand(many == 1, f"a chat is acknowledged once, not {many} times")
    since = ctx.subject.place
    if ctx.traits.replies:
        chat = await _say(ctx)
        said = await ctx.expect(_attends(chat), "an answer to a chat", since=since)
        acknowledged = await ctx.ask("chat/acknowledge", {"status": "read"}, correlation_id=[said["id"]])
        ctx.never(
            both(is_kind("chat", "chat/acknowledge"), about(acknowledged)),
            "an acknowledgement is not answered",
        )
        await ctx.barrier()
        answers = ctx.said(both(is_kind("chat", "chat/acknowledge"), about(chat)))
        demand(len(answers) <= 1, f"a chat that was answered is answered again: {answers}")
    elif not _has(ctx, "acknowledge"):
        raise NotOffered("the participant does not chat")


@check("acknowledge.status")
async def an_acknowledgement_has_a_status(ctx: ParticipantContext) -> None:
    """`payload.status` of its acknowledgements is a word where it is there; one it does not know upsets nothing."""
    for status in ("received", "read", fresh_word(), ""):
        await ctx.ask("chat/acknowledge", {"status": status}, correlation_id=[f"conform-{fresh_word()}"])
    await ctx.show("chat/acknowledge", payload=..., correlation_id=["conform-unknown"])
    await ctx.barrier()
    said = [
        payload_of(e)
        for e in await some(ctx, "chat/acknowledge", "acknowledge" if _has(ctx, "acknowledge") else None)
    ]
    named = [payload["status"] for payload in said if "status" in payload]
    if not named:
        raise NotOffered("the participant acknowledges without a status")
    for status in named:
        demand(isinstance(status, str) and status, f"`payload.status` is a word, not {status!r}")


@check("chat-cancel.clears-attention")
async def a_cancelled_chat_is_not_answered(ctx: ParticipantContext) -> None:
    """A chat that was cancelled before it was attended to is neither answered nor acknowledged."""
    if not ctx.traits.replies:
        raise NotOffered("the participant answers no chats")
    took_s = await time_of_answer(ctx)
    paused = await pause(ctx)  # so that it cannot have answered before the cancellation
    sent = await _say(ctx)
    await lull(ctx, took_s)
    if ctx.said(both(is_kind("chat", "chat/acknowledge"), about(sent))):
        raise NotOffered("the participant attends to a chat at once, also while it is paused")
    cancelled = await ctx.ask("chat/cancel", {"reason": "handled_elsewhere"}, correlation_id=[sent["id"]])
    await lull(ctx, took_s)
    ctx.never(
        both(is_kind("chat", "chat/acknowledge"), about(sent)),
        f"the chat was cancelled by {cancelled['id']} before it was answered",
    )
    await resume(ctx, paused)
    await ctx.barrier()
    since = ctx.subject.place
    other = await _say(ctx)
    await ctx.expect(both(is_kind("chat"), _attends(other)), "an answer to another chat", since=since)


@check("chat-cancel.correlates")
async def a_cancellation_names_its_chat(ctx: ParticipantContext) -> None:
    """A `chat/cancel` names the cancelled chat, which it sent or was shown, in `correlation_id`."""
    await some(ctx, "chat/cancel", "cancel_chat")
    known: set[Any] = set()
    for frame in ctx.subject.frames:
        envelope = frame.envelope or {}
        if envelope.get("kind") == "chat":
            known.add(envelope.get("id"))
        elif frame.way == "sent" and envelope.get("kind") == "chat/cancel":
            named = causes(envelope)
            demand(named and known.issuperset(named), f"it names no chat that there was: {frame.data!r}")


@check("chat-cancel.reason")
async def a_cancellation_says_why(ctx: ParticipantContext) -> None:
    """A `chat/cancel` has a non-empty `payload.reason`."""
    for envelope in await some(ctx, "chat/cancel", "cancel_chat"):
        reason = payload_of(envelope).get("reason")
        demand(isinstance(reason, str) and reason.strip(), f"a cancellation says why: {envelope}")


# As a person does in its interface.


@check("acknowledge.queue-cleared")
async def clearing_the_queue_acknowledges_each(ctx: ParticipantContext) -> None:
    """When the queue of chats is cleared, each of them is acknowledged once."""
    ctx.prompt_of("acknowledge_all")
    chats = [
        await ctx.ask("chat", {"text": f"Nobody need answer this: {fresh_word()}"}, to=...) for _ in range(3)
    ]
    await ctx.prompt("acknowledge_all")
    for chat in chats:
        await ctx.expect(both(is_kind("chat/acknowledge"), about(chat)), f"chat/acknowledge for {chat['id']}")
    await ctx.barrier()
    for chat in chats:
        many = ctx.said(both(is_kind("chat/acknowledge"), about(chat)))
        demand(len(many) == 1, f"one chat/acknowledge for each chat, not {len(many)} for {chat['id']}")
        demand(len(causes(many[0])) == 1, f"one for each chat, not one for several: {many[0]}")


@check("chat-cancel.all")
async def cancelling_all_cancels_each(ctx: ParticipantContext) -> None:
    """When all unacknowledged chats are cancelled at once, there is one `chat/cancel` for each."""
    ctx.prompt_of("cancel_all")
    _needs_answers(ctx)
    said = []
    for _ in range(2):
        since = ctx.subject.place
        sent = await _say(ctx)
        answer = await ctx.expect(_attends(sent), "an answer to a chat", since=since)
        if answer["kind"] == "chat":
            said.append(answer)
    if not said:
        raise NotOffered("the participant says nothing that could be cancelled")
    await ctx.prompt("cancel_all")
    for chat in said:
        await ctx.expect(both(is_kind("chat/cancel"), about(chat)), f"chat/cancel for {chat['id']}")
    await ctx.barrier()
    for chat in said:
        many = ctx.said(both(is_kind("chat/cancel"), about(chat)))
        demand(len(many) == 1, f"one chat/cancel for each chat, not {len(many)} for {chat['id']}")
        demand(len(causes(many[0])) == 1, f"one for each chat, not one for several: {many[0]}")
