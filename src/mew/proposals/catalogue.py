"""PURE. The tools each participant offers, learned by watching `tools/list` and `initialize` and their answers.

A tool whose description or schema is not what it was when first seen is marked: what somebody learned to trust may
have been replaced. What a participant says of itself is its own claim.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind, McpRequest, McpResponse
from mew.protocol.visible import cut

from .bounded import Seen, Shares
from .differences import same

__all__ = ["Catalogue", "Server", "Tool"]

_INITIALIZE: Final = "initialize"
_LIST_TOOLS: Final = "tools/list"
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_NAME_CHARS_MAX: Final = 256
_CURSOR_CHARS_MAX: Final = 4096
_LISTINGS_MAX: Final = 16
_CHANGED: Final = "mew/changed"
_OURS: Final = {"inputSchema": "input_schema", "outputSchema": "output_schema"}
_MCPS: Final = {ours: mcps for mcps, ours in _OURS.items()}
_TRUSTED: Final = ("description", "input_schema", "output_schema", "annotations")
# Among the names of a listing that was seen from its first page on: only what such a one lacks is gone.
_WHOLE: Final = ""


class Pin(Struct, frozen=True):
    """What a participant says itself of a tool that is not what it was: in which `fields`, and since when (0010)."""

    since: Annotated[str, Meta(max_length=64)] = ""
    changed_at: Annotated[str, Meta(max_length=64)] | None = None
    fields: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=16)] = ()


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as its participant last listed it. `former` is what it was when first seen here, if that was different.

    `pin` is what its participant remembers of it, which may go further back: a bridge does so for its server.
    """

    participant: str
    name: str
    title: str | None = None
    description: str | None = None
    input_schema: Any = None
    output_schema: Any = None
    annotations: dict[str, Any] = field(default_factory=dict)
    first_seen: datetime
    changed_at: datetime | None = None
    former: "Tool | None" = None
    listed: bool = True
    pin: Pin | None = None

    @property
    def changed(self) -> tuple[str, ...]:
        """Which of its parts are not what they were when first seen; empty if it is what it was."""
        seen = () if self.former is None else _changed(self.former, self)
        told = () if self.pin is None else tuple(_OURS.get(name, name) for name in self.pin.fields)
        return tuple(dict.fromkeys((*seen, *told)))

    @property
    def changed_fields(self) -> tuple[str, ...]:
        """The same, as MCP calls them."""
        return tuple(_MCPS.get(part, part) for part in self.changed)

    @classmethod
    def read(cls, participant: str, listed: dict[str, Any], at: datetime) -> "Tool | None":
        """A tool as an item of `tools/list` has it; None if it is not one."""
        read = next(_readable([listed]), None)
        return None if read is None else _as_listed(participant, read, at, None)

    def as_mcp(self) -> dict[str, Any]:
        """The same as `tools/list` has it."""
        fields = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations or None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def hint(self, name: str) -> bool | None:
        """What it says of itself in an annotation (`readOnlyHint`, `destructiveHint`); None if nothing."""
        said = self.annotations.get(name)
        return said if isinstance(said, bool) else None


@dataclass(frozen=True, slots=True)
class Server:
    """How the MCP server behind a participant calls itself."""

    name: str
    version: str = ""
    title: str = ""


class Catalogue:
    """Fed with the envelopes of a space in order; an envelope seen twice changes nothing."""

    def __init__(
        self,
        *,
        participants_max: int = 128,
        tools_max: int = 256,
        bytes_max: int = 512 * 1024,
        pending_max: int = 1024,
    ) -> None:
        """At most so many participants, so many tools and bytes of each, and so many requests not forgotten yet."""
        self._participants_max = participants_max
        self._tools_max = tools_max
        self._bytes_max = bytes_max
        self._pending_max = pending_max
        self._pending: dict[str, _Question] = {}
        self._shares: Shares[str] = Shares()
        self._offers: dict[str, _Offer] = {}
        self._seen = Seen()

    def apply(self, envelope: Envelope, at: datetime) -> tuple[Tool, ...]:
        """Take the next envelope; return the tools that are new, changed or no longer listed."""
        if envelope.kind not in (Kind.MCP_REQUEST, Kind.MCP_RESPONSE) or not self._seen.first(envelope):
            return ()
        try:
            if envelope.kind == Kind.MCP_REQUEST:
                self._ask(envelope, envelope.read(McpRequest))
                return ()
            question = self._answered_by(envelope)
            return () if question is None else tuple(self._learn(question, envelope, at))
        except ProtocolError:
            return ()

    @property
    def participants(self) -> tuple[str, ...]:
        """Those of whom anything is known."""
        return tuple(self._offers)

    def tools(self, participant: str) -> tuple[Tool, ...]:
        """What the participant offers, as last listed."""
        offer = self._offers.get(participant)
        return tuple(tool for tool in offer.tools.values() if tool.listed) if offer else ()

    def tool(self, participant: str, name: str) -> Tool | None:
        """The tool as last seen, be it listed still or not."""
        offer = self._offers.get(participant)
        return offer.tools.get(name) if offer else None

    def offering(self, name: str) -> tuple[Tool, ...]:
        """The tools of that name, whoever lists them."""
        found = (offer.tools.get(name) for offer in self._offers.values())
        return tuple(tool for tool in found if tool is not None and tool.listed)

    def server(self, participant: str) -> Server | None:
        """What the participant calls itself, if anybody asked it to `initialize`."""
        offer = self._offers.get(participant)
        return offer.server if offer else None

    def is_complete(self, participant: str) -> bool:
        """Whether its tools were listed to the end, and it has not said since that they changed."""
        offer = self._offers.get(participant)
        return offer is not None and offer.complete

    def outdate(self, participant: str) -> None:
        """Its tools may be others now: it left or joined."""
        if participant in self._offers:
            self._offers[participant].complete = False

    def _ask(self, envelope: Envelope, request: McpRequest) -> None:
        if request.method in (_LIST_TOOLS, _INITIALIZE):
            self._forget(envelope.id)
            self._pending[envelope.id] = _Question(
                envelope.sender, envelope.to, request.method, _cursor(request)
            )
            self._shares.hold(envelope.sender, envelope.id)
            if self._shares.count > self._pending_max:
                self._forget(self._shares.oldest_of_most())
        elif request.method == _TOOLS_CHANGED:
            self.outdate(envelope.sender)

    def _forget(self, id: str) -> None:
        question = self._pending.pop(id, None)
        if question is not None:
            self._shares.release(question.requester, id)

    def _answered_by(self, envelope: Envelope) -> "_Question | None":
        """The first that it names: a response answers one, and to learn a page once for each would take long."""
        named = (self._pending.get(id) for id in envelope.correlation_id)
        meant = (question for question in named if question is not None and question.is_for(envelope.sender))
        return next(meant, None)

    def _learn(self, question: "_Question", envelope: Envelope, at: datetime) -> Iterator[Tool]:
        result = envelope.read(McpResponse).result
        if not isinstance(result, dict):
            return
        offer, page = self._offer(envelope.sender), result.get("tools")
        if question.method == _INITIALIZE:
            offer.server = _server(result) or offer.server
        elif isinstance(page, list):
            yield from offer.take_page(
                page,
                at,
                requester=question.requester,
                cursor=question.cursor,
                following=result.get("nextCursor"),
            )

    def _offer(self, participant: str) -> "_Offer":
        """The participant's offer, now the one heard of last; whoever was silent longest makes room."""
        offer = self._offers.pop(participant, None)
        if offer is None:
            offer = _Offer(participant, tools_max=self._tools_max, bytes_max=self._bytes_max)
        self._offers[participant] = offer
        if len(self._offers) > self._participants_max:
            del self._offers[next(iter(self._offers))]
        return offer


class _Offer:
    """The tools of one participant, at most so many and of so many bytes, and the listings under way."""

    def __init__(self, participant: str, *, tools_max: int, bytes_max: int) -> None:
        self.participant = participant
        self.server: Server | None = None
        self.complete = False
        self._is_whole = True
        self.tools: dict[str, Tool] = {}
        self._tools_max = tools_max
        self._bytes_max = bytes_max
        self._sizes: dict[str, int] = {}
        self._listings: dict[tuple[str, str], dict[str, None]] = {}

    def take_page(
        self, page: list[Any], at: datetime, *, requester: str, cursor: str | None, following: Any
    ) -> Iterator[Tool]:
        """Take a page that was asked for by `cursor` and names the `following`; yield the tools that are news."""
        names = {_WHOLE: None} if cursor is None else self._listings.pop((requester, cursor), {})
        self._is_whole = (cursor is None or self._is_whole) and len(page) <= self._tools_max
        for listed in _readable(page[: self._tools_max]):
            names[listed.name] = None
            tool = self._take(listed, at)
            if tool is not None:
                yield tool
        if following is not None:
            self._keep_pages(requester, following, names)
        elif _WHOLE in names:
            yield from self._unlist_all_but(names)
            self.complete = self._is_whole

    def _keep_pages(self, requester: str, following: Any, names: dict[str, None]) -> None:
        if not isinstance(following, str) or not 0 < len(following) <= _CURSOR_CHARS_MAX:
            return
        if len(names) <= self._tools_max + 1:
            self._listings[requester, following] = names
        if len(self._listings) > _LISTINGS_MAX:
            del self._listings[next(iter(self._listings))]

    def _take(self, listed: "_Listed", at: datetime) -> Tool | None:
        known = self.tools.get(listed.name)
        tool = _as_listed(self.participant, listed, at, known)
        if tool is known:
            return None
        size = _size(tool)
        if not self._make_room(listed.name, size):
            self._is_whole = False
            if known is None or not known.listed:
                return None
            tool = replace(known, listed=False)  # what it is now does not fit, and is not what we know
            size = self._sizes[listed.name]
        self.tools[listed.name] = tool
        self._sizes[listed.name] = size
        return tool

    def _make_room(self, name: str, size: int) -> bool:
        """Whether there is room, if need be that of tools no longer listed."""
        others = {other: taken for other, taken in self._sizes.items() if other != name}
        unlisted = iter([other for other in others if not self.tools[other].listed])
        while len(others) >= self._tools_max or sum(others.values()) + size > self._bytes_max:
            other = next(unlisted, None)
            if other is None:
                return False
            del others[other], self.tools[other], self._sizes[other]
        return True

    def _unlist_all_but(self, names: dict[str, None]) -> Iterator[Tool]:
        """They stay known: one that comes back must not come back as another unnoticed."""
        for name, tool in self.tools.items():
            if tool.listed and name not in names:
                self.tools[name] = replace(tool, listed=False)
                yield self.tools[name]


class _Listed(Struct, frozen=True):
    """A tool as MCP has it."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    title: str | None = None
    description: str | None = None
    inputSchema: Any = None
    outputSchema: Any = None
    annotations: dict[str, Any] | None = None
    _meta: Any = None

    @property
    def pin(self) -> Pin | None:
        said = self._meta.get(_CHANGED) if isinstance(self._meta, dict) else None
        if said is None:
            return None
        try:
            return msgspec.convert(said, Pin)
        except msgspec.ValidationError:
            return Pin(fields=("unreadable",))  # a mark all the same


def _readable(page: list[Any]) -> Iterator[_Listed]:
    for entry in page:
        try:
            yield msgspec.convert(entry, _Listed)
        except msgspec.ValidationError:
            continue


def _as_listed(participant: str, listed: _Listed, at: datetime, known: Tool | None) -> Tool:
    """The tool as it is now; the one known if that is no other."""
    tool = Tool(
        participant=participant,
        name=listed.name,
        title=listed.title,
        description=listed.description,
        input_schema=listed.inputSchema,
        output_schema=listed.outputSchema,
        annotations=listed.annotations or {},
        first_seen=at,
        pin=listed.pin,
    )
    if known is None:
        return tool
    if not _changed(known, tool):
        is_same = known.listed and known.pin == tool.pin
        return known if is_same else replace(known, listed=True, pin=tool.pin)
    first = known.former or replace(known, changed_at=None, listed=True)
    former = first if _changed(first, tool) else None
    return replace(tool, first_seen=known.first_seen, changed_at=at, former=former)


def _changed(former: Tool, now: Tool) -> tuple[str, ...]:
    return tuple(part for part in _TRUSTED if not same(getattr(former, part), getattr(now, part)))


def _size(tool: Tool) -> int:
    own = len(tool.name) + (0 if tool.pin is None else len(encode_json(tool.pin)))
    own += sum(len(encode_json(getattr(tool, part))) for part in _TRUSTED)
    return own if tool.former is None else own + _size(tool.former)


@dataclass(frozen=True, slots=True)
class _Question:
    requester: str
    to: tuple[str, ...]
    method: str
    cursor: str | None

    def is_for(self, participant: str) -> bool:
        return not self.to or participant in self.to


def _cursor(request: McpRequest) -> str | None:
    """The page that was asked for; None for the first. One that no listing can have named is an empty text."""
    cursor = request.params.get("cursor") if isinstance(request.params, dict) else None
    return cursor if cursor is None or (isinstance(cursor, str) and len(cursor) <= _CURSOR_CHARS_MAX) else ""


def _server(result: dict[str, Any]) -> Server | None:
    said = result.get("serverInfo")
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        return None
    parts = (said.get(part) for part in ("name", "version", "title"))
    return Server(*(cut(part, _NAME_CHARS_MAX) if isinstance(part, str) else "" for part in parts))
