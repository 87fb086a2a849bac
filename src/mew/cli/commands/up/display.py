"""What `mew up` shows while it runs: a live table on a terminal, a line for each change elsewhere."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.live import Live

from mew.protocol.visible import visible
from mew.supervise.program import Phase, ProgramStatus

from .program_table import programs_table

if TYPE_CHECKING:
    from mew.supervise.supervisor import SpaceSupervisor

__all__ = ["Showing", "how_to_go_on"]

_REFRESH_PER_S: Final = 2.0
_SAID_CHARS: Final = 500
_MISSING: Final = (Phase.STARTING, Phase.AGAIN, Phase.FAILED)


def how_to_go_on(url: str, standings: Iterable[ProgramStatus], *, stop: str) -> str:
    """What is said once all is up, or is not waited for any longer."""
    missing = ", ".join(visible(one.name) for one in standings if one.phase in _MISSING)
    return (
        f"The space is up at {url}{f', without {missing}' if missing else ''}. {stop} stops it.\n"
        "mew proposals shows what waits for you, mew tail what happens, mew page gives a link to see it in a browser."
    )


class Showing:
    """Of one supervisor. That nobody reads it any longer, as the terminal is closed, keeps nothing from running."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._live: Live | None = None
        self._supervisor: SpaceSupervisor | None = None
        self._said: dict[str, str] = {}
        self._told = False

    def of(self, supervisor: "SpaceSupervisor") -> AbstractContextManager[object]:
        """Inside it, `changed` shows how its programs are doing."""
        self._supervisor = supervisor
        if not self._console.is_terminal:
            return nullcontext()
        self._live = Live(
            get_renderable=lambda: programs_table(supervisor.standings),
            console=self._console,
            refresh_per_second=_REFRESH_PER_S,
        )
        return self._live

    @property
    def is_terminal(self) -> bool:
        return self._console.is_terminal

    def say(self, text: str) -> None:
        with suppress(OSError):
            self._console.print(text)

    def changed(self) -> None:
        with suppress(OSError):
            self._show()

    def _show(self) -> None:
        if self._supervisor is None:
            return
        if self._supervisor.settled.is_set() and not self._told:
            self._told = True
            standings = self._supervisor.standings
            self._console.print(how_to_go_on(self.url, standings, stop="Ctrl-C, or 'mew down',"))
        if self._live is not None:
            self._live.refresh()
            return
        for one in self._supervisor.standings:
            line = f"{one.name}: {one.phase.value}" + (f" ({one.said})" if one.said else "")
            if self._said.get(one.name) != line:
                self._said[one.name] = line
                self._console.print(visible(line, _SAID_CHARS))
