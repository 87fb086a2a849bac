"""What `bench.guard` counts, if somebody parsed every envelope once more on its way: python -m tests.bench.slower"""

import json
import sys

from bench import guard
from mew.gateway.history.recent import RecentHistory
from mew.journal.port import Delivered

append = RecentHistory.append


def parse_and_append(self: RecentHistory, delivered: Delivered, size: int) -> None:
    for raw in delivered.raws:
        json.loads(raw)
    append(self, delivered, size)


if __name__ == "__main__":
    RecentHistory.append = parse_and_append  # type: ignore[method-assign]
    sys.exit(guard.main())
