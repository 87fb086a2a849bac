"""What `bench.guard` counts, if somebody parsed every envelope once more on its way: python -m tests.bench.slower"""

import json
import sys
from datetime import datetime

from bench import guard
from mew.log.memory import MemoryLog
from mew.space import Event, Sent

append = MemoryLog.append


def parse_and_append(self: MemoryLog, at: datetime, event: Event) -> None:
    if isinstance(event, Sent):
        json.loads(event.raw)
    append(self, at, event)


if __name__ == "__main__":
    MemoryLog.append = parse_and_append  # type: ignore[method-assign]
    sys.exit(guard.main())
