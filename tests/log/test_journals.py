"""The folder of a gateway's journals: one process at a time, nobody else's eyes."""

import stat
from pathlib import Path

import pytest
from tests.log.journal import entries, fill

from mew.log.base import LogUnavailable
from mew.log.journals import Journals


def test_a_second_gateway_is_told_who_has_the_folder(tmp_path: Path) -> None:
    journals = Journals(tmp_path / "journal")
    with pytest.raises(LogUnavailable, match=r"journal: another process \(pid \d+\) keeps its journal here"):
        Journals(tmp_path / "journal")
    journals.close()
    Journals(tmp_path / "journal").close()


async def test_every_space_has_a_folder_of_its_own(tmp_path: Path) -> None:
    journals = Journals(tmp_path / "journal")
    for space in ("desk", "lock", "a.b@c-d", "_"):
        log = journals.open(space)
        await fill(log, entries(1, 1))
        log.close()
        assert (tmp_path / "journal" / space / "entries.db").exists()
    journals.close()


def test_the_folder_is_the_owners_and_not_gits(tmp_path: Path) -> None:
    Journals(tmp_path / "a" / "journal").close()
    assert stat.S_IMODE((tmp_path / "a" / "journal").stat().st_mode) == 0o700
    assert (tmp_path / "a" / "journal" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogUnavailable, match="the journal cannot be kept here: Not a directory"):
        Journals(tmp_path / "file" / "journal")
