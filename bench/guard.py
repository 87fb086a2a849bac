"""`python -m bench.guard`: has an envelope become dearer? Counts instructions, which no neighbour can change.

valgrind counts what the processor would execute on the way of `bench.path`: ours and the floor's, in one process. Their
ratio is compared with the one in guard.json, which says how dear we were when it was last written. Only the thread of
the event loop is counted: when the index and the checkpoints are written depends on how busy the machine is. What it
does not see either is the kernel: how many writes there are, and how large, is for the benchmark over sockets.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec

from bench.path import SHAPES as ALL_SHAPES
from bench.path import has_compiled
from bench.pipes import WAYS, Listening, opened

__all__ = ["BOUNDS", "Bounds", "Counts", "Unable", "count", "load", "variants"]

BOUNDS: Final = Path(__file__).with_name("guard.json")
SHAPES: Final = ALL_SHAPES[
    :2
]  # many spaces differ by what is in the processor's cache, which nobody counts here
ENVELOPES: Final = 1_280
TIMEOUT_S: Final = 180
PURE: Final = {"compiled": "", "pure Python": "1"}

Counts = dict[str, dict[str, float]]
"""Instructions an envelope, by the shape and the way."""


class Unable(Exception):
    """Nothing could be counted here; the text says why."""


class Bounds(msgspec.Struct, frozen=True):
    """What is in guard.json."""

    margin: float
    """How many times its written ratio an envelope may cost before it is called dearer."""
    ratios: dict[str, dict[str, float]]
    """Ours to the floor's, by the variant and the shape."""

    def exceeded(self, variant: str, counts: Counts) -> list[str]:
        """A line for each shape that is dearer than it may be."""
        return [
            f"{variant}, {shape}: {ratio:.2f} times the floor, was {self.ratios[variant][shape]:.2f}, "
            f"may be {self.margin * self.ratios[variant][shape]:.2f}"
            for shape, ratio in ratios(counts).items()
            if ratio > self.margin * self.ratios[variant][shape]
        ]


def load() -> Bounds:
    return msgspec.json.decode(BOUNDS.read_bytes(), type=Bounds)


def variants() -> list[str]:
    """What can be counted here: the compiled part, where it was built, and Python alone."""
    return [name for name in PURE if name != "compiled" or has_compiled()]


def ratios(counts: Counts) -> dict[str, float]:
    return {shape: by_way["mew"] / by_way["floor"] for shape, by_way in counts.items()}


def count(variant: str, program: str = "bench.guard") -> Counts:
    """Run `program` under valgrind and read what it counted; about 20 seconds.

    Raises:
        Unable: there is no valgrind, or it does not work here.
    """
    if shutil.which("valgrind") is None:
        raise Unable("valgrind is not installed (Debian and Ubuntu: the package valgrind)")
    with tempfile.TemporaryDirectory(prefix="mew-guard-") as folder:
        out = Path(folder, "counted")
        # One dump at each mark: the C library's `getppid`, which nothing else calls.
        options = [
            "--tool=callgrind",
            "--instr-atstart=no",
            "--dump-before=getppid",
            "--separate-threads=yes",
        ]
        done = subprocess.run(
            ["valgrind", *options, f"--callgrind-out-file={out}", sys.executable, "-m", program, "--here"],
            env={**os.environ, "PYTHONHASHSEED": "0", "MEW_PURE": PURE[variant]},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        if done.returncode != 0:
            raise Unable(f"valgrind ended with {done.returncode}: {done.stderr.strip()[-600:]}")
        return {
            shape.name: {way: _total(out, 2 * (at * len(WAYS) + nth) + 2) for nth, way in enumerate(WAYS)}
            for at, shape in enumerate(SHAPES)
        }


def _total(out: Path, mark: int) -> float:
    """Instructions an envelope of the first thread, from the mark before this one to this one."""
    found = re.search(r"^totals: (\d+)", out.with_name(f"{out.name}.{mark}-01").read_text(), re.MULTILINE)
    assert found is not None, f"no totals at mark {mark}"
    return int(found[1]) / ENVELOPES


async def here() -> None:
    """What is counted: each way in each shape, between two marks, after everything has started and is warm."""
    async with AsyncExitStack() as stack:
        ready = []
        for shape in SHAPES:
            for way in WAYS:
                counted = await stack.enter_async_context(opened(way, shape))
                ready.append((counted, counted.pieces(ENVELOPES)))
        _start_counting()
        for counted, pieces in ready:
            os.getppid()
            await counted.run(pieces)
            os.getppid()


def _start_counting() -> None:
    """To start Python takes more instructions than all the rest; uncounted, it is five times as fast."""
    vgdb = shutil.which("vgdb")
    assert vgdb is not None, "valgrind without vgdb"
    asking = subprocess.Popen([vgdb, f"--pid={os.getpid()}", "instrumentation", "on"], stderr=subprocess.PIPE)
    while asking.poll() is None:
        pass  # valgrind looks for the order while we are busy; asleep it would have to be traced
    assert asking.returncode == 0, f"vgdb ended with {asking.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=__doc__)
    parser.add_argument("--write", action="store_true", help="let guard.json say what it is now")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        with asyncio.Runner(loop_factory=Listening) as runner:
            runner.run(here())
        return 0
    bounds, dearer, now = load(), [], {}
    for variant in variants():
        counts = count(variant)
        now[variant] = {shape: round(ratio, 2) for shape, ratio in ratios(counts).items()}
        for shape, by_way in counts.items():
            ratio, was = now[variant][shape], bounds.ratios.get(variant, {}).get(shape, float("nan"))
            figures = "".join(f"  {way} {instructions:>8,.0f}" for way, instructions in by_way.items())
            print(f"{variant:12} {shape:22}{figures}  {ratio:.2f} times the floor, was {was:.2f}")
        if not asked.write:
            dearer += bounds.exceeded(variant, counts)
    if asked.write:
        written = Bounds(bounds.margin, {**bounds.ratios, **now})
        BOUNDS.write_text(json.dumps(msgspec.to_builtins(written), indent=2) + "\n")
    for line in dearer:
        print(f"dearer: {line}")
    return 1 if dearer else 0


if __name__ == "__main__":
    sys.exit(main())
