"""What was shown before now, as an application iterates over it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import mew
from mew.client import history as client_history
from mew.client.connection import transport as transport_module
from mew.client.connection import websocket
from mew.gateway.config.loader import load_config
from mew.gateway.config.settings import Limits
from mew.gateway.server import Gateway
from mew.protocol.json import encode_json
from mew.testing import Space

WHO: dict[str, list[Any]] = {"ann": ["*"], "bot": ["chat", "mcp/proposal"]}
Connect = Callable[[str], mew.Client]


@pytest.fixture(params=["memory", "gateway"])
async def connect(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Connect]:
    """Ways into a space in the process, and into one that remembers little of itself but has a journal."""
    async with AsyncExitStack() as stack, asyncio.timeout(10):
        if request.param == "memory":
            space = await stack.enter_async_context(Space(WHO))
            yield space.connect
        else:
            gateway = await stack.enter_async_context(served(tmp_path, "limits: {history_envelopes: 7}\n"))
            yield lambda who: to(gateway, who)


@asynccontextmanager
async def served(folder: Path, more: str = "") -> AsyncIterator[Gateway]:
    listed = "".join(f"  {who}: {{tokens: [t-{who}], capabilities: {held!r}}}\n" for who, held in WHO.items())
    file = folder / "space.yaml"
    file.write_text(f"space: {{id: demo}}\nparticipants:\n{listed}server: {{port: 0}}\n{more}")
    async with Gateway(load_config(file, {}), {}) as gateway:
        yield gateway


def to(gateway: Gateway, who: str) -> mew.Client:
    return mew.connect(gateway.url, space="demo", token=f"t-{who}")


async def texts(history: Any) -> list[str]:
    return [envelope.content["text"] async for envelope in history]


async def test_all_that_was_said_is_told_in_both_directions(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "_PAGE_ENVELOPES", 4)
    async with connect("ann") as ann, connect("bot") as bot:
        said = [f"{n}" for n in range(20)]
        for text in said:
            await bot.chat(text)
        forward = ann.history(kind="chat")
        assert await texts(forward) == said
        assert forward.complete
        assert await texts(ann.history(kind="chat", newest_first=True)) == said[::-1]
        assert await texts(ann.history(kind="chat", limit=6)) == said[:6]
        assert await texts(ann.history(kind="chat", limit=6, newest_first=True)) == said[::-1][:6]
        joined = await ann.history(limit=2).list()
        assert [envelope.content["participant"]["id"] for envelope in joined] == ["ann", "bot"]


async def test_it_can_be_asked_for_by_cursor_time_sender_and_what_hangs_together(connect: Connect) -> None:
    async with connect("ann") as ann, connect("bot") as bot:
        first = await bot.chat("first")
        proposed = await bot.send("mcp/proposal", {"method": "tools/list"})
        asked = await ann.send("mcp/request", {"method": "tools/list"}, correlation_id=proposed.id)
        between = await ann.chat("between")
        last = await bot.chat("last")
        assert await ann.history(after=first, before=last).list() == [proposed, asked, between]
        assert await ann.history(after=first.id, participant="ann").list() == [asked, between]
        assert await ann.history(correlation=asked).list() == [proposed, asked]
        assert await ann.history(correlation=proposed.id, newest_first=True).list() == [asked, proposed]
        an_hour = timedelta(hours=1)
        assert await ann.history(since=datetime.now(UTC) + an_hour).list() == []
        assert await ann.history(until=datetime.now(UTC) - an_hour).list() == []
        everything = await ann.history(since=datetime.now(UTC) - an_hour).list()
        assert everything[-5:] == [first, proposed, asked, between, last]


async def test_what_is_asked_wrongly_is_said_at_once(connect: Connect) -> None:
    async with connect("ann") as ann:
        with pytest.raises(ValueError, match="limit: 0 is less than 1"):
            ann.history(limit=0)
        with pytest.raises(ValueError, match="since: a moment needs a time zone"):
            ann.history(since=datetime(2026, 1, 1))  # noqa: DTZ001  # that is the point
        with pytest.raises(mew.InvalidCapability):
            ann.history(kind="/(/")
        with pytest.raises(mew.ConnectError, match="after") as refused:
            await ann.history(after="x" * 300).list()
        assert refused.value.status == 400


async def test_who_left_is_told_so(connect: Connect) -> None:
    async with connect("ann") as ann:
        history = ann.history()
    with pytest.raises(mew.Disconnected):
        await history.list()


async def test_a_space_in_memory_says_what_it_no_longer_has() -> None:
    async with Space(WHO, limits=Limits(history_envelopes=2)) as space, space.connect("ann") as ann:
        said = [await ann.chat(f"{n}") for n in range(4)]
        history = ann.history()
        assert await history.list() == said[2:]
        assert not history.complete


async def test_what_was_for_others_is_not_told() -> None:
    async with Space(WHO, addressed=True) as space, space.connect("ann") as ann, space.connect("bot") as bot:
        await ann.chat("to myself", to=["ann"])
        seen = await ann.chat("to you", to=["bot"])
        assert await bot.history(kind="chat").list() == [seen]


async def test_a_walk_survives_that_the_gateway_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "_PAGE_ENVELOPES", 3)
    monkeypatch.setattr(client_history, "_AWAY_S", 0.03)
    monkeypatch.setattr(client_history, "_AGAIN_S", 0.01)
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        gateway = await first.enter_async_context(served(tmp_path))
        ann = await stack.enter_async_context(to(gateway, "ann"))
        said = [await ann.chat(f"{n}") for n in range(8)]
        history = ann.history(kind="chat")
        assert [await anext(history) for _ in range(2)] == said[:2]
        port = gateway.url.rpartition(":")[2]
        await first.aclose()
        with pytest.raises(mew.ConnectError, match="cannot be reached"):
            await history.list()
        file = tmp_path / "space.yaml"
        file.write_text(
            file.read_text().replace("port: 0", f"port: {port}") + "limits: {history_envelopes: 2}\n"
        )
        await stack.enter_async_context(Gateway(load_config(file, {}), {}))
        assert await history.list() == said[2:]
        assert history.complete


# Of a gateway that is not as it should be.


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/prefix/spaces/demo/envelopes", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"ws://127.0.0.1:{runner.addresses[0][1]}/prefix/ws"
    await runner.cleanup()


def transport(url: str) -> websocket.WebSocketTransport:
    return websocket.WebSocketTransport(url, space="demo", token="t-secret")


async def test_a_gateway_that_says_not_now_is_asked_again_when_it_says() -> None:
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        if len(asked) < 3:
            status = 429 if len(asked) == 1 else 503
            return web.Response(status=status, headers={"Retry-After": "0"})
        return web.Response(body=encode_json({"envelopes": [{}], "next": "x", "complete": True}))

    async with answering(answer) as url, asyncio.timeout(5):
        reached = transport(url)
        page = await reached.page({"limit": "1", "since": "2026-01-01T00:00:00+00:00"})
        await reached.close()
    assert (len(page.envelopes), page.next, page.complete) == (1, "x", True)
    assert {request.headers["Authorization"] for request in asked} == {"Bearer t-secret"}
    assert all("secret" not in str(request.url) for request in asked)
    assert asked[0].query["since"] == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("said", "waited_s"),
    [
        *(("0", 0.1), ("-5", 0.1), ("1e-9", 0.1), ("2.5", 2.5), ("1e300", 3600.0)),
        *(("nan", 1.0), ("inf", 1.0), ("Fri, 01 Jan 2027 00:00:00 GMT", 1.0)),
    ],
)
def test_however_soon_it_is_told_to_ask_again_it_waits_a_little(said: str, waited_s: float) -> None:
    assert websocket._retry_s({"Retry-After": said}) == waited_s


@pytest.mark.parametrize(
    ("status", "said", "come_back"),
    [
        (302, "status 302", False),
        (400, "what was wrong", False),
        (401, "does not know this token", False),
        (403, "what was wrong", False),
        (404, "what was wrong", False),
        (429, "what was wrong", True),
        (500, "what was wrong", True),
    ],
)
async def test_other_answers_are_errors_with_what_was_said(status: int, said: str, come_back: bool) -> None:  # noqa: FBT001
    async def answer(request: web.Request) -> web.Response:
        headers = {"Location": "http://elsewhere.example/", "Retry-After": "3600"}
        problem = {} if status == 302 else {"detail": "what was wrong"}
        return web.Response(status=status, headers=headers, body=encode_json(problem))

    async with answering(answer) as url, asyncio.timeout(5):
        reached = transport(url)
        with pytest.raises(mew.ConnectError, match=said) as refused:
            await reached.page({})
        await reached.close()
    assert (refused.value.status, refused.value.come_back) == (status, come_back)
    assert "secret" not in str(refused.value)


async def test_what_is_no_page_is_an_error() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>")

    async with answering(answer) as url, asyncio.timeout(5):
        reached = transport(url)
        with pytest.raises(mew.ConnectError, match="not a page"):
            await reached.page({})
        await reached.close()
