"""Grants, revocations, invitations and kicks, end to end (§3.6, design 3.11, 3.12)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .client import Client, Door
from .mailbox import Mailbox, mail_server
from .process import Gateway, run_gateway, secrets_used


def kinds_of(welcome: dict[str, Any]) -> list[str]:
    return [capability["kind"] for capability in welcome["payload"]["you"]["capabilities"]]


async def grant(giver: Client, recipient: str, *kinds: str, **more: Any) -> str:
    capabilities = [{"kind": kind} for kind in kinds]
    return await giver.say("capability/grant", {"recipient": recipient, "capabilities": capabilities, **more})


# §3.6.1, §3.6.3.


async def test_a_grant_is_shown_to_all_takes_effect_and_is_told_in_a_new_welcome(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    assert (await cat.refused("mcp/request", {}))["error"] == "capability_violation"
    granted = await grant(ann, "cat", "mcp/request")
    await bob.until_id(granted)
    assert "mcp/request" in kinds_of(await cat.until("system/welcome"))
    await cat.say("capability/grant-ack", {"status": "accepted"}, correlation_id=[granted])
    await cat.say("mcp/request", {"method": "tools/list"}, to=["bob"])


async def test_grants_are_cumulative_and_survive_a_reconnect(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    await grant(ann, "cat", "mcp/request")
    await grant(ann, "cat", "mcp/proposal")
    await cat.connection.close()
    await ann.until("system/presence")
    assert {"mcp/request", "mcp/proposal"} <= set(kinds_of((await door.join("cat")).welcome))


async def test_a_grant_to_someone_absent_waits_for_them(door: Door) -> None:
    ann = await door.join("ann")
    await grant(ann, "cat", "mcp/request")
    assert "mcp/request" in kinds_of((await door.join("cat")).welcome)


async def test_nobody_grants_without_the_right_to_or_more_than_they_hold(door: Door) -> None:  # §3.6.6
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    wanted = {"recipient": "cat", "capabilities": [{"kind": "mcp/request"}]}
    assert (await bob.refused("capability/grant", wanted))["error"] == "capability_violation"
    await grant(ann, "bob", "capability/grant")
    await bob.say("capability/grant", wanted)
    for wide in ({"kind": "*"}, {"kind": "space/kick"}, {"kind": "!mcp/request"}, {"kind": "/.*/"}):
        more = {"recipient": "cat", "capabilities": [wide]}
        assert (await bob.refused("capability/grant", more))["error"] == "grant_exceeds_own"
    assert "mcp/request" in kinds_of(await cat.until("system/welcome"))


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"recipient": "nobody", "capabilities": [{"kind": "chat"}]}, "unknown_participant"),
        ({"recipient": "cat", "capabilities": [{"kind": "/(/"}]}, "invalid_capability"),
        ({"recipient": "cat", "capabilities": [7]}, "invalid_capability"),
        ({"recipient": "cat", "capabilities": []}, "invalid_payload"),
        ({"recipient": "cat"}, "invalid_payload"),
        ({"recipient": "cat", "capabilities": [{"kind": "chat"}], "ttl_seconds": -1}, "invalid_payload"),
        (
            {"recipient": "cat", "capabilities": [{"kind": "chat"}], "expires_at": "2001-01-01T00:00:00Z"},
            "invalid_payload",
        ),
    ],
)
async def test_a_grant_that_makes_no_sense_is_refused(door: Door, payload: dict[str, Any], code: str) -> None:
    ann = await door.join("ann")
    assert (await ann.refused("capability/grant", payload))["error"] == code


async def test_a_grant_with_a_time_ends_by_itself(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    granted = await grant(ann, "cat", "mcp/request", ttl_seconds=0.4)
    assert "mcp/request" in kinds_of(await cat.until("system/welcome"))
    await cat.say("mcp/request", {})
    ended = await ann.until("capability/revoke")
    assert ended["from"] == "system:gateway"
    assert ended["payload"]["grant_id"] == granted
    assert "mcp/request" not in kinds_of(await cat.until("system/welcome"))
    assert (await cat.refused("mcp/request", {}))["error"] == "capability_violation"


async def test_a_grant_may_name_the_moment_it_ends(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    soon = (datetime.now(UTC) + timedelta(seconds=0.4)).isoformat()
    await grant(ann, "cat", "mcp/request", expires_at=soon)
    await cat.until("system/welcome", lambda said: "mcp/request" in kinds_of(said))
    await cat.until("system/welcome", lambda said: "mcp/request" not in kinds_of(said))


async def test_the_farthest_moment_there_is_does_no_harm(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    await grant(ann, "cat", "mcp/request", expires_at="9999-12-31T23:59:59-23:59")
    await grant(ann, "cat", "mcp/request", ttl_seconds=10 * 366 * 86_400)
    await ann.say("participant/pause", {"timeout_seconds": 10 * 366 * 86_400}, to=["bob"])
    await cat.say("mcp/request", {})


# §3.6.2.


async def test_a_revocation_is_in_force_for_the_very_next_envelope(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    granted = await grant(ann, "cat", "mcp/request")
    await cat.say("mcp/request", {})
    revoked = await ann.say("capability/revoke", {"recipient": "cat", "grant_id": granted})
    await cat.until_id(revoked)
    assert (await cat.refused("mcp/request", {}))["error"] == "capability_violation"


async def test_a_revocation_takes_what_was_granted_on_from_it(door: Door) -> None:  # the cascade
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    first = await grant(ann, "bob", "capability/grant", "space/kick")
    await bob.until("system/welcome")
    second = await grant(bob, "cat", "space/kick")
    assert "space/kick" in kinds_of(await cat.until("system/welcome"))
    await ann.say("capability/revoke", {"recipient": "bob", "grant_id": first})
    cascade = await ann.until("capability/revoke", lambda said: said["from"] == "system:gateway")
    assert cascade["payload"]["grant_id"] == second
    assert "space/kick" not in kinds_of(await cat.until("system/welcome"))
    assert (await cat.refused("space/kick", {"participant_id": "bob"}))["error"] == "capability_violation"


async def test_a_revocation_by_pattern_carves_it_out_of_what_is_wider(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    await ann.say("capability/revoke", {"recipient": "bob", "capabilities": [{"kind": "mcp/request"}]})
    welcome = await bob.until("system/welcome")
    (mcp,) = [one for one in welcome["payload"]["you"]["capabilities"] if one["kind"] == "mcp/*"]
    assert mcp["except"]
    assert (await bob.refused("mcp/request", {}))["error"] == "capability_violation"
    await bob.say("mcp/proposal", {})


async def test_a_revocation_by_pattern_takes_all_that_is_inside_it(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    await ann.say("capability/revoke", {"recipient": "bob", "capabilities": [{"kind": "**"}]})
    assert (await bob.until("system/welcome"))["payload"]["you"]["capabilities"] == []
    assert (await bob.refused("chat", {}))["error"] == "capability_violation"
    await grant(ann, "bob", "chat")  # what is granted later stands
    await bob.say("chat", {"text": "back"})


async def test_a_grant_nobody_has_cannot_be_revoked(door: Door) -> None:
    ann = await door.join("ann")
    problem = await ann.refused("capability/revoke", {"recipient": "cat", "grant_id": "none"})
    assert problem["error"] == "unknown_grant"


# §3.6.4.


async def invited(ann: Client, who: str, **more: Any) -> dict[str, Any]:
    payload = {"participant_id": who, "initial_capabilities": [{"kind": "chat"}], **more}
    sent = await ann.say("space/invite", payload)
    ack = await ann.until("space/invite-ack")
    assert ack["correlation_id"] == [sent]
    assert ack["to"] == ["ann"]
    found: dict[str, Any] = ack["payload"]
    secrets_used.add(found["token"])
    return found


async def test_an_invitation_is_shown_to_all_and_its_token_to_the_inviter_alone(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    ack = await invited(ann, "dan")
    assert ack["status"] == "created"
    assert ack["participant_id"] == "dan"
    assert ack["connection_url"] == door.url()
    dan = await door.join("dan", token=ack["token"])
    assert sorted(kinds_of(dan.welcome)) == ["capability/grant-ack", "chat", "mcp/response"]
    await dan.say("chat", {"text": "hello"})
    assert (await dan.refused("mcp/request", {}))["error"] == "capability_violation"
    await bob.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "dan")
    await bob.until("chat")
    assert not any(ack["token"] in str(message) for message in bob.raw)
    assert "space/invite" in [said["kind"] for said in bob.seen]


async def test_a_second_connection_of_the_inviter_is_not_told_the_token(door: Door) -> None:
    ann = await door.join("ann")
    elsewhere = await door.join("ann")
    ack = await invited(ann, "dan")
    await elsewhere.since_now()
    assert not any(ack["token"] in str(message) for message in elsewhere.raw)


async def test_an_invitation_over_http_answers_with_the_token(door: Door) -> None:  # design 3.16
    payload = {"participant_id": "dan", "initial_capabilities": [{"kind": "chat"}]}
    answer = await door.post("ann", {"kind": "space/invite", "payload": payload})
    assert answer.status == 200
    token = answer.json["reply"]["payload"]["token"]
    assert answer.json["token"] == token
    secrets_used.add(token)
    await door.join("dan", token=token)


async def test_an_invitation_over_http_is_acknowledged_on_the_connections_of_the_inviter_alone(
    door: Door,
) -> None:
    ann, bob = await door.meet("ann", "bob")
    answer = await door.post("ann", {"kind": "space/invite", "payload": {"participant_id": "dan"}})
    secrets_used.add(answer.json["token"])
    ack = await ann.until("space/invite-ack")
    assert (ack["correlation_id"], ack["payload"]["token"]) == ([answer.json["id"]], answer.json["token"])
    await bob.since_now()
    assert not any(answer.json["token"] in str(message) for message in bob.raw)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"participant_id": "cat"}, "already_exists"),
        ({"participant_id": "gateway"}, "invalid_payload"),
        ({"participant_id": "system"}, "invalid_payload"),
        ({"participant_id": "a:b"}, "invalid_payload"),
        ({"participant_id": "../x"}, "invalid_payload"),
        ({"participant_id": "-x"}, "invalid_payload"),
        ({"participant_id": "x" * 129}, "invalid_payload"),
        ({"participant_id": ""}, "invalid_payload"),
        ({}, "invalid_payload"),
        ({"participant_id": "dan", "email": "a\r\nBcc: b@example.org"}, "invalid_payload"),
        ({"participant_id": "dan", "initial_capabilities": [{"kind": "$["}, 5]}, "invalid_capability"),
    ],
)
async def test_an_invitation_that_makes_no_sense_is_refused(
    door: Door, payload: dict[str, Any], code: str
) -> None:
    ann = await door.join("ann")  # design 3.10
    assert (await ann.refused("space/invite", payload))["error"] == code


async def test_nobody_invites_with_more_than_they_hold(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    await grant(ann, "cat", "space/invite")
    await cat.until("system/welcome")
    payload = {"participant_id": "dan", "initial_capabilities": [{"kind": "mcp/request"}]}
    assert (await cat.refused("space/invite", payload))["error"] == "grant_exceeds_own"


# §3.6.5.


async def test_a_kick_closes_every_connection_and_kills_the_token(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    cats = [await door.join("cat"), await door.join("cat")]
    kicked = await ann.say("space/kick", {"participant_id": "cat", "reason": "enough"})
    for cat in cats:
        code, reason = await cat.closed()
        assert code == 4503
        assert "enough" in reason
        assert kicked in [said["id"] for said in cat.seen]  # they were shown why
    left = await bob.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    assert left["payload"]["participant"]["id"] == "cat"
    answer = await door.upgrade(f"/ws?space={door.space}", authorization=f"Bearer {door.tokens['cat']}")
    assert (answer.status, answer.json["error"]) == (403, "kicked")
    by_frame = await door.join_by_frame({"type": "join", "space": door.space, "token": door.tokens["cat"]})
    assert (await by_frame.closed())[0] == 4503
    assert (await door.post("cat", {"kind": "chat", "payload": {"text": "x"}})).status == 403


async def test_who_is_invited_again_gets_a_new_token_and_the_old_ones_stay_dead(door: Door) -> None:
    ann = await door.join("ann")
    first = await invited(ann, "dan")
    dan = await door.join("dan", token=first["token"])
    await ann.say("space/kick", {"participant_id": "dan"})
    assert (await dan.closed())[0] == 4503
    await ann.say("space/kick", {"participant_id": "cat"})
    again = {who: await invited(ann, who) for who in ("dan", "cat")}
    for old in (first["token"], door.tokens["cat"]):
        answer = await door.upgrade(f"/ws?space={door.space}", authorization=f"Bearer {old}")
        assert answer.status == 403
    for who, ack in again.items():
        await (await door.join(who, token=ack["token"])).say("chat", {"text": "new start"})


async def test_what_the_kicked_granted_goes_with_them(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    await grant(ann, "bob", "capability/grant", "space/kick")
    await bob.until("system/welcome")
    await grant(bob, "cat", "space/kick")
    await ann.say("space/kick", {"participant_id": "bob"})
    await bob.closed()
    await cat.until("system/welcome", lambda said: "space/kick" not in kinds_of(said))


async def test_who_is_not_there_cannot_be_kicked(door: Door) -> None:
    ann = await door.join("ann")
    assert (await ann.refused("space/kick", {"participant_id": "nobody"}))["error"] == "unknown_participant"


# E-mail (§3.6.4), through a real mail server.


@pytest.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with mail_server() as opened:
        yield opened


@pytest.fixture
def mailing(tmp_path: Path, participants: dict[str, object], mailbox: Mailbox) -> Iterator[Gateway]:
    smtp = {"host": "127.0.0.1", "port": mailbox.port, "from": "mew@example.org", "security": "none"}
    config = {"space": {"id": "demo"}, "participants": participants, "smtp": smtp}
    with run_gateway(tmp_path, config) as running:
        yield running


async def test_an_invitation_with_an_address_is_mailed_with_what_one_needs_to_connect(
    mailing: Gateway, mailbox: Mailbox, tokens: dict[str, str]
) -> None:
    async with Door(mailing, tokens, "demo") as door:
        ann = await door.join("ann")
        ack = await invited(ann, "dan", email="dan@example.org")
        recipients, mail = await mailbox.next()
        assert recipients == ["dan@example.org"]
        assert (mail["From"], mail["To"]) == ("mew@example.org", "dan@example.org")
        text = mail.get_content()
        assert ack["connection_url"] in text
        assert ack["token"] in text
        await door.join("dan", token=ack["token"])
        await asyncio.to_thread(mailing.wait_for, "invitation sent")


NO_ADDRESSES = (
    *("a@b.example\n", "8#q8?:{@[_", "(?\x01).?|-tb@u+", "(}):|q)fq(@]au`/", "?!8|?.:.-é`@'`+=?*'f"),
    *("=?utf-8?q?=0a?=@b", "a@b@c", "@", "a", "a@", "a b@c", "<a@b>", "a@b,c@d"),
)


async def test_an_address_that_is_none_does_not_stop_the_space(
    mailing: Gateway, tokens: dict[str, str]
) -> None:
    """Python's own mail library fails on some of these."""
    async with Door(mailing, tokens, "demo") as door:
        ann = await door.join("ann")
        for address in NO_ADDRESSES:
            problem = await ann.refused("space/invite", {"participant_id": "dan", "email": address})
            assert problem["error"] == "invalid_payload", address
        await ann.say("chat", {"text": "unharmed"})
