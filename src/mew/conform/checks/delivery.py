"""Whom an envelope reaches, how often, in which order, unchanged, whatever it means (§1, §2.1, §4.2, §5.4, §7, §8)."""

import builtins
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mew.conform.connection import PROTOCOL, ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import unique_word
from mew.conform.expectations import expect_delivered, expect_shown
from mew.conform.match import is_id, refuses
from mew.conform.outcome import Violation, demand
from mew.conform.runner import check

_OTHERS: Final = ("reader", "granter", "listener")
_CALL: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_file"}}
_NOBODY: Final[tuple[Any, ...]] = ([], ...)
_FOR_ALL: Final = (
    *("mcp/request", "mcp/response", "mcp/proposal", "reasoning/start", "reasoning/thought"),
    *("chat/cancel", "capability/grant-ack", "participant/compact-done", "vendor/thing"),
)
_DIFFICULT: Final = """{
    "text": "é e\\u0301 \\u00e9 \\u200f 🐱 \\ud83d\\udc31 \\u0000 \\u2028 \\" \\\\ \\/ </script> \\n",
    "": "a name may be empty", "__proto__": {"constructor": null}, "toString": [], "$ref": {"$in": 1}, "a.b": "c.d",
    "nothing": null, "false": false, "true": true, "one": "1", "zero": 0, "minus": -1,
    "integer": 9007199254740993, "large": 123456789012345678901234567890, "float": 0.1, "small": 1e-7,
    "pi": 3.14159265358979323846264338327950288, "empty": {}, "list": [1, [], [null, {"a": [{}]}], ""],
    "deep": {"a": {"a": {"a": {"a": {"a": {"a": {"a": [[[[[[["down here"]]]]]]]}}}}}}},
    "from": "another", "kind": "system/welcome", "protocol": "mew/v0.3", "id": 0
}"""


async def _everyone(ctx: CheckContext) -> list[ScriptedClient]:
    """Owner, peer and proposer, and whom there are tokens for beside them."""
    others = [name for name in _OTHERS if name in ctx.config.roles]
    return await ctx.clients("owner", "peer", "proposer", *others)


def _but(actors: Sequence[ScriptedClient], *not_these: ScriptedClient) -> list[ScriptedClient]:
    return [client for client in actors if client not in not_these]


@check("delivery.broadcast")
async def without_addressees_it_is_for_all(ctx: CheckContext) -> None:
    """An envelope with an empty `to`, and one without, reaches every other participant, whoever sends it and what."""
    everyone = await _everyone(ctx)
    for sender in everyone:
        sent = [await sender.send("chat", {"text": "all"}, to=to) for to in _NOBODY]
        await expect_delivered(ctx, sender, sent, *_but(everyone, sender))
    owner, *others = everyone
    sent = [await owner.send(kind, _CALL, to=to) for kind in _FOR_ALL for to in _NOBODY]
    await expect_delivered(ctx, owner, sent, *others)
    again = everyone.pop()
    await ctx.rejoin(again)  # who came last is as much in the space
    for sender, receivers in ((again, everyone), (everyone[0], [again, *everyone[1:]])):
        sent = [await sender.send("chat", {"text": "all"}, to=to) for to in _NOBODY]
        await expect_delivered(ctx, sender, sent, *receivers)


@check("delivery.addressed")
async def who_is_addressed_receives_it(ctx: CheckContext) -> None:
    """An envelope reaches everyone that its `to` names, first or last, one or all, the sender too."""
    everyone = await _everyone(ctx)
    owner, peer, proposer, *_ = everyone
    for sender in (owner, peer):
        lists = [[one] for one in everyone] + [[peer, proposer], [proposer, owner, peer], everyone]
        for named in lists:
            sent = await sender.send("chat", {"text": "you"}, to=[one.id for one in named])
            await expect_shown(sent, *named)
    sent = await owner.send("chat", {"text": "you"}, to=["nobody-here", peer.id])
    await expect_shown(sent, peer)
    call = await peer.send("mcp/request", _CALL, to=[owner.id])
    await expect_shown(call, owner)
    await expect_shown(
        await owner.send("mcp/response", _CALL, to=[peer.id], correlation_id=[call["id"]]), peer
    )


@check("delivery.visible-to-all")
async def who_is_not_addressed_sees_it_too(ctx: CheckContext) -> None:
    """An envelope with `to` reaches those as well that it does not name, whatever its kind."""
    everyone = await _everyone(ctx)
    owner, peer, proposer, *_ = everyone
    said: list[tuple[ScriptedClient, dict[str, Any]]] = []
    for sender, named in ((owner, peer), (peer, owner), (proposer, peer), (owner, owner)):
        said.append((sender, await sender.send("chat", {"text": "psst"}, to=[named.id])))
    said.append((owner, await owner.send("chat", {"text": "psst"}, to=["nobody-here"])))
    proposal = await proposer.send("mcp/proposal", _CALL, to=[peer.id])
    request = await owner.send("mcp/request", _CALL, to=[peer.id], correlation_id=[proposal["id"]])
    response = await peer.send("mcp/response", {"result": {}}, to=[owner.id], correlation_id=[request["id"]])
    thought = await peer.send("reasoning/start", {"message": "hm"}, to=[owner.id])
    said += [(proposer, proposal), (owner, request), (peer, response), (peer, thought)]
    for sender, sent in said:
        for client in _but(everyone, sender):
            try:
                await expect_shown(sent, client)
            except Violation as error:
                if client.id in sent["to"]:
                    raise
                raise Violation(
                    f"{error}. It is not in its `to`: §8.1 has messages routed by `to`, but §1, §2.1 and §2.2 have"
                    " all of them visible to all participants of the space"
                ) from error


@check("delivery.accepted")
async def what_is_allowed_arrives_once(ctx: CheckContext) -> None:
    """Every envelope that its sender may send reaches the others, and none twice, in a rush and on each connection."""
    everyone = await _everyone(ctx)
    owner, peer, proposer, *_ = everyone
    sent: dict[ScriptedClient, list[dict[str, Any]]] = {owner: [], peer: [], proposer: []}
    for number in range(8):
        for sender, mine in sent.items():
            mine.append(await sender.send("chat", {"text": "hello", "number": number}))
            mine.append(await sender.send("mcp/proposal", _CALL, to=[owner.id, owner.id, peer.id]))
    for sender, mine in sent.items():
        await expect_delivered(ctx, sender, mine, *_but(everyone, sender))
    connections = await ctx.connect_twice(peer, owner)
    late = [await owner.send("chat"), await owner.send("chat", to=[peer.id])]
    await expect_delivered(ctx, owner, late, *connections)


@check("delivery.accepted")
async def any_kind_that_is_allowed_passes(ctx: CheckContext) -> None:
    """Who may send everything may send a kind that nobody knows, also one that only looks like the gateway's."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    kinds = (
        "vendor/thing",
        "x",
        "a/b/c",
        "Chat",
        "systems/x",
        "system",
        "my-system/welcome",
        "mcp/request/x",
    )
    await expect_delivered(ctx, owner, [await owner.send(kind, {"a": 1}) for kind in kinds], peer, listener)


@check("delivery.accepted")
async def a_long_envelope_arrives_or_is_refused(ctx: CheckContext) -> None:
    """An envelope of many bytes reaches the others whole, or its sender is told that it does not."""
    owner, peer = await ctx.clients("owner", "peer")
    for length in (100, 126, 1_000, 20_000, 70_000):
        sent = await owner.send("chat", {"text": "é" * length})
        await ctx.round_trip(owner, peer)
        if owner.take(refuses(sent)) and not peer.matching(is_id(sent["id"])):
            continue
        await expect_delivered(ctx, owner, [sent], peer)


@check("delivery.one-stream")
async def all_see_the_same_stream(ctx: CheckContext) -> None:
    """What several send at once, to all or to each by name, comes to all in one order, each one's own among it."""
    actors = await ctx.clients("owner", "peer", "proposer")
    sent: dict[str, list[str]] = {client.id: [] for client in actors}
    for number in range(10):
        to = [client.id for client in actors] if number % 3 == 1 else []
        for client in actors:
            sent[client.id].append(
                (await client.send("chat", {"text": "hello", "number": number}, to=to))["id"]
            )
    orders: list[list[str]] = []
    ours = {one for mine in sent.values() for one in mine}
    for client in actors:
        for sender in actors:
            what = "what it sent itself" if client is sender else f"what {sender.name} sent"
            await client.expect(is_id(sent[sender.id][-1]), f"{what}: all share one stream (§2.1)")
        order = [envelope["id"] for envelope in client.received if envelope.get("id") in ours]
        for sender in actors:
            theirs = [one for one in order if one in sent[sender.id]]
            demand(
                theirs == sent[sender.id], f"{client.name} received what {sender.name} sent in another order"
            )
        orders.append(order)
    demand(orders[0] == orders[1] == orders[2], "not everyone received the same envelopes in the same order")


@check("delivery.unmodified")
async def it_arrives_as_it_was_sent(ctx: CheckContext) -> None:
    """What others receive is what was sent: every field, known or not, with its value as JSON has it, none added."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    base: dict[str, Any] = {"protocol": PROTOCOL, "from": owner.id, "kind": "chat"}
    if ... not in ctx.unfilled_values("ts", [...]):
        base["ts"] = "2026-01-01T00:00:00Z"
    whole = {
        "ts": "2026-01-01T05:30:00.50+05:30",
        "to": [peer.id, "nobody-here", listener.id, peer.id, *(f"nobody-{number}" for number in range(20))],
        "correlation_id": ["b", "a", "b", "e\u0301"],
        "context": "a/B//c/e\u0301",
    }
    more = {"x-vendor": {"a": [1, 2.50, None]}, "seq": 7, "From": "x", "ünknown": "é", "received_at": None}
    call: dict[str, Any] = {
        "kind": "mcp/request",
        "payload": {"method": "x", "jsonrpc": "1.0", "params": [1.0, None]},
    }
    variants = (
        {**base, "kind": "reasoning/thought"},
        {**base, "kind": "reasoning/thought", "payload": {}},
        {**base, "kind": "reasoning/thought", "to": [], "correlation_id": [], "payload": {"text": ""}},
        {**base, **whole, "payload": {"text": "hi"}},
        {**more, **base, "payload": {"text": "hi"}},
        {**base, **more, **whole, **call, "id": f"{unique_word().upper()}-aB"},
    )
    texts = [
        json.dumps({"id": unique_word(), **fields}, ensure_ascii=number % 2 == 0)
        for number, fields in enumerate(variants)
    ]
    texts.append(json.dumps({**base, "id": unique_word(), "payload": 0})[:-2] + _DIFFICULT + "}")
    for text in texts:
        sent = _exact(text)
        await owner.send_text(text)
        for receiver in (peer, listener):
            await receiver.expect(is_id(sent["id"]), f"the envelope {sent['id']}")
            _same(sent, _as_it_came(receiver, sent["id"]), receiver)


def _as_it_came(receiver: ScriptedClient, envelope_id: str) -> Any:
    place = next(at for at, envelope in enumerate(receiver.received) if envelope.get("id") == envelope_id)
    return _exact(receiver.texts[place])


def _exact(text: str) -> Any:
    """A JSON text, read so that numbers are equal if they are as doubles: no parser need keep more (RFC 8259).

    1.0 is 1, and true is none.
    """

    def number(digits: str) -> tuple[str, float]:
        return "number", float(digits)

    return json.loads(text, parse_float=number, parse_int=number, parse_constant=str)


def _same(sent: dict[str, Any], came: dict[str, Any], receiver: ScriptedClient) -> None:
    changes = {f"`{name}`": change for name, change in _changes(sent, came)}
    if "`payload`" in changes and all(isinstance(value, dict) for value in changes["`payload`"]):
        before, after = changes.pop("`payload`")
        changes |= {f"`payload.{name}`": change for name, change in _changes(before, after)}
    said = "; ".join(f"{name} was {_plain(was)} and is {_plain(now)}" for name, (was, now) in changes.items())
    demand(not changes, f"{receiver.name} received an envelope that is not as it was sent: {said}")


def _changes(sent: dict[str, Any], came: dict[str, Any]) -> list[tuple[str, tuple[Any, Any]]]:
    names = dict.fromkeys((*sent, *came))
    return [
        (name, (sent.get(name, ...), came.get(name, ...)))
        for name in names
        if sent.get(name, ...) != came.get(name, ...)
    ]


def _plain(value: Any) -> str:
    """As JSON, in which two that look alike can be told apart; numbers were read as a pair."""
    match value:
        case builtins.Ellipsis:
            return "missing"
        case (_, float() as number):
            return str(number)
        case dict():
            return f"{{{', '.join(f'{json.dumps(name)}: {_plain(item)}' for name, item in value.items())}}}"
        case list():
            return f"[{', '.join(map(_plain, value))}]"
        case _:
            return json.dumps(value)


_RPC: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1}


async def _all_pass(ctx: CheckContext, said: Iterable[tuple[str, Any]], **fields: Any) -> None:
    """Each of these, kind and payload, arrives as it is, whether one who may do all sends it or one who may do MCP."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    said = list(said)
    for sender, receiver in ((owner, peer), (peer, owner)):
        sent = [await sender.send(kind, payload, to=[receiver.id], **fields) for kind, payload in said]
        await expect_delivered(ctx, sender, sent, receiver, listener)


@check("lazy.json-rpc-not-validated")
async def json_rpc_is_not_validated(ctx: CheckContext) -> None:
    """An MCP or chat envelope passes whatever its payload lacks, and whatever type a field of it has."""
    call = {"method": "tools/call", "params": {"name": "read_file", "arguments": {}}}
    payloads: tuple[Any, ...] = (
        {},
        ...,
        call,
        {"jsonrpc": "2.0", **call},
        {"id": 1, **call},
        {**_RPC, **call, "jsonrpc": "1.0"},
        {**_RPC, **call, "jsonrpc": 2},
        {**_RPC, **call, "id": None},
        {**_RPC, **call, "id": {"a": [1.5]}},
        {**_RPC, "params": {}},
        {**_RPC, "method": 7},
        {**_RPC, "method": ""},
        {**_RPC, "method": ["tools/call"]},
        {**_RPC, "method": "tools/call", "params": "read_file"},
        {**_RPC, "method": "tools/call", "params": [1, 2]},
        {**_RPC, "method": "tools/call", "params": None},
        {**_RPC, "method": "tools/call", "params": {"name": None}},
    )
    answers: tuple[Any, ...] = (
        {},
        ...,
        {**_RPC},
        {"result": None},
        {**_RPC, "result": {}, "error": {}},
        {**_RPC, "error": "no"},
        {**_RPC, "error": {"code": "x"}},
    )
    chats: tuple[Any, ...] = (
        {},
        ...,
        {"text": 7},
        {"text": None},
        {"text": "", "format": "html"},
        {"format": 7},
    )
    said = [("mcp/request", payload) for payload in payloads]
    said += [("mcp/proposal", payload) for payload in payloads]
    said += [("mcp/response", payload) for payload in answers]
    said += [("chat", payload) for payload in chats]
    await _all_pass(ctx, said)


@check("lazy.no-mcp-semantics")
async def mcp_is_not_understood(ctx: CheckContext) -> None:
    """An envelope passes whatever MCP would make of it: no such method, no such tool, no such request, again."""
    methods: tuple[tuple[str, Any], ...] = (
        ("frobnicate", {}),
        ("tools/call", {"name": "no_such_tool"}),
        ("tools/list", {"cursor": "nowhere"}),
        ("tools/", {}),
        ("resources/read", {"uri": "file:///etc/passwd"}),
        ("prompts/get", {"name": "none"}),
        ("initialize", {"protocolVersion": "0"}),
        ("initialize", {"protocolVersion": "1"}),
        ("notifications/cancelled", {"requestId": 99}),
        ("notifications/initialized", {}),
        ("ping", {}),
    )
    calls = [("mcp/request", {**_RPC, "method": method, "params": params}) for method, params in methods]
    await _all_pass(ctx, calls + [("mcp/proposal", payload) for _, payload in calls])
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    request = await owner.send("mcp/request", {**_RPC, "method": "tools/list"}, to=[listener.id])
    await expect_delivered(ctx, owner, [request], peer, listener)
    result = {**_RPC, "result": {}}
    answers = [
        await peer.send("mcp/response", payload, to=[owner.id], correlation_id=causes)
        for payload, causes in (
            (result, [request["id"]]),  # it was not asked
            (result, [request["id"]]),
            ({**result, "id": 2}, [request["id"]]),
            ({**_RPC, "error": {"code": -32601, "message": "no such method"}}, [request["id"]]),
            (result, ["no-such-request"]),
            (result, ...),
        )
    ]
    await expect_delivered(ctx, peer, answers, owner, listener)


@check("lazy.mismatch-not-detected", needs=("lazy.json-rpc-not-validated",))
async def kind_and_payload_need_not_belong_together(ctx: CheckContext) -> None:
    """An envelope passes whose payload is that of another kind."""
    request = {**_RPC, "method": "tools/call", "params": {"name": "read_file"}}
    result = {**_RPC, "result": {"content": []}}
    error = {**_RPC, "error": {"code": -32000, "message": "no"}}
    chat = {"text": "hi", "format": "plain"}
    welcome = {"you": {"id": "owner", "capabilities": [{"kind": "*"}]}, "participants": []}
    grant = {"recipient": "listener", "capabilities": [{"kind": "*"}]}
    disguised = {"kind": "system/error", "from": "system:gateway", "payload": {"error": "none"}}
    kinds = {
        "mcp/request": (result, error, chat, welcome),
        "mcp/response": (request, chat, grant),
        "mcp/proposal": (result, error, chat, disguised),
        "chat": (request, result, welcome, grant, disguised),
        "reasoning/thought": (request, result, chat),
    }
    await _all_pass(ctx, [(kind, payload) for kind, payloads in kinds.items() for payload in payloads])
