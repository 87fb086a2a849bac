"""Open a link in the person's browser, without letting that program touch our standard streams."""

import asyncio
import os
import shlex
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping
from typing import Final

__all__ = ["browser_command", "open_in_browser"]

_START_S: Final = 10.0


def browser_command(environ: Mapping[str, str], link: str) -> list[str] | None:
    """The command that opens a link: what `BROWSER` says, else what the desktop offers; None if there is none."""
    if said := environ.get("BROWSER", "").partition(os.pathsep)[0].strip():
        words = shlex.split(said)
        return [word.replace("%s", link) for word in words] if "%s" in said else [*words, link]
    if sys.platform == "darwin":
        return ["open", link]
    if sys.platform == "win32":
        return ["rundll32", "url.dll,FileProtocolHandler", link]
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return None
    opener = shutil.which("xdg-open", path=environ.get("PATH"))
    return None if opener is None else [opener, link]


async def open_in_browser(environ: Mapping[str, str], link: str) -> bool:
    """Open the link; return whether a browser took it. One that stays in the foreground counts after 10 s."""
    command = browser_command(environ, link)
    if command is None:
        return False
    try:
        opener = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
        async with asyncio.timeout(_START_S):
            return await opener.wait() == 0
    except TimeoutError:
        return True
    except OSError:
        return False
