"""The programs of a space as a table."""

import time
from collections.abc import Iterable
from typing import Final

from rich.table import Column, Table
from rich.text import Text

from mew.cli.render.table import lasting
from mew.protocol.visible import visible
from mew.supervise.program import Phase, ProgramStatus

__all__ = ["programs_table"]

_STYLES: Final = {
    Phase.RUNNING: "green",
    Phase.STARTING: "yellow",
    Phase.WAITING: "dim",
    Phase.AGAIN: "yellow",
    Phase.FAILED: "red",
    Phase.ENDED: "dim",
    Phase.STOPPED: "dim",
}
_WHAT_CHARS: Final = 60
_SAID_CHARS: Final = 240


def programs_table(standings: Iterable[ProgramStatus]) -> Table:
    """A line for each."""
    table = Table(
        Column("name", overflow="fold"),
        Column("state", no_wrap=True),
        Column("for", justify="right", no_wrap=True),
        Column("again", justify="right", no_wrap=True),
        Column("what", ratio=1, overflow="fold"),
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
    )
    now_s = time.time()
    for one in standings:
        table.add_row(
            Text(visible(one.name)),
            Text(one.phase.value, style=_STYLES[one.phase]),
            lasting(max(0, now_s - one.since)) if one.since else "",
            f"{one.restarts}×" if one.restarts else "",
            _what(one),
        )
    return table


def _what(one: ProgramStatus) -> Text:
    said = one.said or (one.ended if one.phase is Phase.STARTING else "")
    if said:
        return Text(visible(said, _SAID_CHARS), style="red" if one.phase is Phase.FAILED else "yellow")
    return Text(visible(one.what, _WHAT_CHARS), style="dim", no_wrap=True, overflow="ellipsis")
