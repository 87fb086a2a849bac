"""Where the compiled part is used, and where not."""

import os
import subprocess
import sys

import pytest

from mew.gateway import deliveries, inbox, plain, rate, websocket
from mew.protocol import codec

_compiled = pytest.importorskip("mew._compiled", reason="no C compiler was found when mew was installed")


def test_it_is_used_where_it_is_there() -> None:
    assert vars(codec)["is_plain"] is _compiled.is_plain
    assert vars(websocket)["whole_frames"] is _compiled.whole_frames
    assert vars(inbox)["hear_frames"] is _compiled.hear_frames
    assert vars(plain)["plain_run"] is _compiled.plain_run
    assert vars(deliveries)["text_frames"] is _compiled.text_frames
    assert vars(deliveries)["hand_out"] is _compiled.hand_out
    assert vars(rate)["Bucket"] is _compiled.Bucket


def test_mew_does_without_it_when_told_to() -> None:
    code = "from mew import compiled; print(*{getattr(compiled, name) for name in compiled.__all__})"
    environment = {**os.environ, "MEW_PURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
