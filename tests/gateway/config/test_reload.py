"""Reading the file again, and stopping, seen from inside: what fails, what is kept, what is told."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.served import SPACE_YAML, Serve, Served

from mew.gateway.auth.authenticator import Claims, Identity, TokenSource
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import Decision, Entry, Space

TWO_SPACES = SPACE_YAML.replace(
    "space: {id: demo, name: Demo, description: A space to try}", "spaces: [{id: demo}, {id: other}]"
)


class Broken(Space):
    """A space with a bug."""

    __slots__ = ()

    def apply(self, entry: Entry) -> list[Decision]:
        raise AssertionError("a bug")


async def break_space(served: Served, name: str = "demo") -> None:
    node = served.gateway._node
    room = node.rooms[name]
    room.space = Broken(room.space.state)
    room.identify(ParticipantId("somebody"), ())
    async with asyncio.timeout(5):
        await room.news()
    assert node.failed.keys() == {name}


def rewrite(served: Served, text: str) -> None:
    served.gateway._config.file.write_text(text)
    served.gateway.reload()


@pytest.mark.parametrize("kept", ["journal: off\n", ""])
async def test_a_bug_met_over_a_socket_stops_its_space(serve: Serve, kept: str) -> None:
    served = await serve(more=kept)
    node = served.gateway._node
    room = node.rooms["demo"]
    socket = await served.ann.connect()
    room.space = Broken(room.space.state)
    await socket.send_str('{"protocol": "mew/v0.4", "id": "not-delivered", "from": "ann", "kind": "chat"}')
    while (told := await socket.receive(timeout=5)).type is aiohttp.WSMsgType.TEXT:
        assert "not-delivered" not in told.data
    assert (told.type, told.data) == (aiohttp.WSMsgType.CLOSE, CloseCode.UNAVAILABLE)
    assert node.failed.keys() == {"demo"}


async def test_a_reload_opens_a_failed_space_anew(served: Served) -> None:
    await break_space(served)
    assert (await served.ann.send({"kind": "chat"})).status == 503
    assert (await served.nobody.get("/ready")).status == 503
    served.gateway.reload()
    assert (await served.ann.send({"kind": "chat"})).status == 200
    assert (await served.nobody.get("/ready")).status == 200


async def test_a_failed_space_does_not_keep_the_others_from_their_new_rules(serve: Serve) -> None:
    served = await serve(TWO_SPACES)
    await break_space(served)
    assert (await served.bot.send({"kind": "mcp/request"}, space="other")).status == 403
    rewrite(served, TWO_SPACES.replace("[chat, mcp/proposal]", "[chat, mcp/request]"))
    for space in ("demo", "other"):
        assert (await served.bot.send({"kind": "mcp/request"}, space=space)).status == 200


async def test_a_failed_space_that_is_gone_from_the_file_has_not_failed_any_more(serve: Serve) -> None:
    served = await serve(TWO_SPACES)
    await break_space(served)
    rewrite(served, TWO_SPACES.replace("{id: demo}, ", ""))
    assert served.gateway._node.failed == {}
    assert (await served.nobody.get("/ready")).json == {"status": "ready", "spaces": 1}


async def test_a_reload_while_stopping_changes_nothing(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rooms = dict(served.gateway._node.rooms)
    await served.stop()
    rewrite(served, TWO_SPACES)
    assert served.gateway._node.rooms == rooms
    assert "not reloaded: the gateway is stopping" in caplog.text


async def test_a_reload_takes_over_the_bounds_of_the_history(served: Served) -> None:
    for _ in range(4):
        await served.ann.say()
    last = await served.ann.say()
    rewrite(served, SPACE_YAML + "limits: {history_envelopes: 1}\n")
    kept = (await served.ann.messages()).json["messages"]
    assert [said["id"] for said in kept] == [last]


async def test_a_reload_takes_over_the_url_for_invitations(served: Served) -> None:
    ann = served.ann
    rewrite(served, SPACE_YAML.replace("port: 0", "port: 0, public_url: 'https://mew.example'"))
    answer = await ann.send({"kind": "space/invite", "payload": {"participant_id": "dan"}})
    assert answer.json["reply"]["payload"]["connection_url"] == "wss://mew.example/ws?space=demo"


async def test_a_reload_tells_what_the_file_says_without_effect(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    rewrite(served, SPACE_YAML + "gateway: {}\n")
    assert "has no effect here" in caplog.text


async def test_a_reload_names_the_keys_that_need_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "space.yaml"
    file.write_text(SPACE_YAML.replace("port: 0", "port: 8080"))

    def told() -> list[str]:
        return [vars(record)["keys"] for record in caplog.records if "keys" in vars(record)]

    async with Gateway(load_config(file, {}), {}, port=0) as gateway:
        gateway.reload()
        assert told() == []  # the port is the command line's, in the file it is as before
        file.write_text(SPACE_YAML.replace("port: 0", "port: 8081, host: '127.0.0.2'"))
        gateway.reload()
        assert told() == ["server.host, server.port"]
        gateway.reload()
        assert len(told()) == 1


JWT = "auth: {{jwt: {{issuer: 'https://id.example', audience: {audience}, jwks: jwks.json}}}}\n"


async def test_a_reload_keeps_the_keys_of_an_issuer_that_is_the_same(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text("{}")
    served = await serve(more=JWT.format(audience="mew"))
    before = served.gateway._jwt
    assert before is not None
    rewrite(served, SPACE_YAML + "delivery: addressed\n" + JWT.format(audience="mew"))
    assert served.gateway._jwt is before
    rewrite(served, SPACE_YAML + JWT.format(audience="other"))
    assert served.gateway._jwt is not before
    rewrite(served, SPACE_YAML)
    assert served.gateway._jwt is None


class Slow:
    """An authenticator that knows everybody, after a while."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.known = asyncio.Event()

    def is_candidate(self, token: str) -> bool:
        return True

    async def verify(self, token: str) -> Claims | None:
        self.asked.set()
        await self.known.wait()
        return {}

    def identity(self, claims: Claims, space: str) -> Identity | None:
        return Identity(ParticipantId("ann"), None, TokenSource.JWT)


@pytest.mark.parametrize("path", ["/ws?space=demo", "/participants/ann/messages"])
async def test_who_is_being_looked_at_when_the_gateway_stops_is_not_let_in(served: Served, path: str) -> None:
    slow = Slow()
    served.gateway._guard.authenticator = slow
    stranger = served.caller("ann", "signed-elsewhere")

    async def ask() -> Any:
        if path.startswith("/ws"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await served.session.ws_connect(served.gateway.url + path, headers=stranger.headers)
            return refused.value.status, refused.value.headers
        answer = await stranger.get(path)
        return answer.status, answer.headers

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask())
        await slow.asked.wait()
        stopping = tasks.create_task(_stop(served))
        await asyncio.sleep(0)
        assert served.gateway._node.stopping
        slow.known.set()
        status, headers = await asking
        assert status == 503
        assert "Retry-After" in headers
        await stopping


async def test_a_request_on_an_old_connection_is_refused_while_the_gateway_stops(served: Served) -> None:
    await served.ann.say()
    served.gateway._node.stopping = True
    answer = await served.ann.send({"kind": "chat"})
    assert (answer.status, answer.json["error"]) == (503, "unavailable")
    assert "Retry-After" in answer.headers
    assert (await served.nobody.get("/health")).status == 200


async def test_who_was_let_in_and_finds_the_room_closing_is_told_to_come_back(served: Served) -> None:
    served.gateway._node.rooms["demo"].begin_shutdown()
    socket = await served.session.ws_connect(
        served.gateway.url + "/ws?space=demo", headers=served.ann.headers
    )
    closed = await socket.receive(timeout=5)
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, CloseCode.UNAVAILABLE)


async def _stop(served: Served) -> None:
    await served.stop()
