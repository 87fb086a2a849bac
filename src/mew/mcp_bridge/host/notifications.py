"""What changed, told to every host in the way of its generation."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from mew.client.client import Client
from mew.mcp_bridge.host.offers.discovery import OfferKind

from .host_request import is_wanted

__all__ = ["ChangeNotifier", "ConnectedHosts"]

_LOG_LINES_MAX: Final = 256
_UPDATED: Final = "notifications/resources/updated"

Spawn = Callable[[Coroutine[Any, Any, object]], asyncio.Task[None]]


class ConnectedHosts:
    """Those that have said `initialize`, until they are gone."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._hosts: dict[Connection, _Host] = {}

    def add(self, connection: Connection) -> None:
        """Tell it from now on, until it is gone."""
        if connection not in self._hosts:
            host = self._hosts[connection] = _Host(connection)
            telling = self._spawn(host.run())
            connection.exit_stack.callback(telling.cancel)
            connection.exit_stack.callback(self._hosts.pop, connection, None)

    def tell(self, method: str) -> None:
        """All of them."""
        for host in self._hosts.values():
            host.tell(method, None)

    def tell_subscribers(self, uri: str) -> None:
        """Those who subscribed to this resource."""
        for host in self._hosts.values():
            if uri in host.uris:
                host.tell(_UPDATED, uri)

    def log(self, params: Mapping[str, Any]) -> None:
        """A line of a log, to those who want one of its level."""
        for host in self._hosts.values():
            host.log(params)

    def uris_of(self, connection: Connection) -> set[str]:
        """The resources that a host subscribed to, to be changed in place."""
        host = self._hosts.get(connection)
        return set() if host is None else host.uris


class _Host:
    """One of them, and what it has not been told yet."""

    def __init__(self, connection: Connection) -> None:
        self.uris: set[str] = set()
        self._connection = connection
        self._due: dict[tuple[str, str | None], None] = {}
        self._lines: deque[Mapping[str, Any]] = deque(maxlen=_LOG_LINES_MAX)
        self._news = asyncio.Event()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._due:
                method, uri = next(iter(self._due))
                del self._due[method, uri]
                await self._connection.notify(method, None if uri is None else {"uri": uri})
            while self._lines:
                await self._connection.notify("notifications/message", self._lines.popleft())

    def tell(self, method: str, uri: str | None) -> None:
        self._due[method, uri] = None
        self._news.set()

    def log(self, params: Mapping[str, Any]) -> None:
        if is_wanted(self._connection, params):
            self._lines.append(params)
            self._news.set()


_EVENTS: Final[dict[OfferKind, ServerEvent]] = {
    OfferKind.TOOLS: ToolsListChanged(),
    OfferKind.RESOURCES: ResourcesListChanged(),
    OfferKind.TEMPLATES: ResourcesListChanged(),
    OfferKind.PROMPTS: PromptsListChanged(),
}
_METHODS: Final = {
    OfferKind.TOOLS: "notifications/tools/list_changed",
    OfferKind.RESOURCES: "notifications/resources/list_changed",
    OfferKind.TEMPLATES: "notifications/resources/list_changed",
    OfferKind.PROMPTS: "notifications/prompts/list_changed",
}


class ChangeNotifier:
    """`hosts` are those of the first generation; those of 2026-07-28 listen to `bus`."""

    def __init__(self, me: Client) -> None:
        self.hosts = ConnectedHosts(me.connection.spawn)
        self.bus = InMemorySubscriptionBus()
        self._me = me

    def listed(self, what: OfferKind) -> None:
        """A listing is another now."""
        self.hosts.tell(_METHODS[what])
        self._me.connection.spawn(self.bus.publish(_EVENTS[what]))

    def updated(self, uri: str) -> None:
        """A resource is another now."""
        self.hosts.tell_subscribers(uri)
        self._me.connection.spawn(self.bus.publish(ResourceUpdated(uri)))
