"""What is an envelope and what is none, and the kinds there are (§3, §6.1, §8.1)."""

import json
from functools import partial
from typing import Any, Final

from mew.conform.connection import PROTOCOL, ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import unique_word
from mew.conform.expectations import (
    expect_accepted,
    expect_delivered,
    expect_shown,
    expect_unheard,
    unchanged,
)
from mew.conform.fixtures import dismiss, gateway_says, invitation, somebody, somebody_new
from mew.conform.match import answers, is_kind, moment, refuses
from mew.conform.outcome import Violation, demand
from mew.conform.runner import check

_WITHOUT_FIELDS: Final = (
    "an object without the fields of an envelope",
    "an empty object",
    "an envelope inside another object",
)
_ENDLESS: Final = "brackets without end"
_NEAR_MISSES: Final = (
    "",
    "mew",
    "v0.4",
    "mew/0.4",
    "mew/v0.40",
    "mew/v0.4.1",
    "MEW/V0.4",
    " mew/v0.4",
    "mew/v0.4\n",
    0.4,
    None,
    ["mew/v0.4"],
    ...,
)
_OTHER_VERSIONS: Final = ("mew/v0.3", "mew/v0.5", "mew/v1.0", "meup/v0.2", "mcp-x/v0", ...)
_TIMES: Final = (
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456Z",
    "2026-01-01T05:30:00.5+05:30",
    "2024-02-29T23:59:59-08:00",
)
_NO_TIMES: Final = (
    "yesterday",
    "",
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-01-01T25:00:00Z",
    "Thu, 01 Jan 2026 00:00:00 GMT",
    1767225600,
    None,
    "2026-01-01T00:00:00+0530",
)


def _envelope(client: ScriptedClient, mark: str, **fields: Any) -> dict[str, Any]:
    """A chat with this word in it as its id and its text, well-formed but for the fields given."""
    envelope = {
        "protocol": PROTOCOL,
        "id": mark,
        "from": client.id,
        "kind": "chat",
        "payload": {"text": mark},
    }
    return {key: value for key, value in {**envelope, **fields}.items() if value is not ...}


def _no_envelopes(client: ScriptedClient, mark: str) -> dict[str, str]:
    """Texts that are not one JSON object, by what they are instead; all but the smallest hold an envelope."""
    good = json.dumps(_envelope(client, mark))
    other = json.dumps(_envelope(client, f"{mark}-2"))
    number = json.dumps(_envelope(client, mark, payload={"text": mark, "number": 0}))
    return {
        "no JSON": f"hello {mark}",
        "JSON that is cut short": good[:-1],
        "an envelope with something after it": f"{good} {mark}",
        "an envelope with something before it": f"{mark} {good}",
        "two envelopes": good + other,
        "two envelopes on two lines": f"{good}\n{other}",
        "an array": f"[{good}]",
        "an array of two envelopes": f"[{good}, {other}]",
        "a string that holds an envelope": json.dumps(good),
        "a string": json.dumps(mark),
        "a number": "4",
        "null": "null",
        "an object with a comma too many": good[:-1] + ",}",
        "an object in single quotes": good.replace('"', "'"),
        "an object with a comment": f"/* {mark} */ {good}",
        "an object with NaN": number.replace('"number": 0', '"number": NaN'),
        "an object with Infinity": number.replace('"number": 0', '"number": Infinity'),
        "an object without the fields of an envelope": json.dumps({"text": mark}),
        "an empty object": "{}",
        _ENDLESS: f'{{"id": "{mark}", "payload": ' + "[" * 5_000,
        "an envelope inside another object": json.dumps({"type": "message", "envelope": json.loads(good)}),
    }


@check("envelope.one-json-object")
async def what_is_no_envelope_reaches_nobody(ctx: CheckContext) -> None:
    """A text frame that is not one JSON object with the fields of an envelope reaches nobody."""
    owner, peer = await ctx.clients("owner", "peer")
    for what in _no_envelopes(owner, ""):
        mark = unique_word()
        await owner.send_text(_no_envelopes(owner, mark)[what])
        await expect_unheard(ctx, owner, mark, what, peer)
    mark = unique_word()
    await owner.send_text(json.dumps(_envelope(owner, mark)).encode().replace(b"chat", b"ch\xffat"))
    await expect_unheard(ctx, owner, mark, "what is not UTF-8", peer)


@check("envelope.one-json-object")
async def the_gateway_sends_whole_envelopes(ctx: CheckContext) -> None:
    """Each text frame of the gateway is one JSON object with the fields of an envelope."""
    said = await gateway_says(ctx)
    for client in ctx.all_clients:
        for frame in client.frames:
            demand(
                frame[:1] in ("#", b"#"), f"{client.name} received what is neither envelope nor stream frame"
            )
    for envelope in said:
        for name in ("protocol", "id", "from", "kind"):
            value = envelope.get(name)
            demand(
                value and isinstance(value, str),
                f"{name!r} of an envelope of the gateway is {value!r}: {envelope}",
            )


@check("envelope.malformed-answered")
async def what_is_no_envelope_is_answered(ctx: CheckContext) -> None:
    """Who sends what is no envelope gets a `system/error`, every time."""
    owner, peer = await ctx.clients("owner", "peer")
    completed = () if ... in ctx.unfilled_values("id", [...]) else _WITHOUT_FIELDS
    for what in _no_envelopes(owner, ""):
        if what in completed:
            continue  # the error names the id that was filled in
        mark = unique_word()
        await owner.send_text(_no_envelopes(owner, mark)[what])
        await _told(ctx, owner, mark, what, peer, may_close=what == _ENDLESS)


@check("envelope.malformed-answered")
async def a_broken_rule_is_answered(ctx: CheckContext) -> None:
    """A field missing or of the wrong type, a wrong version, a foreign sender and a reserved kind are each answered."""
    owner, peer = await ctx.clients("owner", "peer")
    wrong: dict[str, tuple[Any, ...]] = {
        "protocol": (..., "mew/v0.3", 4),
        "id": (..., "", 7, None),
        "from": (..., peer.id, "nobody-here", "system:gateway", 7),
        "kind": (..., "", 7, "system/welcome", "system/anything"),
        "to": (peer.id, [7], {}),
        "correlation_id": ("an-id", [7], {}),
        "context": (7, ["a"]),
        "payload": ([], "text", 7, None),
        "ts": ("yesterday", 7),
    }
    for name, values in wrong.items():
        for value in ctx.unfilled_values(name, values):
            mark = unique_word()
            envelope = {"payload": {"text": mark}, name: value}
            await owner.send_text(json.dumps(_envelope(owner, mark, **envelope)))
            names = (str(value),) if name == "id" and value is not ... else ()
            what, may_close = f"an envelope whose {_shown(name, value)}", (name, value) == ("kind", "")
            await _told(ctx, owner, mark, what, peer, names=names, may_close=may_close)


async def _told(
    ctx: CheckContext,
    sender: ScriptedClient,
    mark: str,
    what: str,
    receiver: ScriptedClient,
    *,
    names: tuple[str, ...] = (),
    may_close: bool = False,
) -> None:
    """There is an error about this, by its mark or one of these, or one that names nothing; and it goes nowhere.

    Of some it is as plain an answer that the connection is closed.
    """
    about = [refuses({"id": one}) for one in (mark, *names)]
    expected = f"a system/error about {what} (§8.1), whose `correlation_id` names it, or nothing"
    try:
        await sender.expect(lambda envelope: any(fits(envelope) for fits in about), expected)
    except Violation as error:
        if may_close and sender.is_closed:
            return await expect_unheard(ctx, sender, mark, what, receiver)
        others = [one for one in sender.received[-3:] if one.get("kind") == "system/error"]
        raise Violation(f"{error}; the last that came is {others[-1]}" if others else str(error)) from None
    await expect_unheard(ctx, sender, mark, what, receiver)


@check("envelope.protocol")
async def only_this_version_passes(ctx: CheckContext) -> None:
    """An envelope whose `protocol` is nearly `mew/v0.4`, of another type or missing reaches nobody."""
    await _unheard_each(ctx, "protocol", _NEAR_MISSES)


@check("envelope.protocol")
async def the_gateway_names_this_version(ctx: CheckContext) -> None:
    """`protocol` of what the gateway itself sends is `mew/v0.4`."""
    for envelope in await gateway_says(ctx):
        said = envelope.get("protocol")
        demand(said == PROTOCOL, f"`protocol` of a {envelope.get('kind')} is {said!r}, not {PROTOCOL!r}")


@check("version.matching")
async def another_version_has_no_effect(ctx: CheckContext) -> None:
    """An envelope of another version of the protocol reaches nobody and does nothing."""
    await _unheard_each(ctx, "protocol", _OTHER_VERSIONS)
    owner, peer = await ctx.clients("owner", "peer")
    for version in ctx.unfilled_values("protocol", _OTHER_VERSIONS):
        asked = await owner.send("stream/request", {"direction": "upload"}, to=["gateway"], protocol=version)
        await ctx.round_trip(owner, peer)
        opened = [e for e in owner.matching(is_kind("stream/open")) if answers(e, asked)]
        demand(not opened, f"a stream/request whose {_shown('protocol', version)} opened a stream: {opened}")


@check("envelope.id-unique")
async def an_id_is_a_string_that_is_not_empty(ctx: CheckContext) -> None:
    """An envelope whose `id` is missing, empty or no string reaches nobody."""
    await _unheard_each(ctx, "id", (..., "", 7, 1.5, True, None, ["a"], {"a": "b"}))


@check("envelope.id-unique")
async def the_gateway_gives_each_envelope_an_id_of_its_own(ctx: CheckContext) -> None:
    """No two envelopes that the gateway makes have the same id, nor one of a participant's."""
    by_id: dict[Any, dict[str, Any]] = {}
    said = await gateway_says(ctx)
    for envelope in (*said, *(one for client in ctx.all_clients for one in client.received)):
        one = envelope.get("id")
        demand(one and isinstance(one, str), f"`id` of a {envelope.get('kind')} is {one!r}")
        same = by_id.setdefault(one, envelope)
        demand(same == envelope, f"two envelopes have the id {one!r}: {same} and {envelope}")
        causes = envelope.get("correlation_id") or ()
        demand(one not in causes, f"the gateway gave a {envelope.get('kind')} the id of what caused it")


@check("envelope.ts-rfc3339")
async def a_time_is_one_of_rfc_3339(ctx: CheckContext) -> None:
    """An envelope whose `ts` is no date and time of RFC 3339 reaches nobody; one that is, or is missing, passes."""
    owner, peer = await ctx.clients("owner", "peer")
    for value in ctx.unfilled_values("ts", (*_TIMES, ...)):
        sent = await owner.send("chat", {"text": "hi"}, ts=value)
        (arrived,) = await expect_shown(sent, peer)
        came = arrived.get("ts", ...)
        demand(
            came == value,
            f"{_shown('ts', came)} in what came, and not in what was sent: {_shown('ts', value)}",
        )
    await _unheard_each(ctx, "ts", _NO_TIMES)


@check("envelope.ts-rfc3339")
async def the_gateway_tells_the_time_as_rfc_3339_has_it(ctx: CheckContext) -> None:
    """`ts` of what the gateway itself sends, where there is one, is a date and time of RFC 3339."""
    for envelope in await gateway_says(ctx):
        if "ts" in envelope:
            demand(moment(envelope["ts"]), f"`ts` of a {envelope.get('kind')} is {envelope['ts']!r}")


@check("envelope.to-array")
async def addressees_are_an_array_of_strings(ctx: CheckContext) -> None:
    """An envelope whose `to` is not an array of strings reaches nobody, also where it names somebody."""
    peer = await ctx.client("peer")
    await _unheard_each(ctx, "to", (peer.id, "", 7, None, {"id": peer.id}, [7], [peer.id, None], [[peer.id]]))
    await _arrays_of_the_gateway(ctx, "to")


@check("correlation.array")
async def correlations_are_an_array_of_strings(ctx: CheckContext) -> None:
    """An envelope whose `correlation_id` is not an array of strings reaches nobody."""
    await _unheard_each(ctx, "correlation_id", ("an-id", "", 7, None, {"id": "a"}, [7], ["a", None], [["a"]]))
    await _arrays_of_the_gateway(ctx, "correlation_id")


@check("envelope.payload-object")
async def a_payload_is_an_object(ctx: CheckContext) -> None:
    """An envelope whose `payload` is not an object reaches nobody; one that is empty, or missing, passes."""
    await _unheard_each(ctx, "payload", ([], [{"text": "hi"}], "text", "", 7, True, None))
    owner, peer = await ctx.clients("owner", "peer")
    for value in ({}, {"text": "hi"}, ...):
        await expect_shown(await owner.send("reasoning/thought", value), peer)
    for envelope in await gateway_says(ctx):
        payload = envelope.get("payload", {})
        demand(isinstance(payload, dict), f"`payload` of a {envelope.get('kind')} is {payload!r}")


async def _arrays_of_the_gateway(ctx: CheckContext, name: str) -> None:
    for envelope in await gateway_says(ctx):
        value = envelope.get(name, [])
        is_array = isinstance(value, list) and all(isinstance(one, str) for one in value)
        demand(is_array, f"{name!r} of a {envelope.get('kind')} is {value!r}, not an array of strings")


async def _unheard_each(ctx: CheckContext, name: str, values: tuple[Any, ...]) -> None:
    """Envelopes that are right but for this field reach nobody, whether they are answered or not."""
    owner, peer, listener = [await ctx.client(role) for role in ("owner", "peer", "listener")]
    for value in ctx.unfilled_values(name, values):
        for kind in ("chat", "mcp/request"):
            mark = unique_word()
            payload = {"text": mark, "method": "tools/list"}
            envelope = _envelope(owner, mark, **{"kind": kind, "x": mark, "payload": payload, name: value})
            await owner.send_text(json.dumps(envelope))
            await expect_unheard(ctx, owner, mark, f"a {kind} whose {_shown(name, value)}", peer, listener)


def _shown(name: str, value: object) -> str:
    return f"`{name}` is missing" if value is ... else f"`{name}` is {json.dumps(value)}"


_CALL: Final = {"method": "tools/call", "params": {"name": "read_file"}}
_CAPABILITY: Final = {"kind": "mcp/proposal"}
_GATEWAY_KINDS: Final = frozenset({"system/presence", "system/welcome", "system/error"})


@check("kind.vocabulary")
async def every_kind_may_be_sent(ctx: CheckContext) -> None:
    """Who may send everything may send each kind of the list that is not the gateway's, and it keeps its name."""
    owner, peer = await ctx.clients("owner", "peer")
    proposal = await peer.send("mcp/proposal", _CALL)
    own = await owner.send("mcp/proposal", _CALL)
    chat = await peer.send("chat", {"text": "hi"})
    start = await owner.send("reasoning/start", {"message": "hm"})
    call = await owner.send("mcp/request", _CALL, to=[peer.id], correlation_id=[proposal["id"]])
    thinking: dict[str, Any] = {"context": start["id"]}
    sent = [
        *(own, start, call),
        await owner.send("mcp/response", {"result": {}}, to=[peer.id], correlation_id=["no-such-request"]),
        await owner.send("mcp/withdraw", {"reason": "other"}, correlation_id=[own["id"]]),
        await owner.send("mcp/reject", {"reason": "busy"}, to=[peer.id], correlation_id=[proposal["id"]]),
        await owner.send("reasoning/thought", {"message": "hm"}, **thinking),
        await owner.send("reasoning/conclusion", {"message": "so"}, **thinking),
        await owner.send("reasoning/cancel", {"reason": "error"}, **thinking),
        await owner.send("chat", {"text": "hi"}),
        await owner.send("chat/cancel", {"reason": "duplicate"}, correlation_id=[chat["id"]]),
    ]
    await expect_delivered(ctx, owner, sent, peer)
    for kind in ("chat/acknowledge", "participant/status"):  # these may be suppressed (§3.4.1, §3.9.4)
        payload = {"status": "received", "messages_in_context": 0}
        quiet = await owner.send(kind, payload, to=[peer.id], correlation_id=[chat["id"]])
        await expect_accepted(ctx, owner, quiet, peer)


@check("kind.vocabulary")
async def every_kind_that_manages_may_be_sent(ctx: CheckContext) -> None:
    """The kinds that manage participants and capabilities are delivered under their names."""
    owner, peer = await ctx.clients("owner", "peer")
    who = await somebody(ctx)
    gift = {"recipient": who.id, "capabilities": [_CAPABILITY]}
    grant = await owner.send("capability/grant", gift, to=[who.id])
    pause = await owner.send("participant/pause", {"timeout_seconds": 60}, to=[who.id])
    taking = {"recipient": who.id, "capabilities": [_CAPABILITY]}
    orders = [
        *(grant, pause),
        await owner.send("capability/revoke", taking, to=[who.id]),
        await owner.send("participant/resume", {}, to=[who.id], correlation_id=[pause["id"]]),
        await owner.send("participant/request-status", {"fields": ["tokens"]}, to=[who.id]),
        await owner.send("participant/forget", {"direction": "oldest", "entries": 1}, to=[who.id]),
        await owner.send("participant/compact", {"target_tokens": 10}, to=[who.id]),
        await owner.send("participant/clear", ..., to=[who.id]),
        await owner.send("participant/restart", ..., to=[who.id]),
    ]
    await expect_delivered(ctx, owner, orders, who)
    invite = await owner.send("space/invite", invitation(newcomer := somebody_new(), _CAPABILITY))
    ctx.add_cleanup(partial(dismiss, ctx, newcomer))
    await expect_accepted(ctx, owner, invite, peer)  # who else sees it is invite.broadcast
    to_all = [
        await owner.send("capability/grant-ack", {"status": "accepted"}, correlation_id=[grant["id"]]),
        await owner.send("participant/compact-done", {"skipped": True}, correlation_id=["no-such-request"]),
    ]
    await expect_delivered(ctx, owner, to_all, peer)
    shutdown = await owner.send("participant/shutdown", ..., to=[who.id])
    (arrived,) = await expect_shown(shutdown, who)  # which may be disconnected by it
    unchanged(shutdown, arrived, who)
    if who.name not in ctx.config.roles:  # and can be spared
        kick = await owner.send("space/kick", {"participant_id": who.id, "reason": "conformance"})
        await expect_delivered(ctx, owner, [kick], peer)


@check("kind.vocabulary")
async def a_stream_is_asked_for_and_closed(ctx: CheckContext) -> None:
    """`stream/request` is answered with `stream/open`, and `stream/close` is delivered."""
    owner, peer = await ctx.clients("owner", "peer")
    asked = await owner.send("stream/request", {"direction": "upload"}, to=["gateway"])
    opened = await owner.expect(
        lambda e: e.get("kind") == "stream/open" and answers(e, asked), "a stream/open (§3.10.1)"
    )
    stream = opened["payload"]["stream_id"]
    close = {"stream_id": stream, "reason": "complete"}
    closed = await owner.send("stream/close", close, correlation_id=[opened["id"]])
    await expect_delivered(ctx, owner, [closed], peer)


@check("kind.vocabulary")
async def the_gateway_uses_the_kinds_of_the_list(ctx: CheckContext) -> None:
    """What the gateway says of itself has the kinds that the document gives it, written so."""
    said = {str(envelope.get("kind")) for envelope in await gateway_says(ctx)}
    demand(
        said >= _GATEWAY_KINDS,
        f"expected {', '.join(sorted(_GATEWAY_KINDS))} of the gateway; it sent {', '.join(sorted(said))}",
    )
