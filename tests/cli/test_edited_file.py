"""A file of another program is changed whole, or not at all."""

import os
from pathlib import Path

import pytest

from mew.cli.edited_file import Consent, change_file
from mew.cli.errors import CommandError


def longer(text: str) -> str:
    return text + "more\n"


def test_a_file_that_was_not_there_is_made_as_any_other(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "file"
    assert change_file(file, longer, Consent.GIVEN)
    assert file.read_text() == "more\n"
    umask = os.umask(0)
    os.umask(umask)
    assert file.stat().st_mode & 0o777 == 0o666 & ~umask
    assert list(file.parent.iterdir()) == [file]


def test_what_was_there_at_first_is_kept_beside_and_no_draft_is_left(tmp_path: Path) -> None:
    file, beside = tmp_path / "file", tmp_path / "file.before-mew"
    for old in ("first\n", "second\n"):
        file.write_text(old)
        file.chmod(0o600)
        assert change_file(file, longer, Consent.GIVEN)
        assert file.read_text() == f"{old}more\n"
        assert beside.read_text() == "first\n"
        assert beside.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [file, beside]


def test_what_another_program_writes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine\n")

    def slowly(text: str) -> str:
        file.write_text("theirs\n")
        return longer(text)

    with pytest.raises(CommandError, match="another program has just changed it; try again"):
        change_file(file, slowly, Consent.GIVEN)
    assert file.read_text() == "theirs\n"


def test_a_change_to_nothing_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    assert not change_file(file, str, Consent.GIVEN)
    assert not change_file(file, longer, Consent.REFUSED)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("ring", [True, False])
def test_what_cannot_be_read_is_said(tmp_path: Path, *, ring: bool) -> None:
    file = tmp_path / "file"
    if ring:
        file.symlink_to(file)
    else:
        file.mkdir()
    with pytest.raises(CommandError, match="cannot be read"):
        change_file(file, longer, Consent.GIVEN)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "way").write_text("in the")
    with pytest.raises(CommandError, match=r"way/file: cannot be (read|written)"):
        change_file(tmp_path / "way" / "file", longer, Consent.GIVEN)
