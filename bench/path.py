"""`python -m bench.path`: the way of one envelope through a server, within one process and without sockets.

What is left is the server's own work. No kernel takes part, so the ratio to the floor is larger here than over sockets.
"""

import argparse
import asyncio
import cProfile
import importlib.util
import json
import os
import pstats
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from bench.pipes import WAYS, Listening, Shape, opened

__all__ = ["SHAPES", "has_compiled"]

PROFILED: Final = 20
SHAPES: Final = (
    Shape("1 member, 64 at once", 1, 64),
    Shape("5 members, 1 at once", 5, 1),
    Shape("200 spaces of 5, 1 each", 5, 1, spaces=200),
    Shape("10 members, 64 at once", 10, 64),
)


async def measured(shape: Shape, rounds: int, envelopes: int) -> dict[str, list[float]]:
    """CPU time of an envelope in µs, for each way and round; the ways take turns."""
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    async with AsyncExitStack() as stack:
        ways = [(way, await stack.enter_async_context(opened(way, shape))) for way in WAYS]
        for _ in range(rounds):
            for way, counted in ways:
                pieces = counted.pieces(envelopes)
                began = time.process_time()
                await counted.run(pieces)
                took[way].append((time.process_time() - began) / envelopes * 1e6)
    return took


async def profiled(way: str, shape: Shape, rounds: int, envelopes: int) -> str:
    """The functions that take most, by what each took in its best round; the profiler makes every call dearer."""
    own_s: dict[tuple[str, str], float] = {}
    calls: dict[tuple[str, str], float] = {}
    async with opened(way, shape) as counted:
        for _ in range(rounds):
            pieces, profile = counted.pieces(envelopes), cProfile.Profile()
            profile.enable()
            await counted.run(pieces)
            profile.disable()
            taken: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # as it documents
            for (file, _, name), (_, times, seconds, _, _) in taken.items():
                function = ("" if file == "~" else f"{Path(file).stem}.", name)
                own_s[function] = min(seconds, own_s.get(function, seconds))
                calls[function] = times / envelopes
    most = sorted(own_s, key=lambda function: -own_s[function])[:PROFILED]
    whole_s = sum(own_s.values())
    return "\n".join(
        f"{own_s[one] / whole_s:6.1%}  {calls[one]:6.2f} calls an envelope  {''.join(one)}" for one in most
    )


def has_compiled() -> bool:
    return importlib.util.find_spec("mew._speedups") is not None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.path", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--envelopes", type=int, default=16_000, help="in each round, a multiple of 1600 (16000)"
    )
    parser.add_argument("--profile", choices=WAYS, help="which functions of it take how much")
    parser.add_argument("--here", action="store_true", help="only what is loaded here, as JSON")
    asked = parser.parse_args()
    if asked.profile:
        with asyncio.Runner(loop_factory=Listening) as runner:
            for shape in SHAPES:
                print(
                    f"\n{shape.name}\n"
                    + runner.run(profiled(asked.profile, shape, asked.rounds, asked.envelopes))
                )
        return 0
    if asked.here:
        with asyncio.Runner(loop_factory=Listening) as runner:
            by_shape = [runner.run(measured(shape, asked.rounds, asked.envelopes)) for shape in SHAPES]
        print(json.dumps(by_shape))
        return 0
    print(f"{'µs an envelope':28}{'':12}" + "".join(f"{way:>22}" for way in WAYS) + f"{'mew to floor':>20}")
    for name, pure in (("compiled", ""), ("pure Python", "1")):
        if not pure and not has_compiled():
            print("compiled: there is no mew._speedups here")
            continue
        here = [sys.executable, *sys.orig_argv[1:], "--here"]
        done = subprocess.run(here, env={**os.environ, "MEW_PURE": pure}, stdout=subprocess.PIPE, check=True)
        for shape, took in zip(SHAPES, json.loads(done.stdout), strict=True):
            ratios = [mine / bare for mine, bare in zip(took["mew"], took["floor"], strict=True)]
            figures = "".join(f"{_spread(took[way]):>22}" for way in WAYS)
            print(f"{shape.name:28}{name:12}{figures}{_spread(ratios):>20}")
    return 0


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
