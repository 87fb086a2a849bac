"""What a connection promises, over every transport and every way to bring a token (§5.2)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from mew import testing
from mew.client.connection.connection import ClientConnection
from mew.client.connection.feed import HIGH
from mew.client.connection.websocket import Via, WebSocketTransport
from mew.client.errors import ConnectError, Disconnected, Refused, Uncertain
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway
from mew.protocol.envelope import Envelope
from mew.protocol.errors import CloseCode, Refusal
from mew.protocol.kinds import Kind

CAPABILITIES: Final[dict[str, list[Any]]] = {"ann": ["*"], "bot": ["chat", "mcp/proposal"], "eve": ["chat"]}
WAYS: Final = ("memory", "header", "subprotocol", "first frame")
KNOWS_IDS: Final = ("memory", "header", "subprotocol")


class Reach:
    """Ways into one space, and a way to lose them."""

    def __init__(self, connection: Callable[..., ClientConnection], cut: Callable[[str], None]) -> None:
        self.connection = connection
        self.cut = cut


def config(folder: Path, more: str = "") -> Path:
    listed = "".join(
        f"  {who}: {{tokens: [t-{who}], capabilities: {held!r}}}\n" for who, held in CAPABILITIES.items()
    )
    file = folder / "space.yaml"
    file.write_text(f"space: {{id: demo}}\nparticipants:\n{listed}server: {{port: 0}}\n{more}")
    return file


PLENTY: Final = "limits: {envelopes_per_second: 100000, burst: 100000}\n"


@pytest.fixture(params=WAYS)
async def reach(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reach]:
    async with AsyncExitStack() as stack, asyncio.timeout(20):
        if request.param == "memory":
            space = await stack.enter_async_context(testing.Space(CAPABILITIES))
            yield Reach(space.connection, space.cut)
            return
        gateway = await stack.enter_async_context(Gateway(load_config(config(tmp_path, PLENTY), {}), {}))
        yield over_sockets(gateway, Via(request.param))


def over_sockets(gateway: Gateway, via: Via = Via.HEADER) -> Reach:
    def connection(who: str, recall: int = 0) -> ClientConnection:
        transport = WebSocketTransport(gateway.url, space="demo", token=f"t-{who}", via=via)
        return ClientConnection(transport, recall=recall)

    def cut(who: str) -> None:
        for connection in gateway._node.rooms["demo"].connections.values():
            if connection.who == who:
                connection.wire.transport.abort()  # type: ignore[attr-defined]  # over a socket it has one

    return Reach(connection, cut)


def only(*ways: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("reach", ways, indirect=True)


class View(list[str]):
    """The texts of what one connection sees, as it sees it."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = asyncio.Event()

    def listen(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind == Kind.CHAT:
            self.append(envelope.content["text"])
            self._grown.set()

    async def until(self, last: str) -> None:
        """Until this text has come; every test is bounded."""
        while last not in self:
            self._grown.clear()
            await self._grown.wait()


def watched(connection: ClientConnection) -> View:
    view = View()
    connection.listen(view.listen)
    return view


async def say(connection: ClientConnection, text: str, **fields: Any) -> Envelope:
    return await connection.send(connection.compose(Kind.CHAT, {"text": text}, **fields))


async def test_what_was_sent_and_returned_is_seen_by_all_in_one_order(reach: Reach) -> None:
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        views = [watched(ann), watched(bot)]
        await asyncio.gather(*[say(who, f"{who.session.me}-{n}") for n in range(100) for who in (ann, bot)])
        await say(ann, "last")
        for view in views:
            await view.until("last")
        assert views[0] == views[1]
        assert len(set(views[0])) == 201
        for who in ("ann", "bot"):
            assert [text for text in views[0] if text.startswith(who)] == [f"{who}-{n}" for n in range(100)]


async def test_a_refusal_is_raised_with_the_gateways_reason(reach: Reach) -> None:
    async with reach.connection("eve") as eve:
        with pytest.raises(Refused, match="capability") as refused:
            await eve.send(eve.compose(Kind.MCP_REQUEST, {"method": "tools/call"}, to=["ann"]))
        assert refused.value.why is Refusal.CAPABILITY_VIOLATION
        assert refused.value.problem.attempted_kind == Kind.MCP_REQUEST
        await say(eve, "and it goes on")


async def test_what_the_welcome_says_is_known_at_once(reach: Reach) -> None:  # §8.2
    async with reach.connection("ann"), reach.connection("bot") as bot:
        assert bot.session.me == "bot"
        assert set(bot.session.roster) == {"ann", "bot"}
        assert bot.session.may(Kind.MCP_PROPOSAL, [], {})


@pytest.mark.slow
@only(*KNOWS_IDS)
async def test_however_often_the_connection_is_lost_nothing_is_and_nothing_comes_twice(reach: Reach) -> None:
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        views = [watched(ann), watched(bot)]
        ids: list[list[str]] = [[], []]
        ann.listen(lambda envelope, payload: ids[0].append(envelope.id))
        bot.listen(lambda envelope, payload: ids[1].append(envelope.id))
        async with asyncio.TaskGroup() as tasks:
            for n in range(200):
                tasks.create_task(say(ann, f"ann-{n:03}"))
                tasks.create_task(say(bot, f"bot-{n:03}"))
                if n % 40 == 20:
                    reach.cut("bot")
                if n % 70 == 30:
                    reach.cut("ann")
                await asyncio.sleep(0.001)
        await say(ann, "last")
        for view in views:
            await view.until("last")
        assert views[0] == views[1]
        assert len(views[0]) == 401
        for who in ("ann", "bot"):
            assert [text for text in views[0] if text.startswith(who)] == [
                f"{who}-{n:03}" for n in range(200)
            ]
        assert len(bot.gaps) >= 2
        assert all(gap.complete for gap in bot.gaps)
        shared = [envelope_id for envelope_id in ids[0] if envelope_id in set(ids[1])]
        assert len(ids[1]) == len(set(ids[1]))
        assert [envelope_id for envelope_id in ids[1] if envelope_id in set(shared)] == shared


@only("first frame")
async def test_who_joined_by_first_frame_is_told_what_may_have_been_lost(reach: Reach) -> None:
    async with reach.connection("ann") as ann:
        reach.cut("ann")
        sending = [asyncio.ensure_future(say(ann, str(n))) for n in range(3)]
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert all(isinstance(outcome, Envelope | Uncertain) for outcome in outcomes)
        await say(ann, "and it goes on")
        assert ann.gaps
        assert not ann.gaps[0].complete


async def test_who_is_kicked_does_not_come_back_and_is_told_why(reach: Reach) -> None:
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        feed = bot.feed()
        await ann.send(ann.compose(Kind.KICK, {"participant_id": "bot", "reason": "enough"}))
        ended = await bot.ended
        assert ended.code == CloseCode.KICKED
        with pytest.raises(Disconnected):
            await say(bot, "still here?")
        with pytest.raises(Disconnected, match=str(int(CloseCode.KICKED))):
            await anext(feed)


async def test_closing_here_ends_iterations_and_tells_who_waits(reach: Reach) -> None:
    async with reach.connection("ann") as ann:
        feed = ann.feed()
        ann.session.outgoing.paused_until = float("inf")
        waiting = ann.post(ann.compose(Kind.CHAT, {"text": "held back"}))
    assert [item async for item in feed] == []
    with pytest.raises(Disconnected, match="closed here"):
        await waiting


async def test_a_send_that_is_cancelled_before_it_went_out_is_never_seen(reach: Reach) -> None:
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        view = watched(bot)
        ann.session.outgoing.paused_until = float("inf")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await say(ann, "never mind")
        ann.session.outgoing.resumed()
        await say(ann, "this one")
        await view.until("this one")
        assert view == ["this one"]


async def test_while_paused_a_send_waits_and_goes_out_after_the_resume(reach: Reach) -> None:  # §3.9.1
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        view = watched(ann)
        await ann.send(ann.compose(Kind.PAUSE, {}, to=["bot"]))
        waiting = bot.post(bot.compose(Kind.CHAT, {"text": "patience"}))
        await say(ann, "quiet")
        assert not waiting.done()
        await ann.send(ann.compose(Kind.RESUME, {}, to=["bot"]))
        await waiting
        await view.until("patience")
        assert view == ["quiet", "patience"]


@pytest.mark.slow
async def test_a_slow_iteration_that_sends_does_not_wait_for_itself(reach: Reach) -> None:
    """Its own echo is behind what waits for it."""
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        feed = bot.feed()
        bot.listen(lambda envelope, payload: feed.offer(envelope))
        await asyncio.gather(*[say(ann, str(n)) for n in range(2 * HIGH)])
        answered = 0
        async for _ in feed:
            await say(bot, "got it")
            answered += 1
            if answered == 10:
                break


@pytest.mark.slow
async def test_a_full_iteration_holds_back_what_comes_and_loses_nothing(reach: Reach) -> None:
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        feed = bot.feed()
        bot.listen(lambda envelope, payload: feed.offer(envelope))
        total = 3 * HIGH
        await asyncio.gather(*[say(ann, str(n)) for n in range(total)])
        assert len(feed) <= HIGH
        texts = []
        async for envelope in feed:
            if envelope.kind == Kind.CHAT:
                texts.append(envelope.content["text"])
            if len(texts) == total:
                break
        assert texts == [str(n) for n in range(total)]


async def test_who_is_too_fast_waits_and_nothing_is_refused(tmp_path: Path) -> None:
    file = config(tmp_path, "limits: {envelopes_per_second: 500, burst: 5}\n")
    async with (
        asyncio.timeout(20),
        Gateway(load_config(file, {}), {}) as gateway,
        over_sockets(gateway).connection("ann") as ann,
    ):
        view = watched(ann)
        for n in range(50):
            await say(ann, str(n))
        assert view == [str(n) for n in range(50)]


@pytest.mark.parametrize("via", Via)
async def test_a_wrong_token_is_said_and_not_tried_again(tmp_path: Path, via: Via) -> None:
    async with asyncio.timeout(20), Gateway(load_config(config(tmp_path), {}), {}) as gateway:
        transport = WebSocketTransport(gateway.url, space="demo", token="t-nobody", via=via)
        with pytest.raises(ConnectError) as error:
            await ClientConnection(transport, first_within_s=60).__aenter__()
        assert not error.value.come_back
        assert "t-nobody" not in str(error.value)


async def test_a_space_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with asyncio.timeout(20), Gateway(load_config(config(tmp_path), {}), {}) as gateway:
        transport = WebSocketTransport(gateway.url, space="dmeo", token="t-ann")
        with pytest.raises(ConnectError, match="'dmeo'") as error:
            await ClientConnection(transport).__aenter__()
        assert error.value.status == 404


async def test_nobody_there_is_an_error_at_once_unless_one_is_ready_to_wait(unused_tcp_port: int) -> None:
    url = f"ws://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(ConnectError, match="cannot be reached") as error:
        await ClientConnection(WebSocketTransport(url, space="demo", token="t")).__aenter__()
    assert error.value.come_back


async def test_a_token_may_be_in_a_file_and_a_missing_one_is_named(tmp_path: Path) -> None:
    async with asyncio.timeout(20), Gateway(load_config(config(tmp_path), {}), {}) as gateway:
        (tmp_path / "token").write_text("t-ann\n")
        async with ClientConnection(
            WebSocketTransport(gateway.url, space="demo", token=tmp_path / "token")
        ) as ann:
            assert ann.session.me == "ann"
        with pytest.raises(ConnectError, match="missing"):
            await ClientConnection(WebSocketTransport(gateway.url, token=tmp_path / "missing")).__aenter__()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("localhost:8080", "looks like"),
        ("ftp://localhost", "looks like"),
        ("ws://", "looks like"),
        ("ws://user:secret@localhost", "token="),
        ("ws://localhost/ws?token=secret", "token="),
    ],
)
def test_what_is_no_url_of_a_gateway_is_said_to_be_none(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        WebSocketTransport(url)
    assert "secret" not in str(error.value)


async def test_an_envelope_need_not_have_a_payload(reach: Reach) -> None:
    async with reach.connection("ann") as ann:
        await ann.send(ann.compose("weather/report"))


@only("header", "subprotocol", "first frame")
async def test_what_is_larger_than_the_gateway_reads_is_refused_and_the_rest_goes_on(reach: Reach) -> None:
    async with reach.connection("ann") as ann:
        refusals = await asyncio.gather(say(ann, "x" * (5 << 20)), say(ann, "small"), return_exceptions=True)
        assert isinstance(refusals[0], Refused)
        assert refusals[0].why is Refusal.TOO_LARGE
        await say(ann, "and it goes on")


@only("memory", "header", "subprotocol")
async def test_who_asks_for_it_is_told_what_was_shown_before_and_misses_nothing_after_it(
    reach: Reach,
) -> None:
    async with reach.connection("bot") as bot:
        for n in range(5):
            await say(bot, f"before-{n}")
        late = reach.connection("ann", recall=4)
        view = watched(late)
        async with late as ann:
            recalled = [envelope.content["text"] for envelope in ann.recalled if envelope.kind == Kind.CHAT]
            assert recalled == [f"before-{n}" for n in range(1, 5)]
            await say(bot, "after")
            await view.until("after")
            assert view == ["after"]


async def test_nobody_can_guess_the_id_of_what_is_sent_next(reach: Reach) -> None:
    async with reach.connection("ann") as ann:
        ids = [(await say(ann, str(n))).id for n in range(300)]
    assert len(set(ids)) == 300
    assert {len(envelope_id) for envelope_id in ids} == {32}
    assert not [later for earlier, later in pairwise(ids) if earlier[:16] == later[:16]]


@pytest.mark.slow
async def test_an_iteration_that_nobody_reads_does_not_hold_back_the_others_for_good(reach: Reach) -> None:
    async with reach.connection("ann") as ann, reach.connection("bot") as bot:
        bot.stuck_s = 0.01
        forgotten, read = bot.feed(), bot.feed()
        bot.listen(lambda envelope, payload: forgotten.offer(envelope))
        bot.listen(lambda envelope, payload: read.offer(envelope))
        await asyncio.gather(*[say(ann, str(n)) for n in range(2 * HIGH)])
        texts = []
        async for envelope in read:
            if envelope.kind == Kind.CHAT:
                texts.append(envelope.content["text"])
            if len(texts) == 2 * HIGH:
                break
        assert len(forgotten) >= 2 * HIGH
