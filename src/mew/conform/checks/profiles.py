"""The sets of capabilities that the document gives as examples (§4.1, §9.1, §9.3)."""

from typing import Any, Final

from mew.conform.cast import ROLES
from mew.conform.checking import check
from mew.conform.guests import somebody
from mew.conform.holding import held_to
from mew.conform.matching import same
from mew.conform.sayings import CHAT, HELLO, Say, call, request
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered

_READ: Final = call("read_file")
_WRITE: Final = call("write_file")
_PROPOSE: Final = call("write_file", kind="mcp/proposal")
_RESPONSE: Final = Say("mcp/response", {"jsonrpc": "2.0", "id": 1, "result": {}}, {"correlation_id": ["r-1"]})
_FAILURE: Final = Say(
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


def _all(kind: str) -> list[Say]:
    return [request(method, {"name": "write_file", "uri": "file:///a"}, kind) for method in _METHODS]


@check("profile.any")
async def each_is_held_to_its_own(stage: Stage) -> None:
    """Participants that are there together each may do what their own list says, and not what another's does."""
    names = ("owner", "peer", "proposer", "reader", "granter", "listener")
    actors = {name: await stage.enter(name) for name in names if name in stage.cast.roles}
    if all(same(actors["owner"].capabilities, one.capabilities) for one in actors.values()):
        raise NotOffered("all have the same capabilities here")
    may = {HELLO: names, _READ: ("owner", "peer", "reader"), _WRITE: ("owner", "peer")}
    may |= {
        _PROPOSE: ("owner", "peer", "proposer", "granter"),
        Say("reasoning/thought"): ("owner", "peer", "proposer"),
    }
    may[Say("chat/cancel", {"reason": "duplicate"})] = ("owner", "peer")
    for _ in range(2):
        for name, actor in actors.items():
            witness = actors["owner" if name != "owner" else next(one for one in actors if one != "owner")]
            passing = [say for say, who in may.items() if name in who]
            refused = [say for say in may if say not in passing]
            await held_to(stage, actor, witness, ROLES[name][0], passing=passing, refused=refused)


@check("profile.full-access")
async def full_access_sends_any_mcp_message(stage: Stage) -> None:
    """With `mcp/*` and `chat`, requests and proposals of every method, responses, errors and chat pass."""
    owner, peer = await stage.enter_all("owner", "peer")
    passing = [HELLO, *_all("mcp/request"), *_all("mcp/proposal"), _RESPONSE, _FAILURE]
    await held_to(stage, peer, owner, ROLES["peer"][0], passing=passing)


@check("profile.full-access")
async def full_access_is_access_to_mcp(stage: Stage) -> None:
    """Who holds `mcp/*` and `chat` and nothing else manages nobody."""
    owner, held = await stage.enter("owner"), [{"kind": "mcp/*"}, CHAT]
    passing = [HELLO, *_all("mcp/request"), *_all("mcp/proposal"), _RESPONSE, _FAILURE]
    kinds = (
        "participant/clear",
        "reasoning/thought",
        "chat/cancel",
        "stream/request",
        "space/kick",
        "capability/grant",
    )
    await held_to(
        stage,
        await somebody(stage, *held),
        owner,
        held,
        passing=passing,
        refused=[
            Say(kind, {"participant_id": "nobody", "recipient": "nobody", "capabilities": []})
            for kind in kinds
        ],
    )


@check("profile.proposal-only")
async def proposal_only_makes_no_request(stage: Stage) -> None:
    """Without `mcp/request` every request is refused, whatever its method; proposal, response and chat pass."""
    owner, proposer = await stage.enter_all("owner", "proposer")
    held = ROLES["proposer"][0]
    passing = [HELLO, *_all("mcp/proposal"), _RESPONSE, _FAILURE]
    proposal = await call("write_file", kind="mcp/proposal").by(proposer)
    fulfilled = Say(
        "mcp/request", proposal["payload"], {"correlation_id": [proposal["id"]], "to": [owner.id]}
    )
    refused = [*_all("mcp/request"), fulfilled, Say("mcp/request", {}), Say("mcp/request", _FAILURE.payload)]
    await held_to(stage, proposer, owner, held, passing=passing, refused=refused)


@check("profile.tool-specific")
async def tool_specific_calls_its_tools_only(stage: Stage) -> None:
    """With `tools/call` and `read_*`, such calls pass; other tools, other methods and proposals are refused."""
    owner, reader = await stage.enter_all("owner", "reader")
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
    await held_to(stage, reader, owner, ROLES["reader"][0], passing=passing, refused=refused)


@check("profile.monitoring", needs=("pattern.wildcard",))
async def monitoring_lists_and_does_nothing(stage: Stage) -> None:
    """With `*/list` as method, lists of every sort pass, and nothing else does."""
    owner = await stage.enter("owner")
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
    refused = [*map(request, methods), request("tools/list", kind="mcp/proposal"), Say("mcp/request", {})]
    refused.append(request("tools/call", {"method": "tools/list"}))
    passing = [HELLO, *map(request, lists), request("tools/list", {"cursor": "1"})]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)


@check("profile.response-only")
async def response_only_answers_and_does_nothing(stage: Stage) -> None:
    """With `mcp/response` alone, responses pass; requests, proposals and chat do not."""
    owner, held = await stage.enter("owner"), [{"kind": "mcp/response"}]
    refused = [
        *_all("mcp/request"),
        *_all("mcp/proposal"),
        HELLO,
        Say("chat/acknowledge"),
        Say("mcp/reject"),
    ]
    refused += [
        Say(kind, _RESPONSE.payload) for kind in ("mcp/request", "mcp/responses", "mcp/respons", "mcp")
    ]
    passing = [_RESPONSE, _FAILURE, Say("mcp/response", {})]
    await held_to(stage, await somebody(stage, *held), owner, held, passing=passing, refused=refused)
