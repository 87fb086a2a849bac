"""What was shown before: all of it, the last of it, or what one looks for."""

from datetime import UTC, datetime, timedelta

import mew
from mew.protocol.kinds import Chat
from mew.testing import Space


async def last_said(me: mew.Client, many: int) -> list[str]:
    """As a reader wants them: the newest so many, in the order they were said."""
    newest = await me.history(kind="chat", newest_first=True, limit=many).list()
    return [f"{one.sender}: {one.read(Chat).text}" for one in reversed(newest)]


async def proposals_of_today(me: mew.Client) -> list[mew.Envelope]:
    history = me.history(kind="mcp/proposal", since=datetime.now(UTC) - timedelta(days=1))
    found = [envelope async for envelope in history]
    if not history.complete:
        print("some that may have been among them are no longer kept")
    return found


async def first_question(me: mew.Client) -> mew.Envelope | None:
    async for envelope in me.history(kind="chat"):
        if envelope.read(Chat).text.endswith("?"):
            return envelope  # no page after this one is fetched
    return None


async def story_of(me: mew.Client, proposal: mew.Envelope) -> list[str]:
    """What was proposed, who took it up, and what came of it."""
    return [f"{one.sender} {one.kind}" async for one in me.history(correlation=proposal)]


async def main() -> None:
    who = {"ann": ["*"], "bob": ["chat", "mcp/proposal"], "cid": ["*"]}
    async with Space(who) as space, space.connect("ann") as ann, space.connect("bob") as bob:
        await bob.chat("hello")
        await bob.chat("shall I?")
        await bob.chat("I would add it up")
        proposed = await bob.send("mcp/proposal", {"method": "tools/list"}, to="ann")
        asked = await ann.send("mcp/request", {"method": "tools/list"}, to="cid", correlation_id=proposed.id)
        async with space.connect("cid") as cid:  # after all that
            await cid.send("mcp/response", {"result": {"tools": []}}, to="ann", correlation_id=asked.id)
            assert await last_said(cid, 2) == ["bob: shall I?", "bob: I would add it up"]
            assert await proposals_of_today(cid) == [proposed]
            question = await first_question(cid)
            assert question is not None
            following = await cid.history(after=question, participant="bob").list()
            assert [envelope.kind for envelope in following] == ["chat", "mcp/proposal"]
            assert await story_of(cid, proposed) == [
                "bob mcp/proposal",
                "ann mcp/request",
                "cid mcp/response",
            ]
