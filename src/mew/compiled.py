"""What of mew is compiled, where it could be: all of it has its like in Python, and `MEW_PURE=1` does without."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

__all__ = ["Bucket", "hand_out", "hear_frames", "is_plain", "plain_run", "text_frames", "whole_frames"]

IsPlain: TypeAlias = Callable[[bytes], bool]
WholeFrames: TypeAlias = Callable[[bytes, int], tuple[list[tuple[int, bytes]], int]]


def _loaded() -> object:
    """The compiled part; None where it is not wanted, or there was no compiler where it was built."""
    try:
        return None if os.environ.get("MEW_PURE") else import_module("mew._compiled")
    except ImportError:
        return None


_part = _loaded()

is_plain: IsPlain | None = getattr(_part, "is_plain", None)
"""Whether bytes are an envelope that can be read in one way only; False also where that takes a closer look."""
whole_frames: WholeFrames | None = getattr(_part, "whole_frames", None)
"""The messages in the usual frames that bytes begin with, of so many bytes each, and where another begins."""
# Typed where they are used: these know what `mew.gateway` is made of.
plain_run = getattr(_part, "plain_run", None)
"""What of `mew.gateway.plain` is done for many at once."""
text_frames = getattr(_part, "text_frames", None)
"""Of `mew.gateway.deliveries`."""
hear_frames = getattr(_part, "hear_frames", None)
"""What `mew.gateway.wire` and `websocket` do with the usual frames, for `mew.gateway.inbox`."""
hand_out = getattr(_part, "hand_out", None)
"""Of `mew.gateway.deliveries`."""
Bucket = getattr(_part, "Bucket", None)
"""Of `mew.gateway.rate`."""
