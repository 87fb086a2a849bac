"""Tools of our own: to take part in the space (`mew_chat`), and to hear what became of a proposal (`mew_outcome`)."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from mew.client.client import Client
from mew.client.errors import AlreadyDecided, ConnectError, MewError, RpcError
from mew.client.mcp.validation import InvalidArguments, check
from mew.mcp_bridge.host.calls.registry import Calls
from mew.mcp_bridge.host.calls.results import WHY, Why
from mew.mcp_bridge.host.calls.wait import Waiting
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind

from .history import recent
from .host_request import HostRequest
from .own_results import outcome_told, participants_told, proposals_told
from .own_shapes import SHAPES
from .settings import Settings

__all__ = ["OwnTools"]

Arguments = dict[str, Any]
_OF_PROPOSALS: Final = ("mew_outcome", "mew_withdraw")


class OwnTools:
    """What a host may do in the space itself; only what our capabilities allow is shown."""

    def __init__(
        self, me: Client, settings: Settings, calls: Calls, offered: Callable[[str], dict[str, int]]
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
            return _failure(Why.SCHEMA_MISMATCH, f"the arguments are not as they should be: {error}")
        except RpcError as error:
            return _failure(Why.SCHEMA_MISMATCH, error.message)
        except MewError as error:
            return _failure(Why.REFUSED, str(error))

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
            return _failure(Why.LOST, f"no proposal of {self._me.id} has the handle {handle!r}")
        except ConnectError as error:
            return _failure(Why.DISCONNECTED, f"the gateway cannot be asked now: {error}")
        wait_s = min(asked.get("wait_seconds", self._settings.wait_s), self._settings.wait_s)
        end = await Waiting(call, host, self._settings).end(wait_s)
        return outcome_told(call, handle, end)

    async def _withdraw(self, asked: Arguments, host: HostRequest) -> dict[str, Any]:
        handle = asked["handle"]
        try:
            proposal = await self._me.proposal(handle)
            await proposal.withdraw(asked.get("reason", "no_longer_needed"))
        except KeyError:
            return _failure(Why.LOST, f"no proposal of {self._me.id} has the handle {handle!r}")
        except AlreadyDecided as error:
            return _structured({"handle": handle, "withdrawn": False}, f"Too late: {error}.")
        return _structured(
            {"handle": handle, "withdrawn": True}, "It is withdrawn, and will not be carried out."
        )


def _structured(value: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    said = encode_json(value).decode() if text is None else text
    return {"content": [{"type": "text", "text": said}], "structuredContent": value}


def _failure(why: Why, text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {WHY: why.value}}
