"""The tools of others: listed and cached, and in the form that the APIs of language models expect."""

import asyncio
import difflib
import json
import re
from base64 import b32encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from mew.client.connection.connection import ClientConnection
from mew.client.errors import MewError, Unanswered, UnknownTool
from mew.proposals.catalogue import Catalogue, Tool
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest, Presence
from mew.protocol.visible import cut

from .requests import Requests, operation
from .validation import InvalidArguments, mismatch

__all__ = [
    "ToolCall",
    "ToolListings",
    "anthropic_tools",
    "exposed_name",
    "openai_tools",
    "resolve_tool_call",
    "split_exposed_name",
]

_BETWEEN: Final = "__"
_CHARS_MAX: Final = 64
_HASH_CHARS: Final = 16  # 80 bits: nobody finds a tool of their own that is called like another's
_PARTICIPANT_CHARS_MAX: Final = 16
_TAKEN: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{_CHARS_MAX}}}", re.ASCII)
_NOT_TAKEN: Final = re.compile(r"[^A-Za-z0-9-]+", re.ASCII)
_HASHED: Final = re.compile(rf".+{_BETWEEN}.*_[a-z2-7]{{{_HASH_CHARS}}}", re.ASCII)


def exposed_name(participant: str, name: str) -> str:
    """The name of a participant's tool or prompt for hosts and models. No other pair has the same."""
    plain = f"{participant}{_BETWEEN}{name}"
    is_clear = _TAKEN.fullmatch(plain) and plain.index(_BETWEEN) == len(participant)
    if name and is_clear and not _HASHED.fullmatch(plain):
        return plain
    return _hashed(participant, name)


def split_exposed_name(name: str) -> tuple[str, str] | None:
    """The participant and the name that an exposed name stands for; None if it ends in a hash, or is no such name."""
    participant, between, inner = name.partition(_BETWEEN)
    if not between or not participant or exposed_name(participant, inner) != name:
        return None
    return participant, inner


def _hashed(participant: str, name: str) -> str:
    """Some of both, for those who read it, and the hash, for those who compare it."""
    whole = f"{len(participant)}:{participant}{name}".encode(errors="surrogatepass")
    digest = b32encode(sha256(whole).digest()).decode().lower()[:_HASH_CHARS]
    whose = _legible(participant, _PARTICIPANT_CHARS_MAX) or "x"
    room = _CHARS_MAX - len(whose) - len(_BETWEEN) - 1 - _HASH_CHARS
    return f"{whose}{_BETWEEN}{_legible(name, room)}_{digest}"


def _legible(text: str, chars_max: int) -> str:
    return _NOT_TAKEN.sub("_", text[: 2 * chars_max])[:chars_max].strip("_")


_ANSWER_S: Final = 3.0
_NAMES_MAX: Final = 8
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"


class ToolListings:
    """The listings of one space. Who leaves one unanswered is not asked again until they rejoin or list anew."""

    def __init__(
        self,
        connection: ClientConnection,
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

    async def check(self, participant: str, params: Mapping[str, Any], why: str | None) -> str | None:
        """Check the params of a `tools/call` that is about to be proposed, as far as the tools can be known.

        Return `why`, with how the arguments do not match the tool's schema if they do not: reviewers see it.

        Raises:
            UnknownTool: the participant lists no such tool.
        """
        tool = await self._tool(participant, params.get("name"))
        note = None if tool is None else mismatch(params.get("arguments", {}), tool.input_schema)
        return "\n".join(filter(None, (why, note))) or None

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


_OPENAI_DESCRIPTION_CHARS_MAX: Final = 1024


class ToolCall(NamedTuple):
    """A call as `Client.call` takes it: `await me.call(*tool_call)`."""

    participant: str
    tool: str
    arguments: dict[str, Any]


def openai_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The `tools` of a request to OpenAI's Chat Completions and to servers that are compatible with it.

    Each is called `files__write_file`: whose it is, and its name, within the 64 characters `[A-Za-z0-9_-]` that OpenAI
    and Anthropic take; what does not fit ends in a hash.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": exposed_name(tool.participant, tool.name),
                "description": cut(tool.description or "", _OPENAI_DESCRIPTION_CHARS_MAX - 1),
                "parameters": _object_schema(tool.input_schema),
            },
        }
        for tool in tools
    ]


def anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The `tools` of a request to Anthropic's Messages API, with names as in `openai_tools`."""
    return [
        {
            "name": exposed_name(tool.participant, tool.name),
            "description": tool.description or "",
            "input_schema": _object_schema(tool.input_schema),
        }
        for tool in tools
    ]


def resolve_tool_call(tools: Iterable[Tool], name: str, arguments: str | Mapping[str, Any]) -> ToolCall:
    """The call that a model means by a name it was given and by arguments, as an object or as its JSON text.

    Raises:
        UnknownTool: no tool was given to it under that name.
        InvalidArguments: the text is not a JSON object.
    """
    given = {exposed_name(tool.participant, tool.name): tool for tool in tools}
    if name not in given:
        nearest = difflib.get_close_matches(name, given, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise UnknownTool(f"there is no tool {name!r}{hint}")
    return ToolCall(given[name].participant, given[name].name, _read(arguments))


def _object_schema(schema: Any) -> dict[str, Any]:
    """Both APIs want a schema of an object."""
    known = schema if isinstance(schema, dict) else {}
    return {"type": "object", "properties": {}, **known}


def _read(arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        read = json.loads(arguments or "{}")
    except ValueError as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from None
    if not isinstance(read, dict):
        raise InvalidArguments(f"the arguments are not a JSON object: {cut(arguments, 80)}")
    return read
