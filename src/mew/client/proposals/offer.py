"""PURE. What one participant offers: its tools as it lists them, page by page, and what they were when first seen.

What a participant says of itself, it alone says; whether it is true, nobody knows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from mew.protocol.differences import same
from mew.protocol.json import encode_json

__all__ = ["CURSOR_CHARS_MAX", "Offer", "Server", "Tool"]

CURSOR_CHARS_MAX: Final = 4096
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


class Offer:
    """The tools of one participant, at most so many and of so many bytes, and the listings under way."""

    def __init__(self, participant: str, *, tools_max: int, bytes_max: int) -> None:
        self.participant = participant
        self.server: Server | None = None
        self.complete = False
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
        for listed in _readable(page[: self._tools_max]):
            names[listed.name] = None
            tool = self._take(listed, at)
            if tool is not None:
                yield tool
        if following is not None:
            self._keep_pages(requester, following, names)
        elif _WHOLE in names:
            yield from self._unlist_all_but(names)
            self.complete = True

    def _keep_pages(self, requester: str, following: Any, names: dict[str, None]) -> None:
        if not isinstance(following, str) or not 0 < len(following) <= CURSOR_CHARS_MAX:
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
