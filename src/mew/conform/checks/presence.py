"""Who joins and who leaves (§3.7)."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mew.conform.checking import check
from mew.conform.giving import grant
from mew.conform.guests import dismiss, newcomer, somebody
from mew.conform.matching import events, is_kind, joins, leaves, listed, part, same
from mew.conform.passing import passes
from mew.conform.sayings import CHAT, HELLO, PROPOSAL
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, Violation, demand
from mew.conform.wire import Actor

_is_presence = is_kind("system/presence")


async def _observers(stage: Stage) -> list[Actor]:
    """Owner and listener, and whom there are tokens for beside them."""
    others = [name for name in ("peer", "proposer", "reader", "granter") if name in stage.cast.roles]
    return await stage.enter_all("owner", "listener", *others)


@check("presence.join")
async def everyone_is_told_who_joins(stage: Stage) -> None:
    """When somebody connects everyone else is told once, and once more when it comes back."""
    observers = await _observers(stage)
    role = await newcomer(stage)
    for times in (1, 2):
        guest = await stage.join(role)
        for observer in observers:
            await observer.hear(joins(guest.id), f"a system/presence that {guest.id} joined (§3.7)")
        await stage.settle(guest, *observers)
        for observer in observers:
            joined = events(observer.received, guest.id).count("join")
            demand(
                joined == times, f"{observer.name} is told {joined} times that {guest.id} joined, not {times}"
            )
        await guest.leave()
        for observer in observers:
            with suppress(Violation):  # which is another requirement
                await observer.hear(leaves(guest.id), "that it left")


@check("presence.leave")
async def everyone_is_told_who_leaves(stage: Stage) -> None:
    """When a connection ends, closed or broken off, everyone else is told once, and not before."""
    observers = await _observers(stage)
    role = await newcomer(stage)
    for before, is_cut in enumerate((False, True, False)):
        guest = await stage.join(role)
        await stage.settle(guest, *observers)
        for observer in observers:
            gone = events(observer.received, guest.id).count("leave")
            demand(gone == before, f"{observer.name} is told that {guest.id} left, who is there (§3.7)")
        if is_cut:
            guest.cut()
        else:
            await guest.leave()
        how = "broke off" if is_cut else "closed"
        for observer in observers:
            await observer.hear(
                leaves(guest.id), f"a system/presence that {guest.id} left, who {how} its connection (§3.7)"
            )
        await stage.settle(observers[0], *observers[1:])
        await stage.settle(observers[1], observers[0])
        for observer in observers:
            gone = events(observer.received, guest.id).count("leave")
            demand(
                gone == before + 1,
                f"{observer.name} is told {gone} times that {guest.id} left, not {before + 1} (§3.7)",
            )


@check("presence.leave")
async def who_has_another_connection_has_not_left(stage: Stage) -> None:
    """Somebody with two connections leaves with the last of them; each may be told of, and then the joins are too."""
    owner = await stage.enter("owner")
    first = await somebody(stage)
    connections = await stage.twice(first, owner)
    if len(connections) < 2:
        raise NotOffered("a participant may have one connection here")
    first, second = connections
    await stage.settle(second, owner)
    joined = events(owner.received, first.id).count("join")
    await first.leave()
    await passes(stage, second, owner, HELLO, "on its second connection, after it closed the first")
    gone = events(owner.received, first.id).count("leave")
    demand(
        gone == 0 or gone < joined,
        f"{owner.name} is told that {first.id} left, who is there on its second connection (§3.7): "
        f"{events(owner.received, first.id)}",
    )
    there = listed((await stage.enter("peer")).welcome)
    demand(there.count(first.id) == 1, f"a welcome lists {there}; {first.id} is there, once")
    while owner.already(leaves(first.id)):
        continue  # that of the first connection
    await second.leave()
    await owner.hear(leaves(first.id), f"a system/presence that {first.id} left, with its last connection")


@check("presence.join")
async def who_had_two_connections_joins_again(stage: Stage) -> None:
    """Somebody who had two connections, and closed both, is told of when it comes back."""
    owner = await stage.enter("owner")
    connections = await stage.twice(await somebody(stage), owner)
    if len(connections) < 2:
        raise NotOffered("a participant may have one connection here")
    who = connections[0].id
    for connection in connections:
        await connection.leave()
    with suppress(Violation):  # which is another requirement
        await owner.hear(leaves(who), "that it left")
    await stage.settle(await stage.enter("peer"), owner)
    before = events(owner.received, who).count("join")
    third = await stage.join(connections[0].role)
    await stage.settle(third, owner)
    joined = events(owner.received, who).count("join")
    demand(
        joined == before + 1,
        f"{owner.name} is told {joined - before} times that {who} joined, who came back (§3.7)",
    )


# What a presence message has in it.


@dataclass(frozen=True, slots=True)
class _Scene:
    """Somebody came, was granted something, left, came again and was kicked: what was said of it, and to it."""

    who: str
    welcomes: list[dict[str, Any]]
    told: list[list[dict[str, Any]]]
    """What presence said to each of two observers."""

    @property
    def presences(self) -> list[dict[str, Any]]:
        return [presence for told in self.told for presence in told]


async def _scene(stage: Stage) -> _Scene:
    owner, peer = await stage.enter_all("owner", "peer")
    guest = await somebody(stage)
    welcomes = [guest.welcome]
    await stage.settle(guest, owner)
    await grant(stage, owner, guest, PROPOSAL.capability)
    await guest.send("system/register", {"capabilities": [CHAT]})  # not its to send
    await stage.come_through(guest, owner)
    if guest.welcome is not welcomes[0]:
        welcomes.append(guest.welcome)  # it was cut off, and came back
    await guest.leave()
    with suppress(Violation):  # which is another requirement
        await owner.hear(leaves(guest.id), "that it left")
    await stage.come_back(guest)
    welcomes.append(guest.welcome)
    await stage.settle(guest, owner)
    if guest.name in stage.cast.roles:
        await guest.leave()
    else:
        await dismiss(stage, guest.id, owner)
    with suppress(Violation):
        await owner.hear(leaves(guest.id), "that it left")
    await stage.settle(owner, peer)
    told = [observer.heard(_is_presence) for observer in (owner, peer)]
    demand(all(told), f"{guest.id} came and left twice, and no system/presence says so (§3.7)")
    return _Scene(guest.id, welcomes, told)


@check("presence.event")
async def presence_is_join_or_leave(stage: Stage) -> None:
    """`event` of every presence message is `join` or `leave`, whatever happens to a participant."""
    scene = await _scene(stage)
    found = [part(one, "payload", "event") for one in scene.presences]
    wrong = [one for one in found if one not in ("join", "leave")]
    demand(not wrong, f"a system/presence has the event {wrong[:1]}; it is `join` or `leave` (§3.7)")
    for event in ("join", "leave"):
        demand(
            event in found, f"somebody came and left, and no system/presence has the event {event!r} (§3.7)"
        )


@check("presence.participant")
async def presence_has_a_participant(stage: Stage) -> None:
    """`participant` of every presence message, join or leave, is an object."""
    for presence in (await _scene(stage)).presences:
        participant = part(presence, "payload", "participant")
        demand(isinstance(participant, dict), f"`participant` is not an object (§3.7): {presence}")


@check("presence.participant-id")
async def presence_names_who_it_is_about(stage: Stage) -> None:
    """`participant.id` of every presence message, join or leave, is the id under which that one sends."""
    scene = await _scene(stage)
    for presence in scene.presences:
        who = part(presence, "payload", "participant", "id")
        demand(isinstance(who, str) and who, f"`participant.id` is {who!r} (§3.7): {presence}")
    for event in ("join", "leave"):
        named = event in events(scene.presences, scene.who)
        demand(named, f"{scene.who} came and left, and no {event} has that as `participant.id` (§3.7)")


@check("presence.capabilities")
async def a_join_says_what_the_newcomer_holds(stage: Stage) -> None:
    """`participant.capabilities` of a join is what the welcome told the newcomer, also after a grant."""
    scene = await _scene(stage)
    for told in scene.told:
        joined = [one for one in told if joins(scene.who)(one)]
        demand(joined, f"no system/presence says that {scene.who} joined (§3.7)")
        for presence, welcome in zip(joined, scene.welcomes, strict=False):
            found = part(presence, "payload", "participant", "capabilities")
            own = part(welcome, "payload", "you", "capabilities")
            message = f"a join lists {found} as the capabilities of {scene.who}, its welcome {own} (§3.7)"
            demand(same(found, own), message)
