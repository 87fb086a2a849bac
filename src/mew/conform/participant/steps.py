"""Steps that several checks take: pauses, things said to be remembered, proposals and their ends."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, Violation

from .context import ParticipantContext

__all__ = [
    "PASSES",
    "Proposed",
    "calm",
    "clear",
    "count_of",
    "effect",
    "every",
    "feed",
    "fresh_word",
    "lull",
    "messages",
    "needs_mcp",
    "needs_memory",
    "needs_responses",
    "pause",
    "propose",
    "resume",
    "since",
    "some",
    "time_of_answer",
]


Envelope = dict[str, Any]

PASSES: Final = frozenset(
    {
        *("chat/acknowledge", "chat/cancel", "reasoning/cancel", "mcp/withdraw", "mcp/reject"),
        *("capability/grant-ack", "participant/status", "participant/compact-done"),
    }
)
"""What who is paused may still send: acknowledgements and cancellations, and our rulings on them (§3.9.1)."""

_CALM_LOOKS: Final = 8


def fresh_word() -> str:
    """One that nobody has said before."""
    return f"word{uuid.uuid4().hex[:10]}"


# What it is given to do with.


def needs_mcp(ctx: ParticipantContext) -> None:
    """
    Raises:
        NotOffered: it has nothing to do with MCP.
    """
    if not ctx.traits.answers_mcp and not ctx.said(_speaks_mcp, since=0):
        raise NotOffered("the participant does not take part in MCP")


def needs_responses(ctx: ParticipantContext) -> None:
    """
    Raises:
        NotOffered: it answers no MCP requests, so that they cannot be used to see something else.
    """
    if not ctx.traits.answers_mcp:
        raise NotOffered("the participant answers no MCP requests")


def _speaks_mcp(envelope: Mapping[str, Any]) -> bool:
    return str(envelope.get("kind")).startswith("mcp/")


def needs_memory(ctx: ParticipantContext) -> None:
    """
    Raises:
        NotOffered: it retains nothing that it tells of.
    """
    if not ctx.traits.remembers:
        raise NotOffered("the participant's status tells of nothing that it retains")


# What it sent in all the run.


def every(ctx: ParticipantContext, *kinds: str) -> list[Envelope]:
    """All that it sent of these kinds since it first came."""
    return ctx.said(is_kind(*kinds), since=0)


async def some(ctx: ParticipantContext, kind: str, prompt: str | None = None) -> list[Envelope]:
    """All that it ever sent of a kind, one at least; a prompt is tried where it sent none yet.

    Raises:
        NotOffered: it sends none.
    """
    found = every(ctx, kind)
    if not found and prompt is not None:
        await ctx.prompt(prompt)
        await ctx.expect_optional(is_kind(kind))
        found = every(ctx, kind)
    if not found:
        raise NotOffered(f"the participant never sent {kind}")
    return found


# What shows what it did.


async def effect(ctx: ParticipantContext) -> Any:
    """What shows how often `tool` was carried out; None: nobody told the kit what does."""
    if "effect" not in ctx.test_run.prompts.said:
        return None
    return await ctx.result(await ctx.call(ctx.call_of("effect")))


# Pauses.


async def pause(ctx: ParticipantContext, payload: Any = None, **fields: Any) -> Envelope:
    """Pause it, so that the gateway knows nothing of that; lifted when the check is over."""
    sent = await ctx.show(
        "participant/pause", {"reason": "conformance"} if payload is None else payload, **fields
    )
    ctx.add_cleanup(lambda: resume(ctx, sent))
    return sent


async def resume(ctx: ParticipantContext, paused: Mapping[str, Any], **fields: Any) -> Envelope:
    return await ctx.show("participant/resume", **{"correlation_id": [paused["id"]], **fields})


async def time_of_answer(ctx: ParticipantContext) -> float:
    """How long it takes for an answer when nothing holds it back, in seconds.

    Raises:
        NotOffered: it answers neither requests nor chats.
    """
    if ctx.traits.answers_mcp:
        sent = await ctx.request("ping")
        fits = both(is_kind("mcp/response"), about(sent))
    elif ctx.traits.replies:
        sent = await ctx.prompt("chat")
        fits = is_kind("chat")
    else:
        raise NotOffered("the participant answers neither requests nor chats")
    shown = await ctx.subject.reached(sent["id"], ctx.began)
    answer = await ctx.expect_frame(fits, f"an answer to {sent['kind']}", since=shown.place)
    return answer.at_s - shown.at_s


async def lull(ctx: ParticipantContext, took_s: float) -> None:
    """Give one that is paused the time to do wrong: several times what it takes when it is not."""
    if ctx.traits.answers_status:  # a status may pass a pause, and may not
        sent = await ctx.ask("participant/request-status")
        await ctx.expect_optional(both(is_kind("participant/status"), about(sent)))
    await asyncio.sleep(min(ctx.config.timeout_s, max(5 * took_s, ctx.config.timeout_s / 8)))


# What it remembers.


def count_of(status: Mapping[str, Any]) -> int:
    """
    Raises:
        NotOffered: it does not say how many messages it retains; that it must is for another check.
    """
    found = status.get("messages_in_context")
    if not isinstance(found, int) or isinstance(found, bool):
        raise NotOffered("the participant's status has no number in `messages_in_context`")
    return found


async def messages(ctx: ParticipantContext) -> int:
    return count_of(await ctx.status())


async def calm(ctx: ParticipantContext) -> tuple[int, int]:
    """How many messages it retains once it has taken in all, and by how many each question makes that grow."""
    counts = [await messages(ctx), await messages(ctx)]
    for _ in range(_CALM_LOOKS):
        counts.append(await messages(ctx))
        if counts[-1] - counts[-2] == counts[-2] - counts[-3]:
            break
    return counts[-1], counts[-1] - counts[-2]


async def feed(ctx: ParticipantContext, many: int = 12) -> list[str]:
    """Say so much to everyone; returns a word of each."""
    words = [fresh_word() for _ in range(many)]
    for word in words:
        await ctx.ask("chat", {"text": f"Nobody need answer this: {word}.", "format": "plain"}, to=...)
    return words


def since(ctx: ParticipantContext, sent: Mapping[str, Any]) -> int:
    """How many envelopes it was shown or sent since it was shown this: it cannot have retained more of them."""
    place = ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    return sum(frame.envelope is not None for frame in ctx.subject.frames[place:])


async def clear(ctx: ParticipantContext) -> None:
    """Have it begin with an empty memory, as far as it can; whether it does so rightly is for another check."""
    sent = await ctx.ask("participant/clear")
    try:
        await ctx.expect_status(sent)
    except Violation:
        return


_REJECTED: Final = ("mcp/withdraw", "chat", "mcp/response", "mcp/proposal", "reasoning/conclusion")


class Proposed:
    """What it proposed when it was prompted to do what it may not."""

    def __init__(self, ctx: ParticipantContext, word: str, prompted: Envelope, proposal: Envelope) -> None:
        self.ctx = ctx
        self.word = word
        self.prompted = prompted
        self.proposal = proposal

    @property
    def id(self) -> str:
        return str(self.proposal["id"])

    async def reject(self, payload: Any = None, *, by: str = "reviewer") -> Envelope:
        reason = {"reason": "unsafe"} if payload is None else payload
        return await self.ctx.ask("mcp/reject", reason, by=by, correlation_id=[self.id])

    async def fulfil(self, names: str | None = None) -> str:
        """Somebody makes the request for it, or for the like of another's; returns the word that its response says."""
        worker = await self.ctx.worker()
        word, called = fresh_word(), len(worker.called)
        worker.reply = lambda _: {"result": {"content": [{"type": "text", "text": f"the note: {word}"}]}}
        reviewer = await self.ctx.client("reviewer")
        payload = payload_of(self.proposal)
        await reviewer.send(
            "mcp/request",
            {"jsonrpc": "2.0", "id": 1, "method": payload.get("method"), "params": payload.get("params")},
            to=[worker.id],
            correlation_id=[names or self.id],
        )
        await worker.awaited(self.ctx.config.timeout_s, called + 1)
        return word

    async def reaction(self, since: int) -> Envelope | None:
        """What it does about its rejection, waited for; None: nothing that one could see."""
        return await self.ctx.expect_optional(self.reacts, since=since)

    def reacts(self, envelope: Mapping[str, Any]) -> bool:
        """It takes the proposal back, tells who prompted it, says something, or proposes anew."""
        if envelope.get("kind") not in _REJECTED or envelope.get("id") == self.id:
            return False
        is_about = bool({self.id, self.prompted["id"]}.intersection(causes(envelope)))
        return is_about or envelope["kind"] in ("chat", "mcp/proposal")


async def propose(ctx: ParticipantContext) -> Proposed:
    """Prompt it to write a note of the worker, which it may only propose; ended when the check is over.

    Raises:
        NotOffered: it does not.
    """
    await ctx.worker()
    word = fresh_word()
    since = ctx.subject.place
    prompted = await ctx.prompt("propose", word=word)
    proposal = await ctx.expect_optional(is_kind("mcp/proposal"), since=since)
    if proposal is None:
        raise NotOffered("the prompt 'propose' does not make the participant propose")
    made = Proposed(ctx, word, prompted, proposal)

    async def end() -> None:
        if not ctx.said(both(is_kind("mcp/withdraw"), about(proposal))):
            await made.reject()

    ctx.add_cleanup(end)
    return made
