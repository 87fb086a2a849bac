"""How envelopes refer to each other: `correlation_id` and `context` (§3, §3.5.6)."""

import json
from functools import partial
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.matching import answers
from mew.conform.passing import arrive
from mew.conform.refusing import unheard
from mew.conform.sayings import fresh
from mew.conform.stage import Stage
from mew.conform.verdicts import Violation, demand
from mew.conform.wire import Actor, Fits

_CALL: Final = {"method": "tools/call", "params": {"name": "read_file", "arguments": {}}, "text": "hello"}
_PATHS: Final = (
    "parent",
    "parent/child",
    "parent/child/grandchild",
    "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p",
    "Parent/child",
    "a//b",
    "/a/b/",
    "a/../b/./c",
    "a b/ü/路径/🐱",
    "e\u0301/\u00e9/\u212b",
    "a%2Fb\\c?d#e",
)


@check("correlation.request-names-proposal")
async def a_request_may_name_a_proposal(stage: Stage) -> None:
    """An `mcp/request` that names the proposal it fulfils is delivered with it, to the proposer too."""
    owner, peer, proposer = await stage.enter_all("owner", "peer", "proposer")
    for payload, fulfilled in (
        (_CALL, {"jsonrpc": "2.0", "id": 44, **_CALL}),
        (_CALL, {"method": "tools/list"}),
    ):
        proposal = await proposer.send("mcp/proposal", payload, to=[peer.id, owner.id])
        await arrive(stage, proposer, [proposal], owner, peer)
        for fulfiller in (owner, peer):
            request = await fulfiller.send("mcp/request", fulfilled, correlation_id=[proposal["id"]])
            await arrive(stage, fulfiller, [request], proposer, peer if fulfiller is owner else owner)


@check("correlation.any-envelope")
async def any_envelope_may_name_others(stage: Stage) -> None:
    """An envelope of any kind is delivered with the one it names, known, unknown, its own sender's or another's."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    chat = await listener.send("chat", {"text": "hi"})
    proposal = await peer.send("mcp/proposal", _CALL)
    await arrive(stage, listener, [chat], owner)
    await arrive(stage, peer, [proposal], owner)
    names = (chat["id"], proposal["id"], owner.welcome["id"], "no-such-envelope", "ünknown / id")
    kinds = ("chat", "mcp/request", "mcp/response", "mcp/proposal", "reasoning/start", "reasoning/thought")
    for speaker, hearer in ((owner, peer), (peer, owner)):
        sent = [
            await speaker.send(kind, _CALL, correlation_id=[name], to=to)
            for kind in (*kinds, "chat/cancel")
            for name, to in zip(names, ([hearer.id], ..., [], [listener.id], ...), strict=True)
        ]
        await arrive(stage, speaker, sent, hearer, listener)


@check("correlation.several")
async def several_may_be_named(stage: Stage) -> None:
    """All that `correlation_id` names arrive, in their order, be it two or forty, with one of them twice."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    one, other = [await peer.send("mcp/proposal", _CALL) for _ in range(2)]
    await arrive(stage, peer, [one, other], owner)
    lists = (
        [one["id"], other["id"]],
        [other["id"], one["id"], "no-such-envelope"],
        ["c", "a", "b", "a", "C"],
        [f"id-{97 * number % 40}" for number in range(40)],
    )
    for kind in ("chat", "mcp/request", "mcp/response", "reasoning/start"):
        sent = [await owner.send(kind, _CALL, correlation_id=names) for names in lists]
        await arrive(stage, owner, sent, peer, listener)


@check("error.correlates")
async def an_error_names_its_cause(stage: Stage) -> None:
    """A `system/error` names the envelope that caused it, whatever was wrong with that."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    causes: tuple[tuple[Actor, str, dict[str, Any]], ...] = (
        (listener, "mcp/request", {}),
        (listener, "no/such/thing", {"to": [peer.id], "correlation_id": ["another"]}),
        (owner, "chat", {"protocol": "mew/v0.3"}),
        (owner, "chat", {"from": peer.id}),
        (owner, "system/welcome", {}),
        (owner, "chat", {"to": peer.id}),
        (owner, "chat", {"correlation_id": "another"}),
        (owner, "chat", {"payload": []}),
        (owner, "chat", {"ts": "yesterday"}),
    )
    said: list[dict[str, Any]] = []
    for speaker, kind, fields in causes:
        sent = await speaker.send(kind, **fields)
        try:
            error = await speaker.hear(_about_none_of(said), f"a system/error about {sent['id']}")
        except Violation:
            continue  # whether it is refused is a requirement of its own
        demand(
            answers(error, sent),
            f"expected that an error about {sent['id']} names that in correlation_id; "
            f"it has {json.dumps(error.get('correlation_id'))}",
        )
        await stage.come_through(speaker, peer)
        said.append(sent)
    demand(said, "expected a system/error about one of several wrong envelopes; there was none")
    if len(listener.welcomes) > 1:
        return  # it was cut off and came back: there is one error at a time
    for sent in [await listener.send(kind) for kind in ("mcp/request", "mcp/proposal", "mcp/request")]:
        what = f"a system/error about {sent['id']}, one of three, that names it in correlation_id"
        await listener.hear(partial(_names, sent), what)


def _names(sent: dict[str, Any], envelope: dict[str, Any]) -> bool:
    return envelope.get("kind") == "system/error" and answers(envelope, sent)


def _about_none_of(said: list[dict[str, Any]]) -> Fits:
    """What was said before may have been announced to all as well (§5.4)."""
    return lambda e: e.get("kind") == "system/error" and not any(_names(one, e) for one in said)


@check("context.optional")
async def a_context_may_be_left_out(stage: Stage) -> None:
    """An envelope with a `context` and one without are delivered as they came; one that is no string is not."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for kind in ("chat", "mcp/request", "mcp/proposal", "reasoning/thought"):
        sent = [
            await peer.send(kind, _CALL, context=context) for context in ("one", ..., "another", ..., "one")
        ]
        await arrive(stage, peer, sent, owner, listener)
    for hearer in (owner, listener):
        added = hearer.heard(lambda e: "context" in e and e["context"] is None)
        demand(not added, f"{hearer.name} received a `context` that nobody sent: {added[:1]}")
    for context in (7, None, ["a"], {"a": "b"}, True):
        mark = fresh()
        await peer.send("chat", {"text": mark}, id=mark, context=context)
        await unheard(stage, peer, mark, f"an envelope whose `context` is {json.dumps(context)}", owner)


@check("context.path")
async def a_path_stays_as_it_is(stage: Stage) -> None:
    """A context with slashes in it, of whatever depth, is delivered unchanged."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for speaker, hearer in ((owner, peer), (peer, owner)):
        kinds = ("chat", "reasoning/thought", "mcp/request")
        sent = [await speaker.send(kind, _CALL, context=path) for kind in kinds for path in _PATHS]
        await arrive(stage, speaker, sent, hearer, listener)


@check("context.parallel")
async def sequences_run_side_by_side(stage: Stage) -> None:
    """Several agents reason at once, each in its own context; one that ends leaves the others going."""
    agents = await stage.enter_all("owner", "peer", "proposer")
    listener = await stage.enter("listener")
    starts = [await agent.send("reasoning/start", {"message": "hm"}) for agent in (*agents, agents[0])]
    sequences = list(zip((*agents, agents[0]), starts, strict=True))
    sent = [(agent, start) for agent, start in sequences]
    ends = ("reasoning/cancel", "reasoning/conclusion", "reasoning/cancel", "reasoning/conclusion")
    while sequences:
        for _ in range(2):
            for agent, start in sequences:
                sent.append(
                    (agent, await agent.send("reasoning/thought", {"message": "…"}, context=start["id"]))
                )
                below = f"{start['id']}/aside"
                sent.append((agent, await agent.send("chat", {"text": "?"}, context=below)))
        agent, start = sequences.pop(0)
        end = ends[len(sequences)]
        sent.append((agent, await agent.send(end, {"reason": "superseded"}, context=start["id"])))
        sent.append((agent, await agent.send("chat", {"text": "done"})))
    for agent in agents:
        mine = [envelope for speaker, envelope in sent if speaker is agent]
        await arrive(stage, agent, mine, listener, *(other for other in agents if other is not agent))
