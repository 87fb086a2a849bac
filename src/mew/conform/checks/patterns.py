"""Patterns of capabilities: what fits them, and above all what nearly does (§4.1, §4.2, §9)."""

from typing import Any, Final

from mew.conform.context import CheckContext
from mew.conform.drafts import CHAT, HELLO, Draft, call, calling, request
from mew.conform.expectations import expect_enforced
from mew.conform.fixtures import somebody
from mew.conform.match import same
from mew.conform.outcome import NotOffered
from mew.conform.roles import ROLES
from mew.conform.runner import check

_RESPONSE: Final = Draft(
    "mcp/response", {"jsonrpc": "2.0", "id": 1, "result": {}}, {"correlation_id": ["r-1"]}
)
_REJECT: Final = Draft("mcp/reject", {"reason": "busy"}, {"correlation_id": ["p-1"]})


def _asking(payload: Any) -> dict[str, Any]:
    return {"kind": "mcp/request", "payload": payload}


@check("pattern.exact")
async def an_exact_kind_allows_nothing_else(ctx: CheckContext) -> None:
    """`chat` allows `chat`, and `mcp/proposal` that; nothing longer, shorter or in other letters."""
    owner, listener = await ctx.clients("owner", "listener")
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
    refused = [Draft(kind, {"text": "hello"}) for kind in near]
    await expect_enforced(ctx, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=refused)
    proposer = await ctx.client("proposer")
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
    await expect_enforced(
        ctx,
        proposer,
        owner,
        ROLES["proposer"][0],
        passing=[call("write_file", kind="mcp/proposal")],
        refused=[call("write_file", kind=kind) for kind in near],
    )


@check("pattern.wildcard")
async def a_wildcard_allows_what_it_stands_for(ctx: CheckContext) -> None:
    """`mcp/*` and `chat/*` allow every kind below them; not one beside, above or with more in front."""
    owner, peer = await ctx.clients("owner", "peer")
    proposal = await call("read_file", kind="mcp/proposal").send_by(peer)
    withdrawal = Draft("mcp/withdraw", {"reason": "other"}, {"correlation_id": [proposal["id"]]})
    below = [call("read_file"), _RESPONSE, call("read_file", kind="mcp/proposal"), _REJECT, withdrawal]
    below += [
        Draft("chat/cancel", {}, {"correlation_id": ["c-1"]}),
        Draft("reasoning/thought", {"text": "so"}),
    ]
    beside = ["mcp", "mcpx/request", "xmcp/request", "x/mcp/request", "MCP/request", "mcp-request", "*"]
    beside += ["chatx", "reasoning", "xchat/cancel"]
    beside += ["participant/statusx", "participant/clear", "space/invite", "capability/grant-ack2"]
    await expect_enforced(
        ctx, peer, owner, ROLES["peer"][0], passing=below, refused=[Draft(kind) for kind in beside]
    )


@check("pattern.wildcard")
async def a_wildcard_allows_nothing_of_other_kinds(ctx: CheckContext) -> None:
    """With `mcp/*` alone there is no chat."""
    owner, held = await ctx.client("owner"), [{"kind": "mcp/*"}]
    others = ("chat", "chat/cancel", "mcp", "mcpx/request", "reasoning/start", "participant/status")
    await expect_enforced(
        ctx,
        await somebody(ctx, *held),
        owner,
        held,
        passing=[call("read_file"), _RESPONSE, call("read_file", kind="mcp/proposal"), _REJECT],
        refused=[Draft(kind, {"text": "hello"}) for kind in others],
    )


@check("pattern.wildcard")
async def a_wildcard_may_stand_anywhere(ctx: CheckContext) -> None:
    """In front, in the middle and twice, a wildcard leaves the rest of the text to fit, from end to end."""
    owner = await ctx.client("owner")
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
    await expect_enforced(
        ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=map(call, near)
    )


@check("pattern.nested")
async def a_field_of_the_payload_must_fit(ctx: CheckContext) -> None:
    """Another value, another type, another place and no value are refused; fields beside it do not matter."""
    owner, reader = await ctx.clients("owner", "reader")
    fields = {
        "params": {"name": "read_dir", "arguments": {"name": "write_file"}, "more": [1]},
        "extra": {"a": 1},
    }
    passing = [call("read_file"), Draft("mcp/request", {"method": "tools/call", **fields})]
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
        Draft("mcp/request", {"method": "tools/call", **name}),
        Draft("mcp/request", {"method": "tools/call", "params.name": "read_file"}),
        Draft("mcp/request", {"method": "tools/call", "params": None}),
        Draft("mcp/request", {"method": ["tools/call"], "params": name}),
        Draft("mcp/request", {"params": name}),
        Draft("mcp/request", {"Method": "tools/call", "params": name}),
        Draft("mcp/request", {"payload": {"method": "tools/call", "params": name}}),
        Draft("mcp/request", {}),
        Draft("mcp/request", ...),
        Draft("mcp/request", {}, {"method": "tools/call", "params": name}),
        call(["read_file", "write_file"]),
    ]
    refused = [*map(call, names), *misplaced, request("tools/list", name)]
    await expect_enforced(ctx, reader, owner, ROLES["reader"][0], passing=passing, refused=refused)


@check("pattern.nested")
async def every_field_of_one_capability_must_fit(ctx: CheckContext) -> None:
    """Deep fields count, all of them, and those of one capability are not mixed with those of another."""
    owner = await ctx.client("owner")
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
    passing = [HELLO, call("write_file", {**deep, "more": 1}), read, propose, Draft("chat/cancel", {"a": 1})]
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
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)


@check("pattern.exact", "pattern.nested")
async def a_sign_stands_for_itself(ctx: CheckContext) -> None:
    """Signs that mean something in a regular expression mean nothing in a plain text."""
    owner = await ctx.client("owner")
    plain = ("read.me", "a+b", "f(x)", "c|d", "^e$")
    held = [*map(calling, plain), CHAT]
    near = ("readxme", "read.me\n", "aab", "fx", "c", "d", "e", "read.me2", "Read.me", "")
    await expect_enforced(
        ctx,
        await somebody(ctx, *held),
        owner,
        held,
        passing=[HELLO, *map(call, plain)],
        refused=[*map(call, near)],
    )


@check("pattern.values")
async def a_value_that_is_no_text_must_be_the_same(ctx: CheckContext) -> None:
    """A number, `true` or `false` in a payload pattern fits that value alone, and none of another type."""
    owner = await ctx.client("owner")
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
    guest = await somebody(ctx, *held, CHAT)
    await expect_enforced(ctx, guest, owner, [*held, CHAT], passing=passing, refused=[*refused, call("list")])


@check("pattern.payload-of-any-kind")
async def a_payload_pattern_counts_under_any_kind(ctx: CheckContext) -> None:
    """`{"kind": "*"}` with a payload pattern allows any kind whose payload fits, and nothing else."""
    owner = await ctx.client("owner")
    held: list[Any] = [{"kind": "*", "payload": {"text": "hello"}}]
    passing = [HELLO, Draft("reasoning/thought", {"text": "hello", "more": 1})]
    others = [call("write_file"), Draft("reasoning/thought", {"text": "bye"}), Draft("reasoning/thought")]
    await expect_enforced(ctx, await somebody(ctx, *held, CHAT), owner, held, passing=passing, refused=others)


@check("pattern.examples-request")
async def the_examples_for_a_request_hold(ctx: CheckContext) -> None:
    """A `tools/call` passes under `mcp/*`, under `mcp/request`, and under that with method `tools/*`."""
    owner = await ctx.client("owner")
    await expect_enforced(
        ctx, await ctx.client("peer"), owner, ROLES["peer"][0], passing=[call("write_file")]
    )
    held: list[Any] = [{"kind": "mcp/request"}, CHAT]
    passing = [call("write_file"), request("resources/read"), Draft("mcp/request", {})]
    others = [
        call("write_file", kind=kind) for kind in ("mcp/proposal", "mcp/requests", "mcp/request/x", "mcp")
    ]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=others)
    held = [_asking({"method": "tools/*"}), CHAT]
    passing = [call("write_file"), request("tools/list"), HELLO]
    methods = ("resources/read", "tools", "toolsx/call", "xtools/call", "Tools/call", "tool/call")
    refused = [*others, *map(request, methods), Draft("mcp/request", {}), Draft("mcp/request", ...)]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)


@check("pattern.examples-chat")
async def the_examples_for_a_chat_hold(ctx: CheckContext) -> None:
    """A chat passes under `chat` and under `*`, which allows every kind there is."""
    owner, listener = await ctx.clients("owner", "listener")
    kinds = ("chat/cancel", "reasoning/thought", "participant/compact-done", "capability/grant-ack")
    everything = [HELLO, call("write_file"), _RESPONSE, *(Draft(kind, {"text": "hello"}) for kind in kinds)]
    await expect_enforced(ctx, owner, listener, ROLES["owner"][0], passing=everything)
    await expect_enforced(
        ctx, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=[call("write_file")]
    )


@check("pattern.examples-chat")
async def a_chat_passes_under_nothing_else(ctx: CheckContext) -> None:
    """A chat is refused under `mcp/*`, under `chat/*` and under `chat` with a text that it does not have."""
    owner = await ctx.client("owner")
    held: list[Any] = [{"kind": "mcp/*"}, {"kind": "chat/*"}, {"kind": "chat", "payload": {"text": "bye"}}]
    passing = [call("write_file"), Draft("chat/cancel"), Draft("chat", {"text": "bye"})]
    refused = [HELLO, Draft("chat", {}), Draft("chat", ...), Draft("chat", {"text": "bye bye"})]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)


_ITEMS: Final[tuple[Any, ...]] = (
    [{"name": "b"}],
    [{"name": "b"}, {"name": "a"}],
    [],
    {"name": "b"},
    [{}, {"Name": "b"}],
)
_SEEN: Final[tuple[Any, ...]] = ([], [{"by": "you"}], [{}], "me", {"by": "you"})


@check("pattern.regex")
async def a_regular_expression_decides(ctx: CheckContext) -> None:
    """What an expression matches from end to end passes, in the payload and as a kind; what it does not is refused."""
    owner, write = await ctx.client("owner"), ctx.config.notation.expression
    held = [
        calling(write("(read|list)_[a-z]+[0-9]?")),
        {"kind": write("reasoning/(thought|conclusion)")},
        CHAT,
    ]
    kinds = ("reasoning/thought", "reasoning/conclusion")
    passing = [HELLO, *map(call, ("read_file", "list_b", "read_file2")), *map(Draft, kinds)]
    near = (
        "write_file",
        "read_",
        "read_FILE",
        "xread_file",
        "read_file22",
        "list-b",
        "read_file2 ",
        "(read|list)_a",
    )
    refused = [
        *map(call, near),
        *map(Draft, ("reasoning/thoughts", "reasoning/start", "xreasoning/thought", "reasoning/")),
    ]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)


@check("pattern.jsonpath")
async def a_path_finds_what_must_fit(ctx: CheckContext) -> None:
    """What a JSONPath finds must fit: in a field, at a place in an array, and everywhere in one."""
    owner, looking = await ctx.client("owner"), ctx.config.notation.looking
    held = [
        looking("mcp/request", "$.params.arguments.path", "tmp_*"),
        looking("mcp/proposal", "$.params.items[1].name", "b"),
        looking("chat/cancel", "$.seen[*].by", "me"),
        CHAT,
    ]
    passing = [
        HELLO,
        call("write_file", {"path": "tmp_a", "more": {"path": "x"}}),
        request("tools/call", {"items": [{"name": "a"}, {"name": "b"}]}, "mcp/proposal"),
        Draft("chat/cancel", {"seen": [{"by": "me"}, {"by": "me", "at": 1}]}),
    ]
    refused = [
        *(
            call("write_file", arguments)
            for arguments in ({"path": "etc"}, {"path": "x/tmp_a"}, {"file": "tmp_a"}, {})
        ),
        Draft("mcp/request", {"path": "tmp_a", "arguments": {"path": "tmp_a"}}),
        Draft("mcp/request", ...),
        *(request("tools/call", {"items": items}, "mcp/proposal") for items in _ITEMS),
        *(Draft("chat/cancel", {"seen": seen}) for seen in _SEEN),
        Draft("chat/cancel", {"by": "me"}),
    ]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)


_READ: Final = call("read_file")
_WRITE: Final = call("write_file")
_PROPOSE: Final = call("write_file", kind="mcp/proposal")
_FAILURE: Final = Draft(
    "mcp/response", {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}, {"to": []}
)
_METHODS: Final = (
    "tools/call",
    "tools/list",
    "resources/read",
    "prompts/get",
    "initialize",
    "notifications/cancelled",
)


def _all(kind: str) -> list[Draft]:
    return [request(method, {"name": "write_file", "uri": "file:///a"}, kind) for method in _METHODS]


@check("profile.any")
async def each_is_held_to_its_own(ctx: CheckContext) -> None:
    """Participants that are there together each may do what their own list says, and not what another's does."""
    names = ("owner", "peer", "proposer", "reader", "granter", "listener")
    actors = {name: await ctx.client(name) for name in names if name in ctx.config.roles}
    if all(same(actors["owner"].capabilities, one.capabilities) for one in actors.values()):
        raise NotOffered("all have the same capabilities here")
    may = {HELLO: names, _READ: ("owner", "peer", "reader"), _WRITE: ("owner", "peer")}
    may |= {
        _PROPOSE: ("owner", "peer", "proposer", "granter"),
        Draft("reasoning/thought"): ("owner", "peer", "proposer"),
    }
    may[Draft("chat/cancel", {"reason": "duplicate"})] = ("owner", "peer")
    for _ in range(2):
        for name, client in actors.items():
            observer = actors["owner" if name != "owner" else next(one for one in actors if one != "owner")]
            passing = [draft for draft, who in may.items() if name in who]
            refused = [draft for draft in may if draft not in passing]
            await expect_enforced(ctx, client, observer, ROLES[name][0], passing=passing, refused=refused)


@check("profile.full-access")
async def full_access_sends_any_mcp_message(ctx: CheckContext) -> None:
    """With `mcp/*` and `chat`, requests and proposals of every method, responses, errors and chat pass."""
    owner, peer = await ctx.clients("owner", "peer")
    passing = [HELLO, *_all("mcp/request"), *_all("mcp/proposal"), _RESPONSE, _FAILURE]
    await expect_enforced(ctx, peer, owner, ROLES["peer"][0], passing=passing)


@check("profile.full-access")
async def full_access_is_access_to_mcp(ctx: CheckContext) -> None:
    """Who holds `mcp/*` and `chat` and nothing else manages nobody."""
    owner, held = await ctx.client("owner"), [{"kind": "mcp/*"}, CHAT]
    passing = [HELLO, *_all("mcp/request"), *_all("mcp/proposal"), _RESPONSE, _FAILURE]
    kinds = (
        "participant/clear",
        "reasoning/thought",
        "chat/cancel",
        "stream/request",
        "space/kick",
        "capability/grant",
    )
    await expect_enforced(
        ctx,
        await somebody(ctx, *held),
        owner,
        held,
        passing=passing,
        refused=[
            Draft(kind, {"participant_id": "nobody", "recipient": "nobody", "capabilities": []})
            for kind in kinds
        ],
    )


@check("profile.proposal-only")
async def proposal_only_makes_no_request(ctx: CheckContext) -> None:
    """Without `mcp/request` every request is refused, whatever its method; proposal, response and chat pass."""
    owner, proposer = await ctx.clients("owner", "proposer")
    held = ROLES["proposer"][0]
    passing = [HELLO, *_all("mcp/proposal"), _RESPONSE, _FAILURE]
    proposal = await call("write_file", kind="mcp/proposal").send_by(proposer)
    fulfilled = Draft(
        "mcp/request", proposal["payload"], {"correlation_id": [proposal["id"]], "to": [owner.id]}
    )
    refused = [
        *_all("mcp/request"),
        fulfilled,
        Draft("mcp/request", {}),
        Draft("mcp/request", _FAILURE.payload),
    ]
    await expect_enforced(ctx, proposer, owner, held, passing=passing, refused=refused)


@check("profile.tool-specific")
async def tool_specific_calls_its_tools_only(ctx: CheckContext) -> None:
    """With `tools/call` and `read_*`, such calls pass; other tools, other methods and proposals are refused."""
    owner, reader = await ctx.clients("owner", "reader")
    passing = [
        HELLO,
        _RESPONSE,
        *(call(name, {"path": "a"}) for name in ("read_file", "read_dir", "read_x_y")),
    ]
    names = ("write_file", "delete_file", "reader", "re_read_file", "READ_FILE", "unread_file")
    refused = [*map(call, names), *_all("mcp/proposal"), call("read_file", kind="mcp/proposal")]
    refused += [
        request(method, {"name": "read_file"}) for method in (*_METHODS[1:], "tools/calls", "tools/cal")
    ]
    await expect_enforced(ctx, reader, owner, ROLES["reader"][0], passing=passing, refused=refused)


@check("profile.monitoring", needs=("pattern.wildcard",))
async def monitoring_lists_and_does_nothing(ctx: CheckContext) -> None:
    """With `*/list` as method, lists of every sort pass, and nothing else does."""
    owner = await ctx.client("owner")
    held: list[Any] = [{"kind": "mcp/request", "payload": {"method": "*/list"}}, CHAT]
    lists = ("tools/list", "resources/list", "prompts/list")
    methods = (
        "tools/call",
        "resources/read",
        "list",
        "tools/lists",
        "tools/list/all",
        "tools/List",
        "toolslist",
    )
    refused = [*map(request, methods), request("tools/list", kind="mcp/proposal"), Draft("mcp/request", {})]
    refused.append(request("tools/call", {"method": "tools/list"}))
    passing = [HELLO, *map(request, lists), request("tools/list", {"cursor": "1"})]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)


@check("profile.response-only")
async def response_only_answers_and_does_nothing(ctx: CheckContext) -> None:
    """With `mcp/response` alone, responses pass; requests, proposals and chat do not."""
    owner, held = await ctx.client("owner"), [{"kind": "mcp/response"}]
    refused = [
        *_all("mcp/request"),
        *_all("mcp/proposal"),
        HELLO,
        Draft("chat/acknowledge"),
        Draft("mcp/reject"),
    ]
    refused += [
        Draft(kind, _RESPONSE.payload) for kind in ("mcp/request", "mcp/responses", "mcp/respons", "mcp")
    ]
    passing = [_RESPONSE, _FAILURE, Draft("mcp/response", {})]
    await expect_enforced(ctx, await somebody(ctx, *held), owner, held, passing=passing, refused=refused)
