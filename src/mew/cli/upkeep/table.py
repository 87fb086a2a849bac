"""The programs of a space as a table."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.table import Column, Table
from rich.text import Text

from mew.protocol.visible import visible
from mew.supervise.program import Phase

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
_SAID_CHARS: Final = 120
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def programs_table(standings: Iterable[Mapping[str, Any]]) -> Table:
    """A line for each, as `Standing.as_dict` has it."""
    table = Table(
        Column("name", no_wrap=True),
        Column("state", no_wrap=True),
        Column("for", justify="right", no_wrap=True),
        Column("restarts", justify="right"),
        Column("what", ratio=1),
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
    )
    for one in standings:
        phase = Phase(one["phase"])
        table.add_row(
            Text(visible(one["name"])),
            Text(phase.value, style=_STYLES[phase]),
            "" if phase is Phase.WAITING else _lasting(time.time() - one["since"]),
            str(one["restarts"] or ""),
            _what(one, phase),
        )
    return table


def _what(one: Mapping[str, Any], phase: Phase) -> Text:
    if one["said"] and phase in (Phase.AGAIN, Phase.FAILED, Phase.ENDED):
        return Text(visible(one["said"], _SAID_CHARS), style="red" if phase is Phase.FAILED else "yellow")
    return Text(visible(one["what"], _WHAT_CHARS), style="dim")


def _lasting(seconds: float) -> str:
    size, unit = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    return f"{int(seconds // size)} {unit}"
