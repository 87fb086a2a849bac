"""A space with real participants, and a browser that is signed in to it as ann."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.async_api import Browser, Locator, Page, expect

import mew
from mew.client.proposals.proposer import Proposal

__all__ = ["DEADLINE_MS", "SPACE", "Workplace", "open_page", "work"]

SPACE: Final = """
space: {id: demo, name: Demo, announce_violations: true}
participants:
  ann: {tokens: [t-ann], capabilities: ["*"]}
  bob: {tokens: [t-bob], capabilities: ["*"]}
  bot:
    tokens: [t-bot]
    capabilities: [chat, chat/*, reasoning/*, participant/*, mcp/proposal, mcp/withdraw, stream/*]
  files: {tokens: [t-files], capabilities: [chat, participant/status, "mcp/request:notifications/*"]}
server: {port: 0}
"""
DEADLINE_MS: Final = 10_000
_WIDE: Final = (1440, 900)


@dataclass
class Workplace:
    """The page as ann sees it, and those who are in the space with her."""

    url: str
    page: Page
    bot: mew.Client
    files: mew.Client
    written: dict[str, str]
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def cards(self) -> Locator:
        return self.page.locator(".card")

    def row(self, text: str) -> Locator:
        """The row of the stream in which this is said."""
        return self.page.locator(".row", has_text=text)

    async def propose(
        self, path: str = "plan.md", content: str = "# Plan\n\n- rest\n", **more: Any
    ) -> Proposal:
        """The bot proposes to write a file; returns once that is to be seen, and keys are for it."""
        proposal = await self.bot.propose_call(
            "files", "write_file", {"path": path, "content": content}, **more
        )
        await expect(self.page.locator(f".card[data-proposal='{proposal.id}']")).to_be_visible()
        await self.ready()
        return proposal

    async def ready(self) -> None:
        """Right after the list moved by itself, keys decide nothing: wait until they do."""
        await expect(self.page.locator(".deciding:not(.guarded)")).to_be_visible()


@asynccontextmanager
async def work(url: str, browser: Browser, *, size: tuple[int, int] = _WIDE) -> AsyncIterator[Workplace]:
    """Everyone at work on the space at this address; afterwards, nothing may have gone wrong in the page."""
    written: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        bot = await stack.enter_async_context(mew.connect(url, space="demo", token="t-bot"))
        files = await stack.enter_async_context(mew.connect(url, space="demo", token="t-files"))
        participant = _files(written)
        serving = files.connection.spawn(participant.serve(files))
        page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
        stack.push_async_callback(page.close)
        place = Workplace(url, page, bot, files, written)
        _watch(place)
        await open_page(page, url)
        yield place
        participant.stop()
        await serving
    assert not place.errors


async def open_page(page: Page, url: str, token: str = "t-ann") -> None:
    """Sign in, and wait until what happens is shown."""
    page.set_default_timeout(DEADLINE_MS)
    expect.set_options(timeout=DEADLINE_MS)
    await page.goto(url)
    await page.fill("#token", token)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("[data-state=live]")


def _watch(place: Workplace) -> None:
    page = place.page
    page.on("pageerror", lambda error: place.errors.append(str(error)))
    page.on("console", lambda said: place.errors.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: place.asked.append(request.url))
    page.on("websocket", lambda socket: place.asked.append(socket.url))


def _files(written: dict[str, str]) -> mew.Participant:
    participant = mew.Participant("files")

    @participant.tool(destructive=True)
    async def write_file(path: str, content: str) -> str:
        """Write a text file; what it held before is gone."""
        written[path] = content
        return f"wrote {len(content)} characters to {path}"

    @participant.tool(read_only=True)
    async def read_file(path: str) -> str:
        """Read a text file."""
        if path not in written:
            raise mew.ToolError(f"there is no {path}")
        return written[path]

    return participant
