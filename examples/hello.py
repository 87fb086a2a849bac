"""Join a space, say hello, and see who is there: python examples/hello.py URL SPACE TOKEN_FILE"""

import asyncio
import sys
from pathlib import Path

import mew


async def main(url: str, space: str, token: Path) -> None:
    async with mew.connect(url, space=space, token=token) as me:
        kinds = [capability.source["kind"] for capability in me.capabilities]
        print(f"I am {me.id} in {me.space}; I may send {', '.join(map(str, kinds))}")
        print(f"here are {', '.join(me.participants)}")
        said = await me.chat("Hello everyone!")  # returns when the gateway has accepted it: everyone has it
        print(f"said {said.id}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
