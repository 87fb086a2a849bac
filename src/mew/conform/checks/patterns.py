"""Patterns of capabilities: what fits them, and above all what nearly does (§4.1, §4.2)."""

from typing import Any, Final

from mew.conform.cast import ROLES
from mew.conform.checking import check
from mew.conform.guests import somebody
from mew.conform.holding import held_to
from mew.conform.sayings import CHAT, HELLO, Say, call, calling, request
from mew.conform.stage import Stage

_RESPONSE: Final = Say("mcp/response", {"jsonrpc": "2.0", "id": 1, "result": {}}, {"correlation_id": ["r-1"]})
_REJECT: Final = Say("mcp/reject", {"reason": "busy"}, {"correlation_id": ["p-1"]})


def _asking(payload: Any) -> dict[str, Any]:
    return {"kind": "mcp/request", "payload": payload}


@check("pattern.exact")
async def an_exact_kind_allows_nothing_else(stage: Stage) -> None:
    """`chat` allows `chat`, and `mcp/proposal` that; nothing longer, shorter or in other letters."""
    owner, listener = await stage.enter_all("owner", "listener")
    near = [
        "chat/acknowledge",
        "Chat",
        "CHAT",
        "chats",
        "cha",
        "xchat",
        "chat ",
        "chat\n",
        "\nchat",
        "chat\0",
        "chat/",
        "c.*t",
        "*",
        "/chat",
    ]
    refused = [Say(kind, {"text": "hello"}) for kind in near]
    await held_to(stage, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=refused)
    proposer = await stage.enter("proposer")
    near = [
        "mcp/proposals",
        "mcp/propos",
        "mcp/proposal/now",
        "mcp/proposal\n",
        "MCP/proposal",
        "xmcp/proposal",
        "mcp",
        "mcp/*",
    ]
    await held_to(
        stage,
        proposer,
        owner,
        ROLES["proposer"][0],
        passing=[call("write_file", kind="mcp/proposal")],
        refused=[call("write_file", kind=kind) for kind in near],
    )


@check("pattern.wildcard")
async def a_wildcard_allows_what_it_stands_for(stage: Stage) -> None:
    """`mcp/*` and `chat/*` allow every kind below them; not one beside, above or with more in front."""
    owner, peer = await stage.enter_all("owner", "peer")
    proposal = await call("read_file", kind="mcp/proposal").by(peer)
    withdrawal = Say("mcp/withdraw", {"reason": "other"}, {"correlation_id": [proposal["id"]]})
    below = [call("read_file"), _RESPONSE, call("read_file", kind="mcp/proposal"), _REJECT, withdrawal]
    below += [
        Say("chat/cancel", {}, {"correlation_id": ["c-1"]}),
        Say("reasoning/thought", {"text": "so"}),
    ]
    beside = ["mcp", "mcpx/request", "xmcp/request", "x/mcp/request", "MCP/request", "mcp-request", "*"]
    beside += ["chatx", "reasoning", "xchat/cancel"]
    beside += ["participant/statusx", "participant/clear", "space/invite", "capability/grant-ack2"]
    await held_to(stage, peer, owner, ROLES["peer"][0], passing=below, refused=[Say(kind) for kind in beside])


@check("pattern.wildcard")
async def a_wildcard_allows_nothing_of_other_kinds(stage: Stage) -> None:
    """With `mcp/*` alone there is no chat."""
    owner, held = await stage.enter("owner"), [{"kind": "mcp/*"}]
    others = ("chat", "chat/cancel", "mcp", "mcpx/request", "reasoning/start", "participant/status")
    await held_to(
        stage,
        await somebody(stage, *held),
        owner,
        held,
        passing=[call("read_file"), _RESPONSE, call("read_file", kind="mcp/proposal"), _REJECT],
        refused=[Say(kind, {"text": "hello"}) for kind in others],
    )


@check("pattern.wildcard")
async def a_wildcard_may_stand_anywhere(stage: Stage) -> None:
    """In front, in the middle and twice, a wildcard leaves the rest of the text to fit, from end to end."""
    owner = await stage.enter("owner")
    held = [*map(calling, ("*_file", "get*now", "a*b*c")), CHAT]
    passing = [HELLO, *map(call, ("read_file", "write_file", "get_it_now", "get.now", "a1b2c", "a-b-b-c"))]
    near = [
        "read_files",
        "read_file ",
        "read_file\n",
        "file",
        "xget_it_now",
        "get_it_now2",
        "get_it",
        "GET_now",
    ]
    near += ["a1c", "a1b", "1b2c"]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=map(call, near))


@check("pattern.nested")
async def a_field_of_the_payload_must_fit(stage: Stage) -> None:
    """Another value, another type, another place and no value are refused; fields beside it do not matter."""
    owner, reader = await stage.enter_all("owner", "reader")
    fields = {
        "params": {"name": "read_dir", "arguments": {"name": "write_file"}, "more": [1]},
        "extra": {"a": 1},
    }
    passing = [call("read_file"), Say("mcp/request", {"method": "tools/call", **fields})]
    names = (
        "write_file",
        "read",
        "xread_file",
        "Read_file",
        " read_file",
        "*",
        "",
        None,
        1,
        {"read_file": 1},
    )
    name = {"name": "read_file"}
    misplaced = [
        request("tools/call"),
        *(
            request("tools/call", params)
            for params in ({}, [name], "read_file", {"params": name}, {"Name": "read_file"})
        ),
        Say("mcp/request", {"method": "tools/call", **name}),
        Say("mcp/request", {"method": "tools/call", "params.name": "read_file"}),
        Say("mcp/request", {"method": "tools/call", "params": None}),
        Say("mcp/request", {"method": ["tools/call"], "params": name}),
        Say("mcp/request", {"params": name}),
        Say("mcp/request", {"Method": "tools/call", "params": name}),
        Say("mcp/request", {"payload": {"method": "tools/call", "params": name}}),
        Say("mcp/request", {}),
        Say("mcp/request", ...),
        Say("mcp/request", {}, {"method": "tools/call", "params": name}),
        call(["read_file", "write_file"]),
    ]
    refused = [*map(call, names), *misplaced, request("tools/list", name)]
    await held_to(stage, reader, owner, ROLES["reader"][0], passing=passing, refused=refused)


@check("pattern.nested")
async def every_field_of_one_capability_must_fit(stage: Stage) -> None:
    """Deep fields count, all of them, and those of one capability are not mixed with those of another."""
    owner = await stage.enter("owner")
    deep = {"path": "a", "mode": {"unix": {"owner": "rw"}}}
    held = [
        _asking({"method": "tools/call", "params": {"name": "write_file", "arguments": deep}}),
        _asking({"method": "resources/read", "params": {"uri": "b"}}),
        {"kind": "mcp/proposal", "payload": {"method": "prompts/get"}},
        {"kind": "chat/cancel", "payload": {}},
        CHAT,
    ]
    read = request("resources/read", {"uri": "b", "more": 1})
    propose = request("prompts/get", {"name": "x"}, "mcp/proposal")
    passing = [HELLO, call("write_file", {**deep, "more": 1}), read, propose, Say("chat/cancel", {"a": 1})]
    wrong: list[Any] = [
        {**deep, "path": "b"},
        {**deep, "mode": {"unix": {"owner": "r"}}},
        {**deep, "mode": {"unix": {}}},
        {**deep, "mode": {"unix": "rw"}},
        {**deep, "mode": {"owner": "rw"}},
        {"path": "a"},
        {},
    ]
    refused = [call("write_file", arguments) for arguments in wrong]
    refused += [call("read_file", deep), request("resources/read", {"uri": "a"}), request("prompts/get")]
    refused += [call("write_file", deep, "mcp/proposal"), request("resources/write", {"uri": "b"})]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)


@check("pattern.exact", "pattern.nested")
async def a_sign_stands_for_itself(stage: Stage) -> None:
    """Signs that mean something in a regular expression mean nothing in a plain text."""
    owner = await stage.enter("owner")
    plain = ("read.me", "a+b", "f(x)", "c|d", "^e$")
    held = [*map(calling, plain), CHAT]
    near = ("readxme", "read.me\n", "aab", "fx", "c", "d", "e", "read.me2", "Read.me", "")
    await held_to(
        stage,
        await somebody(stage, *held),
        owner,
        held,
        passing=[HELLO, *map(call, plain)],
        refused=[*map(call, near)],
    )


@check("pattern.values")
async def a_value_that_is_no_text_must_be_the_same(stage: Stage) -> None:
    """A number, `true` or `false` in a payload pattern fits that value alone, and none of another type."""
    owner = await stage.enter("owner")
    values: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "dry_run": (True, (False, 1, "true", None, [True])),
        "force": (False, (True, 0, "", None)),
        "limit": (5, (6, 0, -5, "5", None, [5])),
    }
    held: list[Any] = [
        _asking({"method": "tools/call", "params": {"arguments": {name: value}}})
        for name, (value, _) in values.items()
    ]
    passing = [HELLO, *(call("list", {name: value, "more": 1}) for name, (value, _) in values.items())]
    refused = [call("list", {name: other}) for name, (_, others) in values.items() for other in others]
    guest = await somebody(stage, *held, CHAT)
    await held_to(stage, guest, owner, [*held, CHAT], passing=passing, refused=[*refused, call("list")])


@check("pattern.payload-of-any-kind")
async def a_payload_pattern_counts_under_any_kind(stage: Stage) -> None:
    """`{"kind": "*"}` with a payload pattern allows any kind whose payload fits, and nothing else."""
    owner = await stage.enter("owner")
    held: list[Any] = [{"kind": "*", "payload": {"text": "hello"}}]
    passing = [HELLO, Say("reasoning/thought", {"text": "hello", "more": 1})]
    others = [call("write_file"), Say("reasoning/thought", {"text": "bye"}), Say("reasoning/thought")]
    await held_to(stage, await somebody(stage, *held, CHAT), owner, held, passing=passing, refused=others)


@check("pattern.examples-request")
async def the_examples_for_a_request_hold(stage: Stage) -> None:
    """A `tools/call` passes under `mcp/*`, under `mcp/request`, and under that with method `tools/*`."""
    owner = await stage.enter("owner")
    await held_to(stage, await stage.enter("peer"), owner, ROLES["peer"][0], passing=[call("write_file")])
    held: list[Any] = [{"kind": "mcp/request"}, CHAT]
    passing = [call("write_file"), request("resources/read"), Say("mcp/request", {})]
    others = [
        call("write_file", kind=kind) for kind in ("mcp/proposal", "mcp/requests", "mcp/request/x", "mcp")
    ]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=others)
    held = [_asking({"method": "tools/*"}), CHAT]
    passing = [call("write_file"), request("tools/list"), HELLO]
    methods = ("resources/read", "tools", "toolsx/call", "xtools/call", "Tools/call", "tool/call")
    refused = [*others, *map(request, methods), Say("mcp/request", {}), Say("mcp/request", ...)]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)


@check("pattern.examples-chat")
async def the_examples_for_a_chat_hold(stage: Stage) -> None:
    """A chat passes under `chat` and under `*`, which allows every kind there is."""
    owner, listener = await stage.enter_all("owner", "listener")
    kinds = ("chat/cancel", "reasoning/thought", "participant/compact-done", "capability/grant-ack")
    everything = [HELLO, call("write_file"), _RESPONSE, *(Say(kind, {"text": "hello"}) for kind in kinds)]
    await held_to(stage, owner, listener, ROLES["owner"][0], passing=everything)
    await held_to(stage, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=[call("write_file")])


@check("pattern.examples-chat")
async def a_chat_passes_under_nothing_else(stage: Stage) -> None:
    """A chat is refused under `mcp/*`, under `chat/*` and under `chat` with a text that it does not have."""
    owner = await stage.enter("owner")
    held: list[Any] = [{"kind": "mcp/*"}, {"kind": "chat/*"}, {"kind": "chat", "payload": {"text": "bye"}}]
    passing = [call("write_file"), Say("chat/cancel"), Say("chat", {"text": "bye"})]
    refused = [HELLO, Say("chat", {}), Say("chat", ...), Say("chat", {"text": "bye bye"})]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)
