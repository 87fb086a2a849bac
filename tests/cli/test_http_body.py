"""An HTTP answer that comes in parts, from a real server."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from mew.cli.http_body import body_of


@pytest.mark.parametrize(("bytes_max", "read"), [(100, b"one two"), (7, b"one two"), (5, b"one t")])
async def test_it_is_read_to_its_end_or_to_the_bound(bytes_max: int, read: bytes) -> None:
    has_first = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one ")
        await has_first.wait()
        await response.write(b"two")
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    async with (
        asyncio.timeout(20),
        TestServer(app) as server,
        aiohttp.ClientSession() as session,
        session.get(server.make_url("/")) as got,
    ):
        reading = asyncio.ensure_future(body_of(got, bytes_max))
        await asyncio.sleep(0)
        has_first.set()
        assert await reading == read
