"""PURE. What each participant offers, learned by watching who asks whom for it (`tools/list`, `initialize`).

A tool whose description or schema is not what it was when first seen is marked: what somebody learned to trust may
have been replaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mew.client.bounded import Seen, Shares
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind, McpRequest, McpResponse
from mew.protocol.visible import cut

from .offer import CURSOR_CHARS_MAX, Offer, Server, Tool

__all__ = ["Catalogue"]

_INITIALIZE: Final = "initialize"
_LIST_TOOLS: Final = "tools/list"
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_NAME_CHARS_MAX: Final = 256


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
        self._offers: dict[str, Offer] = {}
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

    def _ask(self, envelope: Envelope, request: McpRequest) -> None:
        if request.method in (_LIST_TOOLS, _INITIALIZE):
            self._forget(envelope.id)
            self._pending[envelope.id] = _Question(
                envelope.sender, envelope.to, request.method, _cursor(request)
            )
            self._shares.hold(envelope.sender, envelope.id)
            if self._shares.count > self._pending_max:
                self._forget(self._shares.oldest_of_most())
        elif request.method == _TOOLS_CHANGED and envelope.sender in self._offers:
            self._offers[envelope.sender].complete = False

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

    def _offer(self, participant: str) -> Offer:
        """The participant's offer, now the one heard of last; whoever was silent longest makes room."""
        offer = self._offers.pop(participant, None)
        if offer is None:
            offer = Offer(participant, tools_max=self._tools_max, bytes_max=self._bytes_max)
        self._offers[participant] = offer
        if len(self._offers) > self._participants_max:
            del self._offers[next(iter(self._offers))]
        return offer


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
    return cursor if cursor is None or (isinstance(cursor, str) and len(cursor) <= CURSOR_CHARS_MAX) else ""


def _server(result: dict[str, Any]) -> Server | None:
    said = result.get("serverInfo")
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        return None
    parts = (said.get(part) for part in ("name", "version", "title"))
    return Server(*(cut(part, _NAME_CHARS_MAX) if isinstance(part, str) else "" for part in parts))
