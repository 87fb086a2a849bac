"""MCP requests and their answers, `context` and `correlation_id` (§3, §3.1, §3.2.1, §3.5.6, §8.2)."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, to_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
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
async def it_answers_as_an_mcp_server_does(ctx: ParticipantContext) -> None:
    """`initialize` is answered with version, capabilities and name, and every list it has capabilities for is there."""
    needs_responses(ctx)
    listed = {what: await _listed(ctx, what) for what in _LISTS}
    if not any(listed.values()):
        raise NotOffered("the participant offers neither tools nor resources nor prompts")
    result = await ctx.result(await ctx.request("initialize", INITIALIZE))
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


async def _listed(ctx: ParticipantContext, what: str) -> list[Any] | None:
    """None: no such list."""
    result = payload_of(await ctx.answer(await ctx.request(_LISTS[what]))).get("result")
    items = result.get(what) if isinstance(result, dict) else None
    return items if isinstance(items, list) and all(isinstance(item, dict) for item in items) else None


@check("mcp.request-handled")
async def each_request_gets_one_answer(ctx: ParticipantContext) -> None:
    """A request that names it gets exactly one response, an error where it knows no such method; others get none."""
    needs_mcp(ctx)
    worker = await ctx.client("worker")
    asked = [
        await ctx.request("tools/list"),
        await ctx.request(f"conform/{fresh_word()}"),
        await ctx.ask("mcp/request", {"jsonrpc": "2.0", "id": "a string", "method": "ping"}),
        await ctx.request("ping", to=[worker.id, ctx.subject.id]),
    ]
    for sent in asked:
        await ctx.answer(sent)
    strange = payload_of(await ctx.answer(asked[1]))
    demand("error" in strange, f"expected an error for a method that nobody has, got {strange}")
    notes = [
        await ctx.ask("mcp/request", {"jsonrpc": "2.0", "method": method})
        for method in ("notifications/initialized", f"notifications/{fresh_word()}")
    ]
    for sent in notes:
        why = f"a notification, without an `id`, gets no response: {sent['payload']['method']}"
        ctx.never(both(is_kind("mcp/response"), about(sent)), why)
    for method in ("tools/list", f"conform/{fresh_word()}"):
        second_space = await ctx.request(method, to=[worker.id])
        why = "a request that names somebody else in `to` is not for the participant to answer"
        ctx.never(both(is_kind("mcp/response"), about(second_space)), why)
    await ctx.barrier()
    for sent in asked:
        answers = ctx.said(both(is_kind("mcp/response"), about(sent)))
        demand(len(answers) == 1, f"expected one response to {sent['id']}, got {len(answers)}: {answers}")
        again = both(is_kind("mcp/response"), about(sent))
        ctx.never(again, "a request gets only one response", since=ctx.subject.place)


@check("response.correlates")
async def an_answer_names_its_request(ctx: ParticipantContext) -> None:
    """Every response, a result or an error, names the envelope of its request in `correlation_id`."""
    needs_mcp(ctx)
    for method in ("tools/list", f"conform/{fresh_word()}"):
        sent = await ctx.request(method)
        answer = await ctx.expect(
            partial(_is_answer, sent),
            f"an mcp/response with the JSON-RPC id of {method}",
        )
        expected = f"expected `correlation_id` to name the request {sent['id']}"
        demand(sent["id"] in causes(answer), f"{expected}, got {answer.get('correlation_id')}")
    shown: set[Any] = set()
    for frame in ctx.subject.frames:
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
async def an_answer_goes_to_who_asked(ctx: ParticipantContext) -> None:
    """`to` of a response is who sent the request."""
    needs_responses(ctx)
    for who in ("owner", "reviewer"):
        for method in ("tools/list", f"conform/{fresh_word()}"):
            answer = await ctx.answer(await ctx.request(method, by=who))
            demand(
                to_of(answer) == [who], f"expected the response to be to {who}, it is to {answer.get('to')}"
            )


@check("fulfilment.response-to-fulfiller", "fulfilment.response-correlates")
async def the_answer_to_a_fulfilment_is_the_fulfillers(ctx: ParticipantContext) -> None:
    """The response to a request that fulfils a proposal names that request, not the proposal, and is to its sender."""
    call = ctx.call_of("tool")
    params = {"name": call.tool, "arguments": call.arguments}
    proposed = await ctx.ask("mcp/proposal", {"method": "tools/call", "params": params}, by="novice")
    sent = await ctx.call(call, by="reviewer", correlation_id=[proposed["id"]])
    answer = await ctx.answer(sent)
    demand(
        to_of(answer) == ["reviewer"],
        f"expected the response to be to the fulfiller alone, not {to_of(answer)}",
    )
    demand(proposed["id"] not in causes(answer), "the response names the proposal, not only the request")


@check("proposal.not-executed")
async def a_proposal_runs_nothing(ctx: ParticipantContext) -> None:
    """A proposal to call one of its tools is neither carried out nor answered with a response."""
    call = ctx.call_of("tool")
    before = await effect(ctx)
    params = {"name": call.tool, "arguments": call.arguments}
    proposals = [
        await ctx.ask("mcp/proposal", {"method": "tools/call", "params": params}, by="novice"),
        await ctx.ask(
            "mcp/proposal", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, by="owner"
        ),
    ]
    for sent in proposals:
        ctx.never(both(is_kind("mcp/response"), about(sent)), "a proposal gets no mcp/response")
    await ctx.barrier()
    fulfilled = ctx.said(both(is_kind("mcp/request"), about(*proposals)))
    if before is not None and not fulfilled:
        after = await effect(ctx)
        demand(after == before, f"the tool was carried out for a mere proposal: {before!r} became {after!r}")


_CONTEXTS: Final = ("conform", "conform/child", "conform/child/grandchild", "a b/ü/0")


@check("context.addressed-is-handled")
async def what_is_addressed_is_handled_in_any_context(ctx: ParticipantContext) -> None:
    """A request, a status question and a pause have the same effect with a context as without."""
    tried = False
    for context in _CONTEXTS:
        if ctx.traits.answers_mcp:
            await ctx.answer(await ctx.request("ping", context=context))
            tried = True
        if ctx.traits.answers_status:
            await ctx.expect_status(await ctx.ask("participant/request-status", context=context))
            tried = True
    if not tried:
        raise NotOffered("the participant answers neither MCP requests nor participant/request-status")
    if ctx.traits.answers_mcp:
        await _pause_in_context(ctx)


async def _pause_in_context(ctx: ParticipantContext) -> None:
    took_s = await time_of_answer(ctx)
    before = await pause(ctx)
    sent = await ctx.request("ping")
    await lull(ctx, took_s)
    obeys = not ctx.said(both(is_kind("mcp/response"), about(sent)))
    await resume(ctx, before)
    if not obeys:
        return  # that is pause.obeyed
    await ctx.answer(sent)
    paused = await pause(ctx, context="conform/child")
    sent = await ctx.request("ping")
    await lull(ctx, took_s)
    early = ctx.said(both(is_kind("mcp/response"), about(sent)))
    demand(not early, "a pause with a `context` does not pause it, one without does")
    await resume(ctx, paused, context="conform/other")
    await ctx.answer(sent, "after a resume with a `context`, an mcp/response")


@check("context.request-not-ignored")
async def a_request_in_a_context_is_answered(ctx: ParticipantContext) -> None:
    """A request with a context of any depth is answered, also in that of somebody's reasoning."""
    needs_responses(ctx)
    novice = await ctx.client("novice")
    start = await novice.send("reasoning/start", {"message": "thinking"})
    contexts = (*_CONTEXTS, start["id"], f"{start['id']}/child", "/".join(["deep"] * 20))
    for context in contexts:
        await ctx.answer(await ctx.request("tools/list", context=context))
        await ctx.answer(await ctx.request(f"conform/{fresh_word()}", context=context, by="reviewer"))
    await novice.send("reasoning/conclusion", {"message": "thought"}, context=start["id"])


@check("context.optional")
async def a_context_may_be_there_or_not(ctx: ParticipantContext) -> None:
    """What has a context and what has none are both taken; its own contexts are strings."""
    needs_responses(ctx)
    for fields in ({}, {"context": "conform"}):
        await ctx.answer(await ctx.request("ping", **fields))
    wrong = ctx.said(lambda e: "context" in e and not isinstance(e["context"], str), since=0)
    demand(not wrong, f"`context` is a string where there is one: {wrong[:1]}")


@check("context.path")
async def contexts_are_paths(ctx: ParticipantContext) -> None:
    """A context that it sends is a path without empty parts, and the context of a request comes back unchanged."""
    for context in _CONTEXTS if ctx.traits.answers_mcp else ():
        answer = await ctx.answer(await ctx.request("ping", context=context))
        kept = answer.get("context")
        fits = kept is None or kept == context or str(kept).startswith(f"{context}/")
        demand(fits, f"asked in the context {context!r}, it answers in {kept!r}")
    contexts = {e["context"] for e in ctx.said(lambda e: isinstance(e.get("context"), str), since=0)}
    if not contexts:
        raise NotOffered("the participant never sent a `context`")
    wrong = [context for context in contexts if not all(context.split("/"))]
    demand(not wrong, f"a context is written parent/child, not {wrong[:1]}")


@check("correlation.any-envelope")
async def what_names_unknown_envelopes_is_taken(ctx: ParticipantContext) -> None:
    """A request or a question that names envelopes in `correlation_id` is taken like any other."""
    tried = False
    for named in ([f"conform-{fresh_word()}"], [], ["a", "b", "a"]):
        if ctx.traits.answers_mcp:
            await ctx.answer(await ctx.request("ping", correlation_id=named))
            tried = True
        if ctx.traits.answers_status:
            await ctx.expect_status(await ctx.ask("participant/request-status", correlation_id=named))
            tried = True
    if not tried:
        raise NotOffered("the participant answers neither MCP requests nor participant/request-status")


@check("correlation.several")
async def it_finds_its_request_among_several(ctx: ParticipantContext) -> None:
    """A response that names several envelopes is taken by who waits for one of them."""
    await expect_answer(ctx, lambda request: [f"conform-{fresh_word()}", request, "conform-other"])


async def expect_answer(ctx: ParticipantContext, named: Any) -> None:
    """Have it call a tool of the worker, whose response names these; what that says has to be told."""
    worker = await ctx.worker()
    worker.note, worker.named = fresh_word(), named
    word = worker.note
    since = ctx.subject.place
    await ctx.prompt("request")
    told = await ctx.expect_optional(lambda e: word in str(e.get("payload")), since=since)
    if told is None and not worker.called:
        raise NotOffered("the prompt 'request' did not make it call read_note")
    demand(told is not None, f"the response to its request, which said {word!r}, was not taken")
