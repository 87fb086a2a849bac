"""Envelopes sent and fetched over HTTP, under the rules of a connection (§5.3)."""

import json
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import CHAT, HELLO, PROPOSAL, Draft, call, unique_word
from mew.conform.expectations import expect_enforced, gets_through
from mew.conform.fixtures import granted, invited, newcomer, revoke, somebody
from mew.conform.http_api import MessagesApi, open_messages_api
from mew.conform.match import alike, is_kind, joins, listed, moment
from mew.conform.outcome import NotOffered, demand
from mew.conform.roles import Role
from mew.conform.runner import check


async def _post(api: MessagesApi, client: ScriptedClient, body: Any) -> str:
    """The words in it, once it is accepted."""
    answer = await api.post(client, body)
    demand(answer.is_accepted, f"a {body['kind']} that {client.name} may send got {answer.status} (§5.3)")
    return str(body["payload"]["text"])


def _chat(**fields: Any) -> dict[str, Any]:
    return {"kind": "chat", "payload": {"text": unique_word()}, **fields}


async def _read(receiver: ScriptedClient, words: str) -> dict[str, Any]:
    return await receiver.expect(
        lambda e: words in json.dumps(e.get("payload")), f"what was posted, {words!r}"
    )


async def _unread(api: MessagesApi, sender: ScriptedClient, words: str, *receivers: ScriptedClient) -> None:
    """Nobody got what was posted: something posted later by the same speaker came without it."""
    mark = await _post(api, sender, _chat())
    for receiver in receivers:
        await _read(receiver, mark)
        shown = [text for text in receiver.texts if words in text]
        demand(not shown, f"{receiver.name} received what was refused over HTTP (§5.3): {shown[:1]}")


@check("http.injection-offered")
async def who_is_not_connected_may_post(ctx: CheckContext) -> None:
    """An envelope posted by somebody who is not connected is accepted and shown."""
    api, owner = await open_messages_api(ctx), await ctx.client("owner")
    role = await newcomer(ctx)
    if role.id is None:  # only a welcome says
        spare = await ctx.join(role)
        role = replace(role, id=spare.id)
        await spare.leave()
    body = _chat()
    answer = await api.ask("POST", role.id or role.name, role, body=body)
    demand(answer.is_accepted, f"a chat of {role.name}, who is not connected, got {answer.status} (§5.3)")
    await _read(owner, body["payload"]["text"])


@check("http.same-capabilities")
async def the_same_rules_hold_over_http(ctx: CheckContext) -> None:
    """What one may not send is refused with an error status and reaches no one; what one may is taken."""
    api, owner, peer = await open_messages_api(ctx), await ctx.client("owner"), await ctx.client("peer")
    tools = {name: call(name).payload for name in ("read_file", "write_file", "xread_file")}
    said = [("mcp/request", payload) for payload in tools.values()]
    chat = {"text": "hello"}
    said += [("chat", chat)]
    said += [(kind, {}) for kind in ("mcp/proposal", "chat/cancel", "Chat", "participant/clear")]
    may: dict[str, tuple[tuple[str, Any], ...]] = {
        "reader": (("chat", chat), ("mcp/request", tools["read_file"])),
        "listener": (("chat", chat),),
        "peer": (*said[:4], ("mcp/proposal", {}), ("chat/cancel", {})),
    }
    for name, allowed in may.items():
        sender = peer if name == "peer" else await ctx.client(name)
        for kind, payload in said:
            words = unique_word()
            answer = await api.post(sender, {"kind": kind, "payload": {**payload, "text": words}})
            what = f"{kind} {json.dumps(payload)} of {name}"
            if (kind, payload) in allowed:
                demand(answer.is_accepted, f"{what} is allowed and got {answer.status} (§5.3)")
                await _read(owner, words)
            else:
                demand(answer.is_refused, f"{what} is not allowed and got {answer.status} (§5.3)")
                await _unread(api, sender, words, owner, *(() if sender is peer else (peer,)))


@check("http.same-capabilities")
async def a_change_counts_over_http_too(ctx: CheckContext) -> None:
    """What is granted and revoked over a connection counts for the next envelope that is posted."""
    api, owner = await open_messages_api(ctx), await ctx.client("owner")
    guest = await somebody(ctx)
    listing = Draft("mcp/proposal", {"method": "tools/list"})
    body = {**listing.capability, "payload": listing.payload}  # as a pattern it fits itself
    grant_id = await granted(ctx, owner, guest, body, shown=listing)
    answer = await api.post(guest, body)
    demand(answer.is_accepted, f"a {listing.kind} that was granted got {answer.status} over HTTP (§5.3)")
    await revoke(ctx, owner, guest, grant_id=grant_id)
    answer = await api.post(guest, body)
    demand(answer.is_refused, f"a {listing.kind} that was revoked got {answer.status} over HTTP (§5.3)")


@check("http.mirrors-websocket")
async def what_is_posted_is_an_envelope_like_any_other(ctx: CheckContext) -> None:
    """It reaches everyone once and whole, with `protocol`, `id` and `from` where they were left out."""
    api = await open_messages_api(ctx)
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    full = _chat(
        to=[owner.id, peer.id], correlation_id=["a", "b"], context="c/d", extra={"e": [1, None, "ü"]}
    )
    ids = set()
    for body in (_chat(), full, _chat(**{"from": peer.id, "protocol": "mew/v0.4"})):
        words = await _post(api, peer, body)
        for receiver in (owner, listener) if "to" not in body else (owner,):
            shown = await _read(receiver, words)
            _like(body, shown, peer.id)
            ids.add(shown["id"])
    demand(len(ids) == 3, f"three envelopes have the ids {sorted(ids)} (§3)")
    mark = await _post(api, peer, _chat())
    await _read(owner, mark)
    for words in (mark, full["payload"]["text"]):
        times = sum(words in text for text in owner.texts)
        demand(times == 1, f"owner received what was posted once {times} times (§5.3)")


def _like(body: dict[str, Any], shown: dict[str, Any], sender: str) -> None:
    expected = {**body, "protocol": "mew/v0.4", "from": sender}
    for field, value in expected.items():
        demand(
            shown.get(field) == value,
            f"`{field}` of what was posted is {shown.get(field)!r}, not {value!r} (§5.3)",
        )
    demand(
        isinstance(shown.get("id"), str) and shown["id"],
        f"what was posted has the id {shown.get('id')!r} (§3)",
    )
    if "ts" in shown:
        demand(moment(shown["ts"]), f"what was posted has the ts {shown['ts']!r}, not an RFC 3339 time (§3)")


@check("http.mirrors-websocket")
async def what_is_wrong_is_wrong_over_http_too(ctx: CheckContext) -> None:
    """Another's `from`, `system/…`, another version and what is no envelope are refused and reach no one."""
    api, owner, peer = await open_messages_api(ctx), await ctx.client("owner"), await ctx.client("peer")
    wrong = (
        _chat(**{"from": owner.id}),
        _chat(**{"from": "system:gateway"}),
        _chat(kind="system/presence"),
        _chat(kind="system/error", to=[owner.id]),
        _chat(protocol="mew/v0.3"),
        {"payload": {"text": unique_word()}},
        [_chat()],
        {"kind": "chat", "payload": [unique_word()]},
    )
    for body in wrong:
        answer = await api.post(peer, body)
        demand(answer.is_refused, f"{json.dumps(body)} got {answer.status}, not an error status (§5.3)")
    answer = await api.ask("POST", peer.id, peer.role, raw=b'{"kind": "chat", "payload": {"text": "broken')
    demand(answer.is_refused, f"what is no JSON got {answer.status}, not an error status (§5.3)")
    await _unread(api, peer, "broken", owner)
    for body in wrong:
        payload = (body if isinstance(body, dict) else body[0])["payload"]
        words = payload["text"] if isinstance(payload, dict) else payload[0]
        shown = [text for text in owner.texts if words in text]
        demand(not shown, f"owner received what was refused over HTTP (§5.3): {shown[:1]}")


@check("http.mirrors-websocket")
async def what_is_posted_has_its_effect(ctx: CheckContext) -> None:
    """A posted grant gives and a posted revocation takes, as they do over a connection."""
    api, owner = await open_messages_api(ctx), await ctx.client("owner")
    guest = await somebody(ctx)
    connected = await granted(ctx, owner, guest, PROPOSAL.capability, shown=PROPOSAL)
    await revoke(ctx, owner, guest, grant_id=connected)
    while guest.take(is_kind("capability/grant")):
        continue
    payload = {"recipient": guest.id, "capabilities": [PROPOSAL.capability], "reason": "conformance"}
    answer = await api.post(owner, {"kind": "capability/grant", "payload": payload})
    demand(answer.is_accepted, f"a capability/grant of the owner got {answer.status} (§5.3)")
    grant = await guest.expect(is_kind("capability/grant"), "the grant that was posted")
    demand(
        await gets_through(guest, owner, PROPOSAL),
        "a capability/grant over a connection counts, one that is posted does not (§5.3)",
    )
    body = {"kind": "capability/revoke", "payload": {"recipient": guest.id, "grant_id": grant["id"]}}
    await api.post(owner, body)
    await guest.expect(lambda e: e.get("payload") == body["payload"], "the revocation that was posted")
    await expect_enforced(ctx, guest, owner, [CHAT], passing=[HELLO], refused=[PROPOSAL])


@check("http.mirrors-websocket")
async def posting_makes_nobody_present(ctx: CheckContext) -> None:
    """Who only posts is neither announced nor listed as one who is there."""
    api, owner, idle = await open_messages_api(ctx), await ctx.client("owner"), await newcomer(ctx)
    if idle.id is None:
        raise NotOffered(f"the kit was not told the id of {idle.name}, and would have to connect to learn it")
    posted = _chat()
    await api.ask("POST", idle.id, idle, body=posted)
    await _read(owner, posted["payload"]["text"])
    announced = owner.matching(joins(idle.id))
    demand(not announced, f"{idle.id} has only posted, and is announced (§3.7): {announced[:1]}")
    later = await ctx.client("listener")
    demand(
        idle.id not in listed(later.welcome), f"{idle.id} is listed as present, and has only posted (§3.7)"
    )


@check("http.bearer-token")
async def only_ones_own_token_will_do(ctx: CheckContext) -> None:
    """Without a token, with an unknown one or another's, posting and fetching are refused, and nothing is sent."""
    api, owner, peer = await open_messages_api(ctx), await ctx.client("owner"), await ctx.client("peer")
    unknown = Role("somebody with an unknown token", unique_word())
    methods = ["POST"]
    if (await api.ask("GET", peer.id, peer.role)).is_accepted:
        methods.append("GET")
    for method in methods:
        for role in (None, unknown, owner.role, ctx.role("listener")):
            body = _chat() if method == "POST" else None
            who = "nobody" if role is None else role.name
            answer = await api.ask(method, peer.id, role, body=body)
            demand(
                answer.is_refused,
                f"{method} /participants/{peer.id}/messages by {who} got {answer.status}, not an error status (§5.3)",
            )
            if body is not None:
                await _unread(api, peer, body["payload"]["text"], owner)
    listener = await ctx.client("listener")
    body = _chat(**{"from": peer.id})
    answer = await api.ask("POST", peer.id, listener.role, body=body)
    demand(
        answer.is_refused,
        f"posting as {peer.id} with the token of listener got {answer.status} (§5.3)",
    )
    await _unread(api, listener, body["payload"]["text"], owner)


@check("http.typical-response")
async def an_accepted_envelope_gets_a_receipt(ctx: CheckContext) -> None:
    """The answer has the `id` that the envelope is shown with, `status: "accepted"` and a `timestamp`."""
    api, owner, peer = await open_messages_api(ctx), await ctx.client("owner"), await ctx.client("peer")
    for body in (_chat(), _chat(), {**_chat(), "kind": "reasoning/thought"}):
        answer = await api.post(peer, body)
        receipt = answer.json
        demand(isinstance(receipt, dict), f"the answer is {answer.text[:200]!r}, not a JSON object (§5.3)")
        shown = await _read(owner, body["payload"]["text"])
        demand(
            receipt.get("id") == shown["id"],
            f"`id` of the answer is {receipt.get('id')!r}, the envelope's is {shown['id']!r} (§5.3)",
        )
        status = receipt.get("status")
        demand(status == "accepted", f"`status` of the answer is {status!r}, not 'accepted' (§5.3)")
        at = moment(receipt.get("timestamp"))
        demand(at, f"`timestamp` of the answer is {receipt.get('timestamp')!r}, not an RFC 3339 time (§5.3)")


@check("http.polling-offered")
async def envelopes_can_be_fetched(ctx: CheckContext) -> None:
    """A GET by somebody who is in no connection answers with what was sent since."""
    api = await open_messages_api(ctx, polling=True)
    owner, peer = await ctx.clients("owner", "peer")
    await peer.leave()
    since = await api.now(owner)
    sent = await owner.send("chat", {"text": "to be fetched"}, ts=since.isoformat())
    await ctx.barrier(owner, await ctx.client("listener"))
    fetched = [one.get("id") for one in await api.fetched(peer, since)]
    demand(sent["id"] in fetched, f"what was sent since {since.isoformat()} is not fetched: {fetched} (§5.3)")


@check("http.since")
async def since_says_from_when_on(ctx: CheckContext) -> None:
    """What was sent after that moment is fetched, what was sent a while before is not, in whatever offset."""
    api = await open_messages_api(ctx, polling=True)
    owner, peer = await ctx.clients("owner", "peer")
    since = await api.now(owner)
    sent = [await owner.send("chat", {"text": f"{n}"}, ts=since.isoformat()) for n in range(3)]
    await ctx.barrier(owner, peer)
    later = since + timedelta(minutes=1)
    for hours in (0, 5.5, -8):
        zone = timezone(timedelta(hours=hours))
        told = since.astimezone(zone).isoformat()
        fetched = [one.get("id") for one in await api.fetched(peer, since.astimezone(zone))]
        places = [fetched.index(one["id"]) for one in sent if one["id"] in fetched]
        demand(len(places) == len(sent), f"{len(places)} of {len(sent)} sent since {told} are fetched (§5.3)")
        answer = await api.ask("GET", peer.id, peer.role, since=later.astimezone(zone))
        if not answer.is_accepted:
            raise NotOffered(f"a `since` in the future gets {answer.status}")
        early = [one for one in sent if one["id"] in answer.text]
        demand(
            not early,
            f"with since={later.astimezone(zone).isoformat()} what was sent before is fetched (§5.3)",
        )


@check("http.complete-envelopes")
async def fetched_envelopes_are_whole(ctx: CheckContext) -> None:
    """Each fetched envelope equals what was shown on a connection, field by field."""
    api = await open_messages_api(ctx, polling=True)
    owner, peer = await ctx.clients("owner", "peer")
    since = await api.now(owner)
    payload = {
        "text": 'é\u200f🐱\\"',
        "number": 1e-7,
        "large": 12345678901234567,
        "list": [1, {"a": None}, [], ""],
    }
    more = {"context": "a/b", "correlation_id": ["x", "y"], "to": [peer.id], "extra": {"k": [True, 1.5]}}
    ts = since.isoformat()
    sent = [
        await owner.send("chat", payload, ts=ts, **more),
        await owner.send("chat", {"text": "plain"}, ts=ts),
    ]
    sent += [await owner.send("mcp/request", {"method": "tools/list"}, ts=ts, to=[peer.id])]
    await ctx.barrier(owner, peer)
    fetched = {one.get("id"): one for one in await api.fetched(peer, since)}
    for one in sent:
        demand(one["id"] in fetched, f"the {one['kind']} {one['id']} is not among what peer fetched (§5.3)")
    for shown in peer.received:
        found = fetched.get(shown.get("id"), shown)
        wrong = sorted(key for key in shown.keys() | found.keys() if _differ(shown, found, key))
        demand(
            not wrong,
            f"the {shown.get('kind')} {shown.get('id')} that peer was shown is fetched with another "
            f"{', '.join(wrong)} (§5.3): {json.dumps(found)}",
        )


def _differ(one: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    return key not in one or key not in other or not alike(one[key], other[key])


@check("http.unseen-omitted")
async def what_is_anothers_is_not_fetched(ctx: CheckContext) -> None:
    """Another's welcome, error and token are not fetched, nor what was refused, nor anything one was not shown."""
    api = await open_messages_api(ctx, polling=True)
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    since = await api.now(owner)
    reader = await ctx.client("reader")
    refused = await listener.send("mcp/request", {"method": "tools/list"}, to=[peer.id])
    error = await listener.expect(is_kind("system/error"), "a system/error (§3.8.2)")
    private = {
        str(reader.welcome.get("id")): "the welcome of reader",
        str(error.get("id")): "the error for listener",
    }
    private[refused["id"]] = "an envelope that was refused"
    secret = await _invitation(ctx)
    await owner.send("chat", {"text": "for reader"}, to=[reader.id])
    await ctx.barrier(listener, owner, peer)
    await ctx.barrier(owner, peer, listener)
    for caller in (peer, owner):
        fetched = await api.fetched(caller, since)
        shown = {one.get("id") for one in caller.received}
        for one in fetched:
            what = None if one.get("id") in shown else private.get(str(one.get("id")))
            demand(what is None, f"{caller.name} fetched {what} (§5.3): {json.dumps(one)}")
            unseen = one.get("id") not in shown and one.get("from") != caller.id
            demand(not unseen, f"{caller.name} fetched what it was not shown (§5.3): {json.dumps(one)}")
            leaked = secret is not None and caller is peer and secret in json.dumps(one)
            demand(not leaked, f"{caller.name} fetched the token of somebody else (§5.3)")


async def _invitation(ctx: CheckContext) -> str | None:
    try:
        return (await invited(ctx, CHAT)).token
    except NotOffered:
        return None
