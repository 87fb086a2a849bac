"""What `bench.guard` counts, if somebody parsed every envelope once more on its way: python -m tests.bench.slower"""

import json
import sys

from bench import guard
from mew.gateway.history import History
from mew.gateway.pages import Record

append = History.append


def parse_and_append(self: History, record: Record) -> None:
    json.loads(record.raw)
    append(self, record)


if __name__ == "__main__":
    History.append = parse_and_append  # type: ignore[method-assign]
    sys.exit(guard.main())
