"""How the programs of `mew up` are shown."""

import io
import time

import pytest
from rich.console import Console

from mew.cli.commands.up.display import how_to_go_on
from mew.cli.commands.up.program_table import programs_table
from mew.supervise.program import Phase, ProgramStatus

ENDS = (
    "mew gateway at http://127.0.0.1:1",
    "mew bridge to npx -y a-server /data",
    r"3× ended with exit code 3: \u001b[2Jno paper",
    "1× was killed by SIGKILL",
    "waiting for cat",
)


def standings() -> list[ProgramStatus]:
    """As they are now: what is shown says for how long."""
    now_s = time.time()
    return [
        ProgramStatus("gateway", "mew gateway at http://127.0.0.1:1", Phase.RUNNING, since=now_s - 65),
        ProgramStatus("files", "mew bridge to npx -y a-server /data", Phase.RUNNING, since=now_s),
        ProgramStatus(
            "bot", "bot", Phase.AGAIN, since=now_s, restarts=3, said="ended with exit code 3: \x1b[2Jno paper"
        ),
        ProgramStatus("cat", "cat", Phase.STARTING, since=now_s, restarts=1, ended="was killed by SIGKILL"),
        ProgramStatus("later", "later", Phase.WAITING, said="for cat"),
    ]


def shown(width: int, *, terminal: bool = False) -> str:
    out = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
    )
    out.print(programs_table(standings()))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_each_has_a_line_with_what_is_to_be_known_of_it() -> None:
    lines = [" ".join(line.split()) for line in shown(120).splitlines()]
    assert [(line.split()[0], end in line) for line, end in zip(lines[1:], ENDS, strict=True)] == [
        *(("gateway", True), ("files", True), ("bot", True), ("cat", True), ("later", True)),
    ]


@pytest.mark.parametrize("width", [44, 80])
def test_a_narrow_terminal_has_a_line_for_each_that_is_well(width: int) -> None:
    lines = shown(width).splitlines()
    assert all(len(line) <= width for line in lines)
    assert sum("running" in line for line in lines) == 2
    assert [line.split()[0] for line in lines[1:3]] == ["gateway", "files"]


def test_there_are_colours_on_a_terminal_and_nothing_a_program_wrote_acts_on_it() -> None:
    assert "\x1b[" not in shown(80)
    assert "\x1b[32mrunning" in shown(80, terminal=True)
    assert "\x1b[2J" not in shown(80, terminal=True)


def test_what_is_not_there_is_named_once_all_is_up() -> None:
    said = how_to_go_on("http://x", standings(), stop="Ctrl-C")
    assert said.startswith("The space is up at http://x, without bot, cat. Ctrl-C stops it.\n")
    assert all(command in said for command in ("mew proposals", "mew tail", "mew page"))
