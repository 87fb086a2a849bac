"""What `bench.guard` counts, if somebody parsed every envelope once more on its way: python -m tests.bench.slower"""

import json
import sys
from collections.abc import Sequence

from bench import guard
from mew.gateway.history import History
from mew.gateway.pages import Record

append, extend = History.append, History.extend


def parse_and_append(self: History, record: Record) -> None:
    json.loads(record.raw)
    append(self, record)


def parse_and_extend(self: History, records: Sequence[Record]) -> None:
    for record in records:
        json.loads(record.raw)
    extend(self, records)


if __name__ == "__main__":
    History.append = parse_and_append  # type: ignore[method-assign]
    History.extend = parse_and_extend  # type: ignore[method-assign]
    sys.exit(guard.main())
