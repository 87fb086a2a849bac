"""What participants list as their tools: asked with a short deadline, and used to check what is proposed."""

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from mew.client.errors import MewError, Unanswered, UnknownTool
from mew.client.wire.connection import Connection
from mew.proposals.catalogue import Catalogue, Tool
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest, Presence

from .requests import Requests, operation
from .validation import check_call

__all__ = ["ToolListings"]

_ANSWER_S: Final = 3.0
_NAMES_MAX: Final = 8
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"


class ToolListings:
    """The listings of one space. Who leaves one unanswered is not asked again until they rejoin or list anew."""

    def __init__(
        self,
        connection: Connection,
        requests: Requests,
        catalogue: Catalogue,
        *,
        answer_s: float = _ANSWER_S,
    ) -> None:
        self._answer_s = answer_s
        self._connection = connection
        self._requests = requests
        self._catalogue = catalogue
        self._unanswered: set[str] = set()
        connection.listen(self._listen, (Kind.PRESENCE, Kind.MCP_REQUEST))

    async def of(self, participant: str) -> Sequence[Tool]:
        """The tools of one participant, as it lists them now.

        Raises:
            Unanswered: it did not answer within 3 seconds, now or before and has not rejoined since.
            RpcError, Absent, Refused, Disconnected: as `Requests.listing`.
        """
        if participant in self._unanswered:
            raise Unanswered(f"{participant!r} did not answer tools/list before, and has not rejoined since")
        try:
            listed = await self._requests.listing(participant, "tools", timeout_s=self._answer_s)
        except Unanswered:
            if participant in self._connection.session.roster:
                self._unanswered.add(participant)
            raise
        now = datetime.now(UTC)
        return [tool for item in listed if (tool := Tool.read(participant, item, now)) is not None]

    async def all(self) -> list[Tool]:
        """The tools of everyone here whom we may ask and who answers, by the participants' names."""
        others = sorted(who for who in self._connection.session.roster if self.may_ask(who))
        found = await asyncio.gather(*(self.of(who) for who in others), return_exceptions=True)
        tools: list[Tool] = []
        for listed in found:
            if isinstance(listed, BaseException):
                if not isinstance(listed, MewError):
                    raise listed
            else:
                tools += listed
        return tools

    def may_ask(self, participant: str) -> bool:
        """Whether asking this participant for its tools is allowed and makes sense."""
        session = self._connection.session
        return (
            participant != session.me
            and participant in session.roster
            and participant not in self._unanswered
            and session.may(
                Kind.MCP_REQUEST, [participant], {"jsonrpc": "2.0", "id": 0, **operation("tools/list", {})}
            )
        )

    async def check(self, participant: str, params: Mapping[str, Any]) -> None:
        """Check the params of a `tools/call` that is about to be proposed, as far as the tools can be known.

        Nobody should be asked to approve what cannot work.

        Raises:
            UnknownTool: the participant lists no such tool.
            InvalidArguments: the tool's schema does not allow the arguments, even read tolerantly.
        """
        tool = await self._tool(participant, params.get("name"))
        if tool is not None:
            check_call(params.get("arguments", {}), tool.input_schema)

    async def check_name(self, participant: str, params: Mapping[str, Any]) -> None:
        """Check the name in the params of a `tools/call` that is about to be requested, if the tools are known.

        The arguments are left to the tool, which answers for itself.

        Raises:
            UnknownTool: the participant lists no such tool.
        """
        if self._catalogue.is_complete(participant):
            await self._tool(participant, params.get("name"))

    async def _tool(self, participant: str, name: Any) -> Tool | None:
        """The tool of this name; None if it cannot be known whether there is one.

        A known listing is believed as to what is in it. What is not may have come since: then it is asked for again.
        """
        if not isinstance(name, str):
            return None
        known, is_complete = self._catalogue.tool(participant, name), self._catalogue.is_complete(participant)
        if known is not None and known.listed and is_complete:
            return known
        listed: Sequence[Tool] | None = self._catalogue.tools(participant) if is_complete else None
        if self.may_ask(participant):
            with suppress(MewError):
                listed = await self.of(participant)
        if listed is None:
            return known
        found = next((one for one in listed if one.name == name), None)
        if found is None:
            raise UnknownTool(_unknown(participant, name, [one.name for one in listed]))
        return found

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        match payload:
            case Presence(participant=participant):
                self._unanswered.discard(participant.id)
                self._catalogue.outdate(participant.id)
            case McpRequest(method=method) if method == _TOOLS_CHANGED:
                self._unanswered.discard(envelope.sender)


def _unknown(participant: str, tool: str, names: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(tool, names, n=1)
    if nearest:
        return f"{participant!r} has no tool {tool!r}; did you mean {nearest[0]!r}? Nothing was sent"
    some = ", ".join(names[:_NAMES_MAX]) + (", …" if len(names) > _NAMES_MAX else "")
    return f"{participant!r} has no tool {tool!r}; it has: {some or 'none'}. Nothing was sent"
