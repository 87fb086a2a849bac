from pathlib import Path

import mew

bot = mew.Participant("bot")


@bot.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


bot.run("ws://127.0.0.1:8080", space="demo", token=Path(".mew/tokens/bot.token"))
