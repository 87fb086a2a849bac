"""Connecting: who is let in, as whom, and with which capabilities (§5.1, §5.2, §8.1)."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from mew.conform.connection import ConnectOptions, ScriptedClient, UpgradeRefused
from mew.conform.context import CheckContext
from mew.conform.drafts import CALL, CHAT, HELLO, PROPOSAL, Draft, unique_word
from mew.conform.expectations import expect_enforced
from mew.conform.fixtures import granted, invited, newcomer, revoke, somebody
from mew.conform.match import is_id, is_kind, listed, part, same
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.roles import KICKED, PEER_SECOND_TOKEN, ROLES, JoinMethod, Role
from mew.conform.runner import check

_NAMES: Final = ("participant_id", "participantId", "participant", "id", "from", "user")
_HEADERS: Final = ("X-Participant-Id", "X-Mew-Participant", "X-Mew-Participant-Id", "X-User", "From")


@check("connect.websocket")
async def a_token_in_the_header_opens_a_websocket(ctx: CheckContext) -> None:
    """`GET /ws?space=<name>` with `Authorization: Bearer <token>` is upgraded and leads into the space."""
    held: dict[str, ScriptedClient] = {}
    for name, role in ctx.config.roles.items():
        if name in (PEER_SECOND_TOKEN, KICKED):  # who may be there already, or be gone for good
            continue
        try:
            held[name] = await ctx.connect(role, options=ConnectOptions(JoinMethod.HEADER))
        except UpgradeRefused as error:
            raise Violation(
                f"GET /ws?space={ctx.config.space} with the bearer token of {name} in the Authorization header "
                f"is refused: {error}; expected 101 (§5.2)"
            ) from error
        await ctx.welcomed(held[name])
    if len(held) > 1:
        sender, *others = held.values()
        await ctx.barrier(sender, *others)


@check("connect.token-validated")
async def a_wrong_token_opens_nothing(ctx: CheckContext) -> None:
    """Who brings an unknown or empty token, one cut short, longer or in other letters, or an id, stays outside."""
    owner, peer, right = await ctx.client("owner"), await ctx.client("peer"), ctx.role("listener")
    wrong = {
        unique_word(): "an unknown token",
        right.token[:-1]: "a token cut short",
        f"{right.token}0": "a token with a sign too many",
        right.token.swapcase(): "a token in other letters",
        right.id or right.name: "an id in place of a token",
    }
    known = {role.token for role in ctx.config.roles.values()}
    strangers = [
        Role(f"somebody with {what}", token, right.id or right.name)
        for token, what in wrong.items()
        if token and token not in known
    ]
    nobody, header = (
        Role("somebody with an empty token", ""),
        ConnectOptions(headers={"Authorization": "Bearer "}),
    )
    without = await ctx.try_join(nobody)
    tried = await asyncio.gather(*(_connect_with_retry(ctx, role) for role in strangers))
    if without is None:  # else the gateway lets in who has no token, which is up to it
        tried.append(await _connect_with_retry(ctx, nobody, header))
    await ctx.barrier(owner, peer)
    for stranger in tried:
        if stranger is not None:
            await _stays_outside(ctx, stranger, owner, peer)
    if without is None and any(tried):
        joined = [
            e for e in owner.matching(is_kind("system/presence")) if part(e, "payload", "event") == "join"
        ]
        seen = {str(part(e, "payload", "participant", "id")) for e in joined} - {owner.id, peer.id}
        demand(not seen, f"somebody joined with a wrong token (§5.2): {', '.join(sorted(seen))}")


async def _connect_with_retry(
    ctx: CheckContext, role: Role, options: ConnectOptions | None = None
) -> ScriptedClient | None:
    """A connection that is open now, welcomed or not; None: not let in."""
    try:
        return await ctx.connect(role, options=options)
    except (UpgradeRefused, Violation):
        return None


async def _stays_outside(
    ctx: CheckContext, stranger: ScriptedClient, owner: ScriptedClient, peer: ScriptedClient
) -> None:
    """Closed, or left alone: after its time is over it has been told nothing but that it is wrong."""
    stranger.id, words = owner.id, unique_word()
    with suppress(Violation):
        await stranger.send("chat", {"text": words})
    with suppress(Violation):
        await stranger.disconnected("as it brought a wrong token")
    await ctx.barrier(owner, peer)
    welcomes = stranger.matching(is_kind("system/welcome"))
    demand(not welcomes, f"the gateway welcomed {stranger.name} (§5.2): {welcomes[:1]}")
    told = stranger.matching(lambda e: e.get("kind") != "system/error")
    demand(not told, f"the gateway showed {stranger.name} what is said in the space (§5.2): {told[:1]}")
    heard = [text for text in peer.texts if words in text]
    demand(not heard, f"the gateway took an envelope from {stranger.name} (§5.2): {heard[:1]}")


@check("connect.token-to-id")
async def the_token_alone_says_who_one_is(ctx: CheckContext) -> None:
    """Each token has its id, every time, and nothing in the URL, the headers or a first message changes it."""
    actors = {
        name: await ctx.client(name) for name in ctx.config.roles if name not in (PEER_SECOND_TOKEN, KICKED)
    }
    ids = {name: client.id for name, client in actors.items()}
    for name, who in ids.items():
        shared = [other for other, id_ in ids.items() if id_ == who and other != name]
        demand(not shared, f"the tokens of {name} and {', '.join(shared)} give the same id, {who!r} (§5.2)")
    for name, client in actors.items():
        again = (await ctx.rejoin(client)).id
        demand(
            again == ids[name], f"the token of {name} gave the id {ids[name]!r}, and then {again!r} (§5.2)"
        )
    name = next(name for name in ("listener", "peer", "owner") if name in ids)
    await actors[name].leave()
    for claimed in (ids["owner"], f"made-up-{unique_word()[-8:]}"):
        for claim in (
            ConnectOptions(query=dict.fromkeys(_NAMES, claimed)),
            ConnectOptions(headers=dict.fromkeys(_HEADERS, claimed)),
            ConnectOptions(query={"participant_id": claimed}),
            ConnectOptions(),  # who joins by a first message names itself there
        ):
            claiming = await ctx.try_join(replace(ctx.role(name), id=claimed), options=claim)
            if claiming is None:
                continue
            demand(
                claiming.id == ids[name],
                f"with the token of {name} and a claim to be {claimed!r} one is {claiming.id!r}, "
                f"not {ids[name]!r} (§5.2)",
            )
            await claiming.leave()


@check("connect.state-tracked")
async def the_gateway_knows_who_is_there(ctx: CheckContext) -> None:
    """A welcome lists who is connected, once and with its own capabilities, until its last connection ends."""
    owner = await ctx.client("owner")
    one, two = await _two(ctx)
    first = await ctx.join(one)
    _lists(await ctx.rejoin(owner), first)
    early = _entries(owner, two.id or two.name)
    demand(not early, f"a welcome lists {early[:1]}, who has not connected yet (§8.1)")
    second = await ctx.join(two)
    _lists(second, first)
    for client in (first, second):
        _lists(await ctx.rejoin(owner), client)
    connections = await ctx.connect_twice(first, second)
    _lists(await ctx.rejoin(owner), first)
    while len(connections) > 1:
        await connections.pop(0).leave()
        await ctx.barrier(second, owner)
        _lists(await ctx.rejoin(owner), first)
    await connections[0].leave()
    await _gone(ctx, owner, first)
    _lists(await ctx.rejoin(owner), second)
    back = await ctx.join(one)
    _lists(await ctx.rejoin(owner), back)
    for client in ctx.all_clients:
        if client.id in (first.id, second.id):
            await client.leave()
    for client in (first, second):
        await _gone(ctx, owner, client)


@check("connect.state-tracked")
async def the_gateway_knows_what_they_hold_now(ctx: CheckContext) -> None:
    """A welcome lists each with what it holds at the moment, also after a grant and a revocation."""
    owner, listener, guest = *await ctx.clients("owner", "listener"), await somebody(ctx)
    given = PROPOSAL.capability
    grant_id = await granted(ctx, owner, guest, given, shown=PROPOSAL)
    (entry,) = _entries(await ctx.rejoin(listener), guest.id)
    demand(
        given in entry["capabilities"], f"{guest.name} was granted {given}; a welcome lists {entry} (§8.1)"
    )
    await revoke(ctx, owner, guest, grant_id=grant_id)
    (entry,) = _entries(await ctx.rejoin(listener), guest.id)
    demand(given not in entry["capabilities"], f"{given} was revoked; a welcome lists {entry} (§8.1)")


async def _two(ctx: CheckContext) -> tuple[Role, Role]:
    with suppress(NotOffered):
        return await invited(ctx, CHAT, {"kind": "mcp/*"}), await invited(ctx)
    return await newcomer(ctx), await newcomer(ctx)


def _entries(observer: ScriptedClient, who: str) -> list[Any]:
    listed = part(observer.welcome, "payload", "participants")
    demand(isinstance(listed, list), f"`participants` of a welcome is {listed!r}, not a list (§3.8.1)")
    return [one for one in listed if part(one, "id") == who]


def _lists(observer: ScriptedClient, who: ScriptedClient) -> None:
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


async def _gone(ctx: CheckContext, observer: ScriptedClient, who: ScriptedClient) -> None:
    """No welcome lists it any more, within the patience that there is for it."""
    found: list[Any] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(ctx.config.timeout_s):
            while found := _entries(await ctx.rejoin(observer), who.id):
                pass
            return
    raise Violation(
        f"{who.name} has left and welcomes still list it after {ctx.config.timeout_s:g} s: {found} (§8.1)"
    )


_EVERYTHING: Final = json.dumps([{"kind": "*"}])


@check("authentication.capabilities")
async def capabilities_come_from_the_gateway(ctx: CheckContext) -> None:
    """The same token gets the same list, whatever a client claims, and claims in an envelope open nothing."""
    owner, listener = await ctx.clients("owner", "listener")
    first, peers = listener.capabilities, (await ctx.client("peer")).capabilities
    for name, held, others in (("listener", first, peers), ("peer", peers, first)):
        demand(isinstance(held, list), f"the welcome of {name} lists no capabilities: {held!r} (§5.2)")
        lacking = [one for one in ROLES[name][0] if one not in held]
        demand(not lacking, f"the welcome of {name} does not list {lacking}: {held!r} (§5.2)")
        beyond = [one for one in held if one not in ROLES[name][0] and one not in others]
        demand(
            not beyond,
            f"the welcome of {name} lists {beyond}, which was given neither to it nor to everyone (§5.2)",
        )
    for connection in await ctx.connect_twice(listener, owner):
        await _given(ctx, connection, owner, first)
        await connection.leave()
    await _given(ctx, await ctx.reconnect(listener), owner, first)
    await listener.leave()
    for claim in (
        ConnectOptions(query={"capabilities": _EVERYTHING, "role": "owner", "profile": "owner"}),
        ConnectOptions(
            headers={"X-Capabilities": _EVERYTHING, "X-Mew-Capabilities": _EVERYTHING, "X-Role": "owner"}
        ),
    ):
        claiming = await ctx.try_join(listener.role, options=claim)
        if claiming is not None:
            await _given(ctx, claiming, owner, first)
            await claiming.leave()


async def _given(
    ctx: CheckContext, listener: ScriptedClient, owner: ScriptedClient, first: list[Any]
) -> None:
    """It has what it had the first time, whatever it claims now."""
    held = listener.capabilities
    demand(same(first, held), f"the same token gets {held!r} this time, {first!r} before (§5.1)")
    wide = {"capabilities": [{"kind": "*"}], "your_capabilities": [{"kind": "*"}]}
    claims = [Draft("mcp/request", {**wide, "you": wide}, wide), Draft("mcp/proposal", {}, wide)]
    await expect_enforced(
        ctx, listener, owner, ROLES["listener"][0], passing=[HELLO], refused=[CALL, *claims]
    )


@check("authentication.by-token")
async def tokens_stand_for_sets(ctx: CheckContext) -> None:
    """Two tokens get two different lists, each its own every time, and each is held to its own."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    lists = {one.name: one.capabilities for one in (owner, peer, listener)}
    if same(lists["peer"], lists["listener"]):
        raise NotOffered("all tokens get the same capabilities here")
    now: dict[str, ScriptedClient] = {}
    for client in (listener, peer, listener, owner):
        again = await ctx.second_connection(client) or await ctx.rejoin(client)
        now[client.name], held = again, again.capabilities
        demand(
            same(held, lists[client.name]),
            f"the token of {client.name} gets {held!r} once others are there, {lists[client.name]!r} before (§5.1)",
        )
    await expect_enforced(ctx, now["peer"], now["owner"], lists["peer"], passing=[CALL])
    await expect_enforced(
        ctx, now["listener"], now["owner"], lists["listener"], passing=[HELLO], refused=[CALL]
    )


@check("authentication.by-identity")
async def capabilities_hang_on_the_identity(ctx: CheckContext) -> None:
    """Two tokens of one participant get the same list, and both are held to it."""
    twin = ctx.role(PEER_SECOND_TOKEN)
    owner, peer = await ctx.clients("owner", "peer")
    refused = [
        Draft("participant/clear"),
        Draft("space/kick", {"participant_id": "nobody"}),
        Draft("mcpx/request"),
    ]
    await expect_enforced(ctx, peer, owner, ROLES["peer"][0], passing=[HELLO, CALL], refused=refused)
    await peer.leave()  # one connection at a time: some gateways allow no more
    again = await ctx.join(twin)
    if again.id != peer.id:
        raise NotOffered(f"{PEER_SECOND_TOKEN} is {again.id!r} and peer is {peer.id!r}: two participants")
    if not same(again.capabilities, peer.capabilities):
        raise NotOffered("two tokens of one participant get different capabilities here")
    await expect_enforced(ctx, again, owner, ROLES["peer"][0], passing=[HELLO, CALL], refused=refused)


@check("authentication.space-access")
async def a_space_is_open_or_closed(ctx: CheckContext) -> None:
    """A token of this space opens no other, or one that is open to all; it never leads here by another name."""
    owner, peer = await ctx.clients("owner", "peer")
    second_space = ctx.config.second_space
    spaces = [
        f"{ctx.config.space}-{unique_word()[-8:]}",
        *([] if second_space is None else [second_space.space]),
    ]
    for space in spaces:
        visitor = await ctx.try_join(ctx.role("listener"), space=space)
        said = await owner.send("chat", {"text": f"not for {space}"})
        await ctx.barrier(owner, peer)
        await ctx.barrier(owner, peer)  # by then it would be there as well
        if visitor is None or visitor.is_closed:
            continue
        leaked = visitor.matching(is_id(said["id"]))
        demand(
            not leaked,
            f"who asked for the space {space!r} is in {ctx.config.space!r} and hears what is said there (§5.1); "
            f"its welcome lists {listed(visitor.welcome)}",
        )
