"""Getting acquainted: what the participant does at all, found out before it is held to anything."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.match import about, both, is_kind, payload_of, to_of
from mew.conform.outcome import Violation
from mew.conform.participant.worker import INITIALIZE

from .context import ParticipantContext
from .test_run import TestRun, Traits

__all__ = ["probe_participant"]


_PAGES_MAX: Final = 20
_CHATS: Final = 4


async def probe_participant(test_run: TestRun) -> Traits:
    """Its traits; that it does something badly is for the checks to say."""
    async with ParticipantContext(test_run) as ctx:
        status = await _status(ctx)
        tools = await _tools(ctx)
        answers = tools is not None or await _answers(ctx, "initialize")
        replies, acknowledges = await _talk(ctx)
        for number in range(_CHATS):
            await ctx.ask("chat", {"text": f"Nobody need answer this, number {number}."}, to=...)
        later = None if status is None else await _status(ctx)
        return Traits(status, tools or {}, answers, _remembers(status, later), replies, acknowledges)


async def _status(ctx: ParticipantContext) -> Mapping[str, Any] | None:
    sent = await ctx.ask("participant/request-status")
    try:
        return payload_of(await ctx.expect_status(sent))
    except Violation:
        return None


async def _tools(ctx: ParticipantContext) -> dict[str, Mapping[str, Any]] | None:
    """By name; None: it does not answer."""
    tools: dict[str, Mapping[str, Any]] = {}
    params: dict[str, Any] | None = None
    for _ in range(_PAGES_MAX):
        sent = await ctx.request("tools/list", params)
        answer = await ctx.expect_optional(both(is_kind("mcp/response"), about(sent)))
        if answer is None:
            return tools or None
        result = payload_of(answer).get("result")
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return tools
        tools |= {str(tool.get("name")): tool for tool in result["tools"] if isinstance(tool, dict)}
        if not isinstance(result.get("nextCursor"), str):
            return tools
        params = {"cursor": result["nextCursor"]}
    return tools


async def _answers(ctx: ParticipantContext, method: str) -> bool:
    sent = await ctx.request(method, INITIALIZE)
    return await ctx.expect_optional(both(is_kind("mcp/response"), about(sent))) is not None


async def _talk(ctx: ParticipantContext) -> tuple[bool, bool]:
    """Whether it answers what is said to it with a chat, and whether with an acknowledgement."""
    since = ctx.subject.place
    said = await ctx.prompt("chat")
    answer = await ctx.expect_optional(
        lambda e: (
            e.get("kind") in ("chat", "chat/acknowledge")
            and (about(said)(e) or "owner" in to_of(e) or e.get("kind") == "chat")
        ),
        since=since,
    )
    kind = None if answer is None else answer["kind"]
    return kind == "chat", kind == "chat/acknowledge"


def _remembers(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    if before is None or after is None:
        return False
    first, then = before.get("messages_in_context"), after.get("messages_in_context")
    if isinstance(first, int) and isinstance(then, int):
        return then > first or then > 0
    return any(name in after for name in ("tokens", "max_tokens"))
