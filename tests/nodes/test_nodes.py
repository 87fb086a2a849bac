"""Several gateways serve one space over a real Redis: whoever is where, there is one order."""

import asyncio
import signal
from pathlib import Path

import pytest
from tests.e2e.client import Client, envelope
from tests.e2e.process import Gateway, started
from tests.nodes.conftest import Cluster
from tests.nodes.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.e2e


def chats(client: Client) -> list[str]:
    return [one["id"] for one in client.seen if isinstance(one, dict) and one["kind"] == "chat"]


async def test_everyone_on_any_node_sees_the_same_order(cluster: Cluster) -> None:
    people = [await cluster.join(who, node) for node, who in enumerate(("ann", "bob", "cat"))]

    async def talk(person: Client) -> None:
        for n in range(50):
            await person.send("chat", {"text": "hi"}, id=f"{person.who}-{n}")

    async def listen(person: Client) -> None:
        while len(chats(person)) < 150:
            await person.next()

    await asyncio.gather(*map(talk, people), *map(listen, people))
    orders = [chats(person) for person in people]
    assert orders[0] == orders[1] == orders[2]
    for who in ("ann", "bob", "cat"):
        own = [one for one in orders[0] if one.startswith(who)]
        assert own == [f"{who}-{n}" for n in range(50)], "each sender's in the order sent"


async def test_a_client_resumes_on_another_node(cluster: Cluster) -> None:
    ann, bob = await cluster.join("ann", 0), await cluster.join("bob", 1)
    seen = await ann.say("chat", {"text": "seen"})
    await bob.until_id(seen)
    await bob.connection.close()
    missed = [await ann.say("chat", {"text": "missed"}) for _ in range(3)]
    back = await cluster.join("bob", 2, after=seen)
    assert back.welcome["payload"]["resumed"] is True
    await back.until_id(missed[-1])
    assert chats(back) == missed


async def test_what_is_granted_on_one_node_holds_on_the_next_at_once(cluster: Cluster) -> None:
    ann, cat = await cluster.join("ann", 0), await cluster.join("cat", 1)
    for n in range(20):
        grant = await ann.say("capability/grant", {"recipient": "cat", "capabilities": ["mcp/request"]})
        await cat.say("mcp/request", {"method": "tools/list"}, to=["ann"])
        await ann.say("capability/revoke", {"recipient": "cat", "grant_id": grant})
        assert (await cat.refused("mcp/request", {"method": "tools/list"}, to=["ann"]))["error"] == (
            "capability_violation"
        ), n


async def test_who_is_invited_on_one_node_enters_another_at_once(cluster: Cluster) -> None:
    ann = await cluster.join("ann", 0)
    for n in range(10):
        await ann.send("space/invite", {"participant_id": f"guest{n}", "initial_capabilities": ["chat"]})
        ack = await ann.until("space/invite-ack")
        guest = await (await cluster.door(1 + n % 2)).join(f"guest{n}", token=ack["payload"]["token"])
        await guest.say("chat", {"text": "hello"})


async def test_an_id_is_used_once_on_all_nodes(cluster: Cluster) -> None:
    one, two = await cluster.door(0), await cluster.door(1)
    said = envelope("ann", "chat", {"text": "once"})
    answers = await asyncio.gather(one.post("ann", said), two.post("ann", said))
    assert sorted(answer.status for answer in answers) == [200, 409]


async def test_stream_frames_reach_readers_on_other_nodes_in_order(cluster: Cluster) -> None:
    ann, bob = await cluster.join("ann", 0), await cluster.join("bob", 1)
    await ann.send("stream/request", {"direction": "upload"})
    stream = (await ann.until("stream/open"))["payload"]["stream_id"]
    for n in range(100):
        await ann.connection.send(f"#{stream}#{n}")
    await ann.send("stream/close", {"stream_id": stream})
    await bob.until("stream/close")
    assert [one for one in bob.seen if isinstance(one, str)] == [f"#{stream}#{n}" for n in range(100)]


async def test_a_killed_node_is_noticed_and_its_participants_leave(cluster: Cluster) -> None:
    ann, _ = await cluster.join("ann", 0), await cluster.join("bob", 1)
    await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "bob")
    cluster.gateways[1].process.kill()
    async with asyncio.timeout(40):
        left = await ann.connection.recv()
    assert '"leave"' in left
    assert "bob" in left


async def test_a_node_that_stops_leaves_at_once(cluster: Cluster, redis: RedisServer) -> None:
    ann, _ = await cluster.join("ann", 0), await cluster.join("bob", 1)
    await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "bob")
    cluster.gateways[1].signal(signal.SIGTERM)
    await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    assert cluster.gateways[1].ended() == 0


async def test_a_stopped_node_that_wakes_up_late_appends_nothing(cluster: Cluster) -> None:
    ann, bob = await cluster.join("ann", 0), await cluster.join("bob", 1)
    await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "bob")
    cluster.gateways[1].signal(signal.SIGSTOP)
    try:
        await bob.send("chat", {"text": "from a zombie"}, id="late")
        async with asyncio.timeout(40):
            while '"leave"' not in str(await ann.connection.recv()):
                pass
    finally:
        cluster.gateways[1].signal(signal.SIGCONT)
    code, _ = await bob.closed()
    assert code == 4010
    cluster.gateways[1].wait_for("spaces opened again")
    fresh = await cluster.join("bob", 1)  # under a new name it goes on
    said = await fresh.say("chat", {"text": "back"})
    await ann.until_id(said)
    assert "late" not in chats(ann)


async def test_after_a_restart_of_redis_everything_goes_on(cluster: Cluster, redis: RedisServer) -> None:
    ann, bob = await cluster.join("ann", 0), await cluster.join("bob", 1)
    seen = await ann.say("chat", {"text": "before"})
    await bob.until_id(seen)
    redis.kill()
    redis.start()
    for client in (ann, bob):
        assert (await client.closed())[0] == 4010
    for gateway in cluster.gateways:
        gateway.wait_for("spaces opened again")
    back = await cluster.join("bob", 2, after=seen)
    assert back.welcome["payload"]["resumed"] is True
    fresh = await cluster.join("ann", 1)
    await back.until_id(await fresh.say("chat", {"text": "after"}))


async def test_a_redis_that_would_lose_data_is_refused(tmp_path: Path, config: dict[str, object]) -> None:
    with redis_server("--appendonly", "no", "--maxmemory-policy", "allkeys-lru") as careless:
        gateway = started(tmp_path, config, "--redis", careless.url)
        assert gateway.ended() == 2
        gateway.stop()
    assert "'maxmemory-policy' is allkeys-lru" in gateway.log
    assert "'appendonly' is off" in gateway.log


async def test_a_redis_that_is_not_there_is_named_without_its_password(
    tmp_path: Path, config: dict[str, object]
) -> None:
    gateway: Gateway = started(tmp_path, config, "--redis", "redis://:very-secret@127.0.0.1:1")
    assert gateway.ended() == 2
    gateway.stop()
    assert "Redis at 127.0.0.1:1" in gateway.log
    assert "very-secret" not in gateway.log
