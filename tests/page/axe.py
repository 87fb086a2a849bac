"""What axe finds wrong with the page for people who see, hear or move otherwise (WCAG 2.2, A and AA)."""

from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

__all__ = ["faults"]

_AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_RUN: Final = """rules => axe.run(
  document.querySelector("dialog") ?? document, { runOnly: rules, resultTypes: ["violations"] }
)"""


async def faults(page: Page, *, only: str | None = None) -> list[str]:
    """All that is wrong with the page as it stands, or with the dialog that keeps one from it; or by one rule alone."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE.read_text())
    found: dict[str, Any] = await page.evaluate(_RUN, _RULES if only is None else [only])
    return [
        f"{fault['id']}: {node['target']} {node.get('failureSummary', '')}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]
