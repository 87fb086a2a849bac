"""Connecting: who is let in, as whom, with which capabilities, and who is there (§5.1, §5.2, §8.1)."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from mew.conform.cast import DOOMED, TWIN, Join, Role
from mew.conform.checking import check
from mew.conform.giving import granted, revoke
from mew.conform.guests import invited, newcomer, somebody
from mew.conform.handshake import Approach, Refused
from mew.conform.matching import is_kind, part, same
from mew.conform.sayings import CHAT, PROPOSAL, fresh
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, Violation, demand
from mew.conform.wire import Actor

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
