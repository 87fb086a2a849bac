"""Who an envelope is from: participants under their own id, the gateway under its own (§3.8, §4.1)."""

import json
from typing import Any, Final

from mew.conform.connection import PROTOCOL, Actor
from mew.conform.context import Stage
from mew.conform.drafts import fresh
from mew.conform.expectations import arrive, refused, shown, unheard
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
async def the_same_token_gives_the_same_id(stage: Stage) -> None:
    """Connecting again with the same token gives the same id, and that is the `from` that others see."""
    owner = await stage.enter("owner")
    first = await stage.enter("peer")
    who = first.id
    demand(owner.id != who, f"two participants have the id {who!r}")
    await first.leave()
    for _ in range(2):
        again = await stage.enter("peer")
        demand(again.id == who, f"a token that gave the id {who!r} gave {again.id!r} the next time")
        sent = await again.send("chat", {"text": "again"}, **{"from": who})
        (arrived,) = await shown(sent, owner)
        demand(arrived.get("from") == who, f"`from` is {arrived.get('from')!r}, and the participant {who!r}")
        await again.leave()
    for connection in await stage.twice(await stage.enter("peer"), owner):
        demand(connection.id == who, f"a token that gave the id {who!r} gave {connection.id!r} beside that")


@check("identity.from-verified")
async def nobody_speaks_in_anothers_name(stage: Stage) -> None:
    """An envelope whose `from` is not exactly the sender's own id reaches nobody, whoever sends it."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    await arrive(stage, peer, [await peer.send("chat", {"text": "mine"})], owner, listener)
    for speaker, other in ((peer, owner), (owner, peer), (listener, peer)):
        near = stage.not_completed("from", _near(speaker.id))
        for name in (*near, other.id, "nobody-here", _GATEWAY, "gateway", "system", "*"):
            await _unheard_from(stage, speaker, name, *({owner, peer, listener} - {speaker}))
    await arrive(stage, peer, [await peer.send("chat", {"text": "mine"})], owner, listener)


def _near(who: str) -> tuple[Any, ...]:
    """Names that are nearly this one, or none."""
    cased = [name for name in (who.upper(), who.capitalize(), who.swapcase()) if name != who]
    near = (f"{who} ", f" {who}", f"{who}\n", f"{who}\0", f"{who}x", who[:-1], f"{who}/x", f"{who},*")
    return (*cased, *near, "", None, 7, [who], {"id": who}, ...)


async def _unheard_from(
    stage: Stage, speaker: Actor, name: Any, *hearers: Actor, kind: str = "chat", **fields: Any
) -> None:
    mark = fresh()
    await speaker.send(kind, {"text": mark}, id=mark, **{"from": name, **fields})
    said = "missing" if name is ... else json.dumps(name)
    what = f"a {kind} of {speaker.id!r} whose `from` is {said}"
    await unheard(stage, speaker, mark, f"{what}, with {json.dumps(fields)}" if fields else what, *hearers)


@check("identity.from-verified")
async def nothing_else_in_an_envelope_excuses_its_sender(stage: Stage) -> None:
    """Another's `from` is refused in whatever kind, addressed, as an answer, and on each connection."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    asked = await owner.send("chat", {"text": "what do you say?"})
    await shown(asked, peer)
    shapes: tuple[dict[str, Any], ...] = (
        {"correlation_id": [asked["id"]]},
        {"to": [owner.id]},
        {"to": [listener.id, peer.id], "correlation_id": [asked["id"]], "context": asked["id"]},
    )
    for speaker in await stage.twice(peer, owner):
        for kind in ("chat", "mcp/request", "mcp/response", "reasoning/thought"):
            for fields in shapes:
                await _unheard_from(stage, speaker, owner.id, owner, listener, kind=kind, **fields)


@check("identity.from-verified")
async def nobody_acts_in_anothers_name(stage: Stage) -> None:
    """What somebody asks of the gateway in another's name is not done."""
    owner, peer = await stage.enter_all("owner", "peer")
    for speaker, name in ((peer, owner.id), (owner, peer.id), (owner, _GATEWAY)):
        request = {"direction": "upload"}
        asked = await speaker.send("stream/request", request, to=["gateway"], **{"from": name})
        other = owner if speaker is peer else peer
        await stage.come_through(speaker, other)
        opened = [e for actor in (owner, peer) for e in actor.heard(is_kind("stream/open"))]
        opened = [e for e in opened if answers(e, asked)]
        demand(not opened, f"{speaker.id!r} was opened a stream as {name!r}: {opened[:1]}")


@check("identity.from-verified")
async def a_sender_given_twice_is_no_way_round(stage: Stage) -> None:
    """An envelope with two `from`, of which one is another's, is refused, or delivered with the sender's own alone."""
    owner, peer = await stage.enter_all("owner", "peer")
    for first, second in ((owner.id, peer.id), (peer.id, owner.id)):
        mark = fresh()
        names = f'"from": {json.dumps(first)}, "from": {json.dumps(second)}'
        await peer.send_text(
            f'{{"protocol": "{PROTOCOL}", "id": "{mark}", {names}, "kind": "chat", "payload": {{}}}}'
        )
        await stage.come_through(peer, owner)
        for text in owner.texts:
            if f'"{mark}"' in text and json.loads(text).get("kind") == "chat":
                told = {value for name, value in json.loads(text, object_pairs_hook=list) if name == "from"}
                demand(told == {peer.id}, f"{peer.id!r} sent `from` twice, and what came has both: {text}")


@check("system.signed-by-gateway")
async def the_gateway_signs_what_it_says(stage: Stage) -> None:
    """`from` of a welcome, a presence and an error is `system:gateway`, and no participant has that id."""
    said = await gateway_says(stage)
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
async def nobody_can_be_invited_as_the_gateway(stage: Stage) -> None:
    """An invitation of `system:gateway` makes nobody speak under that name."""
    owner, peer = await stage.enter_all("owner", "peer")
    try:
        role = await invite(stage, owner, invitation(_GATEWAY))
    except NotOffered:  # refused, most likely
        await stage.come_through(owner, peer)
        return
    guest = await stage.join(role)
    demand(guest.id != _GATEWAY, f"who was invited as {_GATEWAY!r} is now a participant of that id")


@check("system.rejected")
async def nobody_sends_what_is_the_gateways(stage: Stage) -> None:
    """A `system/…` envelope of a participant is refused and reaches nobody, whatever the participant may."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for speaker in (owner, peer, listener):
        others = {owner, peer, listener} - {speaker}
        for kind in _RESERVED:
            await _refused(stage, speaker, kind, *others)
    for fields in ({"to": [peer.id]}, {"correlation_id": [owner.welcome["id"]]}, {"context": "system"}):
        for kind in _RESERVED[:4]:
            await _refused(stage, owner, kind, peer, listener, **fields)


@check("system.rejected")
async def no_capability_opens_what_is_the_gateways(stage: Stage) -> None:
    """A capability for `system/*`, where it can be given at all, lets nobody send it."""
    owner, peer = await stage.enter_all("owner", "peer")
    guest = await a_guest(stage)
    for pattern in ("system/*", "system/error", "*"):
        await grant(stage, owner, guest, {"kind": pattern})  # given or refused
        for kind in _RESERVED:
            await _refused(stage, guest, kind, owner, peer)


async def _refused(stage: Stage, speaker: Actor, kind: str, *others: Actor, **fields: Any) -> None:
    payload = {"error": "none", "event": "leave", "participant": {"id": speaker.id}}
    what = f"a {kind} that {speaker.id!r} sent (§4.1)"
    await refused(stage, speaker, await speaker.send(kind, payload, **fields), *others, what=what)
