"""What a token brings: the capabilities of its participant, and the spaces it opens (§5.1)."""

import json
from typing import Any, Final

from mew.conform.cast import ROLES, TWIN
from mew.conform.checking import check
from mew.conform.handshake import Approach
from mew.conform.holding import held_to
from mew.conform.matching import is_id, listed, same
from mew.conform.sayings import CALL, HELLO, Say, fresh
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, demand
from mew.conform.wire import Actor

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
