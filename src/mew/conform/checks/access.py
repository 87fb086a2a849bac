"""Connecting: who is let in, as whom, and with which capabilities (§5.1, §5.2, §8.1)."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from mew.conform.connection import Actor, Approach, Refused
from mew.conform.context import Stage
from mew.conform.drafts import CALL, CHAT, HELLO, PROPOSAL, Say, fresh
from mew.conform.expectations import held_to
from mew.conform.fixtures import granted, invited, newcomer, revoke, somebody
from mew.conform.match import is_id, is_kind, listed, part, same
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.roles import DOOMED, ROLES, TWIN, Join, Role
from mew.conform.runner import check

_NAMES: Final = ("participant_id", "participantId", "participant", "id", "from", "user")
_HEADERS: Final = ("X-Participant-Id", "X-Mew-Participant", "X-Mew-Participant-Id", "X-User", "From")


@check("connect.websocket")
async def a_token_in_the_header_opens_a_websocket(stage: Stage) -> None:
    """`GET /ws?space=<name>` with `Authorization: Bearer <token>` is upgraded and leads into the space."""
    held: dict[str, Actor] = {}
    for name, role in stage.cast.roles.items():
        if name in (TWIN, DOOMED):  # who may be there already, or be gone for good
            continue
        try:
            held[name] = await stage.connect(role, approach=Approach(Join.HEADER))
        except Refused as error:
            raise Violation(
                f"GET /ws?space={stage.cast.space} with the bearer token of {name} in the Authorization header "
                f"is refused: {error}; expected 101 (§5.2)"
            ) from error
        await stage.welcomed(held[name])
    if len(held) > 1:
        speaker, *others = held.values()
        await stage.settle(speaker, *others)


@check("connect.token-validated")
async def a_wrong_token_opens_nothing(stage: Stage) -> None:
    """Who brings an unknown or empty token, one cut short, longer or in other letters, or an id, stays outside."""
    owner, peer, right = await stage.enter("owner"), await stage.enter("peer"), stage.role("listener")
    wrong = {
        fresh(): "an unknown token",
        right.token[:-1]: "a token cut short",
        f"{right.token}0": "a token with a sign too many",
        right.token.swapcase(): "a token in other letters",
        right.id or right.name: "an id in place of a token",
    }
    known = {role.token for role in stage.cast.roles.values()}
    strangers = [
        Role(f"somebody with {what}", token, right.id or right.name)
        for token, what in wrong.items()
        if token and token not in known
    ]
    nobody, header = Role("somebody with an empty token", ""), Approach(headers={"Authorization": "Bearer "})
    without = await stage.let_in(nobody)
    tried = await asyncio.gather(*(_knock(stage, role) for role in strangers))
    if without is None:  # else the gateway lets in who has no token, which is up to it
        tried.append(await _knock(stage, nobody, header))
    await stage.settle(owner, peer)
    for stranger in tried:
        if stranger is not None:
            await _stays_outside(stage, stranger, owner, peer)
    if without is None and any(tried):
        joined = [e for e in owner.heard(is_kind("system/presence")) if part(e, "payload", "event") == "join"]
        seen = {str(part(e, "payload", "participant", "id")) for e in joined} - {owner.id, peer.id}
        demand(not seen, f"somebody joined with a wrong token (§5.2): {', '.join(sorted(seen))}")


async def _knock(stage: Stage, role: Role, approach: Approach | None = None) -> Actor | None:
    """A connection that is open now, welcomed or not; None: not let in."""
    try:
        return await stage.connect(role, approach=approach)
    except (Refused, Violation):
        return None


async def _stays_outside(stage: Stage, stranger: Actor, owner: Actor, peer: Actor) -> None:
    """Closed, or left alone: after its time is over it has been told nothing but that it is wrong."""
    stranger.id, words = owner.id, fresh()
    with suppress(Violation):
        await stranger.send("chat", {"text": words})
    with suppress(Violation):
        await stranger.disconnected("as it brought a wrong token")
    await stage.settle(owner, peer)
    welcomes = stranger.heard(is_kind("system/welcome"))
    demand(not welcomes, f"the gateway welcomed {stranger.name} (§5.2): {welcomes[:1]}")
    told = stranger.heard(lambda e: e.get("kind") != "system/error")
    demand(not told, f"the gateway showed {stranger.name} what is said in the space (§5.2): {told[:1]}")
    heard = [text for text in peer.texts if words in text]
    demand(not heard, f"the gateway took an envelope from {stranger.name} (§5.2): {heard[:1]}")


@check("connect.token-to-id")
async def the_token_alone_says_who_one_is(stage: Stage) -> None:
    """Each token has its id, every time, and nothing in the URL, the headers or a first message changes it."""
    actors = {name: await stage.enter(name) for name in stage.cast.roles if name not in (TWIN, DOOMED)}
    ids = {name: actor.id for name, actor in actors.items()}
    for name, who in ids.items():
        shared = [other for other, id_ in ids.items() if id_ == who and other != name]
        demand(not shared, f"the tokens of {name} and {', '.join(shared)} give the same id, {who!r} (§5.2)")
    for name, actor in actors.items():
        again = (await stage.rejoin(actor)).id
        demand(
            again == ids[name], f"the token of {name} gave the id {ids[name]!r}, and then {again!r} (§5.2)"
        )
    name = next(name for name in ("listener", "peer", "owner") if name in ids)
    await actors[name].leave()
    for claimed in (ids["owner"], f"made-up-{fresh()[-8:]}"):
        for claim in (
            Approach(query=dict.fromkeys(_NAMES, claimed)),
            Approach(headers=dict.fromkeys(_HEADERS, claimed)),
            Approach(query={"participant_id": claimed}),
            Approach(),  # who joins by a first message names itself there
        ):
            claiming = await stage.let_in(replace(stage.role(name), id=claimed), approach=claim)
            if claiming is None:
                continue
            demand(
                claiming.id == ids[name],
                f"with the token of {name} and a claim to be {claimed!r} one is {claiming.id!r}, "
                f"not {ids[name]!r} (§5.2)",
            )
            await claiming.leave()


@check("connect.state-tracked")
async def the_gateway_knows_who_is_there(stage: Stage) -> None:
    """A welcome lists who is connected, once and with its own capabilities, until its last connection ends."""
    owner = await stage.enter("owner")
    one, two = await _two(stage)
    first = await stage.join(one)
    _lists(await stage.rejoin(owner), first)
    early = _entries(owner, two.id or two.name)
    demand(not early, f"a welcome lists {early[:1]}, who has not connected yet (§8.1)")
    second = await stage.join(two)
    _lists(second, first)
    for actor in (first, second):
        _lists(await stage.rejoin(owner), actor)
    connections = await stage.twice(first, second)
    _lists(await stage.rejoin(owner), first)
    while len(connections) > 1:
        await connections.pop(0).leave()
        await stage.settle(second, owner)
        _lists(await stage.rejoin(owner), first)
    await connections[0].leave()
    await _gone(stage, owner, first)
    _lists(await stage.rejoin(owner), second)
    back = await stage.join(one)
    _lists(await stage.rejoin(owner), back)
    for actor in stage.actors:
        if actor.id in (first.id, second.id):
            await actor.leave()
    for actor in (first, second):
        await _gone(stage, owner, actor)


@check("connect.state-tracked")
async def the_gateway_knows_what_they_hold_now(stage: Stage) -> None:
    """A welcome lists each with what it holds at the moment, also after a grant and a revocation."""
    owner, listener, guest = *await stage.enter_all("owner", "listener"), await somebody(stage)
    given = PROPOSAL.capability
    grant_id = await granted(stage, owner, guest, given, shown=PROPOSAL)
    (entry,) = _entries(await stage.rejoin(listener), guest.id)
    demand(
        given in entry["capabilities"], f"{guest.name} was granted {given}; a welcome lists {entry} (§8.1)"
    )
    await revoke(stage, owner, guest, grant_id=grant_id)
    (entry,) = _entries(await stage.rejoin(listener), guest.id)
    demand(given not in entry["capabilities"], f"{given} was revoked; a welcome lists {entry} (§8.1)")


async def _two(stage: Stage) -> tuple[Role, Role]:
    with suppress(NotOffered):
        return await invited(stage, CHAT, {"kind": "mcp/*"}), await invited(stage)
    return await newcomer(stage), await newcomer(stage)


def _entries(observer: Actor, who: str) -> list[Any]:
    listed = part(observer.welcome, "payload", "participants")
    demand(isinstance(listed, list), f"`participants` of a welcome is {listed!r}, not a list (§3.8.1)")
    return [one for one in listed if part(one, "id") == who]


def _lists(observer: Actor, who: Actor) -> None:
    """The welcome that the observer has just had lists somebody, once and as its own welcome does."""
    found = _entries(observer, who.id)
    demand(
        len(found) == 1,
        f"the welcome of {observer.name} lists {who.name}, who is connected, {len(found)} times, not 1 (§8.1)",
    )
    held = part(found[0], "capabilities")
    demand(
        same(held, who.capabilities),
        f"the welcome of {observer.name} lists {who.name} with {held!r}, its own says {who.capabilities!r} (§8.1)",
    )


async def _gone(stage: Stage, observer: Actor, who: Actor) -> None:
    """No welcome lists it any more, within the patience that there is for it."""
    found: list[Any] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(stage.cast.patience_s):
            while found := _entries(await stage.rejoin(observer), who.id):
                pass
            return
    raise Violation(
        f"{who.name} has left and welcomes still list it after {stage.cast.patience_s:g} s: {found} (§8.1)"
    )


_EVERYTHING: Final = json.dumps([{"kind": "*"}])


@check("authentication.capabilities")
async def capabilities_come_from_the_gateway(stage: Stage) -> None:
    """The same token gets the same list, whatever a client claims, and claims in an envelope open nothing."""
    owner, listener = await stage.enter_all("owner", "listener")
    first, peers = listener.capabilities, (await stage.enter("peer")).capabilities
    for name, held, others in (("listener", first, peers), ("peer", peers, first)):
        demand(isinstance(held, list), f"the welcome of {name} lists no capabilities: {held!r} (§5.2)")
        lacking = [one for one in ROLES[name][0] if one not in held]
        demand(not lacking, f"the welcome of {name} does not list {lacking}: {held!r} (§5.2)")
        beyond = [one for one in held if one not in ROLES[name][0] and one not in others]
        demand(
            not beyond,
            f"the welcome of {name} lists {beyond}, which was given neither to it nor to everyone (§5.2)",
        )
    for connection in await stage.twice(listener, owner):
        await _given(stage, connection, owner, first)
        await connection.leave()
    await _given(stage, await stage.come_back(listener), owner, first)
    await listener.leave()
    for claim in (
        Approach(query={"capabilities": _EVERYTHING, "role": "owner", "profile": "owner"}),
        Approach(
            headers={"X-Capabilities": _EVERYTHING, "X-Mew-Capabilities": _EVERYTHING, "X-Role": "owner"}
        ),
    ):
        claiming = await stage.let_in(listener.role, approach=claim)
        if claiming is not None:
            await _given(stage, claiming, owner, first)
            await claiming.leave()


async def _given(stage: Stage, listener: Actor, owner: Actor, first: list[Any]) -> None:
    """It has what it had the first time, whatever it claims now."""
    held = listener.capabilities
    demand(same(first, held), f"the same token gets {held!r} this time, {first!r} before (§5.1)")
    wide = {"capabilities": [{"kind": "*"}], "your_capabilities": [{"kind": "*"}]}
    claims = [Say("mcp/request", {**wide, "you": wide}, wide), Say("mcp/proposal", {}, wide)]
    await held_to(stage, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=[CALL, *claims])


@check("authentication.by-token")
async def tokens_stand_for_sets(stage: Stage) -> None:
    """Two tokens get two different lists, each its own every time, and each is held to its own."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    lists = {one.name: one.capabilities for one in (owner, peer, listener)}
    if same(lists["peer"], lists["listener"]):
        raise NotOffered("all tokens get the same capabilities here")
    now: dict[str, Actor] = {}
    for actor in (listener, peer, listener, owner):
        again = await stage.another(actor) or await stage.rejoin(actor)
        now[actor.name], held = again, again.capabilities
        demand(
            same(held, lists[actor.name]),
            f"the token of {actor.name} gets {held!r} once others are there, {lists[actor.name]!r} before (§5.1)",
        )
    await held_to(stage, now["peer"], now["owner"], lists["peer"], passing=[CALL])
    await held_to(stage, now["listener"], now["owner"], lists["listener"], passing=[HELLO], refused=[CALL])


@check("authentication.by-identity")
async def capabilities_hang_on_the_identity(stage: Stage) -> None:
    """Two tokens of one participant get the same list, and both are held to it."""
    twin = stage.role(TWIN)
    owner, peer = await stage.enter_all("owner", "peer")
    refused = [Say("participant/clear"), Say("space/kick", {"participant_id": "nobody"}), Say("mcpx/request")]
    await held_to(stage, peer, owner, ROLES["peer"][0], passing=[HELLO, CALL], refused=refused)
    await peer.leave()  # one connection at a time: some gateways allow no more
    again = await stage.join(twin)
    if again.id != peer.id:
        raise NotOffered(f"{TWIN} is {again.id!r} and peer is {peer.id!r}: two participants")
    if not same(again.capabilities, peer.capabilities):
        raise NotOffered("two tokens of one participant get different capabilities here")
    await held_to(stage, again, owner, ROLES["peer"][0], passing=[HELLO, CALL], refused=refused)


@check("authentication.space-access")
async def a_space_is_open_or_closed(stage: Stage) -> None:
    """A token of this space opens no other, or one that is open to all; it never leads here by another name."""
    owner, peer = await stage.enter_all("owner", "peer")
    elsewhere = stage.cast.elsewhere
    spaces = [f"{stage.cast.space}-{fresh()[-8:]}", *([] if elsewhere is None else [elsewhere.space])]
    for space in spaces:
        visitor = await stage.let_in(stage.role("listener"), space=space)
        said = await owner.send("chat", {"text": f"not for {space}"})
        await stage.settle(owner, peer)
        await stage.settle(owner, peer)  # by then it would be there as well
        if visitor is None or visitor.is_closed:
            continue
        leaked = visitor.heard(is_id(said["id"]))
        demand(
            not leaked,
            f"who asked for the space {space!r} is in {stage.cast.space!r} and hears what is said there (§5.1); "
            f"its welcome lists {listed(visitor.welcome)}",
        )
