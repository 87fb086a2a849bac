"""Where the answers come from: a record that may be only looked at."""

from pathlib import Path

import pytest
import typer
from tests.audit.office import OFFICE, office

from mew.cli.locate.journal import open_journal
from mew.journal.files.database import FILE, Database, Durability
from mew.journal.files.locator import INDEX_FILE
from mew.journal.port import JournalUnavailable

NOWHERE = Path("space.yaml")


def test_an_index_that_cannot_be_had_at_all_is_told_of(tmp_path: Path) -> None:
    folder = office().keep(tmp_path)
    (folder / INDEX_FILE).unlink()
    (folder / INDEX_FILE).mkdir()
    with pytest.raises(JournalUnavailable, match=INDEX_FILE), open_journal(NOWHERE, folder, OFFICE):
        pass


def test_an_index_that_nobody_may_share_is_copied(tmp_path: Path) -> None:
    folder = office().keep(tmp_path)
    with open_journal(NOWHERE, folder, OFFICE) as opened:
        whole = opened.index.select(tail="ORDER BY seq, n")
    shared = folder / f"{INDEX_FILE}-shm"
    shared.symlink_to(shared.name)  # as in a folder that cannot be written
    with open_journal(NOWHERE, folder, OFFICE) as opened:
        assert opened.index.locator.path.parent != folder
        assert opened.index.select(tail="ORDER BY seq, n") == whole
    assert not opened.index.locator.path.parent.exists()


def test_it_is_told_when_what_was_written_last_could_not_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = office().keep(tmp_path)
    Database.open(folder / FILE, Durability.PROCESS).close()  # as a gateway leaves it
    shared = folder / f"{FILE}-shm"
    shared.symlink_to(shared.name)
    with open_journal(NOWHERE, folder, OFFICE) as opened:
        assert opened.reader.is_blind
    assert not capsys.readouterr().err
    (folder / f"{FILE}-wal").write_bytes(b"the newest entries")
    with pytest.raises(typer.Exit), open_journal(NOWHERE, folder, OFFICE):
        pass
    assert f"{FILE}-wal could not be checked; the answer may be incomplete" in capsys.readouterr().err
