"""MCP requests and their answers, `context` and `correlation_id` (§3, §3.1, §3.2.1, §3.5.6, §8.2)."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, to_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantStage
from mew.conform.participant.runner import check
from mew.conform.participant.steps import (
    effect,
    fresh_word,
    lull,
    needs_mcp,
    needs_responses,
    pause,
    resume,
    time_of_answer,
)
from mew.conform.participant.worker import INITIALIZE

_LISTS = {"tools": "tools/list", "resources": "resources/list", "prompts": "prompts/list"}


@check("mcp.server")
async def it_answers_as_an_mcp_server_does(stage: ParticipantStage) -> None:
    """`initialize` is answered with version, capabilities and name, and every list it has capabilities for is there."""
    needs_responses(stage)
    listed = {what: await _listed(stage, what) for what in _LISTS}
    if not any(listed.values()):
        raise NotOffered("the participant offers neither tools nor resources nor prompts")
    result = await stage.result(await stage.request("initialize", INITIALIZE))
    demand(isinstance(result, dict), f"expected an object as the result of initialize, got {result!r}")
    demand(isinstance(result.get("protocolVersion"), str), f"initialize: no protocolVersion in {result}")
    server = result.get("serverInfo")
    demand(
        isinstance(server, dict) and isinstance(server.get("name"), str),
        f"initialize: no serverInfo in {result}",
    )
    offered = result.get("capabilities")
    demand(isinstance(offered, dict), f"initialize: no capabilities in {result}")
    for what, items in listed.items():
        demand(
            items is None or not items or what in offered,
            f"{what} are listed, capabilities has only {list(offered)}",
        )
        demand(
            what not in offered or items is not None, f"capabilities has {what}, {what}/list gives no list"
        )
    for tool in listed["tools"] or ():
        schema = tool.get("inputSchema")
        whole = (
            isinstance(tool.get("name"), str) and isinstance(schema, dict) and schema.get("type") == "object"
        )
        demand(whole, f"a tool needs a name and an inputSchema of type object: {tool}")


async def _listed(stage: ParticipantStage, what: str) -> list[Any] | None:
    """None: no such list."""
    result = payload_of(await stage.answer(await stage.request(_LISTS[what]))).get("result")
    items = result.get(what) if isinstance(result, dict) else None
    return items if isinstance(items, list) and all(isinstance(item, dict) for item in items) else None


@check("mcp.request-handled")
async def each_request_gets_one_answer(stage: ParticipantStage) -> None:
    """A request that names it gets exactly one response, an error where it knows no such method; others get none."""
    needs_mcp(stage)
    worker = await stage.actor("worker")
    asked = [
        await stage.request("tools/list"),
        await stage.request(f"conform/{fresh_word()}"),
        await stage.ask("mcp/request", {"jsonrpc": "2.0", "id": "a string", "method": "ping"}),
        await stage.request("ping", to=[worker.id, stage.subject.id]),
    ]
    for sent in asked:
        await stage.answer(sent)
    strange = payload_of(await stage.answer(asked[1]))
    demand("error" in strange, f"expected an error for a method that nobody has, got {strange}")
    notes = [
        await stage.ask("mcp/request", {"jsonrpc": "2.0", "method": method})
        for method in ("notifications/initialized", f"notifications/{fresh_word()}")
    ]
    for sent in notes:
        why = f"a notification, without an `id`, gets no response: {sent['payload']['method']}"
        stage.never(both(is_kind("mcp/response"), about(sent)), why)
    for method in ("tools/list", f"conform/{fresh_word()}"):
        elsewhere = await stage.request(method, to=[worker.id])
        why = "a request that names somebody else in `to` is not for the participant to answer"
        stage.never(both(is_kind("mcp/response"), about(elsewhere)), why)
    await stage.barrier()
    for sent in asked:
        answers = stage.said(both(is_kind("mcp/response"), about(sent)))
        demand(len(answers) == 1, f"expected one response to {sent['id']}, got {len(answers)}: {answers}")
        again = both(is_kind("mcp/response"), about(sent))
        stage.never(again, "a request gets only one response", since=stage.subject.place)


@check("response.correlates")
async def an_answer_names_its_request(stage: ParticipantStage) -> None:
    """Every response, a result or an error, names the envelope of its request in `correlation_id`."""
    needs_mcp(stage)
    for method in ("tools/list", f"conform/{fresh_word()}"):
        sent = await stage.request(method)
        answer = await stage.hear(
            partial(_is_answer, sent),
            f"an mcp/response with the JSON-RPC id of {method}",
        )
        expected = f"expected `correlation_id` to name the request {sent['id']}"
        demand(sent["id"] in causes(answer), f"{expected}, got {answer.get('correlation_id')}")
    shown: set[Any] = set()
    for frame in stage.subject.frames:
        envelope = frame.envelope or {}
        if frame.way == "shown" and envelope.get("kind") == "mcp/request":
            shown.add(envelope.get("id"))
        elif frame.way == "sent" and envelope.get("kind") == "mcp/response":
            demand(
                any(one in shown for one in causes(envelope)),
                f"this response names no request that it was shown in `correlation_id`: {frame.data!r}",
            )


def _is_answer(sent: Mapping[str, Any], envelope: Mapping[str, Any]) -> bool:
    """By its JSON-RPC id, or by what it names."""
    same = payload_of(envelope).get("id") == sent["payload"]["id"]
    return envelope.get("kind") == "mcp/response" and (same or sent["id"] in causes(envelope))


@check("response.addressed")
async def an_answer_goes_to_who_asked(stage: ParticipantStage) -> None:
    """`to` of a response is who sent the request."""
    needs_responses(stage)
    for who in ("owner", "reviewer"):
        for method in ("tools/list", f"conform/{fresh_word()}"):
            answer = await stage.answer(await stage.request(method, by=who))
            demand(
                to_of(answer) == [who], f"expected the response to be to {who}, it is to {answer.get('to')}"
            )


@check("fulfilment.response-to-fulfiller", "fulfilment.response-correlates")
async def the_answer_to_a_fulfilment_is_the_fulfillers(stage: ParticipantStage) -> None:
    """The response to a request that fulfils a proposal names that request, not the proposal, and is to its sender."""
    call = stage.call_of("tool")
    params = {"name": call.tool, "arguments": call.arguments}
    proposed = await stage.ask("mcp/proposal", {"method": "tools/call", "params": params}, by="novice")
    sent = await stage.call(call, by="reviewer", correlation_id=[proposed["id"]])
    answer = await stage.answer(sent)
    demand(
        to_of(answer) == ["reviewer"],
        f"expected the response to be to the fulfiller alone, not {to_of(answer)}",
    )
    demand(proposed["id"] not in causes(answer), "the response names the proposal, not only the request")


@check("proposal.not-executed")
async def a_proposal_runs_nothing(stage: ParticipantStage) -> None:
    """A proposal to call one of its tools is neither carried out nor answered with a response."""
    call = stage.call_of("tool")
    before = await effect(stage)
    params = {"name": call.tool, "arguments": call.arguments}
    proposals = [
        await stage.ask("mcp/proposal", {"method": "tools/call", "params": params}, by="novice"),
        await stage.ask(
            "mcp/proposal", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, by="owner"
        ),
    ]
    for sent in proposals:
        stage.never(both(is_kind("mcp/response"), about(sent)), "a proposal gets no mcp/response")
    await stage.barrier()
    fulfilled = stage.said(both(is_kind("mcp/request"), about(*proposals)))
    if before is not None and not fulfilled:
        after = await effect(stage)
        demand(after == before, f"the tool was carried out for a mere proposal: {before!r} became {after!r}")


_CONTEXTS: Final = ("conform", "conform/child", "conform/child/grandchild", "a b/ü/0")


@check("context.addressed-is-handled")
async def what_is_addressed_is_handled_in_any_context(stage: ParticipantStage) -> None:
    """A request, a status question and a pause have the same effect with a context as without."""
    tried = False
    for context in _CONTEXTS:
        if stage.traits.answers_mcp:
            await stage.answer(await stage.request("ping", context=context))
            tried = True
        if stage.traits.answers_status:
            await stage.hear_status(await stage.ask("participant/request-status", context=context))
            tried = True
    if not tried:
        raise NotOffered("the participant answers neither MCP requests nor participant/request-status")
    if stage.traits.answers_mcp:
        await _pause_in_context(stage)


async def _pause_in_context(stage: ParticipantStage) -> None:
    took_s = await time_of_answer(stage)
    before = await pause(stage)
    sent = await stage.request("ping")
    await lull(stage, took_s)
    obeys = not stage.said(both(is_kind("mcp/response"), about(sent)))
    await resume(stage, before)
    if not obeys:
        return  # that is pause.obeyed
    await stage.answer(sent)
    paused = await pause(stage, context="conform/child")
    sent = await stage.request("ping")
    await lull(stage, took_s)
    early = stage.said(both(is_kind("mcp/response"), about(sent)))
    demand(not early, "a pause with a `context` does not pause it, one without does")
    await resume(stage, paused, context="conform/other")
    await stage.answer(sent, "after a resume with a `context`, an mcp/response")


@check("context.request-not-ignored")
async def a_request_in_a_context_is_answered(stage: ParticipantStage) -> None:
    """A request with a context of any depth is answered, also in that of somebody's reasoning."""
    needs_responses(stage)
    novice = await stage.actor("novice")
    start = await novice.send("reasoning/start", {"message": "thinking"})
    contexts = (*_CONTEXTS, start["id"], f"{start['id']}/child", "/".join(["deep"] * 20))
    for context in contexts:
        await stage.answer(await stage.request("tools/list", context=context))
        await stage.answer(await stage.request(f"conform/{fresh_word()}", context=context, by="reviewer"))
    await novice.send("reasoning/conclusion", {"message": "thought"}, context=start["id"])


@check("context.optional")
async def a_context_may_be_there_or_not(stage: ParticipantStage) -> None:
    """What has a context and what has none are both taken; its own contexts are strings."""
    needs_responses(stage)
    for fields in ({}, {"context": "conform"}):
        await stage.answer(await stage.request("ping", **fields))
    wrong = stage.said(lambda e: "context" in e and not isinstance(e["context"], str), since=0)
    demand(not wrong, f"`context` is a string where there is one: {wrong[:1]}")


@check("context.path")
async def contexts_are_paths(stage: ParticipantStage) -> None:
    """A context that it sends is a path without empty parts, and the context of a request comes back unchanged."""
    for context in _CONTEXTS if stage.traits.answers_mcp else ():
        answer = await stage.answer(await stage.request("ping", context=context))
        kept = answer.get("context")
        fits = kept is None or kept == context or str(kept).startswith(f"{context}/")
        demand(fits, f"asked in the context {context!r}, it answers in {kept!r}")
    contexts = {e["context"] for e in stage.said(lambda e: isinstance(e.get("context"), str), since=0)}
    if not contexts:
        raise NotOffered("the participant never sent a `context`")
    wrong = [context for context in contexts if not all(context.split("/"))]
    demand(not wrong, f"a context is written parent/child, not {wrong[:1]}")


@check("correlation.any-envelope")
async def what_names_unknown_envelopes_is_taken(stage: ParticipantStage) -> None:
    """A request or a question that names envelopes in `correlation_id` is taken like any other."""
    tried = False
    for named in ([f"conform-{fresh_word()}"], [], ["a", "b", "a"]):
        if stage.traits.answers_mcp:
            await stage.answer(await stage.request("ping", correlation_id=named))
            tried = True
        if stage.traits.answers_status:
            await stage.hear_status(await stage.ask("participant/request-status", correlation_id=named))
            tried = True
    if not tried:
        raise NotOffered("the participant answers neither MCP requests nor participant/request-status")


@check("correlation.several")
async def it_finds_its_request_among_several(stage: ParticipantStage) -> None:
    """A response that names several envelopes is taken by who waits for one of them."""
    await expect_answer(stage, lambda request: [f"conform-{fresh_word()}", request, "conform-other"])


async def expect_answer(stage: ParticipantStage, named: Any) -> None:
    """Have it call a tool of the worker, whose response names these; what that says has to be told."""
    worker = await stage.worker()
    worker.note, worker.named = fresh_word(), named
    word = worker.note
    since = stage.subject.place
    await stage.prompt("request")
    told = await stage.heard_if(lambda e: word in str(e.get("payload")), since=since)
    if told is None and not worker.called:
        raise NotOffered("the prompt 'request' did not make it call read_note")
    demand(told is not None, f"the response to its request, which said {word!r}, was not taken")
