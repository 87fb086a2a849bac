"""Chat, its acknowledgements and cancellations (§3.4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from msgspec import UNSET

from mew.client.chat import ChatRoom
from mew.client.connection.connection import ClientConnection
from mew.client.errors import Refused
from mew.protocol.envelope import Envelope
from mew.testing import Space


class Table(NamedTuple):
    ann: ClientConnection
    bot: ClientConnection
    ann_room: ChatRoom
    bot_room: ChatRoom

    async def all_have_seen_all(self) -> None:
        """What one is shown after one's own is all that came before it, for there is one order."""
        for _ in range(2):
            await self.ann.send(self.ann.compose("done", {}))
            await self.bot.send(self.bot.compose("done", {}))


@asynccontextmanager
async def a_table() -> AsyncIterator[Table]:
    async with (
        asyncio.timeout(5),
        Space({"ann": ["*"], "bot": ["chat", "chat/*", "done"]}) as space,
        space.connection("ann") as ann,
        space.connection("bot") as bot,
    ):
        yield Table(ann, bot, ChatRoom(ann), ChatRoom(bot))


def heard(connection: ClientConnection, kind: str) -> list[Envelope]:
    """From here on, what of this kind arrives."""
    envelopes: list[Envelope] = []
    connection.listen(lambda envelope, payload: envelopes.append(envelope) if envelope.kind == kind else None)
    return envelopes


async def test_a_chat_carries_its_text_and_is_for_all_3_4() -> None:
    async with a_table() as table:
        said = await table.ann_room.chat("hello")
        assert (said.kind, said.to, said.correlation_id, said.context) == ("chat", (), (), UNSET)
        assert said.content == {"text": "hello"}


async def test_a_chat_may_say_for_whom_about_what_where_and_in_which_format_3_4() -> None:
    async with a_table() as table:
        first = await table.ann_room.chat("hello")
        said = await table.bot_room.chat(
            "*hi*", to=["ann"], format="markdown", about=[first, "e7"], context="reason-1"
        )
        assert (said.to, said.correlation_id, said.context) == (("ann",), (first.id, "e7"), "reason-1")
        assert said.content == {"text": "*hi*", "format": "markdown"}
        assert (await table.bot_room.chat("hi", about=first)).correlation_id == (first.id,)
        assert (await table.bot_room.chat("hi", about=first.id)).correlation_id == (first.id,)


async def test_what_others_say_waits_until_it_is_acknowledged_3_4_1() -> None:
    async with a_table() as table:
        said = await table.ann_room.chat("hello")
        await table.all_have_seen_all()
        assert list(table.bot_room.waiting) == [said]
        assert table.ann_room.waiting == ()
        ack = await table.bot_room.acknowledge(said)
        assert (ack.kind, ack.to, ack.correlation_id) == ("chat/acknowledge", ("ann",), (said.id,))
        assert ack.content == {"status": "received"}
        assert table.bot_room.waiting == ()


async def test_an_acknowledgement_by_id_finds_the_author_in_the_queue() -> None:
    async with a_table() as table:
        said = await table.ann_room.chat("hello")
        await table.all_have_seen_all()
        ack = await table.bot_room.acknowledge(said.id, "read")
        assert (ack.to, ack.correlation_id, ack.content) == (("ann",), (said.id,), {"status": "read"})
        unknown = await table.bot_room.acknowledge("long-gone")
        assert (unknown.to, unknown.correlation_id) == ((), ("long-gone",))


async def test_clearing_the_queue_acknowledges_each_chat_in_it_3_4_1() -> None:
    async with a_table() as table:
        acks = heard(table.ann, "chat/acknowledge")
        said = [await table.ann_room.chat(f"number {n}") for n in range(3)]
        await table.all_have_seen_all()
        sent = await table.bot_room.acknowledge_all()
        await table.all_have_seen_all()
        assert [ack.correlation_id for ack in acks] == [(chat.id,) for chat in said]
        assert [ack.id for ack in acks] == [ack.id for ack in sent]
        assert all(ack.content == {"status": "read"} for ack in acks)
        assert table.bot_room.waiting == ()
        assert await table.bot_room.acknowledge_all() == ()


async def test_a_cancelled_chat_waits_for_nobody_3_4_2() -> None:
    async with a_table() as table:
        said = await table.ann_room.chat("hello", to=["bot"])
        cancel = await table.ann_room.cancel_chat(said.id, "handled_elsewhere")
        await table.all_have_seen_all()
        assert (cancel.kind, cancel.to, cancel.correlation_id) == ("chat/cancel", ("bot",), (said.id,))
        assert cancel.content == {"reason": "handled_elsewhere"}
        assert table.bot_room.waiting == ()
        assert table.ann_room.unacknowledged == ()


async def test_anothers_chat_is_cancelled_for_all() -> None:
    async with a_table() as table:
        said = await table.bot_room.chat("hello", to=["ann"])
        await table.all_have_seen_all()
        cancel = await table.ann_room.cancel_chat(said)
        assert (cancel.to, cancel.content) == ((), {"reason": "no_longer_needed"})
        assert table.ann_room.waiting == ()


async def test_cancelling_all_cancels_each_unacknowledged_chat_of_mine_3_4_2() -> None:
    async with a_table() as table:
        cancels = heard(table.bot, "chat/cancel")
        seen, open_, both = [
            await table.ann_room.chat("one"),
            await table.ann_room.chat("two"),
            await table.ann_room.chat("three", to=["bot", "cat"]),
        ]
        await table.bot_room.chat("not ann's")
        await table.bot_room.acknowledge(seen)
        await table.bot_room.acknowledge(both)  # and cat has not
        await table.all_have_seen_all()
        assert list(table.ann_room.unacknowledged) == [open_, both]
        sent = await table.ann_room.cancel_all("duplicate")
        await table.all_have_seen_all()
        assert [cancel.correlation_id for cancel in cancels] == [(open_.id,), (both.id,)]
        assert [cancel.to for cancel in sent] == [(), ("bot", "cat")]
        assert table.ann_room.unacknowledged == ()
        assert len(table.ann_room.waiting) == 1


async def test_who_may_not_chat_is_told_so() -> None:
    async with asyncio.timeout(5), Space({"bot": []}) as space, space.connection("bot") as bot:
        with pytest.raises(Refused):
            await ChatRoom(bot).chat("hello")


async def test_a_room_made_before_the_connection_knows_what_is_its_own() -> None:
    async with asyncio.timeout(5), Space({"ann": ["*"]}) as space:
        ann = space.connection("ann")
        room = ChatRoom(ann)
        async with ann:
            said = await room.chat("hello")
            assert room.waiting == ()
            assert room.unacknowledged == (said,)
