"""The floor with a fault, after the first hundred deliveries: faulty_floor.py PORT short|twice|other|close"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable

import uvloop
from bench.candidates.floor import Connection, Space

WELL_UNTIL = 100

FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "short": lambda joined: joined[:-1],
    "twice": lambda joined: joined * 2,
    "none": lambda joined: joined,
}


class FaultySpace(Space):
    """One of its members gets something else than the others, once."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        joined = b"".join(self.due)
        self.due.clear()
        for number, transport in enumerate(list(self.transports)):
            if number or self.flushes != WELL_UNTIL:
                transport.write(joined)
            elif self.fault == "close":
                transport.close()
            else:
                transport.write(FAULTS[self.fault](joined))


class LyingSpace(Space):
    """Delivers as many bytes as it should, but not those that were sent."""

    def flush(self) -> None:
        self.due = [frame[:4] + frame[4:].replace(b"p0", b"p9") for frame in self.due]
        super().flush()


async def serve(port: int, fault: str) -> None:
    loop = asyncio.get_running_loop()
    spaces: dict[bytes, Space] = defaultdict(LyingSpace if fault == "other" else lambda: FaultySpace(fault))
    server = await loop.create_server(lambda: Connection(loop, spaces), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), sys.argv[2]))
