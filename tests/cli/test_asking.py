"""Where the answers come from: times as people write them, and a record that may be only looked at."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.audit.office import OFFICE, office

from mew.audit.index import FILE
from mew.cli.asking import asking, plain, read_time
from mew.cli.where import Failed
from mew.log.base import LogUnavailable

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOWHERE = Path("space.yaml")


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
    with pytest.raises(Failed, match="--at"):
        read_time("--at", written, NOW)


def test_text_is_text() -> None:
    assert plain("--who", "zoë") == "zoë"
    assert plain("--who", None) is None
    with pytest.raises(Failed, match="--who: that is not UTF-8"):
        plain("--who", "\udcff")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_record_that_may_only_be_read_is_read(tmp_path: Path) -> None:
    folder = office().keep(tmp_path)
    with asking(NOWHERE, folder, OFFICE) as asked:
        whole = asked.record.select(tail="ORDER BY seq, n")
    home = folder / OFFICE
    for path in (*home.iterdir(), home):
        path.chmod(0o500)
    try:
        with asking(NOWHERE, folder, OFFICE) as asked:
            assert asked.record.path.parent != home
            assert asked.record.select(tail="ORDER BY seq, n") == whole
        assert not asked.record.path.parent.exists()
    finally:
        home.chmod(0o700)


def test_a_record_that_cannot_be_had_at_all_is_told_of(tmp_path: Path) -> None:
    folder = office().keep(tmp_path)
    (folder / OFFICE / FILE).mkdir()
    with pytest.raises(LogUnavailable, match=FILE), asking(NOWHERE, folder, OFFICE):
        pass
