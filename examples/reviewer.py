"""A reviewer at a terminal: python examples/reviewer.py URL SPACE TOKEN_FILE

Shows each proposal that waits for a decision, and asks.
"""

import asyncio
import signal
import sys
from pathlib import Path

import mew


async def main(url: str, space: str, token: Path) -> None:
    async with mew.connect(url, space=space, token=token, recall=1000) as me:
        print(f"{me.id} reviews what is proposed in {me.space}", flush=True)
        async for proposal in me.proposals():
            print(f"\n{proposal.preview()}\ndigest {proposal.digest}")
            answer = await asyncio.to_thread(input, "approve? [y/N/why not] ")
            try:
                if answer.strip().lower() in ("y", "yes"):
                    print("done:", await proposal.approve(), flush=True)
                else:
                    await proposal.reject("disagree", answer.strip() or None)
                    print("rejected", flush=True)
            except mew.AlreadyDecided as late:
                print(late, flush=True)  # withdrawn, or somebody else was faster
            except mew.MewError as failed:
                print("failed:", failed, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once, also while it waits for an answer
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
    except EOFError:
        print()
