"""What of mew is compiled, where it could be: all of it has its like in Python, and `MEW_PURE=1` does without."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

__all__ = ["Bucket", "hand_out", "is_plain", "plain_run", "text_frames", "whole_frames"]

IsPlain: TypeAlias = Callable[[bytes, int], bool]
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
plain_run: Any = getattr(_part, "plain_run", None)
"""`mew.gateway.plain.plain_run`."""
text_frames: Any = getattr(_part, "text_frames", None)
"""`mew.gateway.deliveries.text_frames`."""
hand_out: Any = getattr(_part, "hand_out", None)
"""`mew.gateway.deliveries.hand_out`."""
Bucket: Any = getattr(_part, "Bucket", None)
"""`mew.gateway.rate.Bucket`."""
