"""What a gateway leaves to the participants: what a payload means (§4.2, §7.1, §8.1)."""

from collections.abc import Iterable
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.passing import arrive
from mew.conform.stage import Stage

_RPC: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1}


async def _all_pass(stage: Stage, said: Iterable[tuple[str, Any]], **fields: Any) -> None:
    """Each of these, kind and payload, arrives as it is, whether one who may do all sends it or one who may do MCP."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    said = list(said)
    for speaker, hearer in ((owner, peer), (peer, owner)):
        sent = [await speaker.send(kind, payload, to=[hearer.id], **fields) for kind, payload in said]
        await arrive(stage, speaker, sent, hearer, listener)


@check("lazy.json-rpc-not-validated")
async def json_rpc_is_not_validated(stage: Stage) -> None:
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
    await _all_pass(stage, said)


@check("lazy.no-mcp-semantics")
async def mcp_is_not_understood(stage: Stage) -> None:
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
    await _all_pass(stage, calls + [("mcp/proposal", payload) for _, payload in calls])
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    request = await owner.send("mcp/request", {**_RPC, "method": "tools/list"}, to=[listener.id])
    await arrive(stage, owner, [request], peer, listener)
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
    await arrive(stage, peer, answers, owner, listener)


@check("lazy.mismatch-not-detected", needs=("lazy.json-rpc-not-validated",))
async def kind_and_payload_need_not_belong_together(stage: Stage) -> None:
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
    await _all_pass(stage, [(kind, payload) for kind, payloads in kinds.items() for payload in payloads])
