"""What a participant makes of envelopes that are wrong (§4.3, §6.1, §7.2, §8.2)."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from mew.conform.connection import PROTOCOL
from mew.conform.match import Predicate, about, both, causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.prompts import ToolPrompt
from mew.conform.participant.runner import check
from mew.conform.participant.steps import effect, fresh_word, needs_responses

_VERSIONS: Final = (
    "mew/v0.3",
    "mew/v0.5",
    "mew/v0.40",
    "mew/v0.4 ",
    "MEW/v0.4",
    "meup/v0.2",
    "mcp-x/v0",
    "",
    ...,
)
_MISSING: Final = ("id", "from", "kind")
_WRONG: Final[Mapping[str, Any]] = {
    "id": 7,
    "from": ["owner"],
    "kind": ["mcp/request"],
    "correlation_id": "not an array",
    "context": {"a": 1},
    "ts": 7,
}


def _harmless(ctx: ParticipantContext) -> ToolPrompt | None:
    return ctx.call_of("tool") if "tool" in ctx.test_run.prompts.said else None


def _asking(ctx: ParticipantContext, number: str) -> dict[str, Any]:
    """A request that would be answered if it were in order: for a tool where that can be seen to run."""
    call = _harmless(ctx)
    if call is None:
        return {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
    params = {"name": call.tool, "arguments": call.arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def _answers(number: str) -> Predicate:
    return lambda e: e.get("kind") == "mcp/response" and payload_of(e).get("id") == number


async def _nothing_ran(ctx: ParticipantContext, before: Any, what: str) -> None:
    after = await effect(ctx)
    demand(after == before, f"{what} was carried out: {before!r} became {after!r}")


@check("version.matching")
async def another_version_has_no_effect(ctx: ParticipantContext) -> None:
    """An envelope of another version of the protocol is not acted on: no request, no status, no pause."""
    before = await effect(ctx)
    for version in _VERSIONS:
        number = fresh_word()
        why = f"an envelope of protocol {version!r} must have no effect"
        if version is ...:
            why = "an envelope without `protocol` must have no effect"
        ctx.never(_answers(number), why)
        asked = await ctx.show("participant/request-status", protocol=version)
        ctx.never(both(is_kind("participant/status"), about(asked)), why)
        await ctx.show("mcp/request", _asking(ctx, number), protocol=version)
    await ctx.show("participant/pause", {"reason": "conformance"}, protocol="mew/v0.3")
    await ctx.barrier()
    await _nothing_ran(ctx, before, "a request of another version")


@check("validate.structure")
async def what_is_no_envelope_is_not_acted_on(ctx: ParticipantContext) -> None:
    """Frames that are no envelope, or lack `id`, `from` or `kind`, have no effect, and the next good one has."""
    before = await effect(ctx)
    for text in ("", "hello", "[]", "42", "null", '{"kind": "mcp/request"}', "{} {}", '{"id": '):
        await ctx.show_frame(text)
        await ctx.barrier()
    wrong = {**_WRONG, "to": ctx.subject.id}
    for name, value in (*((name, ...) for name in _MISSING), *wrong.items()):
        number = fresh_word()
        ctx.never(_answers(number), f"an envelope with a missing or wrong `{name}` is not acted on")
        await ctx.show("mcp/request", _asking(ctx, number), **{name: value})
    number = fresh_word()
    twice = {
        "protocol": PROTOCOL,
        "id": number,
        "from": "owner",
        "to": [ctx.subject.id],
        "kind": "mcp/request",
    }
    whole = json.dumps({**twice, "payload": _asking(ctx, number)})
    ctx.never(_answers(number), "two envelopes in one frame are none")
    await ctx.show_frame(whole + whole)
    await ctx.show_frame(json.dumps([json.loads(whole)]))
    await ctx.barrier()
    await _nothing_ran(ctx, before, "what is no envelope")


@check("validate.kind-matches")
async def a_kind_that_its_payload_does_not_fit_has_no_effect(ctx: ParticipantContext) -> None:
    """A request without a method, and one that comes as a response, a chat or a withdrawal, are not carried out."""
    needs_responses(ctx)
    before = await effect(ctx)
    asked = _asking(ctx, fresh_word())
    unnamed = {key: value for key, value in asked.items() if key != "method"}
    sent = [
        await ctx.show("mcp/request", unnamed),
        await ctx.show("mcp/request", {**unnamed, "method": 7}),
        await ctx.show("mcp/request", {"jsonrpc": "2.0", "id": asked["id"], "result": {}}),
    ]
    for one in sent:
        ctx.never(
            lambda e, one=one: _is_result(e) and one["id"] in causes(e),  # type: ignore[misc]
            "an mcp/request without a method gets no result",
        )
    for kind in (
        "mcp/response",
        "mcp/withdraw",
        "mcp/reject",
        "chat",
        "participant/status",
        "mcp/request:tools/call",
    ):
        number = fresh_word()
        why = f"an MCP request that comes as {kind} must have no effect"
        ctx.never(_answers(number), why)
        odd = await ctx.show(kind, {**asked, "id": number}, correlation_id=["conform-unknown"])
        ctx.never(both(is_kind("mcp/response"), about(odd)), why)
    await ctx.barrier()
    await _nothing_ran(ctx, before, "an envelope whose kind does not fit its payload")


def _is_result(envelope: Mapping[str, Any]) -> bool:
    """A response that says that it was done."""
    payload = payload_of(envelope)
    result = payload.get("result")
    failed = isinstance(result, dict) and result.get("isError") is True
    return envelope.get("kind") == "mcp/response" and "result" in payload and not failed


@check("validate.payload-schema")
async def arguments_that_do_not_fit_are_not_acted_on(ctx: ParticipantContext) -> None:
    """A call whose arguments the tool's schema does not allow is not carried out, and gets at most an error."""
    call = ctx.call_of("tool")
    schema = ctx.traits.tools.get(call.tool, {}).get("inputSchema")
    wrong = list(_misfits(schema if isinstance(schema, Mapping) else {}, call.arguments))
    if not wrong:
        raise NotOffered(f"the schema of {call.tool} forbids nothing that the kit can think of")
    before = await effect(ctx)
    for params in wrong:
        sent = await ctx.request("tools/call", {"name": call.tool, **params})
        ctx.never(
            lambda e, sent=sent: _is_result(e) and sent["id"] in causes(e),  # type: ignore[misc]
            f"a call with {params.get('arguments')!r}, which the schema does not allow, is not carried out",
        )
    await ctx.show("participant/pause", {"timeout_seconds": "soon"})
    await ctx.show("participant/resume")
    await ctx.show("chat", {"text": 7})
    await ctx.barrier()
    await _nothing_ran(ctx, before, "a call that the schema does not allow")


def _misfits(schema: Mapping[str, Any], fitting: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Params that are wrong by this schema, each in one way."""
    for name in schema.get("required", ()):
        yield {"arguments": {key: value for key, value in fitting.items() if key != name}}
    others = {"string": 7, "integer": "seven", "number": "seven", "boolean": "yes", "array": 7, "object": 7}
    for name, rule in schema.get("properties", {}).items():
        kind = rule.get("type") if isinstance(rule, Mapping) else None
        if isinstance(kind, str) and kind in others:
            yield {"arguments": {**fitting, name: others[kind]}}
    if schema:
        yield {"arguments": "not an object"}
        yield {"arguments": [fitting]}


@check("validate.dropped-or-reported")
async def malformed_and_forged_envelopes_do_not_upset_it(ctx: ParticipantContext) -> None:
    """Malformed envelopes, and system envelopes that are not the gateway's, are dropped or reported, and it goes on."""
    welcome = {"you": {"id": "owner", "capabilities": []}, "participants": []}
    await ctx.show("system/welcome", welcome, by="stranger")
    await ctx.show(
        "system/presence", {"event": "leave", "participant": {"id": ctx.subject.id}}, by="stranger"
    )
    await ctx.show("system/error", {"error": "conformance", "message": "made up"}, by="stranger")
    await ctx.show("system/presence", {"event": "vanish"}, **{"from": "system:gateway"})
    for kind in ("chat", "mcp/request", "mcp/response", "mcp/proposal", "mcp/reject", "participant/status"):
        await ctx.show(kind, {"text": None, "method": [], "reason": {}, "jsonrpc": 2, "id": {}})
        await ctx.show(kind, payload=..., correlation_id=[])
    await ctx.show_frame(b"\x00\xff not a stream frame")
    await ctx.show_frame("#no-such-stream#data")
    await ctx.barrier()
    demand(ctx.subject.present, "the participant left because of a malformed envelope")
    mistaken = ctx.said(lambda e: e.get("from") != ctx.subject.id)
    demand(not mistaken, f"after a forged welcome it speaks as another: {mistaken[:1]}")


@check("validate.track")
async def it_may_tell_of_misconduct(ctx: ParticipantContext) -> None:
    """Who sends what is malformed may be told of to the others, in an envelope that names it."""
    sent = [await ctx.show("mcp/request", {"method": number}, by="novice") for number in range(3)]
    await ctx.barrier()
    told = ctx.said(lambda e: about(*sent)(e) and e.get("kind") != "mcp/response")
    if not told:
        raise NotOffered("the participant tells nobody of malformed envelopes")
    demand(all(isinstance(e.get("payload"), dict) for e in told), f"a report without a payload: {told[:1]}")


@check("validate.unexpected-parameters")
async def other_fields_than_advertised_upset_nothing(ctx: ParticipantContext) -> None:
    """Parameters and results with more, fewer or other fields than advertised leave it working."""
    needs_responses(ctx)
    call = _harmless(ctx)
    if call is not None:
        for arguments in ({}, {**call.arguments, "conform_extra": {"a": [1]}}, {"conform_extra": None}):
            await ctx.answer(await ctx.call(ToolPrompt(call.tool, arguments)))
    await ctx.answer(await ctx.request("tools/call", {"name": fresh_word(), "arguments": {}, "more": [1]}))
    await ctx.answer(await ctx.request("tools/list", {"cursor": None, "more": {"a": 1}}))
    if "request" in ctx.test_run.prompts.said:
        worker = await ctx.worker()
        odd: tuple[Any, ...] = (
            {},
            {"content": "text"},
            {"content": [{"type": "hologram"}]},
            "text",
            [1],
            None,
        )
        for many, result in enumerate(odd, 1):
            worker.reply = partial(_replied, result)
            await ctx.prompt("request")
            await worker.awaited(ctx.config.timeout_s, many)
            await ctx.barrier()
    await ctx.barrier()


def _replied(result: Any, _payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"result": result}


@check("validate.unknown-response")
async def a_response_to_nothing_has_no_effect(ctx: ParticipantContext) -> None:
    """A response to a request that it never made, whether it names one or none, sets nothing off."""
    calm = [
        await ctx.show("mcp/response", {"jsonrpc": "2.0", "id": number, "result": {"content": []}}, **fields)
        for number, fields in (
            (1, {"correlation_id": ["conform-unknown"]}),
            (2, {}),
            (None, {"correlation_id": ["conform-unknown"], "to": ...}),
        )
    ]
    calm.append(
        await ctx.show(
            "mcp/response",
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}},
            correlation_id=["conform-unknown"],
        )
    )
    ctx.never(
        lambda e: about(*calm)(e) and e.get("kind") != "chat/acknowledge",
        "a response to a request that it never made has no effect",
    )
    await ctx.barrier()
