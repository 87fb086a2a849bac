"""The link to the page, for who starts a space for the first time."""

import asyncio
from pathlib import Path

from mew.cli.errors import CommandError
from mew.cli.locate.space_file import SpaceFile
from mew.cli.page_link import page_link
from mew.client.errors import ConnectError

__all__ = ["first_link"]


async def first_link(folder: SpaceFile, url: str) -> str | None:
    """A sentence with a link that works once; None where nobody knows for whom, or the gateway gives none."""
    try:
        space = folder.space(None)
        who = folder.person(space)
        token = None if who is None else folder.token(space, who)
        if not isinstance(token, str | Path):
            return None
        text = await asyncio.to_thread(token.read_text) if isinstance(token, Path) else token
        link = await page_link(url, space, text)
    except (CommandError, ConnectError, OSError, UnicodeDecodeError):
        return None
    return f"Open it as {who}, with a link that works once, for ten minutes: {link}"
