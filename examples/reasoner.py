"""An agent that thinks aloud, and can be stopped: python examples/reasoner.py URL SPACE TOKEN_FILE

Ask it in chat: it looks for the smallest divisor of every number you mention. Anyone may cancel its reasoning.
"""

import asyncio
import re
import sys
from pathlib import Path

import mew
from mew.protocol.kinds import Chat

agent = mew.Participant("reasoner")


@agent.on("chat", at_once=8)
async def answer(said: mew.Envelope, chat: Chat) -> None:
    numbers = [int(digits) for digits in re.findall(r"\d{1,12}", chat.text)]
    if not numbers:
        return
    async with agent.client.reasoning(f"Looking into {numbers}", about=said) as reasoning:
        found = []
        for number in numbers:
            await reasoning.thought(f"Trying the divisors of {number}, from 2 on")
            divisor = await smallest_divisor(number)
            found.append(f"{number} is prime" if divisor == number else f"{number} is divisible by {divisor}")
        await reasoning.conclude("; ".join(found))
        await agent.client.chat(". ".join(found), about=said)
    if reasoning.cancelled:  # the block was ended in the middle of whatever it did
        await agent.client.chat(f"Stopped by {reasoning.cancelled_by}.", about=said)


async def smallest_divisor(number: int) -> int:
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return divisor
        divisor += 1
        if divisor % 1_000 == 0:
            await asyncio.sleep(0)  # so that a cancellation gets through
    return number


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    agent.run(sys.argv[1], space=sys.argv[2], token=Path(sys.argv[3]))
