"""Where the answers come from: a record that may be only looked at."""

import os
from pathlib import Path

import pytest
from tests.audit.office import OFFICE, office
from typer import Exit

from mew.audit.index import FILE
from mew.cli.asking import asking, plain
from mew.cli.where import Failed
from mew.log.base import LogUnavailable
from mew.log.database import Database, Durability

NOWHERE = Path("space.yaml")


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


def test_a_record_that_nobody_may_share_is_copied(tmp_path: Path) -> None:
    folder = office().keep(tmp_path)
    with asking(NOWHERE, folder, OFFICE) as asked:
        whole = asked.record.select(tail="ORDER BY seq, n")
    shared = folder / OFFICE / f"{FILE}-shm"
    shared.symlink_to(shared.name)  # as in a folder that cannot be written
    with asking(NOWHERE, folder, OFFICE) as asked:
        assert asked.record.path.parent != folder / OFFICE
        assert asked.record.select(tail="ORDER BY seq, n") == whole


def test_it_is_told_when_what_was_written_last_could_not_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = office().keep(tmp_path)
    file = folder / OFFICE / "entries.db"
    Database.open(file, OFFICE, Durability.PROCESS).close()  # as a gateway leaves it
    shared = file.with_name("entries.db-shm")
    shared.symlink_to(shared.name)
    with asking(NOWHERE, folder, OFFICE) as asked:
        assert asked.journal.is_blind
    assert not capsys.readouterr().err
    file.with_name("entries.db-wal").write_bytes(b"the newest entries")
    with pytest.raises(Exit), asking(NOWHERE, folder, OFFICE):
        pass
    assert "entries.db-wal could not be looked at; the answer may lack something" in capsys.readouterr().err
