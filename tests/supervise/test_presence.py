"""Who has joined, as the gateway tells."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from mew.supervise.presence import PresenceProbe

MEMBERS = {"participants": [{"id": "bot", "connected": True}, {"id": "ann", "connected": False}]}


@asynccontextmanager
async def watching(*tokens: str) -> AsyncIterator[PresenceProbe]:
    """A gateway that takes one token."""

    async def participants(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer good":
            return web.json_response({"error": "unauthorized"}, status=401)
        return web.json_response(MEMBERS)

    async def envelopes(request: web.Request) -> web.Response:
        sent = [{"id": "e1", "from": "bot"}] if request.query["participant"] == "bot" else []
        return web.json_response({"envelopes": sent})

    async def ready(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.get("/spaces/demo/participants", participants), web.get("/ready", ready)])
    app.add_routes([web.get("/spaces/demo/envelopes", envelopes)])
    async with (
        TestServer(app) as server,
        PresenceProbe(str(server.make_url("")).rstrip("/"), {"demo": tokens}) as it,
    ):
        yield it


async def test_who_is_connected_is_told_to_the_first_whose_token_is_taken() -> None:
    async with watching("of-somebody-who-was-kicked", "good") as watch:
        assert await watch.is_ready()
        assert await watch.present("demo") == frozenset({"bot"})


async def test_the_history_says_whether_somebody_has_sent_anything() -> None:
    async with watching("good") as watch:
        assert await watch.has_sent("demo", "bot")
        assert not await watch.has_sent("demo", "ann")


async def test_nothing_is_known_where_no_token_is_taken() -> None:
    async with watching("bad") as watch:
        assert await watch.present("demo") is None


async def test_a_gateway_that_is_not_there_is_not_ready() -> None:
    async with PresenceProbe("http://127.0.0.1:1", {"demo": ("good",)}) as watch:
        assert not await watch.is_ready()
        assert await watch.present("demo") is None
