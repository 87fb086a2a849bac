"""What an envelope goes through: checks, capabilities, order, delivery (§3, §4, §8.1, design 3.1, 3.2, 3.5 to 3.8)."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from .client import Client, Door, envelope
from .process import Gateway, run_gateway

# §8.1 Message Routing, design 3.1: everyone sees everything.


async def test_everyone_gets_an_envelope_its_sender_included(door: Door) -> None:
    everyone = await door.meet("ann", "bob", "cat")
    sent = await everyone[2].send("chat", {"text": "hello"})
    for client in everyone:
        assert (await client.until("chat"))["id"] == sent


async def test_to_says_who_is_to_act_not_who_may_see(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    sent = await ann.send("chat", {"text": "hello"}, to=["bob"])
    for client in (ann, bob, cat):
        assert (await client.until("chat"))["id"] == sent


async def test_an_empty_to_is_a_broadcast(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    sent = await ann.send("chat", {"text": "hello"}, to=[])
    await cat.until_id(sent)


async def test_the_bytes_that_come_in_are_the_bytes_that_go_out(
    door: Door,
) -> None:  # §8.1 "without modification"
    ann, cat = await door.meet("ann", "cat")
    odd = (
        ' {\n"x-unknown" : {"deep":[1.0, 1e2, -0, {"a":null}]},\t"payload":{ "text" : "\\u00e9\\ud83d\\ude00 é/\\/" ,'
        '"n":1.10, "big":123456789012345678901234567890},\r\n "kind":"chat","from":"ann","correlation_id":[ ],'
        f' "protocol":"mew\\/v0.4", "ts":"2025-08-26T14:00:00.123456789+02:00", "id":"{uuid.uuid4()}" }} '
    )
    await ann.connection.send(odd)
    for client in (ann, cat):
        await client.until("chat")
        assert client.raw[-1] == odd


async def test_the_gateway_does_not_look_into_payloads_it_need_not_understand(door: Door) -> None:
    """§8.1 "NO payload parsing or validation": neither JSON-RPC nor the chat's own form."""
    ann = await door.join("ann")
    await ann.say("mcp/request", {"jsonrpc": "1.0", "nonsense": True}, to=["nobody"])
    await ann.say("chat", {"no": "text"})
    await ann.say("participant/status", {})
    await ann.say("invented/kind", {"anything": [1, 2, 3]})
    await ann.say("participant/clear")  # §3.9.8: no payload at all


async def test_private_envelopes_reach_their_addressee_alone(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    await cat.refused("mcp/request", {"method": "tools/list"})
    invite = {"participant_id": "dan", "initial_capabilities": [{"kind": "chat"}]}
    await ann.say("space/invite", invite)
    await ann.until("space/invite-ack")
    await ann.say("capability/grant", {"recipient": "cat", "capabilities": [{"kind": "chat/*"}]})
    await cat.until("system/welcome")
    kinds = [said["kind"] for said in await bob.since_now()]
    assert kinds == ["space/invite", "capability/grant"]
    assert "system/error" not in [said["kind"] for said in await ann.since_now()]


# Design 3.2: one order for all.


async def test_all_see_the_same_envelopes_in_the_same_order(door: Door) -> None:
    names = ["ann", "bob", "cat", "bot", "reader"]
    clients = await door.meet(*names)

    async def talk(client: Client) -> None:
        for n in range(60):
            await client.send("chat", {"text": f"{client.who} {n}"})
            if n % 7 == 0:
                await asyncio.sleep(0)

    async def listen(client: Client) -> list[str]:
        return [(await client.until("chat"))["payload"]["text"] for _ in range(60 * len(names))]

    async with asyncio.TaskGroup() as tasks:
        heard = [tasks.create_task(listen(client)) for client in clients]
        for client in clients:
            tasks.create_task(talk(client))
    orders = [task.result() for task in heard]
    assert all(order == orders[0] for order in orders)
    for name in names:  # and each one's own are in the order they were sent
        assert [said for said in orders[0] if said.startswith(f"{name} ")] == [
            f"{name} {n}" for n in range(60)
        ]


# §8.1 Capability Enforcement, §3.8.2.


async def test_what_no_capability_allows_is_refused_and_seen_by_no_one(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    problem = await cat.refused("mcp/request", {"method": "tools/call"}, to=["ann"])
    assert problem["error"] == "capability_violation"
    assert problem["attempted_kind"] == "mcp/request"
    assert problem["your_capabilities"] == cat.welcome["payload"]["you"]["capabilities"]
    assert await ann.since_now() == []


async def test_a_capability_may_look_into_the_payload(door: Door) -> None:  # §4.1, tool-specific
    reader = await door.join("reader")
    read = {"method": "tools/call", "params": {"name": "read_file"}}
    write = {"method": "tools/call", "params": {"name": "write_file"}}
    await reader.say("mcp/request", read, to=["ann"])
    assert (await reader.refused("mcp/request", write, to=["ann"]))["error"] == "capability_violation"
    assert (await reader.refused("mcp/request", {"method": "tools/call"}))["error"] == "capability_violation"
    assert (await reader.refused("mcp/request"))["error"] == "capability_violation"


async def test_a_wildcard_covers_a_whole_namespace(door: Door) -> None:  # §4.2
    bob = await door.join("bob")
    for kind in ("mcp/request", "mcp/response", "mcp/proposal", "mcp/reject"):
        await bob.say(kind, {"method": "x"}, correlation_id=["y"])
    assert (await bob.refused("space/kick", {"participant_id": "ann"}))["error"] == "capability_violation"


async def test_only_the_gateway_sends_system_kinds(door: Door) -> None:  # §4.1 reserved namespace
    ann, cat = await door.meet("ann", "cat")
    for kind in ("system/welcome", "system/presence", "system/error", "system/", "system/new"):
        assert (await ann.refused(kind, {"event": "leave"}))["error"] == "reserved_kind"
    assert await cat.since_now() == []


async def test_nobody_speaks_in_anothers_name(door: Door) -> None:  # §4.1 identity validation
    ann, cat = await door.meet("ann", "cat")
    for name in ("ann", "system:gateway", "gateway", "Cat", "cat ", "nobody"):
        assert (await cat.refused("chat", {"text": "x"}, sender=name))["error"] == "wrong_sender"
    assert await ann.since_now() == []


async def test_a_proposal_is_made_fulfilled_and_answered_in_the_open(door: Door) -> None:  # §9.1, §3.2.1
    ann, bob, bot = await door.meet("ann", "bob", "bot")
    call = {"method": "tools/call", "params": {"name": "write_file", "arguments": {"path": "a"}}}
    assert (await bot.refused("mcp/request", call, to=["bob"]))["error"] == "capability_violation"
    proposal = await bot.say("mcp/proposal", call, to=["bob"])
    await ann.until_id(proposal)
    jsonrpc = {"jsonrpc": "2.0", "id": 1, **call}
    fulfilment = await ann.say("mcp/request", jsonrpc, to=["bob"], correlation_id=[proposal])
    await bob.until_id(fulfilment)
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
    response = await bob.say("mcp/response", result, to=["ann"], correlation_id=[fulfilment])
    assert (await bot.until_id(response))["correlation_id"] == [fulfilment]


# Design 3.5, 3.6: what an envelope must be.

GOOD: dict[str, Any] = {"protocol": "mew/v0.4", "id": "x", "from": "ann", "kind": "chat", "payload": {}}
WRONG_VALUES: dict[str, list[Any]] = {
    "protocol": ["mew/v0.3", "MEW/v0.4", "", 4, None, ["mew/v0.4"], ...],
    "id": ["", 7, None, ["x"], {}, "x" * 257, True, ...],
    "from": ["", 7, None, ["ann"], {}, ...],
    "kind": ["", 7, None, ["chat"], {}, "x" * 257, ...],
    "to": ["bob", 7, None, [7], [None], [["bob"]], {"bob": 1}, True],
    "correlation_id": ["x", 7, None, [7], [None], {}, True],
    "context": [7, None, [], {}, "x" * 4097, False],
    "payload": ["x", 7, None, [], True, 1.5],
    "ts": ["yesterday", "", 7, None, [], "2025-08-26", "2025-08-26T14:00:00", "2025-13-26T14:00:00Z"],
}


@pytest.mark.parametrize("field", WRONG_VALUES)
async def test_a_field_of_the_wrong_form_is_refused_with_a_code_and_the_culprits_id(
    door: Door, field: str
) -> None:
    ann, cat = await door.meet("ann", "cat")
    for value in WRONG_VALUES[field]:
        made = {**GOOD, "id": str(uuid.uuid4()), field: value}
        made = {name: value for name, value in made.items() if value is not ...}
        await ann.connection.send(json.dumps(made))
        error = await ann.until("system/error")
        expected = "wrong_version" if field == "protocol" and isinstance(value, str) else "malformed"
        if field == "from" and isinstance(value, str) and value:
            expected = "wrong_sender"
        assert error["payload"]["error"] == expected, value
        assert error["payload"]["message"]
        if field != "id":
            assert error["correlation_id"] == [made["id"]], value
    assert await cat.since_now() == []
    await ann.say("chat", {"text": "and it still serves us"})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("no json", id="no JSON"),
        pytest.param("[]", id="an array"),
        pytest.param('"chat"', id="a string"),
        pytest.param("null", id="null"),
        pytest.param('{"protocol":"mew/v0.4"', id="cut off"),
        pytest.param(
            '{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat","payload":{"n":NaN}}', id="NaN"
        ),
        pytest.param(
            '{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat","payload":{"n":-Infinity}}',
            id="Infinity",
        ),
        pytest.param(
            '{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat","kind":"chat"}', id="a key twice"
        ),
        pytest.param(
            '{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat","k\\u0069nd":"x"}',
            id="twice, escaped",
        ),
        pytest.param(
            '{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat","payload":{},"payload":{}}',
            id="two payloads",
        ),
        pytest.param(
            '{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat","z":1,"z":2}', id="unknown one twice"
        ),
        pytest.param('{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat"} {}', id="two values"),
        pytest.param('{"protocol":"mew/v0.4","id":"a","from":"ann","kind":"chat",}', id="a comma too many"),
        pytest.param("{'protocol':'mew/v0.4'}", id="wrong quotes"),
    ],
)
async def test_what_is_no_envelope_is_answered_and_seen_by_no_one(door: Door, text: str) -> None:
    ann, cat = await door.meet("ann", "cat")
    await ann.connection.send(text)
    assert (await ann.error())["error"] == "malformed"
    assert await cat.since_now() == []


@pytest.mark.parametrize(
    ("levels", "code"),
    [(10, None), (64, None), (65, "malformed"), (10_000, "malformed"), (300_000, "malformed")],
)
async def test_nesting_deeper_than_64_is_malformed(door: Door, levels: int, code: str | None) -> None:
    ann = await door.join("ann")
    arrays = levels - 2  # in the payload, in the envelope
    deep = "[" * arrays + "]" * arrays
    sent = str(uuid.uuid4())
    await ann.connection.send(
        f'{{"protocol":"mew/v0.4","id":"{sent}","from":"ann","kind":"chat","payload":{{"a":{deep}}}}}'
    )
    if code is None:
        await ann.until_id(sent)
    else:
        assert (await ann.error())["error"] == code


async def test_a_key_given_twice_where_a_capability_looks_is_malformed(door: Door) -> None:
    reader = await door.join("reader")
    await reader.connection.send(
        '{"protocol":"mew/v0.4","id":"twice","from":"reader","kind":"mcp/request","payload":'
        '{"method":"tools/call","params":{"name":"read_x","name":"delete_x"}}}'
    )
    assert (await reader.error("twice"))["error"] == "malformed"


async def test_an_envelope_travels_as_text(door: Door) -> None:
    ann = await door.join("ann")
    await ann.connection.send(json.dumps(envelope("ann", "chat", {"text": "x"})).encode())
    assert (await ann.error())["error"] == "malformed"


async def test_an_envelope_in_fragments_is_one_envelope(door: Door) -> None:  # RFC 6455 §5.4
    ann, cat = await door.meet("ann", "cat")
    made = json.dumps(envelope("ann", "chat", {"text": "in äll the pieces"}))
    await ann.connection.send([made[:20], made[20:21], made[21:]])
    await cat.until("chat")
    assert cat.raw[-1] == made


# Design 3.7: ids.


async def test_an_id_is_accepted_once_whoever_sends_it(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    sent = await ann.say("chat", {"text": "first"})
    await cat.until_id(sent)
    for client in (ann, cat):
        again = await client.send("chat", {"text": "again"}, id=sent)
        error = await client.until("system/error")
        assert error["payload"]["error"] == "duplicate_id"
        assert error["correlation_id"] == [again]
    assert await ann.since_now() == []


async def test_an_id_that_was_refused_may_be_used(door: Door) -> None:
    cat = await door.join("cat")
    await cat.refused("mcp/request", {}, id="mine")
    await cat.say("chat", {"text": "x"}, id="mine")


async def test_ids_of_the_gateway_are_not_to_be_had(door: Door) -> None:
    ann = await door.join("ann")
    assert (await ann.refused("chat", {}, id="gw-0a1b2c3d-1.0"))["error"] == "reserved_id"


# Design 3.8: coming back.


async def test_who_comes_back_gets_what_it_missed_and_then_what_is_live(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    last = await ann.say("chat", {"text": "seen"})
    await cat.until_id(last)
    await cat.connection.close()
    await ann.until("system/presence")
    missed = [await ann.say("chat", {"text": f"missed {n}"}) for n in range(30)]
    back = await door.join("cat", query=f"&after={last}")
    assert back.welcome["payload"]["resumed"] is True
    live = await ann.send("chat", {"text": "live"})
    await back.until_id(live)
    chats = [said["id"] for said in back.seen if said["kind"] == "chat"]
    assert chats == [*missed, live]
    events = [said["payload"]["event"] for said in back.seen if said["kind"] == "system/presence"]
    assert events == ["leave", "join"]


async def test_nothing_is_missing_or_twice_when_one_comes_back_amid_traffic(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    total = 300

    async def talk() -> None:
        for n in range(total):
            await ann.send("chat", {"text": str(n)})
            if n % 10 == 0:
                await asyncio.sleep(0.005)

    async def listen() -> list[int]:
        client, heard, last = cat, list[int](), ""
        while len(heard) < total:
            said = await client.until("chat")
            heard.append(int(said["payload"]["text"]))
            last = said["id"]
            if len(heard) % 40 == 0:
                client.connection.transport.abort()
                client = await door.join("cat", query=f"&after={last}")
                assert client.welcome["payload"]["resumed"] is True
        return heard

    async with asyncio.TaskGroup() as tasks:
        heard = tasks.create_task(listen())
        tasks.create_task(talk())
    assert heard.result() == list(range(total))


async def test_an_unknown_id_is_answered_with_resumed_false_and_no_replay(door: Door) -> None:
    ann = await door.join("ann")
    await ann.say("chat", {"text": "old"})
    cat = await door.join("cat", query="&after=never-seen")
    assert cat.welcome["payload"]["resumed"] is False
    live = await ann.send("chat", {"text": "live"})
    await cat.until_id(live)
    assert [said["kind"] for said in cat.seen] == ["system/welcome", "system/presence", "chat"]


async def test_without_after_a_newcomer_sees_nothing_of_before(door: Door) -> None:  # §2.2
    ann = await door.join("ann")
    await ann.say("chat", {"text": "old"})
    cat = await door.join("cat")
    assert [said["kind"] for said in await cat.since_now()] == ["system/presence"]


async def test_who_comes_back_is_not_shown_what_was_private(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    mark = await ann.say("chat", {"text": "mark"})
    await cat.until_id(mark)
    await ann.say("space/invite", {"participant_id": "eve"})
    await ann.until("space/invite-ack")
    back = await door.join("cat", query=f"&after={mark}")
    kinds = [said["kind"] for said in await back.since_now()]
    assert kinds == ["space/invite"]


# `delivery: addressed` and `announce_violations` (design 3.1, §5.4).


@pytest.fixture(scope="module")
def strict_gateway(
    tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]
) -> Iterator[Gateway]:
    config = {
        "spaces": [
            {"id": "addressed", "delivery": "addressed"},
            {"id": "announced", "announce_violations": True},
            {"id": "bare", "defaults": {"baseline_capabilities": []}},
        ],
        "participants": participants,
    }
    with run_gateway(tmp_path_factory.mktemp("strict"), config) as running:
        yield running


@pytest.fixture
async def addressed(strict_gateway: Gateway, tokens: dict[str, str]) -> AsyncIterator[Door]:
    async with Door(strict_gateway, tokens, "addressed") as door:
        yield door


async def test_addressed_delivery_reaches_those_named_and_the_sender(addressed: Door) -> None:
    ann, bob, cat = await addressed.meet("ann", "bob", "cat")
    secret_ = await ann.say("chat", {"text": "for bob"}, to=["bob"])
    open_ = await ann.say("chat", {"text": "for all"})
    await bob.until_id(secret_)
    await cat.until_id(open_)
    assert secret_ not in [said["id"] for said in cat.seen]


async def test_addressed_delivery_holds_for_replay_and_history_too(addressed: Door) -> None:
    ann, cat = await addressed.meet("ann", "cat")
    mark = await ann.say("chat", {"text": "mark"})
    hidden = await ann.say("chat", {"text": "for bob"}, to=["bob"])
    await cat.until_id(mark)
    again = await addressed.join("cat", query=f"&after={mark}")
    assert hidden not in [said["id"] for said in await again.since_now()]
    answer = await addressed.request(
        "GET",
        "/participants/cat/messages?space=addressed",
        headers={"Authorization": f"Bearer {addressed.tokens['cat']}"},
    )
    assert answer.status == 200
    assert hidden.encode() not in answer.body


async def test_violations_are_announced_where_the_operator_asks_for_it(
    strict_gateway: Gateway, tokens: dict[str, str]
) -> None:  # §5.4, §7.3
    async with Door(strict_gateway, tokens, "announced") as door:
        ann, cat = await door.meet("ann", "cat")
        sent = await cat.send("mcp/request", {"secret": "payload"}, to=["ann"])
        notice = await ann.until("system/error")
        assert notice["correlation_id"] == [sent]
        assert notice["payload"]["participant"] == "cat"
        assert notice["payload"]["error"] == "capability_violation"
        assert notice["payload"]["attempted_kind"] == "mcp/request"
        assert "secret" not in json.dumps(notice)


async def test_the_baseline_can_be_taken_away(
    strict_gateway: Gateway, tokens: dict[str, str]
) -> None:  # 3.18
    async with Door(strict_gateway, tokens, "bare") as door:
        cat = await door.join("cat")
        assert cat.welcome["payload"]["you"]["capabilities"] == [{"kind": "chat"}]
        assert (await cat.refused("mcp/response", {}))["error"] == "capability_violation"


async def test_everyone_may_answer_what_they_were_asked(door: Door) -> None:  # design 3.18
    cat = await door.join("cat")
    await cat.say("mcp/response", {"jsonrpc": "2.0", "id": 1, "result": {}}, correlation_id=["req"])
    await cat.say("capability/grant-ack", {"status": "accepted"}, correlation_id=["grant"])


# Several spaces in one gateway, isolated (§3.6).


async def test_spaces_of_one_gateway_know_nothing_of_each_other(door: Door, unused: Iterator[int]) -> None:
    other = f"space-{next(unused)}"
    here = await door.join("cat")
    there = await door.join("cat", space=other)
    ann_there = await door.join("ann", space=other)
    assert there.welcome["payload"]["participants"] == []
    sent = await here.say("chat", {"text": "here"}, id="the-same-id")
    await there.say("chat", {"text": "there"}, id="the-same-id")  # ids are a space's own
    assert sent == "the-same-id"
    await ann_there.say("space/kick", {"participant_id": "cat"})
    assert (await there.closed())[0] == 4503
    await here.say("chat", {"text": "still here"})
    texts = [said["payload"].get("text") for said in ann_there.seen if said["kind"] == "chat"]
    assert texts == ["there"]


async def test_a_token_of_one_space_does_not_open_another(tmp_path: Path, tokens: dict[str, str]) -> None:
    own = {"one": {"tokens": [tokens["ann"]], "capabilities": ["chat"]}}
    others = {"one": {"tokens": [tokens["bob"]], "capabilities": ["chat"]}}
    config = {"spaces": [{"id": "a", "participants": own}, {"id": "b", "participants": others}]}
    with run_gateway(tmp_path, config) as gateway:
        async with Door(gateway, {"one": tokens["ann"]}, "a") as door:
            await door.join("one")
            answer = await door.upgrade("/ws?space=b", authorization=f"Bearer {tokens['ann']}")
            assert (answer.status, answer.json["error"]) == (401, "bad_token")
            refused = await door.join_by_frame({"type": "join", "space": "b", "token": tokens["ann"]})
            assert (await refused.closed())[0] == 4501
            assert (await door.join("one", space="b", token=tokens["bob"])).welcome["to"] == ["one"]
