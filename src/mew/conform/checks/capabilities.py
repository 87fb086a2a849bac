"""Capabilities: enforced on everything, as they change, and what a violator is told (§3.8.2, §4, §5)."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import CALL, CHAT, HELLO, PROPOSAL, Draft, allows, call, unique_word
from mew.conform.expectations import expect_enforced, expect_unheard, gets_through
from mew.conform.fixtures import granted, revoke, somebody
from mew.conform.match import is_id, is_kind, part, refuses, same
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.roles import ROLES
from mew.conform.runner import check

_READ: Final = call("read_file")
_KINDS: Final = (
    *("mcp/request", "mcp/response", "mcp/proposal", "mcp/withdraw", "mcp/reject"),
    *("reasoning/start", "reasoning/thought", "reasoning/conclusion", "reasoning/cancel"),
    *("capability/grant", "capability/revoke", "capability/grant-ack", "space/invite", "space/kick"),
    *("participant/pause", "participant/resume", "participant/status", "participant/request-status"),
    *("participant/forget", "participant/compact", "participant/compact-done", "participant/clear"),
    *("participant/restart", "participant/shutdown", "stream/request", "stream/open", "stream/close"),
    *("chat/acknowledge", "chat/cancel"),
)


@check("capability.patterns")
async def capabilities_are_objects_with_patterns(ctx: CheckContext) -> None:
    """Welcomes list capabilities as objects with `kind` and perhaps `payload`, and both must fit."""
    owner = await ctx.client("owner")
    for name, (held, _) in ROLES.items():
        if name not in ctx.config.roles:
            continue
        client = owner if name == "owner" else await ctx.client(name)
        listed = client.capabilities
        demand(isinstance(listed, list), f"the capabilities in the welcome of {name} are no list: {listed!r}")
        for one in listed:
            formed = (
                isinstance(one, dict) and "kind" in one and isinstance(one.get("payload", {}), dict | list)
            )
            demand(formed, f"the welcome of {name} lists {one!r}, which is no object with a `kind` (§4.1)")
        for capability in held:
            there = any(capability.items() <= one.items() for one in listed)
            demand(there, f"the welcome of {name} does not list its {json.dumps(capability)}: {listed!r}")
    reader = await ctx.client("reader")
    beside = [
        CALL,
        call("read_file", kind="mcp/proposal"),
        Draft("mcp/withdraw", _READ.payload),
        Draft("mcp/request"),
    ]
    await expect_enforced(
        ctx,
        reader,
        owner,
        ROLES["reader"][0],
        passing=[_READ, Draft("chat", {**CALL.payload, "text": "hello"})],
        refused=beside,
    )


@check("capability.blocked")
async def what_is_not_allowed_reaches_no_one(ctx: CheckContext) -> None:
    """Nothing of a refused envelope is seen, whatever it names: not by those addressed, by others, or by its sender."""
    owner, peer, reader = await ctx.clients("owner", "peer", "reader")
    listener = await ctx.client("listener")
    proposal = await PROPOSAL.send_by(peer)
    await ctx.barrier(peer, owner)
    addressees = ((), (owner,), (peer, owner), (reader,), (listener,))
    shapes: list[dict[str, Any]] = [{}, {"to": ["gateway"]}]
    shapes += [{"to": [one.id for one in named]} for named in addressees]
    shapes += [{"correlation_id": [proposal["id"]]}, {"context": proposal["id"]}]
    for sender, other in ((reader, listener), (listener, reader)):
        for kind in (
            "mcp/request",
            "mcp/proposal",
            "reasoning/thought",
            "chat/acknowledge",
            "participant/status",
        ):
            secret = unique_word()
            hidden = {"text": secret, "method": "tools/call", "params": {"name": "write_file", "why": secret}}
            for fields in shapes:
                await sender.send(kind, hidden, **fields)
                await ctx.barrier(sender, owner)  # it may be cut off for each
            what = f"a {kind}, which {sender.name} holds no capability for (§4.2),"
            await expect_unheard(ctx, sender, secret, what, owner, peer, other)
            seen = [one for one in sender.received if secret in json.dumps(one.get("payload"))]
            shown = [one for one in seen if one.get("kind") != "system/error"]
            demand(not shown, f"{what} must reach no one; {sender.name} received it back: {shown[:1]}")


@check("capability.blocked")
async def no_kind_passes_without_a_capability(ctx: CheckContext) -> None:
    """Of all the kinds that the document names, those that a list does not allow reach no one."""
    owner, listener, proposer = await ctx.clients("owner", "listener", "proposer")
    for sender in (listener, proposer):
        forbidden = [kind for kind in _KINDS if allows(sender.capabilities, Draft(kind)) is False]
        if not forbidden:
            raise NotOffered(f"the welcome of {sender.name} allows everything: {sender.capabilities}")
        for kind in forbidden:
            mark = unique_word()
            await sender.send(kind, {"text": mark}, id=mark, to=[owner.id])
            what = f"a {kind}, which {sender.name} holds no capability for (§4.2),"
            await expect_unheard(ctx, sender, mark, what, owner)


@check("capability.blocked")
async def nothing_gets_round_the_rules(ctx: CheckContext) -> None:
    """An envelope that is not allowed is not let in in disguise: escaped, with a field twice, or in a binary frame."""
    owner, reader = await ctx.clients("owner", "reader")
    plain = {"protocol": "mew/v0.4", "id": "ID", "ts": "2026-01-01T00:00:00Z", "from": reader.id}
    write = json.dumps({**plain, "kind": "mcp/request", "payload": CALL.payload})
    disguises = (
        write.replace('"kind": ', '"kind": "chat", "kind": '),
        write.replace('"payload": ', f'"payload": {json.dumps(_READ.payload)}, "payload": '),
        write.replace('"name": ', '"name": "read_file", "name": '),
        write.replace('"mcp/request"', '"\\u006dcp/request"'),
        write.replace('"kind"', '"\\u006bind"'),
        write.replace('"write_file"', '"wri\\u0074e_file"'),
        f" \n{write}",
        write.encode(),
    )
    for disguise in disguises:
        await _send_as_it_is(reader, disguise)
        await ctx.round_trip(reader, owner)
    passed = owner.matching(lambda e: e.get("kind") == "mcp/request")
    demand(not passed, f"owner received what reader holds no capability for (§4.2): {passed[:1]}")


async def _send_as_it_is(sender: ScriptedClient, text: str | bytes) -> None:
    if isinstance(text, bytes):
        await sender.send_binary(text.replace(b"ID", unique_word().encode()))
    else:
        await sender.send_text(text.replace("ID", unique_word()))


@check("capability.enforced-on-all")
async def every_envelope_is_judged(ctx: CheckContext) -> None:
    """The same violation is refused each time: the first thing said, among good ones, elsewhere and after a return."""
    owner, reader = await ctx.clients("owner", "reader")
    held = ROLES["reader"][0]
    await expect_enforced(ctx, reader, owner, held, passing=[HELLO], refused=[CALL])
    if len(reader.welcomes) == 1:  # else it is cut off for each violation
        said = [await draft.send_by(reader) for draft in (_READ, CALL, HELLO, PROPOSAL) * 6]
        await ctx.barrier(reader, owner)
        _only(owner, said, ("chat", "read_file"))
    for connection in await ctx.connect_twice(reader, owner):
        await expect_enforced(
            ctx, connection, owner, held, passing=[_READ, HELLO], refused=[CALL, PROPOSAL, CALL]
        )
        await connection.leave()
    await ctx.reconnect(reader)
    await expect_enforced(ctx, reader, owner, held, passing=[HELLO, _READ], refused=[CALL, PROPOSAL])


def _only(observer: ScriptedClient, said: Sequence[Mapping[str, Any]], allowed: Sequence[str]) -> None:
    """Of what was said, and has arrived if it ever will, the witness received what is allowed and nothing else."""
    for number, sent in enumerate(said, 1):
        name = sent["payload"].get("params", {}).get("name", sent["kind"])
        may_pass = name in allowed and sent["kind"] != "mcp/proposal"
        where = f"envelope {number} of {len(said)} in a row, {sent['kind']} {name}"
        came = bool(observer.matching(is_id(sent["id"])))
        does = "received" if came else "did not receive"
        demand(
            came is may_pass,
            f"{where}, is {'' if may_pass else 'not '}allowed, and {observer.name} {does} it",
        )


@check("capability.dynamic")
async def a_change_counts_at_once(ctx: CheckContext) -> None:
    """Each grant opens what it says and no more, on the connection there is, and each revocation closes it."""
    owner, held = await ctx.client("owner"), [CHAT, {"kind": "mcp/proposal"}]
    agent = await somebody(ctx, *held)
    steps: Sequence[tuple[Any, Sequence[Draft]]] = (
        ({"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_*"}}}, [_READ]),
        ({"kind": "mcp/request", "payload": {"method": "tools/call"}}, [CALL]),
        ({"kind": "mcp/*"}, [Draft("mcp/reject", {"reason": "busy"}, {"correlation_id": ["p-1"]})]),
    )
    later = [draft for _, opened in steps for draft in opened]
    grants, passing = [], [HELLO, PROPOSAL]
    await expect_enforced(ctx, agent, owner, held, passing=passing, refused=later)
    for capability, opened in steps:
        grants.append(await _granted(ctx, owner, agent, capability, opened[0]))
        held, passing = [*held, capability], [*passing, *opened]
        later = [draft for draft in later if draft not in opened]
        await expect_enforced(ctx, agent, owner, held, passing=passing, refused=later)
    listener = await ctx.client("listener")
    await expect_enforced(ctx, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=[_READ, CALL])
    for (_, opened), grant_id in zip(reversed(steps), reversed(grants), strict=True):
        await revoke(ctx, owner, agent, grant_id=grant_id)
        held, passing = held[:-1], [draft for draft in passing if draft not in opened]
        later = [*later, *opened]
        await expect_enforced(ctx, agent, owner, held, passing=passing, refused=later)


async def _granted(
    ctx: CheckContext, owner: ScriptedClient, agent: ScriptedClient, capability: Any, opened: Draft
) -> str:
    """The grant's id, once it counts.

    Raises:
        NotOffered: it never does.
        Violation: it does only after a return.
    """
    try:
        return await granted(ctx, owner, agent, capability, shown=opened)
    except NotOffered:
        if await gets_through(await ctx.rejoin(agent), owner, opened):
            raise Violation(
                f"what was granted, {json.dumps(capability)}, counts only after {agent.name} has connected again"
            ) from None
        raise


_VIOLATIONS: Final = (
    Draft("mcp/request", {"method": "tools/call", "params": {"name": "write_file"}}),
    Draft("mcp/proposal", {"method": "tools/list"}),
    Draft("reasoning/thought", {"text": "so"}),
    Draft("chat/acknowledge", {}, {"correlation_id": ["c-1"]}),
    Draft("participant/clear", {}),
    Draft("capability/grant", {"recipient": "nobody", "capabilities": []}),
    Draft("space/kick", {"participant_id": "nobody"}),
    Draft("stream/request", {"direction": "upload"}),
)


async def _told(sender: ScriptedClient, sent: Mapping[str, Any]) -> dict[str, Any]:
    what = f"a system/error for its {sent['kind']} {sent['id']}, which it holds no capability for (§3.8.2)"
    return await sender.expect(refuses(sent), what)


@check("violation.answered")
async def a_violator_is_told(ctx: CheckContext) -> None:
    """Every violation is answered with a `system/error` addressed to its sender, one for each, in whatever role."""
    owner, reader, listener = await ctx.clients("owner", "reader", "listener")
    for sender in (reader, *await ctx.connect_twice(listener, owner)):
        for draft in (
            *_VIOLATIONS,
            *_VIOLATIONS[:2],
            Draft("mcp/request", {"method": "x"}, {"to": [owner.id]}),
        ):
            error = await _told(sender, await draft.send_by(sender))
            demand(
                isinstance(error.get("to"), list) and sender.id in error["to"],
                f"the system/error for {sender.name} is not addressed to it: `to` is {error.get('to')!r}, "
                f"not [{sender.id!r}] (§3.8.2)",
            )
            demand(
                error.get("from") not in (sender.id, owner.id),
                f"the system/error is from {error.get('from')!r}, a participant, not from the gateway (§3.8.2)",
            )


def _check_payload(error: Mapping[str, Any], kind: str, sender: ScriptedClient) -> None:
    payload = error.get("payload")
    demand(
        isinstance(payload, dict), f"the system/error for a violation has the payload {payload!r} (§3.8.2)"
    )
    assert isinstance(payload, dict)
    for field, value in {"error": "capability_violation", "attempted_kind": kind}.items():
        demand(
            payload.get(field) == value,
            f"`{field}` of the system/error for a {kind} is {payload.get(field)!r}, not {value!r} (§3.8.2)",
        )
    listed = payload.get("your_capabilities")
    demand(
        same(listed, sender.capabilities),
        f"`your_capabilities` of the system/error is {json.dumps(listed)}, "
        f"the welcome said {json.dumps(sender.capabilities)} (§3.8.2)",
    )


@check("violation.payload")
async def the_error_says_what_and_why(ctx: CheckContext) -> None:
    """The error has its code, the kind that was attempted, and what the sender holds, as its welcome has it."""
    await ctx.client("owner")
    for name in ("listener", "reader", "proposer"):
        sender = await ctx.client(name)
        for draft in _VIOLATIONS:
            if name == "proposer" and draft.kind in ("mcp/proposal", "reasoning/thought"):
                continue
            _check_payload(await _told(sender, await draft.send_by(sender)), draft.kind, sender)


@check("violation.payload")
async def the_error_knows_what_changed(ctx: CheckContext) -> None:
    """After a grant that counts `your_capabilities` is another list than before: what the new welcome gave, if any."""
    owner, guest = await ctx.client("owner"), await somebody(ctx, CHAT, {"kind": "mcp/proposal"})
    before, given = guest.capabilities, Draft("chat/cancel", {}, {"correlation_id": ["c-1"]})
    await granted(ctx, owner, guest, given.capability, shown=given)
    error = await _told(guest, await call("x").send_by(guest))
    listed = part(error, "payload", "your_capabilities")
    demand(
        not same(listed, before),
        f"`your_capabilities` of the system/error is {json.dumps(listed)}, as before a grant of "
        f"{json.dumps(given.capability)}, which counts (§3.8.2)",
    )
    if not same(before, guest.capabilities):  # a new welcome told it
        _check_payload(error, "mcp/request", guest)


@check("violation.announced")
async def a_notice_shows_nothing_of_it(ctx: CheckContext) -> None:
    """Others learn of a violation, if they do, from an envelope of the gateway's own, without what was refused."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    secret = unique_word()
    sent = await listener.send(
        "mcp/request", {"method": "tools/call", "params": {"name": secret}}, to=[peer.id]
    )
    error: dict[str, Any] = {}
    with suppress(Violation):  # which is another requirement
        error = await _told(listener, sent)
    await ctx.round_trip(listener, owner, peer)
    notices = 0
    for other in (owner, peer):
        demand(
            not other.matching(is_id(error.get("id", ...))),
            f"{other.name} received the very system/error that is for {listener.name} (§3.8.2); "
            "a notice for others is an envelope of its own (§5.4)",
        )
        for text, envelope in zip(other.texts, other.received, strict=True):
            demand(secret not in text, f"{other.name} was shown what was refused (§5.4): {text}")
            notices += is_kind("system/error")(envelope) and (sent["id"] in text or listener.id in text)
    if not notices:
        raise NotOffered("violations are not announced to others here")
