"""A space on a terminal, in a file, and for programs."""

import io
import json
from datetime import UTC, timedelta, timezone

import pytest
from rich.console import Console
from tests.space.table import START, envelope_of

from mew.cli.render.timeline import JsonLines, Screen


def drawn(*texts: str, width: int = 60, terminal: bool = True, who: str = "ann") -> list[str]:
    file = io.StringIO()
    screen = Screen(Console(file=file, width=width, force_terminal=terminal, color_system=None), UTC)
    for text in texts:
        envelope, raw = envelope_of(who, "chat", {"text": text}, id="e-1")
        screen.show(1, START, envelope, raw)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_line_has_the_time_who_and_what() -> None:
    assert drawn("hello", terminal=False) == [
        "Thursday, 1 January 2026 (UTC)",
        "00:00:00  ann           hello",
    ]


def test_the_date_is_said_when_it_changes() -> None:
    assert len(drawn("one", "two", terminal=False)) == 3
    file = io.StringIO()
    screen = Screen(Console(file=file), timezone(timedelta(hours=-2), "there"))
    for hours in (1, 2, 3):
        screen.show(1, START + timedelta(hours=hours), *envelope_of("ann", "chat", {"text": "x"}, id="e"))
    assert [line for line in file.getvalue().splitlines() if "202" in line] == [
        "Wednesday, 31 December 2025 (there)",
        "Thursday, 1 January 2026 (there)",
    ]


def test_a_terminal_has_lines_no_longer_than_it_is_wide() -> None:
    lines = drawn("word " * 40, width=60)
    assert all(len(line) <= 60 for line in lines)
    assert len(lines) > 5
    assert all(line.startswith(" " * 24) for line in lines[2:])


def test_a_word_that_is_too_long_is_folded() -> None:
    assert all(len(line) <= 60 for line in drawn("x" * 500, width=60))


def test_a_file_has_lines_as_long_as_they_are() -> None:
    assert drawn("word " * 40, terminal=False)[1].count("word") == 40


def test_lines_that_somebody_wrote_stand_below_each_other() -> None:
    assert drawn("one\ntwo", terminal=False)[2] == f"{'':24}two"


def test_a_name_that_is_too_long_is_cut() -> None:
    assert drawn("hi", who="a-very-long-name", terminal=False)[1] == "00:00:00  a-very-long…  hi"


def test_nothing_of_a_name_or_a_text_is_obeyed() -> None:
    for terminal in (True, False):
        for line in drawn("\x1b[2J[bold]:smile:", who="\x1b[31mx\u202e", terminal=terminal):
            assert "\x1b[2J" not in line
            assert "\x1b[31m" not in line
            assert "\u202e" not in line
    assert "[bold]:smile:" in drawn("[bold]:smile:")[1]


def test_a_program_gets_the_envelope_as_it_was_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    envelope, _ = envelope_of("ann", "chat", {"text": "x"}, id="e-1")
    raw = b'{"protocol":"mew/v0.4",\n\t"payload":{"n":1.50,"text":"\xc2\x9b\xf0\x9f\x98\x80 \\n"}}'
    JsonLines().show(7, START, envelope, raw)
    written = capsys.readouterr().out
    assert written == (
        '{"seq":7,"at":"2026-01-01T00:00:00Z","envelope":{"protocol":"mew/v0.4",'
        '  "payload":{"n":1.50,"text":"\\u009b\\ud83d\\ude00 \\n"}}}\n'
    )
    assert json.loads(written)["envelope"] == json.loads(raw)
