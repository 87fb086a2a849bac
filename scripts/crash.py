"""Kill a gateway under load, again and again, and compare what was shown with what is left.

.venv/bin/python scripts/crash.py --rounds 200 --clients 20
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.e2e.crash import Rounds


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="for the moments of the crashes")
    parser.add_argument("--fsync", choices=["process", "power"], default="process")
    parser.add_argument(
        "--compare-every", type=int, default=5, metavar="N", help="rounds between comparisons"
    )
    asked = parser.parse_args()
    print(f"{asked.rounds} rounds with {asked.clients} clients, seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        journal = {"fsync": asked.fsync}
        rounds = Rounds(Path(folder), clients=asked.clients, seed=asked.seed, journal=journal)
        for number in range(1, asked.rounds + 1):
            await rounds.crash()
            if number % asked.compare_every == 0 or number == asked.rounds:
                await rounds.compare()
                print(
                    f"round {number}: {len(rounds.order)} envelopes, in one order, none missing", flush=True
                )


if __name__ == "__main__":
    asyncio.run(main())
