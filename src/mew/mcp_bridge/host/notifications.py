"""What changed, told to every host in the way of its generation."""

from typing import Final

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from mew.client.client import Client
from mew.mcp_bridge.host.offers.listings import What

from .hosts import Hosts

__all__ = ["Changes"]

_EVENTS: Final[dict[What, ServerEvent]] = {
    What.TOOLS: ToolsListChanged(),
    What.RESOURCES: ResourcesListChanged(),
    What.TEMPLATES: ResourcesListChanged(),
    What.PROMPTS: PromptsListChanged(),
}
_METHODS: Final = {
    What.TOOLS: "notifications/tools/list_changed",
    What.RESOURCES: "notifications/resources/list_changed",
    What.TEMPLATES: "notifications/resources/list_changed",
    What.PROMPTS: "notifications/prompts/list_changed",
}


class Changes:
    """`hosts` are those of the first generation; those of 2026-07-28 listen to `bus`."""

    def __init__(self, me: Client) -> None:
        self.hosts = Hosts(me.connection.spawn)
        self.bus = InMemorySubscriptionBus()
        self._me = me

    def listed(self, what: What) -> None:
        """A listing is another now."""
        self.hosts.tell(_METHODS[what])
        self._me.connection.spawn(self.bus.publish(_EVENTS[what]))

    def updated(self, uri: str) -> None:
        """A resource is another now."""
        self.hosts.tell_subscribers(uri)
        self._me.connection.spawn(self.bus.publish(ResourceUpdated(uri)))
