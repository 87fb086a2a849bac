"""The HTTP door (§5.3), over a socket: the same rules as a connection, and every error in one shape."""

import asyncio
import gzip
from typing import Any

import pytest
from tests.gateway.served import SPACE_YAML, Answer, Caller, Serve, Served

from mew.gateway.http.problems import STATUS
from mew.journal.port import JournalUnavailable
from mew.protocol.errors import Refusal

FULL = {
    "protocol": "mew/v0.4",
    "id": "e-1",
    "ts": "2026-01-01T00:00:00Z",
    "from": "ann",
    "kind": "chat",
    "payload": {"text": "hi"},
}


def is_problem(answer: Answer, status: int, error: str) -> bool:
    assert answer.type == "application/problem+json", answer
    assert answer.json["type"] == f"urn:mew:error:{answer.json['error']}"
    assert answer.json["title"]
    assert answer.json["detail"]
    assert answer.json["status"] == answer.status
    assert (answer.status, answer.json["error"]) == (status, error), answer.json
    return True


def ids(answer: Answer, of: str = "messages") -> list[str]:
    assert answer.status == 200, answer.json
    return [envelope["id"] for envelope in answer.json[of]]


# Sending.


async def test_a_partial_envelope_is_completed_and_shown(served: Served) -> None:
    socket = await served.eve.connect()
    await socket.receive(timeout=5)  # her own presence
    answer = await served.ann.send({"kind": "chat", "payload": {"text": "hi"}})
    assert answer.status == 200
    assert answer.json.keys() == {"id", "status", "timestamp"}
    assert answer.json["status"] == "accepted"
    shown = await socket.receive_json(timeout=5)
    assert shown["id"] == answer.json["id"]
    assert (shown["protocol"], shown["from"]) == ("mew/v0.4", "ann")
    assert shown["payload"] == {"text": "hi"}
    assert "ts" in shown
    await socket.close()


async def test_a_complete_envelope_leaves_as_the_bytes_that_came(served: Served) -> None:
    sent = (
        b' {"protocol":"mew/v0.4", "id":"e-1","ts":"2026-01-01T00:00:00Z","from":"ann","kind":"chat",'
        b'"mine":1.0,"payload":{ "n": 1e2, "n": 3 }}\n'
    )
    assert (await served.ann.send(sent)).json["id"] == "e-1"
    assert sent in (await served.eve.messages()).body


async def test_completing_keeps_what_was_sent_byte_by_byte(served: Served) -> None:
    assert (
        await served.ann.send(b'{ "kind":"chat", "id":"e-1", "payload":{"n": 1e2, "n": 3}}')
    ).status == 200
    body = (await served.eve.messages()).body
    assert b'"from":"ann", "kind":"chat", "id":"e-1", "payload":{"n": 1e2, "n": 3}}' in body


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"nonsense",
        b'{"kind":"chat"',
        b'{"kind":"chat","kind":"mcp/request"}',
        b'{"kind":"chat","from":"ann","from":"ann"}',
        b'{"kind":"chat","id":null}',
        b'{"kind":"chat","payload":[]}',
        b'{"kind":"chat","payload":{"a":NaN}}',
        b'{"kind":"chat","x":"\xff"}',
        b'{"kind":7}',
        b'{"kind":"chat","payload":{"a":' + b"[" * 70 + b"]" * 70 + b"}}",
        b'{"kind":"chat","payload":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
        b"\xef\xbb\xbf" + b'{"kind":"chat"}',
    ],
)
async def test_what_is_no_envelope_is_malformed_and_seen_by_no_one(served: Served, sent: bytes) -> None:
    assert is_problem(await served.ann.send(sent), 400, "malformed")
    assert ids(await served.eve.messages()) == []


async def test_the_same_capability_rules_hold_as_on_a_connection(served: Served) -> None:
    answer = await served.bot.send({"kind": "mcp/request", "payload": {"method": "tools/list"}})
    assert is_problem(answer, 403, "capability_violation")
    assert answer.json["attempted_kind"] == "mcp/request"
    assert {"kind": "chat"} in answer.json["your_capabilities"]
    assert ids(await served.eve.messages()) == []


@pytest.mark.parametrize(
    ("changed", "status", "error"),
    [
        ({"from": "bot"}, 403, "wrong_sender"),
        ({"protocol": "mew/v0.3"}, 400, "wrong_version"),
        ({"kind": "system/presence"}, 400, "reserved_kind"),
        ({"kind": "capability/grant", "payload": {}}, 400, "invalid_payload"),
        (
            {"kind": "capability/grant", "payload": {"recipient": "no", "capabilities": ["chat"]}},
            404,
            "unknown_participant",
        ),
        ({"kind": "stream/close", "payload": {"stream_id": "no"}}, 404, "unknown_stream"),
        ({"kind": "space/invite", "payload": {"participant_id": "bot"}}, 409, "already_exists"),
    ],
)
async def test_a_refusal_has_its_code_and_its_status(
    served: Served, changed: dict[str, Any], status: int, error: str
) -> None:
    assert is_problem(await served.ann.send(FULL | changed), status, error)


def test_every_refusal_has_a_status() -> None:
    assert set(STATUS) == set(Refusal)
    assert all(400 <= status < 600 for status in STATUS.values())


async def test_an_id_is_taken_once(served: Served) -> None:
    assert (await served.ann.send(FULL)).status == 200
    assert is_problem(await served.ann.send(FULL), 409, "duplicate_id")


async def test_a_pause_is_not_evaded_over_http_and_says_when_to_come_back(served: Served) -> None:
    await served.ann.say("participant/pause", to=["bot"], payload={"timeout_seconds": 60})
    answer = await served.bot.send({"kind": "chat"})
    assert is_problem(answer, 409, "paused")
    assert 0 < answer.json["retry_after_s"] <= 60
    assert 0 < int(answer.headers["Retry-After"]) <= 60


async def test_who_sends_too_fast_is_told_to_wait(serve: Serve) -> None:
    served = await serve(more="limits: {envelopes_per_second: 1, burst: 2}\n")
    await served.ann.say()
    await served.ann.say()
    answer = await served.ann.send({"kind": "chat"})
    assert is_problem(answer, 429, "rate_limited")
    assert answer.headers["Retry-After"] == "1"
    assert is_problem(await served.ann.messages(), 429, "rate_limited")
    assert (await served.bot.send({"kind": "chat"})).status == 200


async def test_every_request_is_charged_once_whatever_is_wrong_with_it(serve: Serve) -> None:
    served = await serve(more="limits: {envelopes_per_second: 1, burst: 5}\n")
    statuses = [(await served.ann.send(b"nonsense")).status for _ in range(4)]
    assert statuses == [400] * 4
    await served.ann.say()
    assert is_problem(await served.ann.send(b"nonsense"), 429, "rate_limited")
    as_bot = Caller(served.session, served.gateway.url, "bot", "t-eve")
    statuses = [(await as_bot.send({"kind": "chat"})).status for _ in range(6)]
    assert statuses == [403] * 5 + [429]


async def test_a_request_that_is_over_the_rate_is_told_before_its_body_came(serve: Serve) -> None:
    served = await serve(more="limits: {envelopes_per_second: 1, burst: 1}\n")
    await served.ann.say()
    never = asyncio.Event()

    async def slowly() -> Any:
        yield b"{"
        await never.wait()

    answer = await served.ann.ask("POST", "/participants/ann/messages", data=slowly())
    assert is_problem(answer, 429, "rate_limited")


async def test_bodies_under_way_are_bounded_for_each_participant(serve: Serve) -> None:
    served = await serve(more="limits: {connections_per_participant: 2}\n")
    go_on = asyncio.Event()
    begun = asyncio.Semaphore(0)

    async def slowly() -> Any:
        yield b'{"kind":'
        begun.release()
        await go_on.wait()
        yield b'"chat"}'

    path = "/participants/ann/messages"
    sending = [asyncio.ensure_future(served.ann.ask("POST", path, data=slowly())) for _ in range(2)]
    for _ in sending:
        await begun.acquire()
    async with asyncio.timeout(5):
        while (answer := await served.ann.ask("POST", path, data=b'{"kind":"chat"}')).status == 200:
            pass  # until both have reached the gateway
    assert is_problem(answer, 429, "too_many_connections")
    assert (await served.ann.messages()).status == 200
    assert (await served.bot.send({"kind": "chat"})).status == 200
    go_on.set()
    assert [one.status for one in await asyncio.gather(*sending)] == [200, 200]
    assert (await served.ann.send({"kind": "chat"})).status == 200


async def test_bytes_have_a_rate_too_and_a_post_beyond_it_is_told_when_to_come_back(serve: Serve) -> None:
    served = await serve(more="limits: {bytes_per_second: 64KiB, bytes_burst: 64KiB}\n")
    large = {"kind": "chat", "payload": {"text": "x" * 200_000}}
    assert (await served.ann.send(large)).status == 200
    answer = await served.ann.send({"kind": "chat"})
    assert is_problem(answer, 429, "rate_limited")
    assert 0 < answer.json["retry_after_s"] < 3
    assert (await served.bot.send({"kind": "chat"})).status == 200


@pytest.mark.slow
async def test_asking_where_a_token_is_good_has_a_rate_too(served: Served) -> None:
    answers = await asyncio.gather(*(served.ann.get("/spaces") for _ in range(400)))
    limited = [answer for answer in answers if answer.status != 200]
    assert limited
    assert all(is_problem(answer, 429, "rate_limited") for answer in limited)
    assert (await served.bot.get("/spaces")).status == 200


async def test_an_envelope_has_a_limit_however_it_travels(serve: Serve) -> None:
    served = await serve(more="limits: {envelope_bytes: 2048}\n")
    large = b'{"kind":"chat","payload":{"text":"' + b"x" * 4096 + b'"}}'
    assert is_problem(await served.ann.send(large), 413, "too_large")

    async def in_chunks() -> Any:
        yield large[:1000]
        yield large[1000:]

    path = "/participants/ann/messages"
    assert is_problem(await served.ann.ask("POST", path, data=in_chunks()), 413, "too_large")
    fits_until_completed = b'{"kind":"chat","payload":{"text":"' + b"x" * 2000 + b'"}}'
    assert is_problem(await served.ann.send(fits_until_completed), 413, "too_large")


@pytest.mark.parametrize("path", ["/participants/ann/messages", "/sessions", "/nowhere"])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "identity, gzip"])
async def test_nothing_is_unpacked_for_anyone(served: Served, path: str, coding: str) -> None:
    zipped = {"data": gzip.compress(bytes(1 << 20)), "headers": {"Content-Encoding": coding}}
    assert is_problem(await served.nobody.ask("POST", path, **zipped), 415, "unsupported_encoding")
    assert is_problem(await served.ann.ask("POST", path, **zipped), 415, "unsupported_encoding")


async def test_a_refused_encoding_is_told_before_any_of_the_body_came(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.gateway.url.rpartition(":")[2]))
    writer.write(
        b"POST /participants/ann/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t-ann\r\n"
        b"Content-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n"
    )
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 415 ")
    writer.close()


async def test_what_the_gateway_answers_comes_with_the_response(served: Served) -> None:
    opened = (await served.ann.send({"kind": "stream/request", "payload": {"direction": "upload"}})).json
    assert opened["reply"]["kind"] == "stream/open"
    assert opened["reply"]["correlation_id"] == [opened["id"]]
    assert opened["reply"]["payload"]["stream_id"]
    invite = {"participant_id": "new", "initial_capabilities": ["chat"]}
    invited = (await served.ann.send({"kind": "space/invite", "payload": invite})).json
    assert invited["reply"]["kind"] == "space/invite-ack"
    token = invited["reply"]["payload"]["token"]
    await served.caller("new", token).say()
    assert token.encode() not in (await served.ann.messages()).body


# Who may.


async def test_only_a_participants_own_token_opens_its_messages(served: Served) -> None:
    as_bot = Caller(served.session, served.gateway.url, "bot", "t-ann")
    assert is_problem(await as_bot.send({"kind": "chat"}), 403, "wrong_participant")
    assert is_problem(await as_bot.messages(), 403, "wrong_participant")


@pytest.mark.parametrize(
    "path", ["/participants/ann/messages", "/spaces", "/spaces/demo/envelopes", "/spaces/demo/proposals"]
)
async def test_without_a_good_token_there_is_nothing(served: Served, path: str) -> None:
    answer = await served.nobody.get(path)
    assert is_problem(answer, 401, "no_token")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.headers["Cache-Control"] == "no-store"
    assert is_problem(await served.caller("ann", "wrong").get(path), 401, "bad_token")


async def test_a_token_in_the_url_is_no_token(served: Served) -> None:
    assert is_problem(await served.nobody.messages(token="t-ann"), 401, "no_token")
    answer = await served.ann.messages(token="t-ann")
    assert is_problem(answer, 400, "invalid_query")
    assert "t-ann" not in answer.json["detail"]


async def test_who_was_kicked_is_out_over_http_too_and_does_not_wait_on(served: Served) -> None:
    waiting = asyncio.ensure_future(served.bot.messages(wait_s=5))
    await until_somebody_waits(served)
    await served.ann.say("space/kick", payload={"participant_id": "bot"})
    assert is_problem(await waiting, 403, "kicked")
    assert is_problem(await served.bot.messages(), 403, "kicked")
    assert is_problem(await served.bot.send({"kind": "chat"}), 403, "kicked")


async def test_a_space_must_exist_and_be_named_where_there_are_several(serve: Serve) -> None:
    served = await serve(
        """
spaces: [{id: one, name: One}, {id: two, name: Two, participants: {bob: {tokens: [t-bob]}}}]
participants: {ann: {tokens: [t-ann], capabilities: ["*"]}}
server: {port: 0}
"""
    )
    assert is_problem(await served.ann.messages(), 400, "space_missing")
    assert is_problem(await served.ann.messages(space="three"), 404, "no_such_space")
    assert is_problem(await served.ann.get("/spaces/three/envelopes"), 404, "no_such_space")
    assert (await served.ann.send({"kind": "chat"}, space="two")).status == 200
    assert ids(await served.ann.messages(space="one")) == []
    assert [space["id"] for space in (await served.ann.get("/spaces")).json["spaces"]] == ["one", "two"]
    bob = served.caller("bob")
    assert (await bob.get("/spaces")).json["spaces"] == [
        {"id": "two", "name": "Two", "description": "", "participant": "bob"}
    ]
    for _ in range(8):  # a token that opens only some of the spaces is no failed attempt
        assert (await bob.get("/spaces")).status == 200
    assert is_problem(await bob.messages(space="one"), 401, "bad_token")
    assert is_problem(await served.caller("bob", "wrong").get("/spaces"), 401, "bad_token")


async def test_pages_of_allowed_origins_may_use_the_api_and_others_may_not(serve: Serve) -> None:
    served = await serve(SPACE_YAML.replace("port: 0", "port: 0, allowed_origins: ['https://page.example']"))
    page, other = {"Origin": "https://page.example"}, {"Origin": "https://evil.example"}
    path = "/participants/ann/messages"
    preflight = await served.nobody.ask("OPTIONS", path, headers=page)
    assert preflight.status == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == "https://page.example"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in preflight.headers["Access-Control-Allow-Headers"]
    for caller, status in ((served.ann, 200), (served.nobody, 401)):
        answer = await caller.ask("GET", path, headers=page)
        assert answer.status == status
        assert answer.headers["Access-Control-Allow-Origin"] == "https://page.example"
        assert answer.headers["Vary"] == "Origin"
    for method in ("OPTIONS", "GET", "POST"):
        answer = await served.ann.ask(method, path, headers=other)
        assert is_problem(answer, 403, "origin_refused")
        assert "Access-Control-Allow-Origin" not in answer.headers
    own = await served.ann.ask("GET", path, headers={"Origin": served.gateway.url})
    assert own.status == 200
    assert "Access-Control-Allow-Origin" not in own.headers


# Reading.


async def test_messages_are_complete_envelopes_oldest_first_page_by_page(served: Served) -> None:
    sent = [await served.ann.say(payload={"text": str(n)}) for n in range(5)]
    first = await served.bot.messages(limit=2)
    assert ids(first) == sent[:2]
    assert first.json["messages"][0].keys() == {"protocol", "id", "ts", "from", "kind", "payload"}
    assert first.json["complete"]
    rest = await served.bot.messages(after=first.json["next"])
    assert ids(rest) == sent[2:]
    nothing = await served.bot.messages(after=rest.json["next"])
    assert nothing.json == {"messages": [], "next": rest.json["next"], "complete": True}
    assert (await served.bot.ask("HEAD", "/participants/bot/messages")).status == 200


async def test_messages_the_caller_lacks_permission_to_view_are_omitted(serve: Serve) -> None:
    served = await serve(more="delivery: addressed\n")
    for_all = await served.ann.say()
    for_bot = await served.ann.say(to=["bot"])
    of_eve = await served.eve.say(to=["ann"], correlation_id=[for_bot])
    proposed = await served.bot.say("mcp/proposal", to=["ann"], payload={"method": "tools/list"})
    assert ids(await served.bot.messages()) == [for_all, for_bot, proposed]
    assert ids(await served.eve.messages()) == [for_all, of_eve]
    assert ids(await served.eve.get("/spaces/demo/envelopes"), "envelopes") == [for_all, of_eve]
    about = await served.eve.get("/spaces/demo/envelopes", correlation=of_eve)
    assert ids(about, "envelopes") == [of_eve]
    assert ids(await served.eve.get("/spaces/demo/proposals"), "proposals") == []
    assert ids(await served.bot.get("/spaces/demo/proposals"), "proposals") == [proposed]


async def test_messages_since_a_moment_include_that_moment(served: Served) -> None:
    await served.ann.say()
    second = (await served.ann.send({"kind": "chat"})).json
    third = await served.ann.say()
    assert ids(await served.bot.messages(since=second["timestamp"])) == [second["id"], third]
    unescaped = "/participants/bot/messages?since=2020-01-01T00:00:00+02:00"
    assert len(ids(await served.bot.get(unescaped))) == 3


async def test_a_caller_is_told_when_some_of_what_it_missed_is_gone(serve: Serve) -> None:
    served = await serve(more="limits: {history_envelopes: 2}\njournal: off\n")
    sent = [await served.ann.say() for _ in range(4)]
    answer = await served.bot.messages(after=sent[0])
    assert (ids(answer), answer.json["complete"]) == (sent[2:], False)
    assert (await served.bot.messages(after=sent[2])).json["complete"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": "0"},
        {"limit": "1001"},
        {"limit": "many"},
        {"wait_s": "61"},
        {"wait_s": "nan"},
        {"since": "yesterday"},
        {"since": "2026-01-01T00:00:00"},
        {"sinse": "2026-01-01T00:00:00Z"},
        {"after": ""},
    ],
)
async def test_a_query_that_makes_no_sense_is_refused_by_name(served: Served, wrong: dict[str, str]) -> None:
    answer = await served.ann.messages(**wrong)
    assert is_problem(answer, 400, "invalid_query")
    assert next(iter(wrong)) in answer.json["detail"]


async def test_a_parameter_given_twice_is_refused(served: Served) -> None:
    answer = await served.ann.get("/spaces/demo/envelopes?kind=chat&kind=mcp/request")
    assert is_problem(answer, 400, "invalid_query")


async def until_somebody_waits(served: Served) -> None:
    async with asyncio.timeout(5):
        while b'mew_polls{space="demo"} 1.0' not in (await served.nobody.get("/metrics")).body:
            pass


async def test_a_poll_waits_and_is_answered_as_soon_as_there_is_something(served: Served) -> None:
    waiting = asyncio.ensure_future(served.bot.messages(wait_s=5))
    await until_somebody_waits(served)
    sent = await served.ann.say()
    assert ids(await waiting) == [sent]
    assert ids(await served.bot.messages(wait_s=5)) == [sent]


async def test_a_poll_waits_for_what_its_caller_may_see(serve: Serve) -> None:
    served = await serve(more="delivery: addressed\n")
    waiting = asyncio.ensure_future(served.bot.messages(wait_s=5))
    await until_somebody_waits(served)
    await served.ann.say(to=["eve"])
    sent = await served.ann.say(to=["bot"])
    assert ids(await waiting) == [sent]


async def test_a_poll_that_brings_nothing_says_so_after_its_time(served: Served) -> None:
    sent = await served.ann.say()
    answer = await served.bot.messages(after=sent, wait_s=0.01)
    assert answer.json == {"messages": [], "next": sent, "complete": True}


async def test_polls_are_bounded_for_each_participant(serve: Serve) -> None:
    served = await serve(more="limits: {connections_per_participant: 1}\n")
    waiting = asyncio.ensure_future(served.bot.messages(wait_s=5))
    await until_somebody_waits(served)
    answer = await served.bot.messages(wait_s=5)
    assert is_problem(answer, 429, "too_many_connections")
    assert "Retry-After" in answer.headers
    await served.ann.say()
    assert (await waiting).status == 200


async def test_a_poll_does_not_hold_up_a_gateway_that_stops(served: Served) -> None:
    waiting = asyncio.ensure_future(served.bot.messages(wait_s=60))
    await until_somebody_waits(served)
    async with asyncio.timeout(4):  # less than the grace of five seconds
        await served.stop()
    assert ids(await waiting) == []


async def test_the_history_is_filtered_and_paged_in_both_directions(served: Served) -> None:
    proposal = await served.bot.say("mcp/proposal", payload={"method": "tools/list"})
    chat = await served.ann.say()
    request = await served.ann.say("mcp/request", correlation_id=[proposal], payload={"method": "tools/list"})
    response = await served.bot.say("mcp/response", correlation_id=[request])

    async def found(**params: str | int) -> list[str]:
        return ids(await served.eve.get("/spaces/demo/envelopes", **params), "envelopes")

    assert await found() == [proposal, chat, request, response]
    assert await found(order="desc") == [response, request, chat, proposal]
    assert await found(kind="mcp/*") == [proposal, request, response]
    assert await found(participant="bot") == [proposal, response]
    assert await found(correlation=request) == [proposal, request, response]
    assert await found(after=proposal, before=response) == [chat, request]
    page = (await served.eve.get("/spaces/demo/envelopes", order="desc", limit=3)).json
    assert await found(order="desc", before=page["next"]) == [proposal]
    assert await found(order="desc", before=chat) == [proposal]
    assert (await served.eve.get("/spaces/demo/envelopes")).json["next"] is None
    assert is_problem(await served.eve.get("/spaces/demo/envelopes", kind="/(/"), 400, "invalid_query")
    assert is_problem(await served.eve.get("/spaces/demo/envelopes", order="up"), 400, "invalid_query")


async def test_participants_are_listed_connected_or_not(served: Served) -> None:
    socket = await served.eve.connect()
    stream = (await served.ann.send({"kind": "stream/request", "payload": {"direction": "upload"}})).json
    pause = await served.ann.say("participant/pause", to=["bot"], payload={"timeout_seconds": 60})
    await served.ann.say("participant/shutdown", to=["bot"])
    listed = (await served.bot.get("/spaces/demo/participants")).json["participants"]
    eve, ann, bot = listed
    assert (eve["id"], eve["connected"], eve["connections"]) == ("eve", True, 1)
    assert (ann["id"], ann["connected"], ann["connections"]) == ("ann", False, 0)
    assert ann["streams"] == [stream["reply"]["payload"]["stream_id"]]
    assert {"kind": "mcp/proposal"} in bot["capabilities"]
    assert (bot["paused"]["by"], bot["paused"]["envelope_id"], bot["shut_down"]) == ("ann", pause, True)
    assert eve["paused"] is None
    await socket.close()


async def test_proposals_are_listed_with_what_became_of_them(served: Served) -> None:
    asked = {"method": "tools/call", "params": {"name": "write_file"}}
    left, done, refused = [await served.bot.say("mcp/proposal", to=["ann"], payload=asked) for _ in range(3)]
    request = await served.ann.say("mcp/request", to=["ann"], correlation_id=[done], payload=asked)
    no = {"reason": "unsafe", "message": "Not there, please."}
    await served.eve.say("mcp/reject", correlation_id=[refused], payload=no)
    other = {"method": "tools/call", "params": {"name": "harmless"}}
    unrelated = await served.ann.say("mcp/request", to=["ann"], correlation_id=[left], payload=other)
    listed = (await served.eve.get("/spaces/demo/proposals")).json["proposals"]
    assert [(p["id"], p["status"]) for p in listed] == [
        (left, "open"),
        (done, "approved"),
        (refused, "open"),
    ]
    assert (listed[0]["proposer"], listed[0]["to"], listed[0]["tool"]) == ("bot", ["ann"], "write_file")
    assert (listed[0]["method"], listed[0]["params"]) == (asked["method"], asked["params"])
    assert [sent["id"] for sent in listed[0]["unrelated"]] == [unrelated]
    assert [(sent["id"], sent["by"]) for sent in listed[1]["fulfilments"]] == [(request, "ann")]
    (rejection,) = listed[2]["rejections"]
    assert (rejection["by"], rejection["reason"], rejection["message"]) == ("eve", *no.values())
    waiting = await served.eve.get("/spaces/demo/proposals", status="open")
    assert ids(waiting, "proposals") == [left, refused]
    assert ids(await served.eve.get("/spaces/demo/proposals", limit=1), "proposals") == [refused]
    assert is_problem(await served.eve.get("/spaces/demo/proposals", status="lost"), 400, "invalid_query")


async def test_proposals_come_page_by_page_and_none_is_too_large(serve: Serve) -> None:
    served = await serve(more="limits: {history_envelopes: 7}\n")
    large = {"method": "tools/call", "params": {"text": "x" * 900_000}}
    sent = [await served.bot.say("mcp/proposal", payload=large) for _ in range(6)]
    newest = await served.eve.get("/spaces/demo/proposals")
    assert ids(newest, "proposals") == sent[2:]
    assert (newest.json["next"], newest.json["complete"]) == (sent[2], True)
    older = await served.eve.get("/spaces/demo/proposals", before=newest.json["next"])
    assert ids(older, "proposals") == sent[:2]
    assert (older.json["next"], older.json["complete"]) == (None, True)
    await served.ann.say()
    await served.ann.say()
    assert not (await served.eve.get("/spaces/demo/proposals")).json["complete"]
    gone = await served.eve.get("/spaces/demo/proposals", before=sent[0])
    assert (ids(gone, "proposals"), gone.json["complete"]) == ([], False)


# The gateway itself.


async def test_the_gateway_says_what_it_is_and_that_it_runs(served: Served) -> None:
    index = await served.nobody.get("/")
    assert (index.status, index.type) == (200, "text/plain")
    assert b"/openapi.json" in index.body
    health = await served.nobody.get("/health")
    assert health.json["status"] == "ok"
    assert health.json["version"]
    assert (await served.nobody.get("/ready")).json == {"status": "ready", "spaces": 1}


async def test_a_gateway_is_not_ready_while_a_space_has_failed_or_it_stops(served: Served) -> None:
    node = served.gateway._node
    node.failed["demo"] = "JournalUnavailable"
    answer = await served.nobody.get("/ready")
    assert is_problem(answer, 503, "unavailable")
    assert "demo" in answer.json["detail"]
    assert (await served.nobody.get("/health")).status == 200
    node.failed.clear()
    node.stopping = True
    assert is_problem(await served.nobody.get("/ready"), 503, "unavailable")


async def test_a_space_that_has_closed_takes_no_more_and_tells_nothing_that_may_not_be_committed(
    served: Served,
) -> None:
    await served.ann.say()
    served.gateway._node.rooms["demo"].close()
    for answer in (
        await served.ann.send({"kind": "chat"}),
        await served.ann.messages(wait_s=5),
        await served.ann.get("/spaces/demo/envelopes"),
        await served.ann.get("/spaces/demo/proposals"),
        await served.ann.get("/spaces/demo/participants"),
    ):
        assert is_problem(answer, 503, "unavailable")
        assert "Retry-After" in answer.headers


async def test_what_there_is_not_is_a_problem_too(served: Served) -> None:
    assert is_problem(await served.nobody.get("/nowhere"), 404, "not_found")
    answer = await served.nobody.ask("DELETE", "/participants/ann/messages")
    assert is_problem(answer, 405, "method_not_allowed")
    assert {"GET", "POST"} <= set(answer.headers["Allow"].split(","))


async def test_a_bug_is_logged_and_tells_the_outside_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(served.gateway._node.rooms["demo"].history, "select", broken)
    answer = await served.ann.messages()
    assert is_problem(answer, 500, "internal_server_error")
    assert b"secret" not in answer.body
    assert "ZeroDivisionError" in caplog.text


async def test_a_log_that_breaks_under_an_envelope_leaves_its_fate_open(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def post(*_: object) -> None:
        raise JournalUnavailable("gone")

    monkeypatch.setattr(served.gateway._node.rooms["demo"], "post", post)
    answer = await served.ann.send({"kind": "chat"})
    assert is_problem(answer, 503, "unavailable")
    assert "may or may not" in answer.json["detail"]
