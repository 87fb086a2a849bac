"""Rooms of one space over one journal: whatever each knew when it judged, the order of the journal decides."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from tests.contract.shared_journal import Node, Peer, SharedLog
from tests.space.table import capabilities

from mew.gateway.room.ports import AcceptedPost
from mew.protocol.envelope import ParticipantId
from mew.space import Rules

RULES = Rules(
    id="desk",
    profiles={
        ParticipantId("ann"): capabilities(["*"]),
        ParticipantId("bob"): capabilities(["chat", "space/invite"]),
    },
)


class Desk(NamedTuple):
    """Ann is at the first node, bob at the second."""

    first: Node
    second: Node
    ann: Peer
    bob: Peer

    def follow(self) -> None:
        self.first.follow()
        self.second.follow()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    log = SharedLog()
    nodes = [Node(log, RULES), Node(log, RULES)]
    for node in nodes:
        await node.settled()
    people = [Peer(node, who) for node, who in zip(nodes, ("ann", "bob"), strict=True)]
    made = Desk(*nodes, *people)  # type: ignore[arg-type]  # two nodes and two people
    joining = [asyncio.ensure_future(person.join()) for person in people]
    await asyncio.sleep(0)
    for node in nodes:
        await node.settled()
    made.follow()
    await asyncio.gather(*joining)
    yield made
    assert made.first.room.space.state == made.second.room.space.state


async def test_everyone_sees_one_order(desk: Desk) -> None:
    for n in range(3):
        desk.ann.say("chat", {"text": "from ann"}, id=f"a{n}")
        await desk.first.settled()
        desk.bob.say("chat", {"text": "from bob"}, id=f"b{n}")
        await desk.second.settled()
    desk.follow()
    seen = [[one["id"] for one in person.kinds("chat")] for person in (desk.ann, desk.bob)]
    assert seen == [["a0", "b0", "a1", "b1", "a2", "b2"]] * 2


async def test_what_was_accepted_before_a_revocation_came_round_is_refused_after_it(desk: Desk) -> None:
    desk.ann.say("capability/revoke", {"recipient": "bob", "capabilities": ["chat"]}, id="r1")
    await desk.first.settled()
    desk.bob.say(
        "chat", {"text": "too late"}, id="late"
    )  # the second node does not know of the revocation yet
    await desk.second.settled()
    desk.follow()
    assert not desk.ann.kinds("chat")
    [refused] = desk.bob.kinds("system/error")
    assert refused["correlation_id"] == ["late"]
    assert refused["payload"]["error"] == "capability_violation"
    assert not desk.ann.kinds("system/error"), "only the node it came to tells its sender"


async def test_what_comes_before_a_revocation_in_the_order_is_delivered(desk: Desk) -> None:
    desk.bob.say("chat", {"text": "just in time"}, id="early")
    await desk.second.settled()
    desk.ann.say("capability/revoke", {"recipient": "bob", "capabilities": ["chat"]}, id="r1")
    await desk.first.settled()
    desk.follow()
    assert [one["id"] for one in desk.ann.kinds("chat")] == ["early"]
    assert not desk.bob.kinds("system/error")


async def test_an_id_used_on_two_nodes_at_once_is_the_firsts(desk: Desk) -> None:
    desk.ann.say("chat", {"text": "from ann"}, id="same")
    await desk.first.settled()
    desk.bob.say("chat", {"text": "from bob"}, id="same")
    desk.bob.say("chat", {"text": "from bob"}, id="other")
    await desk.second.settled()
    desk.follow()
    for person in (desk.ann, desk.bob):
        assert [(one["from"], one["id"]) for one in person.kinds("chat")] == [
            ("ann", "same"),
            ("bob", "other"),
        ]
    [refused] = desk.bob.kinds("system/error")
    assert refused["payload"]["error"] == "duplicate_id"


async def test_who_was_kicked_meanwhile_is_not_heard(desk: Desk) -> None:
    desk.ann.say("space/kick", {"participant_id": "bob"}, id="k1")
    await desk.first.settled()
    desk.bob.say("chat", {"text": "still here"}, id="late")
    await desk.second.settled()
    desk.follow()
    assert not desk.ann.kinds("chat")
    assert desk.bob.closed == (4503, "kicked by ann")


async def test_the_node_that_made_a_token_hands_it_over_and_no_other(desk: Desk) -> None:
    posted = asyncio.ensure_future(
        desk.second.room.post(
            ParticipantId("bob"),
            b'{"protocol":"mew/v0.4","id":"i1","from":"bob","kind":"space/invite","payload":{"participant_id":"zoe"}}',
        )
    )
    await asyncio.sleep(0)
    await desk.second.settled()
    desk.first.follow()
    assert not posted.done(), "it is answered when it comes round where it was posted"
    desk.second.follow()
    outcome = await posted
    assert isinstance(outcome, AcceptedPost)
    assert outcome.reply is not None
    assert outcome.reply.content["token"]
    assert not desk.ann.kinds("space/invite-ack")
    assert desk.ann.kinds("space/invite") == desk.bob.kinds("space/invite") != []
