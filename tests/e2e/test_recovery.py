"""After `kill -9` at any moment the gateway goes on where it was (issue 4, item 2)."""

from pathlib import Path

import pytest

from .client import Door
from .crash import Rounds
from .process import listening, run_gateway, secrets_used, started


@pytest.mark.parametrize("fsync", ["process", "power"])
async def test_nothing_shown_is_missing_after_a_crash_and_all_were_shown_one_order(
    tmp_path: Path, fsync: str
) -> None:
    rounds = Rounds(tmp_path, clients=6, seed=4, journal={"fsync": fsync})
    for _ in range(3):
        await rounds.crash()
        await rounds.compare()
    assert len(rounds.order) > 100


async def test_who_comes_back_after_a_crash_finds_the_space_as_it_was(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    config = {"space": {"id": "demo"}, "participants": participants}
    gateway = listening(started(tmp_path, config))
    async with Door(gateway, tokens, "demo") as door:
        ann, bob, cat = await door.meet("ann", "bob", "cat")
        await ann.say("space/invite", {"participant_id": "dan", "initial_capabilities": [{"kind": "chat"}]})
        invited = (await ann.until("space/invite-ack"))["payload"]["token"]
        secrets_used.add(invited)
        await ann.say("capability/grant", {"recipient": "cat", "capabilities": [{"kind": "mcp/proposal"}]})
        await ann.say("participant/pause", {}, to=["bob"])
        await bob.say("participant/status", {"status": "waiting"})
        last = await ann.say("space/kick", {"participant_id": "reader"})
        await cat.until_id(last)
        unseen = await cat.say("chat", {"text": "ann was gone when this came"})
        gateway.kill()

    with run_gateway(tmp_path, config) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            ann = await door.join("ann", query=f"&after={last}")
            assert ann.welcome["payload"]["resumed"] is True
            assert ann.welcome["payload"]["participants"] == []
            assert (await ann.next())["id"] == unseen
            left = [(await ann.until("system/presence"))["payload"]["participant"]["id"] for _ in range(3)]
            assert left == ["ann", "bob", "cat"]
            assert (await ann.until("system/presence"))["payload"]["event"] == "join"
            dan = await door.join("dan", token=invited)
            await dan.say("chat", {"text": "my token still opens the door"})
            cat = await door.join("cat")
            await cat.say("mcp/proposal", {"method": "tools/list"})
            bob = await door.join("bob")
            assert (await bob.refused("chat", {"text": "hi"}))["error"] == "paused"
            assert (await cat.refused("chat", {"text": "again"}, id=unseen))["error"] == "duplicate_id"
            refused = await door.upgrade("/ws?space=demo", authorization=f"Bearer {tokens['reader']}")
            assert refused.status == 403


async def test_a_damaged_journal_is_said_at_the_start_and_what_is_left_of_it_is_served(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> None:
    config = {"space": {"id": "demo"}, "participants": participants}
    with run_gateway(tmp_path, config) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            ann = await door.join("ann")
            said = [await ann.say("chat", {"text": f"{n}" * 4000}) for n in range(8)]
    file = tmp_path / ".mew" / "journal" / "journal.db"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"5" * 1000, b"6" * 1000, 1))
    with run_gateway(tmp_path, config) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            await door.join("ann")
            headers = {"Authorization": f"Bearer {tokens['ann']}"}
            answer = await door.request("GET", "/spaces/demo/envelopes?kind=chat", headers=headers)
            assert [one["id"] for one in answer.json["envelopes"]] == said[:5]
    line = gateway.wait_for("is damaged")
    assert str(file) in line
    assert "journal.db.damaged-1" in line
    assert (file.parent / "journal.db.damaged-1").exists()


def test_a_second_gateway_with_the_same_journal_does_not_start(
    tmp_path: Path, participants: dict[str, object]
) -> None:
    config = {"space": {"id": "demo"}, "participants": participants}
    with run_gateway(tmp_path, config):
        second = started(tmp_path, config)
        assert second.ended() == 2
        second.stop()
        assert "another process (pid " in second.log
        third = listening(started(tmp_path, config, "--ephemeral"))
        assert third.stop() == 0
