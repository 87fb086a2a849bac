"""Who an envelope is from: participants under their own id, the gateway under its own (§3.8, §4.1)."""

import json
from typing import Any, Final

from mew.conform.connection import PROTOCOL, ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import unique_word
from mew.conform.expectations import expect_delivered, expect_refused, expect_shown, expect_unheard
from mew.conform.fixtures import a_guest, gateway_says, grant, invitation, invite
from mew.conform.match import answers, is_kind
from mew.conform.outcome import NotOffered, demand
from mew.conform.runner import check

_GATEWAY: Final = "system:gateway"
_RESERVED: Final = (
    "system/welcome",
    "system/presence",
    "system/error",
    "system/join",
    "system/x",
    "system/",
    "system/error/x",
)


@check("envelope.from-stable")
async def the_same_token_gives_the_same_id(ctx: CheckContext) -> None:
    """Connecting again with the same token gives the same id, and that is the `from` that others see."""
    owner = await ctx.client("owner")
    first = await ctx.client("peer")
    who = first.id
    demand(owner.id != who, f"two participants have the id {who!r}")
    await first.leave()
    for _ in range(2):
        again = await ctx.client("peer")
        demand(again.id == who, f"a token that gave the id {who!r} gave {again.id!r} the next time")
        sent = await again.send("chat", {"text": "again"}, **{"from": who})
        (arrived,) = await expect_shown(sent, owner)
        demand(arrived.get("from") == who, f"`from` is {arrived.get('from')!r}, and the participant {who!r}")
        await again.leave()
    for connection in await ctx.connect_twice(await ctx.client("peer"), owner):
        demand(connection.id == who, f"a token that gave the id {who!r} gave {connection.id!r} beside that")


@check("identity.from-verified")
async def nobody_speaks_in_anothers_name(ctx: CheckContext) -> None:
    """An envelope whose `from` is not exactly the sender's own id reaches nobody, whoever sends it."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    await expect_delivered(ctx, peer, [await peer.send("chat", {"text": "mine"})], owner, listener)
    for sender, other in ((peer, owner), (owner, peer), (listener, peer)):
        near = ctx.unfilled_values("from", _near(sender.id))
        for name in (*near, other.id, "nobody-here", _GATEWAY, "gateway", "system", "*"):
            await _unheard_from(ctx, sender, name, *({owner, peer, listener} - {sender}))
    await expect_delivered(ctx, peer, [await peer.send("chat", {"text": "mine"})], owner, listener)


def _near(who: str) -> tuple[Any, ...]:
    """Names that are nearly this one, or none."""
    cased = [name for name in (who.upper(), who.capitalize(), who.swapcase()) if name != who]
    near = (f"{who} ", f" {who}", f"{who}\n", f"{who}\0", f"{who}x", who[:-1], f"{who}/x", f"{who},*")
    return (*cased, *near, "", None, 7, [who], {"id": who}, ...)


async def _unheard_from(
    ctx: CheckContext,
    sender: ScriptedClient,
    name: Any,
    *receivers: ScriptedClient,
    kind: str = "chat",
    **fields: Any,
) -> None:
    mark = unique_word()
    await sender.send(kind, {"text": mark}, id=mark, **{"from": name, **fields})
    said = "missing" if name is ... else json.dumps(name)
    what = f"a {kind} of {sender.id!r} whose `from` is {said}"
    await expect_unheard(
        ctx, sender, mark, f"{what}, with {json.dumps(fields)}" if fields else what, *receivers
    )


@check("identity.from-verified")
async def nothing_else_in_an_envelope_excuses_its_sender(ctx: CheckContext) -> None:
    """Another's `from` is refused in whatever kind, addressed, as an answer, and on each connection."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    asked = await owner.send("chat", {"text": "what do you say?"})
    await expect_shown(asked, peer)
    shapes: tuple[dict[str, Any], ...] = (
        {"correlation_id": [asked["id"]]},
        {"to": [owner.id]},
        {"to": [listener.id, peer.id], "correlation_id": [asked["id"]], "context": asked["id"]},
    )
    for sender in await ctx.connect_twice(peer, owner):
        for kind in ("chat", "mcp/request", "mcp/response", "reasoning/thought"):
            for fields in shapes:
                await _unheard_from(ctx, sender, owner.id, owner, listener, kind=kind, **fields)


@check("identity.from-verified")
async def nobody_acts_in_anothers_name(ctx: CheckContext) -> None:
    """What somebody asks of the gateway in another's name is not done."""
    owner, peer = await ctx.clients("owner", "peer")
    for sender, name in ((peer, owner.id), (owner, peer.id), (owner, _GATEWAY)):
        request = {"direction": "upload"}
        asked = await sender.send("stream/request", request, to=["gateway"], **{"from": name})
        other = owner if sender is peer else peer
        await ctx.round_trip(sender, other)
        opened = [e for client in (owner, peer) for e in client.matching(is_kind("stream/open"))]
        opened = [e for e in opened if answers(e, asked)]
        demand(
            not opened,
            f"a stream/request of {sender.id!r} whose `from` is {name!r} was answered: {opened[:1]}",
        )


@check("identity.from-verified")
async def a_sender_given_twice_is_no_way_round(ctx: CheckContext) -> None:
    """An envelope with two `from`, of which one is another's, is refused, or delivered with the sender's own alone."""
    owner, peer = await ctx.clients("owner", "peer")
    for first, second in ((owner.id, peer.id), (peer.id, owner.id)):
        mark = unique_word()
        names = f'"from": {json.dumps(first)}, "from": {json.dumps(second)}'
        await peer.send_text(
            f'{{"protocol": "{PROTOCOL}", "id": "{mark}", {names}, "kind": "chat", "payload": {{}}}}'
        )
        await ctx.round_trip(peer, owner)
        for text in owner.texts:
            if f'"{mark}"' in text and json.loads(text).get("kind") == "chat":
                told = {value for name, value in json.loads(text, object_pairs_hook=list) if name == "from"}
                demand(told == {peer.id}, f"{peer.id!r} sent `from` twice, and what came has both: {text}")


@check("system.signed-by-gateway")
async def the_gateway_signs_what_it_says(ctx: CheckContext) -> None:
    """`from` of a welcome, a presence and an error is `system:gateway`, and no participant has that id."""
    said = await gateway_says(ctx)
    kinds = {envelope.get("kind") for envelope in said}
    for kind in ("system/welcome", "system/presence", "system/error"):
        demand(kind in kinds, f"expected a {kind} when people come, go and break a rule; there was none")
    for envelope in said:
        if str(envelope.get("kind")).startswith("system/"):
            sender = envelope.get("from")
            demand(
                sender == _GATEWAY,
                f"`from` of a {envelope.get('kind')} is {sender!r}, not {_GATEWAY!r}: {envelope}",
            )
        if envelope.get("kind") == "system/welcome":
            people = [envelope["payload"]["you"], *envelope["payload"].get("participants", ())]
            demand(all(one["id"] != _GATEWAY for one in people), f"a participant has the id {_GATEWAY!r}")


@check("system.signed-by-gateway")
async def nobody_can_be_invited_as_the_gateway(ctx: CheckContext) -> None:
    """An invitation of `system:gateway` makes nobody speak under that name."""
    owner, peer = await ctx.clients("owner", "peer")
    try:
        role = await invite(ctx, owner, invitation(_GATEWAY))
    except NotOffered:  # refused, most likely
        await ctx.round_trip(owner, peer)
        return
    guest = await ctx.join(role)
    demand(guest.id != _GATEWAY, f"who was invited as {_GATEWAY!r} is now a participant of that id")


@check("system.rejected")
async def nobody_sends_what_is_the_gateways(ctx: CheckContext) -> None:
    """A `system/…` envelope of a participant is refused and reaches nobody, whatever the participant may."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for sender in (owner, peer, listener):
        others = {owner, peer, listener} - {sender}
        for kind in _RESERVED:
            await _refused(ctx, sender, kind, *others)
    for fields in ({"to": [peer.id]}, {"correlation_id": [owner.welcome["id"]]}, {"context": "system"}):
        for kind in _RESERVED[:4]:
            await _refused(ctx, owner, kind, peer, listener, **fields)


@check("system.rejected")
async def no_capability_opens_what_is_the_gateways(ctx: CheckContext) -> None:
    """A capability for `system/*`, where it can be given at all, lets nobody send it."""
    owner, peer = await ctx.clients("owner", "peer")
    guest = await a_guest(ctx)
    for pattern in ("system/*", "system/error", "*"):
        await grant(ctx, owner, guest, {"kind": pattern})  # given or refused
        for kind in _RESERVED:
            await _refused(ctx, guest, kind, owner, peer)


async def _refused(
    ctx: CheckContext, sender: ScriptedClient, kind: str, *others: ScriptedClient, **fields: Any
) -> None:
    payload = {"error": "none", "event": "leave", "participant": {"id": sender.id}}
    what = f"a {kind} that {sender.id!r} sent (§4.1)"
    await expect_refused(ctx, sender, await sender.send(kind, payload, **fields), *others, what=what)
