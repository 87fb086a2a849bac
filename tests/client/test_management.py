"""Space management (§3.6), and control of others (§3.9)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import awaiting
from mew.client.errors import Absent, Disconnected, Refused, Unanswered
from mew.client.management import Management, ParticipantControl, acknowledge_grants
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope
from mew.protocol.errors import CloseCode, InvalidCapability, Refusal
from mew.protocol.kinds import Kind
from mew.testing import Space

HOLDINGS: dict[str, list[Any]] = {
    "ann": ["*"],
    "bot": ["chat", "chat/acknowledge", "participant/*"],
    "cat": ["chat", "capability/grant", "space/kick"],
}


class Table(NamedTuple):
    space: Space
    ann: ClientConnection
    bot: ClientConnection
    seen: list[Envelope]
    """By ann."""

    async def kinds_after_all(self) -> list[str]:
        """Once all that ann has sent so far was seen."""
        last = await self.ann.send(self.ann.compose("done", {}))
        return [envelope.kind for envelope in self.seen if envelope.id != last.id]

    def kinds(self) -> list[str]:
        return [envelope.kind for envelope in self.seen]


@asynccontextmanager
async def a_table() -> AsyncIterator[Table]:
    async with (
        asyncio.timeout(5),
        Space(HOLDINGS) as space,
        space.connection("bot") as bot,
        space.connection("ann") as ann,
    ):
        seen: list[Envelope] = []
        ann.listen(lambda envelope, payload: seen.append(envelope))
        for who in (bot, ann):  # so that each has seen the other come
            await who.send(who.compose("chat", {"text": "I am here"}))
        seen.clear()
        yield Table(space, ann, bot, seen)


def answers(connection: ClientConnection, kind: str, answer: Callable[[Envelope], Envelope | None]) -> None:
    """Have a participant answer each envelope of a kind that is addressed to it."""

    def listen(envelope: Envelope, payload: Any) -> None:
        if envelope.kind == kind and connection.session.me in envelope.to:
            reply = answer(envelope)
            if reply is not None:
                connection.post(reply)

    connection.listen(listen)


def status_of(connection: ClientConnection, content: dict[str, Any]) -> Callable[[Envelope], Envelope]:
    return lambda asked: connection.compose(Kind.STATUS, content, correlation_id=[asked.id])


# Granting and revoking.


async def test_a_grant_returns_when_its_recipient_has_acknowledged_3_6_3() -> None:
    async with a_table() as table:
        acknowledge_grants(table.bot)
        granted = await Management(table.ann).grant(
            "bot", "mcp/proposal", {"kind": "reasoning/*"}, reason="fine"
        )
        assert granted.acknowledged
        assert granted.recipient == "bot"
        assert granted.capabilities == ({"kind": "mcp/proposal"}, {"kind": "reasoning/*"})
        assert table.bot.session.may("mcp/proposal", (), {})
        grant, ack = table.seen[-2:]
        assert (grant.id, grant.to) == (granted.id, ("bot",))
        assert grant.content["reason"] == "fine"
        assert (ack.kind, ack.sender, ack.to) == ("capability/grant-ack", "bot", ("ann",))
        assert (ack.correlation_id, ack.content) == ((granted.id,), {"status": "accepted"})


async def test_the_shorthand_is_sent_as_the_object_that_every_gateway_reads_4_1() -> None:
    async with a_table() as table:
        written = "mcp/request:tools/call:read_*"
        granted = await Management(table.ann).grant("bot", written, Capability.parse("chat"), ack_within_s=0)
        tool = {"method": "tools/call", "params": {"name": "read_*"}}
        assert granted.capabilities == ({"kind": "mcp/request", "payload": tool}, {"kind": "chat"})


async def test_a_capability_that_does_not_compile_is_an_error_before_anything_is_sent() -> None:
    async with a_table() as table:
        management = Management(table.ann)
        with pytest.raises(InvalidCapability):
            await management.grant("bot", "chat", {"kind": "mcp/*", "payload": {"method": "/(/"}})
        with pytest.raises(InvalidCapability):
            await management.revoke("bot", {"no": "kind"})
        with pytest.raises(InvalidCapability):
            await management.invite("dan", {"kind": 7})
        with pytest.raises(ValueError, match="nothing to grant"):
            await management.grant("bot")
        assert await table.kinds_after_all() == []


async def test_a_grant_that_nobody_acknowledges_holds_all_the_same() -> None:
    async with a_table() as table:
        granted = await Management(table.ann).grant("bot", "mcp/proposal", ack_within_s=0.01)
        assert not granted.acknowledged
        assert table.bot.session.may("mcp/proposal", (), {})


async def test_an_acknowledgement_by_another_is_none() -> None:
    async with a_table() as table:
        table.ann.listen(
            lambda envelope, payload: (
                acknowledge(table.ann, envelope) if envelope.kind == Kind.GRANT else None
            )
        )
        granted = await Management(table.ann).grant("bot", "mcp/proposal", ack_within_s=0.05)
        assert "capability/grant-ack" in [envelope.kind for envelope in table.seen]
        assert not granted.acknowledged


def acknowledge(who: ClientConnection, grant: Envelope) -> None:
    who.post(who.compose(Kind.GRANT_ACK, {"status": "accepted"}, correlation_id=[grant.id]))


async def test_a_grant_to_who_is_not_here_returns_at_once() -> None:
    async with a_table() as table:
        granted = await Management(table.ann).grant("cat", "mcp/proposal", ack_within_s=60)
        assert not granted.acknowledged
        async with table.space.connection("cat") as cat:
            assert cat.session.may("mcp/proposal", (), {})


async def test_a_grant_waits_no_longer_for_who_has_left() -> None:
    async with asyncio.timeout(5), Space(HOLDINGS) as space:
        bot = space.connection("bot")
        async with bot, space.connection("ann") as ann:
            bot.listen(lambda envelope, payload: space.cut("bot") if envelope.kind == Kind.GRANT else None)
            granted = await Management(ann).grant("bot", "mcp/proposal", ack_within_s=60)
            assert not granted.acknowledged


async def test_nobody_grants_more_than_they_hold_3_6_6() -> None:
    async with asyncio.timeout(5), Space(HOLDINGS) as space, space.connection("cat") as cat:
        with pytest.raises(Refused) as refused:
            await Management(cat).grant("bot", "mcp/*")
        assert refused.value.why is Refusal.GRANT_EXCEEDS_OWN


async def test_a_grant_may_end_by_itself() -> None:
    async with a_table() as table:
        granted = await Management(table.ann).grant("bot", "mcp/proposal", ttl_s=0.02, ack_within_s=0)
        with awaiting(table.ann, lambda seen, _: seen if seen.kind == Kind.REVOKE else None) as over:
            assert (await over).content["grant_id"] == granted.id


async def test_who_may_not_acknowledge_a_grant_does_not_try() -> None:
    async with a_table() as table:
        acknowledge_grants(table.bot)
        management = Management(table.ann)
        await management.revoke("bot", "capability/*")
        granted = await management.grant("bot", "mcp/proposal", ack_within_s=0.01)
        assert not granted.acknowledged
        assert "capability/grant-ack" not in table.kinds()


async def test_a_grant_to_another_is_not_ones_own_to_acknowledge() -> None:
    async with a_table() as table:
        acknowledge_grants(table.bot)
        await Management(table.ann).grant("cat", "mcp/proposal")
        await table.bot.send(table.bot.compose("chat", {"text": "hi"}))
        assert "capability/grant-ack" not in table.kinds()


async def test_a_grant_is_revoked_by_its_id_3_6_2() -> None:
    async with a_table() as table:
        acknowledge_grants(table.bot)
        management = Management(table.ann)
        granted = await management.grant("bot", "mcp/proposal")
        revoked = await management.revoke("bot", grant_id=granted.id, reason="done")
        assert revoked.content == {"recipient": "bot", "grant_id": granted.id, "reason": "done"}
        with pytest.raises(Refused) as refused:
            await table.bot.send(table.bot.compose("mcp/proposal", {"method": "tools/call"}))
        assert refused.value.why is Refusal.CAPABILITY_VIOLATION


async def test_everything_inside_a_pattern_is_revoked_3_6_2() -> None:
    async with a_table() as table:
        await Management(table.ann).revoke("bot", "chat")
        with pytest.raises(Refused):
            await table.bot.send(table.bot.compose("chat", {"text": "hi"}))


async def test_a_revocation_names_a_grant_or_capabilities_and_not_both() -> None:
    async with a_table() as table:
        management = Management(table.ann)
        with pytest.raises(ValueError, match="either"):
            await management.revoke("bot")
        with pytest.raises(ValueError, match="either"):
            await management.revoke("bot", "chat", grant_id="grant-1")
        assert await table.kinds_after_all() == []


# Inviting and kicking.


async def test_an_invitation_returns_with_the_token_and_does_not_print_it_3_6_4() -> None:
    async with a_table() as table:
        invited = await Management(table.ann).invite("dan", "chat", reason="new here")
        assert invited.participant_id == "dan"
        assert invited.connection_url == "memory://test"
        assert invited.email is None
        assert len(invited.token) > 16
        assert invited.token not in repr(invited)
        shown = next(envelope for envelope in table.seen if envelope.kind == "space/invite")
        assert shown.content["initial_capabilities"] == [{"kind": "chat"}]
        assert shown.content["reason"] == "new here"


async def test_an_invitation_says_what_becomes_of_the_mail_3_6_4() -> None:
    async with a_table() as table:
        invited = await Management(table.ann).invite("dan", email="dan@example.com")
        assert invited.email == "not_configured"


async def test_an_invitation_of_who_is_here_is_refused() -> None:
    async with a_table() as table:
        with pytest.raises(Refused) as refused:
            await Management(table.ann).invite("bot")
        assert refused.value.why is Refusal.ALREADY_EXISTS


async def test_a_kick_returns_when_the_leaving_was_seen_3_6_5() -> None:
    async with a_table() as table:
        kicked = await Management(table.ann).kick("bot", reason="violations")
        assert kicked.content == {"participant_id": "bot", "reason": "violations"}
        assert "bot" not in table.ann.session.roster
        over = await table.bot.ended
        assert over.code == CloseCode.KICKED


async def test_a_kick_of_who_is_not_here_returns_at_once() -> None:
    async with a_table() as table:
        assert (await Management(table.ann).kick("cat")).content == {"participant_id": "cat"}


async def test_one_may_kick_oneself() -> None:
    async with asyncio.timeout(5), Space(HOLDINGS) as space, space.connection("cat") as cat:
        await Management(cat).kick("cat")
        assert (await cat.ended).code == CloseCode.KICKED


async def test_who_waits_when_the_connection_ends_is_told() -> None:
    async with a_table() as table:
        oversight = ParticipantControl(table.bot)
        answers(
            table.ann,
            Kind.REQUEST_STATUS,
            lambda asked: table.ann.compose(Kind.KICK, {"participant_id": "bot"}),
        )
        with pytest.raises(Disconnected):
            await oversight.request_status("ann", timeout_s=60)


# Control of others.


async def test_a_pause_and_its_resume_3_9_1_3_9_2() -> None:
    async with a_table() as table:
        oversight = ParticipantControl(table.ann)
        paused = await oversight.pause("bot", timeout_s=60, reason="rate_limit")
        assert (paused.to, paused.content) == (("bot",), {"reason": "rate_limit", "timeout_seconds": 60})
        again = await oversight.pause("bot")
        assert again.content == {}
        resumed = await oversight.resume("bot", reason="calm")
        assert (resumed.to, resumed.content) == (("bot",), {"reason": "calm"})
        assert resumed.correlation_id == (paused.id, again.id)
        await table.bot.send(table.bot.compose("chat", {"text": "hi"}))


async def test_a_resume_names_no_pause_that_is_over_3_9_2() -> None:
    async with a_table() as table:
        oversight = ParticipantControl(table.ann)
        paused = await oversight.pause("bot")
        await table.ann.send(table.ann.compose(Kind.RESUME, {}, correlation_id=[paused.id]))
        assert (await oversight.resume("bot")).correlation_id == ()


async def test_a_status_is_what_the_participant_says_of_itself_3_9_3() -> None:
    async with a_table() as table:
        content = {"messages_in_context": 3, "tokens": 12, "mood": "calm"}
        answers(table.bot, Kind.REQUEST_STATUS, status_of(table.bot, content))
        assert await ParticipantControl(table.ann).request_status("bot", fields=["tokens"]) == content
        asked = next(envelope for envelope in table.seen if envelope.kind == Kind.REQUEST_STATUS)
        assert (asked.to, asked.content) == (("bot",), {"fields": ["tokens"]})


async def test_a_status_that_answers_something_else_is_not_the_answer() -> None:
    async with a_table() as table:
        content = {"messages_in_context": 3}
        answers(
            table.bot,
            Kind.REQUEST_STATUS,
            lambda asked: table.bot.compose(Kind.STATUS, content, correlation_id=["another"]),
        )
        with pytest.raises(Unanswered, match="bot"):
            await ParticipantControl(table.ann).request_status("bot", timeout_s=0.05)
        assert Kind.STATUS in table.kinds()


async def test_who_is_not_here_is_asked_nothing() -> None:
    async with a_table() as table:
        oversight = ParticipantControl(table.ann)
        with pytest.raises(Absent, match="cat"):
            await oversight.request_status("cat")
        with pytest.raises(Absent, match="cat"):
            await oversight.compact("cat")
        assert await table.kinds_after_all() == []


async def test_who_leaves_instead_of_answering_is_absent() -> None:
    async with a_table() as table:
        answers(table.bot, Kind.COMPACT, lambda asked: table.space.cut("bot"))
        with pytest.raises(Absent, match="left"):
            await ParticipantControl(table.ann).compact("bot")


async def test_forgetting_names_the_direction_and_how_much_3_9_5() -> None:
    async with a_table() as table:
        told = await ParticipantControl(table.ann).forget("bot", "oldest", 10)
        assert (told.to, told.content) == (("bot",), {"direction": "oldest", "entries": 10})
        assert (await ParticipantControl(table.ann).forget("bot", "newest")).content == {
            "direction": "newest"
        }


async def test_a_compaction_returns_when_it_is_done_3_9_7() -> None:
    async with a_table() as table:
        done = {"freed_tokens": 2048, "status": "compacted"}
        answers(
            table.bot,
            Kind.COMPACT,
            lambda asked: table.bot.compose(Kind.COMPACT_DONE, done, correlation_id=[asked.id]),
        )
        result = await ParticipantControl(table.ann).compact(
            "bot", target_tokens=16_000, reason="token_pressure"
        )
        assert (result.freed_tokens, result.status, result.skipped) == (2048, "compacted", UNSET)
        asked = next(envelope for envelope in table.seen if envelope.kind == Kind.COMPACT)
        assert asked.content == {"reason": "token_pressure", "target_tokens": 16_000}


async def test_clear_and_restart_are_addressed_and_carry_nothing_3_9_8_3_9_9() -> None:
    async with a_table() as table:
        oversight = ParticipantControl(table.ann)
        for told in (await oversight.clear("bot"), await oversight.restart("bot")):
            assert (told.to, told.content) == (("bot",), {})
        assert table.kinds() == ["participant/clear", "participant/restart"]


async def test_a_shutdown_returns_when_it_was_acknowledged_3_9_10() -> None:
    async with a_table() as table:
        answers(
            table.bot,
            Kind.SHUTDOWN,
            lambda asked: table.bot.compose(Kind.CHAT_ACKNOWLEDGE, {}, correlation_id=[asked.id]),
        )
        await ParticipantControl(table.ann).shutdown("bot")
        assert table.kinds()[-1] == Kind.CHAT_ACKNOWLEDGE
        assert "bot" in table.ann.session.roster


async def test_a_shutdown_returns_when_its_participant_has_left_3_9_10() -> None:
    async with a_table() as table:
        answers(table.bot, Kind.SHUTDOWN, lambda asked: table.space.cut("bot"))
        await ParticipantControl(table.ann).shutdown("bot")
        assert Kind.PRESENCE in table.kinds()


async def test_a_shutdown_that_is_ignored_is_in_force_3_9_10() -> None:
    async with a_table() as table:
        with pytest.raises(Unanswered, match="neither acknowledged"):
            await ParticipantControl(table.ann).shutdown("bot", timeout_s=0.02)
        with pytest.raises(Refused) as refused:
            await table.bot.send(table.bot.compose("chat", {"text": "hi"}))
        assert refused.value.why is Refusal.SHUT_DOWN


async def test_a_shutdown_of_who_is_not_here_returns_at_once() -> None:
    async with a_table() as table:
        await ParticipantControl(table.ann).shutdown("cat", timeout_s=60)


async def test_who_may_not_control_others_is_told_so() -> None:
    async with asyncio.timeout(5), Space(HOLDINGS) as space, space.connection("cat") as cat:
        with pytest.raises(Refused):
            await ParticipantControl(cat).pause("bot")


async def test_a_listener_is_left_behind_by_nothing_that_waits() -> None:
    async with a_table() as table:
        management, oversight = Management(table.ann), ParticipantControl(table.ann)
        before = table.ann.listeners
        await management.grant("bot", "chat", ack_within_s=0)
        with pytest.raises(Unanswered):
            await oversight.request_status("bot", timeout_s=0)
        with pytest.raises(Refused):
            await management.invite("bot")
        assert table.ann.listeners == before
