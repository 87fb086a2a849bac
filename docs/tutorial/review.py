"""Ann decides: y approves, JSON approves with these arguments instead, anything else rejects and is the reason."""

import asyncio
import json
import signal
from pathlib import Path

import mew


async def decide(proposal: mew.Review, answer: str) -> None:
    if answer == "y":
        print("done:", await proposal.approve())
    elif answer.startswith("{"):
        print("done:", await proposal.approve(json.loads(answer)))
    else:
        await proposal.reject("disagree", answer or None)
        print("rejected")


async def main() -> None:
    token = Path(".mew/tokens/ann.token")
    async with mew.connect("ws://127.0.0.1:8080", space="demo", token=token, recall=1000) as me:
        await me.tools("calculator")  # so that a proposal can be shown with what its tool says of itself
        print("waiting for proposals", flush=True)
        async for proposal in me.proposals():
            print(proposal.preview(), flush=True)
            try:
                await decide(proposal, await asyncio.to_thread(input, "? "))
            except (mew.MewError, ValueError) as error:
                print("not done:", error)


signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once, also while it waits for an answer
asyncio.run(main())
