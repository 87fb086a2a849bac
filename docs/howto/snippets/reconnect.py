"""What a lost connection looks like from inside: nothing, unless one asks."""

import asyncio

import mew
from mew.protocol.kinds import Chat
from mew.testing import Space


async def say(me: mew.Client, text: str) -> bool:
    try:
        async with asyncio.timeout(10):
            await me.chat(text)
    except TimeoutError:
        return False  # not sent if it was not yet; what was on the wire may have been accepted
    except mew.Refused as no:
        print("refused:", no)  # `no.why` is the code to act on
        return False
    except mew.Disconnected as end:
        print(f"over for good: {end.code} {end.reason}")  # kicked, a token taken back, closed here
        raise
    return True  # it stands in the one order, and everyone is being shown it


def report(me: mew.Client) -> None:
    print("connected" if me.connected else "reconnecting", "and paused" if me.paused else "")
    for gap in me.gaps:
        away_s = (gap.found_at - gap.lost_at).total_seconds()
        print(f"away for {away_s:.1f} s, {'all was replayed' if gap.complete else 'some of it is gone'}")


async def main() -> None:
    who = {"ann": ["*"], "bob": ["chat"]}
    async with Space(who) as space, space.connect("ann") as ann, space.connect("bob") as bob:
        heard = ann.envelopes("chat")
        assert await say(bob, "one")
        space.cut("ann")
        assert await say(bob, "two")  # while ann is away
        assert await say(ann, "three")  # waits until she is back
        texts = [(await anext(heard)).read(Chat).text for _ in range(3)]
        assert texts == ["one", "two", "three"]
        assert [gap.complete for gap in ann.gaps] == [True]
        report(ann)
        await come_late()

        pauses = bob.envelopes("participant/pause")
        await ann.control.pause("bob", timeout_s=0.2, reason="wait for me")
        await anext(pauses)
        assert bob.paused
        assert await say(bob, "four")  # returns when the pause is over
        assert not await say(bob, "x" * 2_000_000)  # refused: too_large
        await ann.kick("bob")
        code = 0
        try:
            await say(bob, "five")
        except mew.Disconnected as end:
            code = end.code
        assert code == 4503  # kicked


async def come_late() -> None:
    async with Space({"ann": ["*"], "bob": ["chat"]}) as space:
        async with space.connect("bob") as bob:
            await bob.chat("is anybody there?")
        async with space.connect("ann", recall=1_000) as ann:  # as mew.connect(…, recall=1_000)
            (waiting,) = ann.chats.waiting  # what still waits for her
            assert waiting in ann.recalled  # of all that was shown before she came, oldest first


if __name__ == "__main__":
    asyncio.run(main())
