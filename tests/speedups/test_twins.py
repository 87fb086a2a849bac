"""Every compiled function has a twin in Python, which runs where there is no compiler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mew.gateway.websocket import frames
from mew.protocol import codec, envelopes
from mew.speedups import TWINS

_speedups = pytest.importorskip("mew._speedups", reason="no C compiler was found when mew was installed")

ROOT = Path(__file__).parents[2]
USED = {
    "is_plain": codec,
    "join_frames": frames,
    "parse_frames": frames,
    "read_headers": envelopes,
}


def test_every_compiled_function_has_a_twin_and_is_used() -> None:
    compiled = {name for name in vars(_speedups) if not name.startswith("_")}
    assert compiled == set(USED) == set(TWINS)
    for name, module in USED.items():
        assert vars(module)[name] is getattr(_speedups, name)


def test_the_twins_take_over_when_told_to() -> None:
    code = (
        "from mew.gateway.websocket import frames; from mew.protocol import codec, envelopes;"
        "from mew.speedups import TWINS;"
        "print(all(getattr(m, n) is TWINS[n] for m, n in ((codec, 'is_plain'), (envelopes, 'read_headers'),"
        " (frames, 'parse_frames'), (frames, 'join_frames'))))"
    )
    environment = {**os.environ, "MEW_PURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


@pytest.mark.slow
def test_the_gateway_passes_its_tests_without_compiled_functions() -> None:
    """The rooms, the wire and the conformance of our own gateway, in Python alone."""
    tests = ["tests/gateway/room", "tests/gateway/websocket", "tests/conform/test_ours.py", "tests/contract"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        env={**os.environ, "MEW_PURE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
