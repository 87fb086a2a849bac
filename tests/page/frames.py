"""What the browser itself measures: the frames it draws, and how long its main thread works for each."""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from playwright.async_api import Page

__all__ = ["FRAME_MS", "Work", "frames", "working"]

FRAME_MS: Final = 1000 / 60
_TRACED: Final = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
_DEADLINE_S: Final = 30
_FRAMES: Final = """async ms => {
  let frames = 0, longest = 0, last = performance.now(); const began = last;
  return await new Promise(done => requestAnimationFrame(function next(now) {
    frames += 1; longest = Math.max(longest, now - last); last = now;
    if (now - began < ms) requestAnimationFrame(next);
    else done({ per_second: frames * 1000 / (now - began), longest_ms: longest });
  }));
}"""


async def frames(page: Page, seconds: float) -> dict[str, float]:
    """How many frames a second it draws from now on, and how long the longest took."""
    found: dict[str, float] = await page.evaluate(_FRAMES, seconds * 1000)
    return found


class Work:
    """What the page's main thread did for each frame, in milliseconds of the processor: others' work does not count."""

    def __init__(self) -> None:
        self.each_ms: list[float] = []

    def read(self, events: list[dict[str, Any]]) -> None:
        """Take what was traced: all tasks between a frame and the next are the work for that."""
        mains = Counter((one["pid"], one["tid"]) for one in events if one["name"] == "FireAnimationFrame")
        main, _ = mains.most_common(1)[0]
        traced = [one for one in events if (one["pid"], one["tid"]) == main and one.get("ph") == "X"]
        ends = sorted(one["ts"] for one in traced if one["name"] == "Commit")
        sums = [0.0] * (len(ends) + 1)
        for one in traced:
            if one["name"] == "RunTask":
                sums[bisect_right(ends, one["ts"])] += one.get("tdur", 0) / 1000
        self.each_ms = sorted(sums[1:-1])  # what lies before the first and after the last is no whole frame

    def at(self, share: float) -> float:
        """So much or less it was for this share of the frames."""
        return self.each_ms[min(len(self.each_ms) - 1, int(len(self.each_ms) * share))]

    def summary(self) -> dict[str, float]:
        mean = sum(self.each_ms) / len(self.each_ms)
        return {"mean_ms": mean, "p50_ms": self.at(0.5), "p95_ms": self.at(0.95), "p99_ms": self.at(0.99)}


@asynccontextmanager
async def working(page: Page) -> AsyncIterator[Work]:
    """Trace the page for as long as this lasts; the work can be read afterwards."""
    work = Work()
    events: list[dict[str, Any]] = []
    complete = asyncio.Event()
    session = await page.context.new_cdp_session(page)
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda _: complete.set())
    await session.send(
        "Tracing.start", {"transferMode": "ReportEvents", "traceConfig": {"includedCategories": _TRACED}}
    )
    yield work
    await session.send("Tracing.end")
    async with asyncio.timeout(_DEADLINE_S):
        await complete.wait()
    await session.detach()
    work.read(events)
