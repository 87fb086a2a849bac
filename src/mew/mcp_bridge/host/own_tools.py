"""Tools of our own: to take part in the space (`mew_chat`), and to hear what became of a proposal (`mew_outcome`)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from mew.client.client import Client
from mew.client.errors import AlreadyDecided, ConnectError, MewError, RpcError
from mew.client.mcp.validation import InvalidArguments, check
from mew.client.proposals.outcomes import Fulfilled, Rejected, TimedOut, Withdrawn
from mew.mcp_bridge.host.calls.call import HostCall
from mew.mcp_bridge.host.calls.registry import HostCalls
from mew.mcp_bridge.host.calls.results import WHY, CallEnd, NoResultCode, told
from mew.mcp_bridge.host.calls.wait import CallWait
from mew.proposals.record import ProposalRecord, ProposalStatus
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind

from .history import recent
from .host_request import HostRequest
from .settings import HostSettings

__all__ = ["SHAPES", "OwnTools", "outcome_told", "participants_told", "proposals_told"]

_TEXT: Final = {"type": "string"}
_HANDLE: Final = {
    "type": "string",
    "description": "The handle that a call was answered with.",
    "maxLength": 256,
}


@dataclass(frozen=True, kw_only=True)
class OwnToolShape:
    """One tool. `required` are arguments; everything of `gives` is there where the call succeeds."""

    title: str
    description: str
    takes: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    gives: dict[str, Any]
    always: tuple[str, ...]
    is_read_only: bool = True
    is_idempotent: bool = True

    @property
    def arguments(self) -> dict[str, Any]:
        """The JSON Schema of what it takes."""
        return {
            "type": "object",
            "properties": self.takes,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def listed(self, name: str) -> dict[str, Any]:
        """As MCP has it."""
        return {
            "name": name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.arguments,
            "outputSchema": {"type": "object", "properties": self.gives, "required": list(self.always)},
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.is_read_only,
                "destructiveHint": False,
                "idempotentHint": self.is_idempotent,
                "openWorldHint": False,
            },
        }


SHAPES: Final[dict[str, OwnToolShape]] = {
    "mew_chat": OwnToolShape(
        title="Say something in the space",
        description="Say something to the people and agents in the space. Everyone sees it; `to` is who should act.",
        takes={
            "text": {"type": "string", "minLength": 1},
            "to": {"type": "array", "items": _TEXT, "description": "Participants, by name; nobody: to all."},
            "about": {"type": "array", "items": _TEXT, "description": "Ids of envelopes that it refers to."},
        },
        required=("text",),
        gives={"id": _TEXT},
        always=("id",),
        is_read_only=False,
        is_idempotent=False,
    ),
    "mew_participants": OwnToolShape(
        title="Who is in the space",
        description="Who is in the space now, and how many tools, resources and prompts each offers to you.",
        gives={
            "space": _TEXT,
            "you": _TEXT,
            "participants": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": _TEXT, "offers": {"type": "object"}},
                    "required": ["id", "offers"],
                },
            },
        },
        always=("space", "you", "participants"),
    ),
    "mew_history": OwnToolShape(
        title="What was said in the space",
        description="The last envelopes that everyone in the space saw, oldest first. Replies to a chat are there.",
        takes={
            "count": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
            "kind": {"type": "string", "description": "Only these: `chat`, `mcp/proposal`, `mcp/*`."},
            "participant": {"type": "string", "description": "Only what this one sent."},
        },
        gives={"envelopes": {"type": "array", "items": {"type": "object"}}},
        always=("envelopes",),
    ),
    "mew_open_proposals": OwnToolShape(
        title="What waits for approval",
        description="The proposals that wait for somebody's decision now, yours and those of others.",
        gives={"proposals": {"type": "array", "items": {"type": "object"}}},
        always=("proposals",),
    ),
    "mew_outcome": OwnToolShape(
        title="What became of a call",
        description=(
            "What became of a call that needs approval: its result, or who rejected it and why, or that it still "
            "waits. Waits a while for the end itself. Works after a restart too."
        ),
        takes={
            "handle": _HANDLE,
            "wait_seconds": {"type": "number", "minimum": 0, "description": "How long to wait for its end."},
        },
        required=("handle",),
        gives={
            "handle": _TEXT,
            "status": {
                "enum": [status.value for status in ProposalStatus],
                "description": "Where the proposal stands.",
            },
            "outcome": {
                "enum": ["answered", "failed", "rejected", "withdrawn", "timed_out"],
                "description": "How the call ended, once it has.",
            },
            "by": {"type": "string", "description": "Who approved or rejected it."},
            "told": {"type": "string"},
            "result": {"type": "object", "description": "The result of the call, where there is one."},
        },
        always=("handle", "status", "told"),
    ),
    "mew_withdraw": OwnToolShape(
        title="Withdraw a call",
        description="Take back a call that still waits for approval. What was approved already is not undone.",
        takes={"handle": _HANDLE, "reason": {"type": "string", "maxLength": 200}},
        required=("handle",),
        gives={"handle": _TEXT, "withdrawn": {"type": "boolean"}},
        always=("handle", "withdrawn"),
        is_read_only=False,
    ),
}


def participants_told(me: Client, offered: Callable[[str], dict[str, int]]) -> dict[str, Any]:
    """Who is here, and what they offer to us."""
    here = [{"id": who, "offers": offered(who)} for who in sorted(me.participants) if who != me.id]
    return {"space": me.space, "you": me.id, "participants": here}


def proposals_told(me: Client) -> dict[str, Any]:
    """What waits for a decision, oldest first."""
    return {"proposals": [_proposal(me, record) for record in me.book.open(datetime.now(UTC))]}


def outcome_told(call: HostCall, handle: str, end: CallEnd | None) -> dict[str, Any]:
    """What became of a call, with the content that the call itself would have been answered with."""
    if end is None:
        stands = call.stands
        waits = {"handle": handle, "status": call.status, "told": stands}
        return {
            "content": [{"type": "text", "text": f"No result yet: {stands}."}],
            "structuredContent": waits,
        }
    try:
        said = told(call.operation, end)
    except RpcError as error:
        said = {
            "content": [{"type": "text", "text": error.message}],
            "isError": True,
            "_meta": error.data or {},
        }
    value: dict[str, Any] = {
        "handle": handle,
        "status": call.status,
        "outcome": _outcome(end),
        "told": _sentence(end),
    }
    if isinstance(end, Fulfilled | Rejected):
        value["by"] = end.by
    if isinstance(end, Fulfilled) and isinstance(end.result, dict):
        value["result"] = said
    return {**said, "content": said.get("content", []), "structuredContent": value}


def _proposal(me: Client, record: ProposalRecord) -> dict[str, Any]:
    return {
        "handle": record.id,
        "mine": record.proposer == me.id,
        "proposer": record.proposer,
        "target": record.target,
        "method": record.method,
        "params": record.params,
        "since": record.created.isoformat(),
        "why": record.why,
        "expires_at": None if record.expires_at is None else record.expires_at.isoformat(),
        "rejections": [
            {"by": rejection.by, "reason": rejection.reason, "message": rejection.words}
            for rejection in record.rejections
        ],
    }


def _outcome(end: CallEnd) -> str:
    match end:
        case Rejected():
            return "rejected"
        case Withdrawn():
            return "withdrawn"
        case TimedOut():
            return "timed_out"
        case Fulfilled() if not end.failed:
            return "answered"
        case _:
            return "failed"


def _sentence(end: CallEnd) -> str:
    return "answered" if isinstance(end, dict) else str(end)


Arguments = dict[str, Any]
_OF_PROPOSALS: Final = ("mew_outcome", "mew_withdraw")


class OwnTools:
    """What a host may do in the space itself; only what our capabilities allow is shown."""

    def __init__(
        self, me: Client, settings: HostSettings, calls: HostCalls, offered: Callable[[str], dict[str, int]]
    ) -> None:
        """`offered`: how much of what a participant offers to us."""
        self._me = me
        self._settings = settings
        self._calls = calls
        self._offered = offered
        self._tools: dict[str, Callable[[Arguments, HostRequest], Awaitable[dict[str, Any]]]] = {
            "mew_chat": self._chat,
            "mew_participants": self._participants,
            "mew_history": self._history,
            "mew_open_proposals": self._open_proposals,
            "mew_outcome": self._outcome,
            "mew_withdraw": self._withdraw,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, shown or not; none where they are switched off."""
        if self._settings.takes_part:
            return tuple(self._tools)
        return _OF_PROPOSALS if self._settings.own_tools else ()

    def listed(self) -> list[dict[str, Any]]:
        """As a host lists them."""
        return [SHAPES[name].listed(name) for name in self.names if self._is_allowed(name)]

    async def call(self, name: str, arguments: Any, host: HostRequest) -> dict[str, Any]:
        """The result of calling one."""
        given = {} if arguments is None else arguments
        try:
            check(given, SHAPES[name].arguments)
            return await self._tools[name](given, host)
        except InvalidArguments as error:
            return _failure(NoResultCode.SCHEMA_MISMATCH, f"the arguments are not as they should be: {error}")
        except RpcError as error:
            return _failure(NoResultCode.SCHEMA_MISMATCH, error.message)
        except MewError as error:
            return _failure(NoResultCode.REFUSED, str(error))

    def _is_allowed(self, name: str) -> bool:
        match name:
            case "mew_chat":
                return self._me.can_send(Kind.CHAT, {"text": ""})
            case "mew_withdraw":
                return self._me.can_send(Kind.MCP_WITHDRAW, {"reason": "x"})
            case _:
                return True

    async def _chat(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        said = await self._me.chat(asked["text"], to=asked.get("to", ()), about=asked.get("about", ()))
        return _structured({"id": said.id}, "Everyone in the space has seen it.")

    async def _participants(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        return _structured(participants_told(self._me, self._offered))

    async def _history(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        found = await recent(self._me, asked.get("count", 50), asked.get("kind"), asked.get("participant"))
        return _structured({"envelopes": found})

    async def _open_proposals(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        return _structured(proposals_told(self._me))

    async def _outcome(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        handle = asked["handle"]
        try:
            call = await self._calls.proposed(handle)
        except KeyError:
            return _failure(NoResultCode.LOST, f"no proposal of {self._me.id} has the handle {handle!r}")
        except ConnectError as error:
            return _failure(NoResultCode.DISCONNECTED, f"the gateway cannot be asked now: {error}")
        call.is_handle_known = True
        waiting = CallWait(call, host, self._settings)
        end = await waiting.end(min(asked.get("wait_seconds", waiting.patience_s), waiting.patience_s))
        return outcome_told(call, handle, end)

    async def _withdraw(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        handle = asked["handle"]
        try:
            proposal = await self._me.proposal(handle)
            await proposal.withdraw(asked.get("reason", "no_longer_needed"))
        except KeyError:
            return _failure(NoResultCode.LOST, f"no proposal of {self._me.id} has the handle {handle!r}")
        except AlreadyDecided as error:
            return _structured({"handle": handle, "withdrawn": False}, f"Too late: {error}.")
        return _structured(
            {"handle": handle, "withdrawn": True}, "It is withdrawn, and will not be carried out."
        )


def _structured(value: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    said = encode_json(value).decode() if text is None else text
    return {"content": [{"type": "text", "text": said}], "structuredContent": value}


def _failure(why: NoResultCode, text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {WHY: why.value}}
