"""Discover what participants offer, page by page, and again when that may have changed.

Everyone is asked at once, and whoever does not answer delays nobody. Who leaves even the first question unanswered is
asked nothing more until it says that it lists something: people do not answer MCP requests.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import mcp_types
from msgspec import UNSET
from pydantic import BaseModel, ValidationError

from mew.client.client import Client
from mew.client.errors import MewError, RpcError, Unanswered
from mew.mcp_bridge.policy.permits import Permit, Permits
from mew.protocol.envelope import Envelope
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind, McpRequest, McpResponse, Presence, Welcome
from mew.protocol.visible import named, visible

__all__ = ["OfferDiscovery", "OfferKind", "listed", "valid"]

_log = logging.getLogger(__name__)

_PAGES_MAX: Final = 1_000
_BYTES_MAX: Final = 8 << 20
_UNKNOWN_METHOD: Final = -32601
_INVALID: Final = -32603


class OfferKind(StrEnum):
    """What there is to offer, as a listing's result calls it."""

    TOOLS = "tools"
    RESOURCES = "resources"
    TEMPLATES = "resourceTemplates"
    PROMPTS = "prompts"

    @property
    def listing(self) -> str:
        """The method that lists them."""
        return "resources/templates/list" if self is OfferKind.TEMPLATES else f"{self.value}/list"

    @property
    def use(self) -> str:
        """The method that they are listed for."""
        return _USES[self]

    @property
    def key(self) -> str:
        """The field that tells them apart."""
        return _KEYS[self]


_USES: Final = {
    OfferKind.TOOLS: "tools/call",
    OfferKind.RESOURCES: "resources/read",
    OfferKind.TEMPLATES: "resources/read",
    OfferKind.PROMPTS: "prompts/get",
}
_KEYS: Final = {
    OfferKind.TOOLS: "name",
    OfferKind.RESOURCES: "uri",
    OfferKind.TEMPLATES: "uriTemplate",
    OfferKind.PROMPTS: "name",
}
_SHAPES: Final[dict[OfferKind, type[BaseModel]]] = {
    OfferKind.TOOLS: mcp_types.Tool,
    OfferKind.RESOURCES: mcp_types.Resource,
    OfferKind.TEMPLATES: mcp_types.ResourceTemplate,
    OfferKind.PROMPTS: mcp_types.Prompt,
}


async def listed(me: Client, participant: str, what: OfferKind, *, within_s: float) -> list[dict[str, Any]]:
    """All of them that MCP allows; none, where the participant knows no such method. `within_s` is for each page.

    Raises:
        RpcError: as `request`; or what it answers is no listing, or one of more than 8 MiB or 1,000 pages.
        Absent, Unanswered, Refused, Disconnected: as `request`.
    """
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    cursors: set[str] = set()
    size_bytes = 0
    for _ in range(_PAGES_MAX):
        try:
            page = await me.request(participant, what.listing, params, timeout_s=within_s)
        except RpcError as error:
            if error.code == _UNKNOWN_METHOD:
                return found
            raise
        items = page.get(what) if isinstance(page, dict) else None
        if not isinstance(items, list):
            raise RpcError(_INVALID, f"what {participant!r} answers to {what.listing} is no listing")
        size_bytes += len(encode_json(page))
        if size_bytes > _BYTES_MAX:
            break
        found += valid(participant, what, items)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return found
        if cursor in cursors:
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise RpcError(_INVALID, f"{participant!r} lists {what.value} without end")


def valid(participant: str, what: OfferKind, items: list[Any]) -> list[dict[str, Any]]:
    """Those that hosts can read: a single one that they cannot would cost them the whole listing."""
    kept = []
    for item in items:
        try:
            _SHAPES[what].model_validate(item, by_name=False)
        except ValidationError:
            name = item.get(what.key) if isinstance(item, dict) else item
            _log.warning(
                "%s lists %s among its %s, which is not as MCP has it: left out",
                named(participant),
                visible(str(name), 80),
                what.value,
            )
        else:
            kept.append(item)
    return kept


_ANSWER_S: Final = 20.0
_REST_S: Final = 0.2  # between two rounds: one that changes all the time must not use up what we may send
_START_S: Final = 1.0
_START_OF_ONE_S: Final = 20.0  # its server may have to be fetched first
_PARTICIPANTS_MAX: Final = 512
_HEARD: Final = (Kind.PRESENCE, Kind.WELCOME, Kind.MCP_REQUEST, Kind.MCP_RESPONSE)
_CHANGES: Final[dict[str, tuple[OfferKind, ...]]] = {
    "notifications/tools/list_changed": (OfferKind.TOOLS,),
    "notifications/resources/list_changed": (OfferKind.RESOURCES, OfferKind.TEMPLATES),
    "notifications/prompts/list_changed": (OfferKind.PROMPTS,),
}


@dataclass
class _Asked:
    """One participant: what is still to be asked of it, and what it said."""

    wanted: set[OfferKind] = field(default_factory=lambda: set(OfferKind))
    said: dict[OfferKind, list[dict[str, Any]]] = field(default_factory=dict)
    is_asking: bool = False
    rests_until_s: float = 0.0
    is_overheard: bool = False
    """We may not ask it for its tools, and know what others asked it."""
    is_waited_for: bool = False
    """It was here when we came, and so is expected in the first listing."""

    @property
    def is_busy(self) -> bool:
        return self.is_asking or len(self.wanted) > 0


class OfferDiscovery:
    """What each participant lists, as last said. `changed` is told when that, or what we may do with it, changes."""

    def __init__(self, me: Client, only: str | None, changed: Callable[[], None]) -> None:
        """With `only`, nobody else is asked."""
        self._me = me
        self._only = only
        self._changed = changed
        self._asked: dict[str, _Asked] = {}
        self.permits = Permits(me.capabilities)
        """What we may do with what they offer."""
        self._tasks: asyncio.TaskGroup | None = None
        self._moved = asyncio.Event()
        self._is_begun = False
        start_s = _START_S if only is None else _START_OF_ONE_S
        self._start_by_s = asyncio.get_running_loop().time() + start_s

    async def run(self) -> None:
        """Until cancelled."""
        loop, connection = asyncio.get_running_loop(), self._me.connection
        try:
            async with asyncio.TaskGroup() as self._tasks:
                connection.listen(self._listen, _HEARD)
                self._reconcile()
                for asked in self._asked.values():
                    asked.is_waited_for = True
                self._is_begun = True
                self._moved.set()
                await loop.create_future()
        finally:
            connection.unlisten(self._listen)

    async def settled(self) -> None:
        """Return when those who were here first have said what they offer, or have had the time to since we came."""
        try:
            async with asyncio.timeout_at(self._start_by_s):
                while not self._is_settled():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return

    async def answered(self, participant: str) -> None:
        """Return when the participant is here and has said what it offers, or has left that unanswered."""
        while (asked := self._asked.get(participant)) is None or asked.is_busy:
            self._moved.clear()
            await self._moved.wait()

    @property
    def participants(self) -> tuple[str, ...]:
        """Those who may offer something, by name."""
        return tuple(sorted(self._asked))

    def said(self, participant: str, what: OfferKind) -> list[dict[str, Any]] | None:
        """What it lists; None where it has not said."""
        asked = self._asked.get(participant)
        return None if asked is None else asked.said.get(what)

    def _is_settled(self) -> bool:
        if not self._is_begun or (self._only is not None and self._only not in self._asked):
            return False
        return not any(asked.is_waited_for and asked.is_busy for asked in self._asked.values())

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        match payload:
            case Presence():
                self._reconcile()
            case Welcome():
                self._welcomed()
            case McpRequest(id=request_id, method=method) if request_id is UNSET and method in _CHANGES:
                if not envelope.to or self._me.id in envelope.to:
                    self._want(envelope.sender, _CHANGES[method])
            case McpResponse():
                asked = self._asked.get(envelope.sender)
                if asked is not None and asked.is_overheard:
                    self._want(envelope.sender, (OfferKind.TOOLS,))

    def _welcomed(self) -> None:
        self._reconcile()
        if self._me.capabilities != self.permits.held:
            self.permits = Permits(self._me.capabilities)
            for participant, asked in self._asked.items():
                self._want(
                    participant, (what for what in OfferKind if what not in asked.said or asked.is_overheard)
                )
            self._changed()

    def _reconcile(self) -> None:
        here = [who for who in self._me.participants if who != self._me.id and self._only in (None, who)]
        gone = [who for who in self._asked if who not in here]
        for who in gone:
            del self._asked[who]
        if gone:
            self._changed()
        for who in here[:_PARTICIPANTS_MAX]:
            if who not in self._asked:
                self._asked[who] = _Asked(is_waited_for=self._only is not None)
                self._want(who, OfferKind)
        self._moved.set()

    def _want(self, participant: str, whats: Iterable[OfferKind]) -> None:
        asked = self._asked.get(participant)
        if asked is None or self._tasks is None:
            return
        asked.wanted.update(whats)
        if asked.wanted and not asked.is_asking:
            asked.is_asking = True
            self._tasks.create_task(self._ask(participant, asked))

    async def _ask(self, participant: str, asked: _Asked) -> None:
        try:
            await self._ask_first(participant, asked)
            while asked.wanted:
                await asyncio.sleep(max(0.0, asked.rests_until_s - asyncio.get_running_loop().time()))
                whats, asked.wanted = asked.wanted, set()
                await asyncio.gather(*[self._learn(participant, asked, what) for what in whats])
                asked.rests_until_s = asyncio.get_running_loop().time() + _REST_S
        except Unanswered:
            asked.wanted.clear()
        except MewError as error:
            asked.wanted.clear()
            _log.warning("what %s offers is not known: %s", named(participant), visible(str(error)))
        finally:
            asked.is_asking = False
            self._moved.set()

    async def _ask_first(self, participant: str, asked: _Asked) -> None:
        """One question, where nothing was ever answered: there may be nobody who answers."""
        if not asked.said:
            for what in OfferKind:
                if what in asked.wanted and self._may_ask(participant, what):
                    asked.wanted.discard(what)
                    await self._learn(participant, asked, what)
                    return

    async def _learn(self, participant: str, asked: _Asked, what: OfferKind) -> None:
        if self.permits.of(participant, what.use) is Permit.NONE:
            said: list[dict[str, Any]] = []
        elif self._may_ask(participant, what):
            asked.is_overheard = asked.is_overheard and what is not OfferKind.TOOLS
            said = await listed(self._me, participant, what, within_s=_ANSWER_S)
        else:
            asked.is_overheard = asked.is_overheard or what is OfferKind.TOOLS
            said = self._overheard(participant) if what is OfferKind.TOOLS else []
        if asked.said.get(what) != said:
            asked.said[what] = said
            if self._asked.get(participant) is asked:
                self._changed()

    def _may_ask(self, participant: str, what: OfferKind) -> bool:
        if self.permits.of(participant, what.use) is Permit.NONE:
            return False
        payload = {"jsonrpc": "2.0", "id": 0, "method": what.listing, "params": {}}
        return self._me.can_send(Kind.MCP_REQUEST, payload, to=participant)

    def _overheard(self, participant: str) -> list[dict[str, Any]]:
        """Its tools, as far as anybody was seen to ask for them."""
        tools = [
            {
                "name": tool.name,
                "inputSchema": tool.input_schema,
                **({"description": tool.description} if tool.description is not None else {}),
                **({"outputSchema": tool.output_schema} if tool.output_schema is not None else {}),
                **({"annotations": tool.annotations} if tool.annotations else {}),
            }
            for tool in self._me.catalogue.tools(participant)
        ]
        return valid(participant, OfferKind.TOOLS, tools)
