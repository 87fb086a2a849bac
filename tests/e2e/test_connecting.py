"""Coming in: three ways to bring a token, and every way to be refused (§5.2, design 3.3, 3.4)."""

import asyncio
import base64
import json

import pytest
import websockets

from .client import Client, Door
from .process import secret


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# §5.2, §8.1 "WebSocket server at GET /ws?space=<name>", "Bearer token validation", "Token-to-participant-ID mapping".


async def test_a_token_in_the_header_opens_the_space_and_says_who_one_is(door: Door) -> None:
    bob = await door.join("bob")
    assert bob.welcome["to"] == ["bob"]
    assert bob.welcome["from"] == "system:gateway"
    assert bob.welcome["protocol"] == "mew/v0.4"
    assert bob.welcome["payload"]["you"]["id"] == "bob"


async def test_the_welcome_lists_what_one_may_and_who_else_is_there(door: Door) -> None:  # §3.8.1
    await door.join("ann")
    cat = await door.join("cat")
    you = cat.welcome["payload"]["you"]
    kinds = [capability["kind"] for capability in you["capabilities"]]
    assert sorted(kinds) == ["capability/grant-ack", "chat", "mcp/response"]  # design 3.18
    (ann,) = cat.welcome["payload"]["participants"]
    assert ann["id"] == "ann"
    assert {"kind": "*"} in ann["capabilities"]
    assert cat.welcome["payload"]["active_streams"] == []
    assert "resumed" not in cat.welcome["payload"]


async def test_a_browser_brings_its_token_as_a_subprotocol_and_is_answered_with_ours_alone(
    door: Door,
) -> None:
    connection = await door.open(door.url(), subprotocols=["mew.v0.4", f"mew.bearer.{door.tokens['bob']}"])
    assert connection.subprotocol == "mew.v0.4"
    assert (await Client("bob", connection).next())["to"] == ["bob"]


async def test_a_subprotocol_with_the_token_alone_is_not_repeated_in_the_answer(door: Door) -> None:
    answer = await door.upgrade(
        f"/ws?space={door.space}", sec_websocket_protocol=f"mew.bearer.{door.tokens['bob']}"
    )
    assert answer.status == 101
    assert "Sec-WebSocket-Protocol" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/ws"])
async def test_both_paths_lead_in(door: Door, path: str) -> None:
    url = door.url(path=path)
    connection = await door.open(url, additional_headers=bearer(door.tokens["cat"]))
    assert (await Client("cat", connection).next())["kind"] == "system/welcome"


@pytest.mark.parametrize("path", ["/", "/ws", "/some/where/else?x=1"])
async def test_a_join_as_the_first_frame_is_taken_on_any_path(door: Door, path: str) -> None:
    join = {"type": "join", "space": door.space, "token": door.tokens["cat"], "participantId": "cat"}
    cat = await door.join_by_frame(join, path=path, who="cat")
    assert (await cat.next())["to"] == ["cat"]


async def test_a_join_in_the_form_of_an_envelope_is_taken_too(door: Door) -> None:
    payload = {"space": door.space, "token": door.tokens["cat"], "participantId": "cat"}
    cat = await door.join_by_frame({"kind": "system/join", "payload": payload}, who="cat")
    assert (await cat.next())["payload"]["you"]["id"] == "cat"


async def test_the_token_alone_decides_who_one_is(door: Door) -> None:  # §5.2, note
    cat = await door.join("cat", query="&participant=ann&participant_id=ann&participantId=ann&token=x")
    assert cat.welcome["payload"]["you"]["id"] == "cat"


async def test_the_scheme_is_read_whatever_its_case(door: Door) -> None:
    headers = {"Authorization": f"bEARER {door.tokens['cat']}"}
    connection = await door.open(door.url(), additional_headers=headers)
    assert (await Client("cat", connection).next())["to"] == ["cat"]


async def test_the_gateway_answers_a_ping_and_a_close(door: Door) -> None:  # RFC 6455 §5.5
    cat = await door.join("cat")
    pong = await cat.connection.ping(b"there?")
    async with asyncio.timeout(5):
        await pong
    await cat.connection.close(3001, "bye")
    assert cat.connection.close_code == 3001


# Refusals before the upgrade (design 3.4).


async def test_no_token_is_401_with_a_problem_that_says_how(door: Door) -> None:
    answer = await door.upgrade(f"/ws?space={door.space}")
    assert answer.status == 401
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.json["error"] == "no_token"
    assert "Authorization: Bearer" in answer.json["detail"]


async def test_an_unknown_token_is_401(door: Door) -> None:
    answer = await door.upgrade(f"/ws?space={door.space}", authorization=f"Bearer {secret('wrong')}")
    assert (answer.status, answer.json["error"]) == (401, "bad_token")


async def test_an_unknown_token_as_a_subprotocol_is_401(door: Door) -> None:
    offered = f"mew.v0.4, mew.bearer.{secret('wrong')}"
    answer = await door.upgrade(f"/ws?space={door.space}", sec_websocket_protocol=offered)
    assert (answer.status, answer.json["error"]) == (401, "bad_token")


@pytest.mark.parametrize("name", ["token", "access_token", "bearer", "authorization"])
async def test_a_token_in_the_url_is_ignored(door: Door, name: str) -> None:
    answer = await door.upgrade(f"/ws?space={door.space}&{name}={door.tokens['ann']}")
    assert (answer.status, answer.json["error"]) == (401, "no_token")


async def test_another_scheme_than_bearer_is_no_token(door: Door) -> None:
    basic = base64.b64encode(f"ann:{door.tokens['ann']}".encode()).decode()
    answer = await door.upgrade(f"/ws?space={door.space}", authorization=f"Basic {basic}")
    assert answer.status == 401


async def test_an_unknown_space_is_404(door: Door) -> None:
    answer = await door.upgrade("/ws?space=nowhere", authorization=f"Bearer {door.tokens['ann']}")
    assert (answer.status, answer.json["error"]) == (404, "no_such_space")


async def test_no_space_is_400_where_the_gateway_serves_several(door: Door) -> None:
    answer = await door.upgrade("/ws", authorization=f"Bearer {door.tokens['ann']}")
    assert (answer.status, answer.json["error"]) == (400, "space_missing")


async def test_a_refused_client_of_a_library_sees_the_status_too(door: Door) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await door.open(door.url(), additional_headers=bearer(secret("wrong")))
    assert refused.value.response.status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Sec_WebSocket_Version": "12"}, 400, id="old version"),
        pytest.param({"Sec_WebSocket_Key": "short"}, 400, id="bad key"),
        pytest.param({"Sec_WebSocket_Key": ""}, 400, id="no key"),
    ],
)
async def test_a_handshake_that_is_none_is_refused(door: Door, headers: dict[str, str], status: int) -> None:
    auth = f"Bearer {door.tokens['ann']}"
    answer = await door.upgrade(f"/ws?space={door.space}", authorization=auth, **headers)
    assert answer.status == status
    assert answer.json["error"] == "bad_handshake"


# Origins (design 3.4).


@pytest.mark.parametrize("origin", ["https://friend.example", "http://127.0.0.1:{port}"])
async def test_our_own_origin_and_an_allowed_one_may_connect(door: Door, origin: str) -> None:
    origin = origin.format(port=door.gateway.port)
    auth = f"Bearer {door.tokens['cat']}"
    answer = await door.upgrade(f"/ws?space={door.space}", authorization=auth, origin=origin)
    assert answer.status == 101


@pytest.mark.parametrize(
    "origin",
    [
        "https://foe.example",
        "null",
        "",
        "https://friend.example.foe.example",
        "http://friend.example",
        "http://127.0.0.1:1",
        "file://",
    ],
)
async def test_another_origin_is_403_even_with_a_good_token(door: Door, origin: str) -> None:
    auth = f"Bearer {door.tokens['cat']}"
    answer = await door.upgrade(f"/ws?space={door.space}", authorization=auth, origin=origin)
    assert (answer.status, answer.json["error"]) == (403, "origin_refused")


async def test_a_name_that_merely_points_here_is_not_our_origin(door: Door) -> None:
    host = f"rebound.example:{door.gateway.port}"
    auth = f"Bearer {door.tokens['cat']}"
    answer = await door.upgrade(
        f"/ws?space={door.space}", authorization=auth, origin=f"http://{host}", host=host
    )
    assert answer.status == 403


async def test_another_origin_is_refused_before_a_join_by_frame_too(door: Door) -> None:
    answer = await door.upgrade("/", origin="https://foe.example")
    assert answer.status == 403


# Joining by the first frame, and how that fails: codes of 4500 and more say "do not come back" (design 3.4).


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"token": "wrong"}, 4501),
        ({"space": "nowhere"}, 4504),
        ({"space": ...}, 4505),
        ({"token": ...}, 4505),
        ({"token": 7}, 4505),
        ({"type": "hello"}, 4505),
        ({"participantId": "ann"}, 4501),
    ],
)
async def test_a_join_that_is_wrong_is_closed_with_a_code(
    door: Door, change: dict[str, object], code: int
) -> None:
    join: dict[str, object] = {"type": "join", "space": door.space, "token": door.tokens["cat"], **change}
    join = {name: value for name, value in join.items() if value is not ...}
    client = await door.join_by_frame(join)
    assert (await client.closed())[0] == code
    await door.join("cat")  # and the address is not held against anyone


@pytest.mark.parametrize(
    "first", ["no json", "[]", "7", "null", '{"protocol":"mew/v0.4"}', "", "#stream-1#x"]
)
async def test_a_first_frame_that_is_no_join_is_closed(door: Door, first: str) -> None:
    connection = await door.open(door.gateway.ws_url + "/")
    await connection.send(first)
    assert (await Client("", connection).closed())[0] == 4505


async def test_a_closed_join_ends_at_once(door: Door) -> None:
    """Not only after the time the gateway gives those who do not answer its close."""
    join = {"type": "join", "space": "nowhere", "token": door.tokens["cat"]}
    client = await door.join_by_frame(join)
    await client.closed()
    async with asyncio.timeout(1.5):
        await client.connection.wait_closed()


async def test_frames_sent_right_behind_the_join_are_not_lost(door: Door) -> None:
    join = {"type": "join", "space": door.space, "token": door.tokens["cat"]}
    connection = await door.open(door.gateway.ws_url + "/")
    await connection.send(json.dumps(join))
    for n in range(20):
        await connection.send(json.dumps({"kind": "chat", "payload": {"text": str(n)}}))
    cat = Client("cat", connection)
    said = [(await cat.until("chat"))["payload"]["text"] for _ in range(20)]
    assert said == [str(n) for n in range(20)]


async def test_envelopes_sent_before_the_welcome_was_read_are_not_lost(door: Door) -> None:
    connection = await door.open(door.url(), additional_headers=bearer(door.tokens["cat"]))
    cat = Client("cat", connection)
    sent = [await cat.send("chat", {"text": str(n)}) for n in range(20)]
    assert [(await cat.until("chat"))["id"] for _ in sent] == sent


# Presence (§3.7, §8.1 "Connection state tracking", design 3.9).


async def test_everyone_sees_who_joins_and_leaves(door: Door) -> None:
    ann = await door.join("ann")
    cat = await door.join("cat")
    joined = await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "cat")
    assert joined["from"] == "system:gateway"
    assert joined["payload"]["event"] == "join"
    assert joined["payload"]["participant"]["capabilities"] == cat.welcome["payload"]["you"]["capabilities"]
    await cat.connection.close()
    left = await ann.until("system/presence")
    assert left["payload"]["event"] == "leave"
    assert left["payload"]["participant"]["id"] == "cat"


async def test_several_connections_of_one_participant_are_one_join_and_one_leave(door: Door) -> None:
    ann = await door.join("ann")
    terminal = await door.join("cat")
    browser = await door.join("cat")
    echoed = await terminal.send("chat", {"text": "from one"})
    await browser.until_id(echoed)
    await terminal.connection.close()
    still = await browser.say("chat", {"text": "still here"})
    await ann.until_id(still)
    await browser.connection.close()
    await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    events = [
        said["payload"]["event"]
        for said in ann.seen
        if said["kind"] == "system/presence" and said["payload"]["participant"]["id"] == "cat"
    ]
    assert events == ["join", "leave"]


async def test_a_connection_that_dies_without_a_goodbye_leaves_too(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    cat.connection.transport.abort()
    left = await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    assert left["payload"]["participant"]["id"] == "cat"
