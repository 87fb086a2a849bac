"""The event loop that commands run on which move many envelopes."""

import asyncio
import sys
from collections.abc import Callable

__all__ = ["fast_loop"]


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes an event loop of uvloop's; None, where there is none, for that of Python."""
    if sys.platform == "win32":
        return None
    import uvloop  # not to be had on Windows

    return uvloop.new_event_loop
