"""What of mew is compiled, where it could be: all of it has its like in Python, and `MEW_PURE=1` does without."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

__all__ = ["is_plain", "whole_frames"]

IsPlain: TypeAlias = Callable[[bytes, int], bool]
WholeFrames: TypeAlias = Callable[[bytes, int], tuple[list[tuple[int, bytes]], int]]

is_plain: IsPlain | None = None
"""Whether bytes, if they are JSON, can be read in one way only; False also where that takes a closer look."""
whole_frames: WholeFrames | None = None
"""The messages in the usual frames that bytes begin with, of so many bytes each, and where another begins."""

if not os.environ.get("MEW_PURE"):
    with suppress(ImportError):  # there was no compiler where it was built
        from ._compiled import is_plain as compiled_is_plain
        from ._compiled import whole_frames as compiled_whole_frames

        is_plain, whole_frames = compiled_is_plain, compiled_whole_frames
