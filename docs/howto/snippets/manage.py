"""Who may be in a space, what they may do, and how to stop them."""

import asyncio

import mew
from mew.testing import Space


async def trust(me: mew.Client) -> None:
    granted = await me.grant("bot", "mcp/request:tools/call:read_*", ttl_s=3600, reason="right 20 times")
    print(f"grant {granted.id} is in force; acknowledged: {granted.acknowledged}")
    await me.revoke("bot", grant_id=granted.id)  # that grant, and what bot granted on from it
    await me.revoke("bot", "mcp/request")  # or everything inside a pattern, whoever gave it


async def let_in(me: mew.Client) -> mew.Envelope:
    invited = await me.invite("guest", "chat", reason="for today")
    print(f"{invited.participant_id} joins at {invited.connection_url} with a token shown only here")
    assert invited.token not in repr(invited)
    return await me.kick("guest", reason="the day is over")  # the token is dead


async def supervise(me: mew.Client) -> None:
    await me.control.pause("bot", timeout_s=60, reason="let us look at this first")
    await me.control.resume("bot")
    print(await me.control.request_status("bot"))
    await me.control.shutdown("bot")  # returns when it has said so, or left


async def main() -> None:
    bot = mew.Participant("bot")
    async with (
        Space({"ann": ["*"], "bot": ["chat", "chat/acknowledge", "participant/status"]}) as space,
        space.serving(bot, "bot") as there,
        space.connect("ann") as ann,
    ):
        await trust(ann)
        assert not there.can_send("mcp/request", {"method": "tools/call", "params": {"name": "read_file"}})
        await let_in(ann)
        await supervise(ann)


if __name__ == "__main__":
    asyncio.run(main())
