"""What a server tells reaches those it concerns: changes everyone, updates who subscribed, its log who wants it."""

import asyncio
from typing import Any

import pytest
from tests.client.ear import settled
from tests.mcp_bridge.server.stage import LEGACY, MODERN, Context, FakeServer, bridged, hears_method

from mew.client.errors import RpcError

STREAM = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
}
both = pytest.mark.parametrize("version", [LEGACY, MODERN])


class Changing(FakeServer):
    """Takes subscriptions in the way of its generation, and tells of changes in it."""

    def __init__(self, version: str) -> None:
        super().__init__(version, CAPABILITIES)
        self.streams: dict[Any, tuple[Context, dict[str, Any]]] = {}
        self.over = asyncio.Event()
        for method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
            if version == LEGACY:
                self.handlers[method] = self._fine
        if version == MODERN:
            self.handlers["subscriptions/listen"] = self._listen

    async def changed(self, method: str, params: dict[str, Any]) -> None:
        if self.version == LEGACY:
            await self.notify(method, params)
        for stream, (context, _) in tuple(self.streams.items()):
            await context.notify(method, {**params, "_meta": {STREAM: stream}})

    async def _fine(self, _: Context, __: dict[str, Any]) -> dict[str, Any]:
        return {}

    async def _listen(self, context: Context, params: dict[str, Any]) -> dict[str, Any]:
        stream, wanted = context.request_id, params["notifications"]
        acknowledged = {"notifications": wanted, "_meta": {STREAM: stream}}
        await context.notify("notifications/subscriptions/acknowledged", acknowledged)
        self.streams[stream] = context, wanted
        try:
            await self.over.wait()
        finally:
            del self.streams[stream]
        return {}

    @property
    def uris(self) -> list[str]:
        return [uri for _, wanted in self.streams.values() for uri in wanted.get("resourceSubscriptions", ())]


@both
async def test_everyone_hears_that_a_list_has_changed(version: str) -> None:
    server = Changing(version)
    async with bridged(server) as stage:
        if version == MODERN:
            await server.hears("subscriptions/listen")
        await stage.ann.tools("files")
        await server.changed("notifications/tools/list_changed", {})
        told = await hears_method(stage.ear, "notifications/tools/list_changed")
    assert told.to == ()
    assert "params" not in told.content


@both
async def test_who_subscribed_hears_of_an_update_and_nobody_else(version: str) -> None:
    server = Changing(version)
    async with bridged(server) as stage:
        await stage.ann.request("files", "resources/subscribe", {"uri": "mem://a"})
        await server.changed("notifications/resources/updated", {"uri": "mem://a", "future": 1.0})
        told = await hears_method(stage.ear, "notifications/resources/updated")
        await server.changed("notifications/resources/updated", {"uri": "mem://b"})
        await settled(stage.files.connection)
        updates = [
            one for one in stage.ear.all("mcp/request") if one.content["method"] == told.content["method"]
        ]
    assert told.to == ("ann",)
    assert told.content["params"] == {"uri": "mem://a", "future": 1.0}
    assert len(updates) == 1


async def test_a_server_is_asked_once_for_what_two_want_and_told_when_neither_does() -> None:
    server = Changing(LEGACY)
    async with bridged(server) as stage:
        for somebody in (stage.ann, stage.ben):
            await somebody.request("files", "resources/subscribe", {"uri": "mem://a"})
        await stage.ann.request("files", "resources/unsubscribe", {"uri": "mem://a"})
        await stage.ben.request("files", "resources/unsubscribe", {"uri": "mem://a"})
    asked = [method for method, _ in server.asked if method.startswith("resources/")]
    assert asked == ["resources/subscribe", "resources/unsubscribe"]


async def test_who_leaves_is_not_subscribed_any_more() -> None:
    server = Changing(LEGACY)
    async with bridged(server) as stage:
        await stage.ben.request("files", "resources/subscribe", {"uri": "mem://a"})
        await stage.ben.connection.leave()
        assert await server.hears("resources/unsubscribe") == {"uri": "mem://a"}


@both
async def test_subscriptions_are_made_again_after_a_restart(version: str) -> None:
    server = Changing(version)
    async with bridged(server) as stage:
        await stage.ann.request("files", "resources/subscribe", {"uri": "mem://a"})
        if version == LEGACY:
            await stage.ann.request("files", "logging/setLevel", {"level": "debug"})
        server.die()
        if version == LEGACY:
            assert await server.hears("resources/subscribe", many=2) == {"uri": "mem://a"}
            assert await server.hears("logging/setLevel", many=2) == {"level": "debug"}
        else:
            await server.hears("subscriptions/listen", many=3)
            await settled(stage.files.connection)
            assert server.uris == ["mem://a"]


async def test_a_stream_of_changes_has_all_that_is_wanted_and_there_is_one() -> None:
    server = Changing(MODERN)
    async with bridged(server) as stage:
        await stage.ann.request("files", "resources/subscribe", {"uri": "mem://a"})
        await stage.ben.request("files", "resources/subscribe", {"uri": "mem://b"})
        await server.hears("notifications/cancelled", many=2)
        assert server.uris == ["mem://a", "mem://b"]
        await stage.ann.request("files", "resources/unsubscribe", {"uri": "mem://a"})
        await server.hears("notifications/cancelled", many=3)
        assert server.uris == ["mem://b"]


async def test_a_subscription_that_the_server_refuses_is_none() -> None:
    async with bridged(FakeServer()) as stage:
        with pytest.raises(RpcError, match="Method not found"):
            await stage.ann.request("files", "resources/subscribe", {"uri": "mem://a"})
        with pytest.raises(RpcError, match="expected a `uri`"):
            await stage.ann.request("files", "resources/subscribe", {})


async def test_the_log_reaches_who_wants_it_as_severe_as_they_want_it() -> None:
    server = Changing(LEGACY)
    async with bridged(server) as stage:
        await stage.ann.request("files", "logging/setLevel", {"level": "error"})
        await stage.ben.request("files", "logging/setLevel", {"level": "debug"})
        await server.notify("notifications/message", {"level": "info", "data": {"a": None}, "logger": "x"})
        await server.notify("notifications/message", {"level": "error", "data": "bad"})
        first = await hears_method(stage.ear, "notifications/message")
        rest = {(await hears_method(stage.ear, "notifications/message", many=n)).to for n in (2, 3)}
    assert first.to == ("ben",)
    assert first.content["params"] == {"level": "info", "data": {"a": None}, "logger": "x"}
    assert rest == {("ann",), ("ben",)}
    levels = [params["level"] for method, params in server.asked if method == "logging/setLevel"]
    assert levels == ["error", "debug"]


async def test_who_has_something_under_way_hears_the_log_too() -> None:
    server = Changing(LEGACY)

    @server.on("tools/call")
    async def call(context: Context, _: dict[str, Any]) -> dict[str, Any]:
        await context.notify("notifications/message", {"level": "debug", "data": "small"})
        await context.notify("notifications/message", {"level": "info", "data": "big"})
        return {"content": []}

    async with bridged(server) as stage:
        await stage.ann.request("files", "tools/call", {"name": "t"})
        told = await hears_method(stage.ear, "notifications/message")
    assert told.to == ("ann",)
    assert told.content["params"]["data"] == "big"


async def test_a_server_of_the_second_generation_is_told_the_level_with_each_request() -> None:
    server = Changing(MODERN)

    @server.on("tools/call")
    async def call(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "level": params["_meta"].get("io.modelcontextprotocol/logLevel")}

    async with bridged(server) as stage:
        assert (await stage.ann.request("files", "tools/call", {"name": "t"}))["level"] is None
        assert await stage.ann.request("files", "logging/setLevel", {"level": "warning"}) == {}
        assert (await stage.ann.request("files", "tools/call", {"name": "t"}))["level"] == "warning"
        assert (await stage.ben.request("files", "tools/call", {"name": "t"}))["level"] is None


async def test_a_notification_that_nobody_knows_reaches_everyone() -> None:
    server = FakeServer()
    async with bridged(server) as stage:
        await stage.ann.tools("files")
        await server.notify("notifications/future", {"x": None})
        told = await hears_method(stage.ear, "notifications/future")
    assert told.to == ()
    assert told.content["params"] == {"x": None}


@pytest.mark.slow
async def test_a_flood_of_notifications_is_thinned_out_and_answers_still_come() -> None:
    server = FakeServer()
    async with bridged(server) as stage:
        await stage.ann.tools("files")
        for number in range(250):
            await server.notify("notifications/tools/list_changed")
            await server.notify("notifications/future", {"n": number})
        assert await stage.ann.request("files", "tools/list") == {"tools": []}
        told = [one.content["method"] for one in stage.ear.all("mcp/request")]
    assert len(told) < 300


async def test_a_resource_that_a_stream_does_not_cover_is_not_subscribed_to() -> None:
    server = Changing(MODERN)

    @server.on("subscriptions/listen")
    async def listen(context: Context, _: dict[str, Any]) -> dict[str, Any]:
        acknowledged = {"notifications": {}, "_meta": {STREAM: context.request_id}}
        await context.notify("notifications/subscriptions/acknowledged", acknowledged)
        await asyncio.sleep(60)
        return {}

    async with bridged(server) as stage:
        with pytest.raises(RpcError, match="takes no subscription to this resource"):
            await stage.ann.request("files", "resources/subscribe", {"uri": "mem://a"})


async def test_a_stream_that_breaks_is_opened_again_and_everyone_looks_again() -> None:
    server = Changing(MODERN)
    async with bridged(server) as stage:
        await stage.ann.request("files", "resources/subscribe", {"uri": "mem://a"})
        await server.hears("notifications/cancelled")
        server.over.set()
        await server.hears("subscriptions/listen", many=3)
        await hears_method(stage.ear, "notifications/resources/list_changed")
