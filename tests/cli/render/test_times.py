"""Times as people write them, the same for every command."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.audit.office import office
from typer.testing import CliRunner

from mew.cli.errors import CommandError
from mew.cli.main import app
from mew.cli.render.times import read_time

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1.5h", timedelta(hours=1.5)),
        ("3d", timedelta(days=3)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_so_long_ago(written: str, ago: timedelta) -> None:
    assert read_time("--since", written, NOW) == NOW - ago


@pytest.mark.parametrize(
    "written", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "2026-01-31 12:00:00Z"]
)
def test_a_moment_is_one_wherever_it_is_told(written: str) -> None:
    assert read_time("--since", written, NOW + timedelta(days=9)) == NOW


def test_a_day_begins_at_midnight_here() -> None:
    found = read_time("--since", "2026-01-31", NOW)
    assert found is not None
    assert found == datetime(2026, 1, 31).astimezone()  # of this machine
    assert read_time("--since", None, NOW) is None


@pytest.mark.parametrize("written", ["", "h", "-1h", "1.2.3h", "²h", "999999999999w", "5y", "31.1.2026"])
def test_what_is_no_time(written: str) -> None:
    with pytest.raises(CommandError, match="--at"):
        read_time("--at", written, NOW)


@pytest.mark.parametrize(
    "command",
    [
        "audit list --since {}",
        "audit violations --until {}",
        "audit grants --at {}",
        "audit stats --since {}",
        "audit export --since {}",
        "replay --until {}",
    ],
)
def test_every_command_reads_them_alike(tmp_path: Path, command: str) -> None:
    folder = str(office().keep(tmp_path))
    for written in ("2h", "1.5d", "2030-01-01", "2030-01-01T12:30:00+01:00"):
        arguments = [*command.format(written).split(), "--journal", folder]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert "is no time" not in result.stderr
    result = CliRunner().invoke(app, [*command.format("soon").split(), "--journal", folder])
    assert (
        "'soon' is no time; write 2026-01-31, 2026-01-31T12:30:00Z, or 2h or 3d for so long ago"
        in result.stderr
    )
    assert result.exit_code == 2
