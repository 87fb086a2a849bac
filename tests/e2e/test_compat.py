"""Clients of the TypeScript implementation, as they come (design 3.3, issue 2 item 9)."""

import asyncio
import json
from typing import Any

import pytest

from .client import Client, Door, RawSocket


async def lenient(door: Door, who: str, claimed: str | None = None) -> Client:
    """One that joined by its first frame and was welcomed."""
    join = {"type": "join", "space": door.space, "token": door.tokens[who]}
    client = await door.join_by_frame(join | ({} if claimed is None else {"participantId": claimed}), who=who)
    client.welcome = await client.next()
    assert client.welcome["kind"] == "system/welcome"
    return client


async def tell(client: Client, **said: Any) -> None:
    await client.connection.send(json.dumps({"from" if key == "sender" else key: said[key] for key in said}))


async def test_a_bare_envelope_is_completed(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    await tell(bob, kind="chat", payload={"text": "hi"}, extra=[1])
    said = await ann.until("chat")
    assert said["protocol"] == "mew/v0.4"
    assert said["from"] == "bob"
    assert said["id"]
    assert said["ts"]
    assert said["payload"] == {"text": "hi"}
    assert said["extra"] == [1]


async def test_a_string_as_correlation_id_becomes_an_array(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    await tell(bob, kind="chat", payload={}, correlation_id="one")
    assert (await ann.until("chat"))["correlation_id"] == ["one"]


async def test_an_id_the_client_made_up_is_read_as_its_own(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob", claimed="client-1756")
    assert bob.welcome["payload"]["you"]["id"] == "bob"
    await tell(bob, kind="chat", sender="client-1756", payload={"text": "hi"})
    assert (await ann.until("chat"))["from"] == "bob"
    await tell(bob, kind="chat", sender="ann", payload={"text": "hi"})
    assert (await bob.error())["error"] == "wrong_sender"


async def test_the_id_of_another_is_not_to_be_had(door: Door) -> None:
    join = {"type": "join", "space": door.space, "token": door.tokens["cat"], "participantId": "ann"}
    assert (await (await door.join_by_frame(join)).closed())[0] == 4501


async def test_a_wrong_token_is_closed_with_a_code_that_says_do_not_come_back(door: Door) -> None:
    join = {"kind": "system/join", "payload": {"space": door.space, "token": "wrong", "participantId": "x"}}
    code, _ = await (await door.join_by_frame(join)).closed()
    assert 4500 <= code < 4600


async def test_another_version_is_closed_with_4506(door: Door) -> None:  # design 3.4
    join = {"kind": "system/join", "protocol": "mew/v0.3", "payload": {"space": door.space, "token": "any"}}
    code, reason = await (await door.join_by_frame(join)).closed()
    assert (code, reason) == (4506, "this gateway speaks 'mew/v0.4'")


async def test_a_writer_gets_its_own_frames_back(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    await tell(bob, kind="stream/request", payload={"direction": "upload"}, to=["gateway"])
    stream = (await bob.until("stream/open"))["payload"]["stream_id"]
    for frame in (f"#{stream}#text", f"#{stream}#binary".encode()):
        await bob.connection.send(frame)
        assert await bob.frame() == frame
        assert await ann.frame() == frame


async def test_only_the_connection_that_joined_so_hears_itself(door: Door) -> None:
    bob, terminal = await lenient(door, "bob"), await door.join("bob")
    await tell(bob, kind="stream/request", payload={"direction": "upload"}, to=["gateway"])
    stream = (await bob.until("stream/open"))["payload"]["stream_id"]
    await bob.connection.send(f"#{stream}#data")
    assert await bob.frame() == f"#{stream}#data"
    await tell(bob, kind="chat", payload={"text": "marker"})
    assert "#" not in [str(said)[:1] for said in await terminal.since_now()]


async def test_what_comes_right_behind_the_join_has_the_limits_of_the_space(door: Door) -> None:
    ann = await door.join("ann")
    join = {"type": "join", "space": door.space, "token": door.tokens["bob"]}
    said = {"kind": "chat", "payload": {"text": "x" * 100_000}}
    with await asyncio.to_thread(RawSocket, door.gateway, "/", None) as bob:
        bob.send(
            RawSocket.frame(0x81, json.dumps(join).encode())
            + RawSocket.frame(0x81, json.dumps(said).encode())
        )
        assert len((await ann.until("chat"))["payload"]["text"]) == 100_000


async def test_a_frame_begun_behind_the_join_is_not_beyond_the_limits_of_the_space(door: Door) -> None:
    join = {"type": "join", "space": door.space, "token": door.tokens["bob"]}
    huge = RawSocket.frame(0x82, b"x" * 70_000)  # its head, with a length of 8 bytes to be made larger
    head = huge[:2] + (1 << 35).to_bytes(8, "big") + huge[10:14]
    with await asyncio.to_thread(RawSocket, door.gateway, "/", None) as bob:
        bob.send(RawSocket.frame(0x81, json.dumps(join).encode()) + head + b"x" * 100)
        assert json.loads(bob.receive()[1])["kind"] == "system/welcome"
        bob.send(b"x" * 100)
        code, _ = await asyncio.to_thread(bob.until_closed)
    assert code == 1009


async def test_nobody_fills_our_memory_before_a_join(door: Door) -> None:
    with await asyncio.to_thread(RawSocket, door.gateway, "/", None) as stranger:
        stranger.send(RawSocket.frame(0x81, b"x" * 200_000)[:150_000])
        code, _ = await asyncio.to_thread(stranger.until_closed)
    assert code == 1009


async def test_counters_that_restart_are_no_duplicates(door: Door) -> None:  # design 3.7
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    for text in ("first", "second"):
        await tell(bob, kind="chat", id="envelope-1", payload={"text": text})
        assert (await ann.until("chat"))["payload"]["text"] == text


async def test_a_heartbeat_is_ignored_without_a_word(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    await bob.until("system/presence")
    await tell(bob, kind="system/heartbeat", payload={"timestamp": 1})
    await tell(bob, protocol="mew/v0.4", id="hb-2", sender="bob", kind="system/heartbeat")
    await tell(bob, kind="chat", payload={"text": "marker"})
    assert (await bob.next())["payload"] == {"text": "marker"}
    assert [said["kind"] for said in await ann.since_now()] == ["system/presence", "system/presence", "chat"]


async def test_nothing_else_is_forgiven(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    for said, code in (
        ({"kind": "chat", "protocol": "mew/v0.3"}, "wrong_version"),
        ({"kind": "chat", "to": "ann"}, "malformed"),
        ({"kind": "system/presence", "payload": {}}, "reserved_kind"),
        ({"kind": "space/kick", "payload": {"participant_id": "ann"}}, "capability_violation"),
        ({"payload": {}}, "malformed"),
        ({"kind": "chat", "payload": "text"}, "malformed"),
    ):
        await bob.connection.send(json.dumps(said))
        assert (await bob.error())["error"] == code
    for text in ('{"kind":"chat","kind":"chat"}', "{", "[]", '{"kind":"chat","from":"bob","from":"bob"}'):
        await bob.connection.send(text)
        assert (await bob.error())["error"] == "malformed"
    assert [said["kind"] for said in await ann.since_now()] == ["system/presence", "system/presence"]


async def test_a_connection_that_came_with_a_header_is_not_treated_so(door: Door) -> None:
    bob = await door.join("bob")
    await bob.connection.send(json.dumps({"kind": "chat", "payload": {}}))
    assert (await bob.error())["error"] == "malformed"
    await tell(bob, protocol="mew/v0.4", id="hb", sender="bob", kind="system/heartbeat")
    assert (await bob.error("hb"))["error"] == "reserved_kind"
    await tell(bob, protocol="mew/v0.4", id="c", sender="bob", kind="chat", correlation_id="x")
    assert (await bob.error("c"))["error"] == "malformed"


@pytest.mark.parametrize("form", ["type", "kind"])
async def test_a_whole_session_of_such_a_client_works(door: Door, form: str) -> None:
    fields = {"space": door.space, "token": door.tokens["bot"], "participantId": "bot"}
    join = {"type": "join", **fields} if form == "type" else {"kind": "system/join", "payload": fields}
    ann = await door.join("ann")
    bot = await door.join_by_frame(join, path=f"/ws?space_name={door.space}", who="bot")
    await bot.until("system/welcome")
    await tell(bot, kind="mcp/proposal", payload={"method": "tools/call"}, to=["ann"])
    proposal = await ann.until("mcp/proposal")
    await ann.say("mcp/reject", {"reason": "busy"}, to=["bot"], correlation_id=[proposal["id"]])
    assert (await bot.until("mcp/reject"))["correlation_id"] == [proposal["id"]]


# A token in the handshake and a join after it (design 3.19).


async def with_token_and_join(door: Door, who: str, **join: Any) -> Client:
    """One that brings its token in the handshake and joins by a frame as well."""
    header = {"Authorization": f"Bearer {door.tokens[who]}"}
    client = Client(who, await door.open(door.url(path="/"), additional_headers=header))
    await client.connection.send(json.dumps({"type": "join", "token": door.tokens[who], **join}))
    return client


async def test_a_join_after_a_token_in_the_handshake_makes_the_connection_lenient(door: Door) -> None:
    ann = await door.join("ann")
    bob = await with_token_and_join(door, "bob", space=door.space, participantId="client-1756")
    await bob.until("system/welcome")
    for _ in range(2):
        await tell(bob, id="env-1", kind="chat", sender="client-1756", payload={}, correlation_id="one")
        said = await ann.until("chat")
        assert (said["from"], said["correlation_id"]) == ("bob", ["one"])


async def test_a_writer_that_joined_after_the_handshake_gets_its_own_frames_back(door: Door) -> None:
    bob = await with_token_and_join(door, "bob", space=door.space, participantId="bob")
    await tell(bob, kind="stream/request", payload={}, to=["gateway"])
    stream = (await bob.until("stream/open"))["payload"]["stream_id"]
    await bob.connection.send(f"#{stream}#mine")
    assert await bob.frame() == f"#{stream}#mine"


async def test_a_join_may_leave_its_token_to_the_handshake(door: Door) -> None:
    ann = await door.join("ann")
    header = {"Authorization": f"Bearer {door.tokens['bob']}"}
    bob = Client("bob", await door.open(door.url(path="/"), additional_headers=header))
    await tell(bob, kind="system/join", payload={"space": door.space})
    await tell(bob, kind="chat", payload={"text": "hi"})
    assert (await ann.until("chat"))["from"] == "bob"


@pytest.mark.parametrize(
    ("join", "code"),
    [
        ({"token": "another"}, 4501),
        ({"participantId": "ann"}, 4501),
        ({"participantId": "gateway"}, 4501),
        ({"space": "elsewhere"}, 4504),
        ({"protocol": "mew/v0.3"}, 4506),
    ],
)
async def test_a_join_that_contradicts_the_handshake_is_closed(
    door: Door, join: dict[str, Any], code: int
) -> None:
    client = await with_token_and_join(door, "bob", **join)
    assert (await client.closed())[0] == code


async def test_only_the_first_frame_joins(door: Door) -> None:
    bob = await door.join("bob")
    await bob.say("chat", {"text": "hi"})
    await tell(bob, type="join", token=door.tokens["bob"])
    assert (await bob.error())["error"] == "malformed"


@pytest.mark.parametrize("claimed", ["system", "gateway", "system:gateway", "a:b"])
async def test_a_reserved_id_is_not_to_be_had(door: Door, claimed: str) -> None:
    join = {"type": "join", "space": door.space, "token": door.tokens["bob"], "participantId": claimed}
    assert (await (await door.join_by_frame(join)).closed())[0] == 4501


async def test_a_refused_frame_names_its_stream(door: Door) -> None:
    ann = await door.join("ann")
    bob = await lenient(door, "bob")
    await tell(bob, kind="stream/request")
    opened = (await ann.until("stream/open"))["payload"]
    assert opened["authorized_writers"] == ["bob"]
    await ann.connection.send(f"#{opened['stream_id']}#mine")
    refused = await ann.error()
    assert (refused["error"], refused["stream_id"]) == ("unauthorized_stream_write", opened["stream_id"])
