"""Rooms of one space over one journal: whatever each knew when it judged, the order of the journal decides."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace
from tests.nodes.shared_journal import Node, Peer, SharedLog
from tests.space.table import capabilities

from mew.gateway.config.settings import Limits
from mew.gateway.room.other_nodes import OtherNodes
from mew.gateway.room.ports import AcceptedPost
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.space import NodeLeft, Rules

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
    log: SharedLog

    async def follow(self) -> None:
        """All that is under way comes round, and what follows from it."""
        for _ in range(4):
            for node in (self.first, self.second):
                await node.settled()
                node.take()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    log = SharedLog()
    nodes = [Node(log, RULES, "n1"), Node(log, RULES, "n2")]
    for node in nodes:
        await node.settled()
    people = [Peer(node, who) for node, who in zip(nodes, ("ann", "bob"), strict=True)]
    made = Desk(nodes[0], nodes[1], people[0], people[1], log)
    joining = [asyncio.ensure_future(person.join()) for person in people]
    await asyncio.sleep(0)
    await made.follow()
    await asyncio.gather(*joining)
    yield made
    await made.follow()
    assert made.first.room.space.state == made.second.room.space.state


async def test_everyone_sees_one_order(desk: Desk) -> None:
    for n in range(3):
        desk.ann.say("chat", {"text": "from ann"}, id=f"a{n}")
        await desk.first.settled()
        desk.bob.say("chat", {"text": "from bob"}, id=f"b{n}")
        await desk.second.settled()
    await desk.follow()
    seen = [[one["id"] for one in person.kinds("chat")] for person in (desk.ann, desk.bob)]
    assert seen[0] == seen[1]
    assert sorted(seen[0]) == ["a0", "a1", "a2", "b0", "b1", "b2"]


async def test_what_was_accepted_before_a_revocation_came_round_is_refused_after_it(desk: Desk) -> None:
    desk.ann.say("capability/revoke", {"recipient": "bob", "capabilities": ["chat"]}, id="r1")
    await desk.first.settled()
    desk.bob.say(
        "chat", {"text": "too late"}, id="late"
    )  # the second node does not know of the revocation yet
    await desk.second.settled()
    await desk.follow()
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
    await desk.follow()
    assert [one["id"] for one in desk.ann.kinds("chat")] == ["early"]
    assert not desk.bob.kinds("system/error")


async def test_an_id_used_on_two_nodes_at_once_is_the_firsts(desk: Desk) -> None:
    desk.ann.say("chat", {"text": "from ann"}, id="same")
    await desk.first.settled()
    desk.bob.say("chat", {"text": "from bob"}, id="same")
    desk.bob.say("chat", {"text": "from bob"}, id="other")
    await desk.second.settled()
    await desk.follow()
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
    await desk.follow()
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
    desk.first.take()
    assert not posted.done(), "it is answered when it comes round where it was posted"
    desk.second.take()
    outcome = await posted
    assert isinstance(outcome, AcceptedPost)
    assert outcome.reply is not None
    assert outcome.reply.content["token"]
    assert not desk.ann.kinds("space/invite-ack")
    assert desk.ann.kinds("space/invite") == desk.bob.kinds("space/invite") != []


async def test_a_node_that_starts_throws_nobody_out_and_reconfigures_nothing(desk: Desk) -> None:
    before = len(desk.log.entries)
    third = Node(desk.log, RULES, "n3")
    await third.settled()
    assert third.room.space.state == desk.first.room.space.state
    await desk.follow()
    assert len(desk.log.entries) == before
    assert [desk.ann.closed, desk.bob.closed] == [None, None]


async def test_rules_of_a_higher_revision_replace_those_in_force_and_others_do_not(desk: Desk) -> None:
    for revision, name in ((0, "other"), (2, "newer"), (1, "older")):
        desk.second.room.configure(replace(RULES, name=name, revision=revision), Limits())
        await desk.follow()
    assert desk.first.room.space.state.rules.name == "newer"


async def test_a_refusal_waits_for_a_grant_that_another_node_has_appended(desk: Desk) -> None:
    desk.ann.say("capability/grant", {"recipient": "bob", "capabilities": ["mcp/request"]}, id="g1")
    await desk.first.settled()
    desk.bob.say("mcp/request", {"method": "tools/list"}, id="m1", to=["ann"])
    await desk.follow()
    assert [one["id"] for one in desk.ann.kinds("mcp/request")] == ["m1"]
    assert not desk.bob.kinds("system/error")


async def test_what_is_refused_is_answered_in_the_order_it_was_sent(desk: Desk) -> None:
    desk.bob.say("chat", {"text": "one"}, id="b1")
    desk.bob.say("mcp/request", {"method": "tools/list"}, id="b2", to=["ann"])
    desk.bob.say("chat", {"text": "two"}, id="b3")
    await desk.follow()
    seen = [one["id"] if one["kind"] == "chat" else one["correlation_id"][0] for one in desk.bob.seen[-3:]]
    assert seen == ["b1", "b2", "b3"]
    assert desk.ann.kinds("system/error") == []


async def test_a_participant_that_comes_back_to_another_node_is_shown_what_it_missed(desk: Desk) -> None:
    desk.ann.say("chat", {"text": "seen"}, id="a1")
    await desk.first.settled()
    desk.first.take()
    desk.ann.say("chat", {"text": "missed"}, id="a2")
    await desk.first.settled()
    back = Peer(desk.second, "ann")
    back.after = EnvelopeId("a1")  # the second node has not heard of it yet
    joining = asyncio.ensure_future(back.join())
    await asyncio.sleep(0)
    await desk.follow()
    await joining
    assert back.seen[0]["payload"]["resumed"] is True
    assert [one["id"] for one in back.kinds("chat")] == ["a2"]


async def test_all_connections_of_a_node_that_is_gone_end_at_one_place_in_the_order(desk: Desk) -> None:
    desk.log.append(desk.first.now(), NodeLeft("n2"))
    await desk.follow()
    assert list(desk.first.room.space.state.members) == ["ann"]
    [left] = [one for one in desk.ann.kinds("system/presence") if one["payload"]["event"] == "leave"]
    assert left["payload"]["participant"] == {"id": "bob"}


async def test_frames_reach_the_readers_of_other_nodes_between_open_and_close(desk: Desk) -> None:
    desk.ann.say("stream/request", {"direction": "upload"}, id="s1")
    await desk.follow()
    [opened] = desk.bob.kinds("stream/open")
    stream = opened["payload"]["stream_id"]
    frame = f"#{stream}#data".encode()
    desk.first.room.receive(desk.ann, [frame], len(frame))
    desk.ann.say("stream/close", {"stream_id": stream}, id="s2")
    await desk.follow()
    assert [one if isinstance(one, str) else one["kind"] for one in desk.bob.seen[-2:]] == [
        frame.decode(),
        "stream/close",
    ]


async def test_a_pause_ends_by_time_and_no_two_nodes_wait_equally_long_to_say_so(desk: Desk) -> None:
    delays = [OtherNodes(node, node.room.space).timer_delay_s() for node in (desk.first, desk.second)]
    assert abs(delays[0] - delays[1]) >= 0.25
    desk.ann.say("participant/pause", {"timeout_seconds": 1}, id="p1", to=["bob"])
    await desk.follow()
    async with asyncio.timeout(20):
        while desk.first.room.space.state.paused:
            await asyncio.sleep(0.05)
            await desk.follow()
