"""Getting acquainted: what the participant does at all, found out before it is held to anything."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.match import about, both, is_kind, payload_of, to_of
from mew.conform.outcome import Violation
from mew.conform.participant.worker import INITIALIZE

from .context import ParticipantStage
from .test_run import Company, Traits

__all__ = ["get_acquainted"]


_PAGES_MAX: Final = 20
_CHATS: Final = 4


async def get_acquainted(company: Company) -> Traits:
    """Its traits; that it does something badly is for the checks to say."""
    async with ParticipantStage(company) as stage:
        status = await _status(stage)
        tools = await _tools(stage)
        answers = tools is not None or await _answers(stage, "initialize")
        replies, acknowledges = await _talk(stage)
        for number in range(_CHATS):
            await stage.ask("chat", {"text": f"Nobody need answer this, number {number}."}, to=...)
        later = None if status is None else await _status(stage)
        return Traits(status, tools or {}, answers, _remembers(status, later), replies, acknowledges)


async def _status(stage: ParticipantStage) -> Mapping[str, Any] | None:
    sent = await stage.ask("participant/request-status")
    try:
        return payload_of(await stage.hear_status(sent))
    except Violation:
        return None


async def _tools(stage: ParticipantStage) -> dict[str, Mapping[str, Any]] | None:
    """By name; None: it does not answer."""
    tools: dict[str, Mapping[str, Any]] = {}
    params: dict[str, Any] | None = None
    for _ in range(_PAGES_MAX):
        sent = await stage.request("tools/list", params)
        answer = await stage.heard_if(both(is_kind("mcp/response"), about(sent)))
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


async def _answers(stage: ParticipantStage, method: str) -> bool:
    sent = await stage.request(method, INITIALIZE)
    return await stage.heard_if(both(is_kind("mcp/response"), about(sent))) is not None


async def _talk(stage: ParticipantStage) -> tuple[bool, bool]:
    """Whether it answers what is said to it with a chat, and whether with an acknowledgement."""
    since = stage.subject.place
    said = await stage.prompt("chat")
    answer = await stage.heard_if(
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
