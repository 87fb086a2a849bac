"""Where a gateway listens now, told by a file."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mew.gateway.address_file import published_address, read_address

URL = "http://127.0.0.1:4711"
OTHER = "http://127.0.0.1:4712"


def written(folder: Path) -> Path:
    return folder / ".mew" / "gateway.json"


def test_a_gateway_is_found_while_it_runs_and_not_after(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    assert read_address(file) is None
    with published_address(file, URL):
        assert read_address(file) == URL
        said = json.loads(written(tmp_path).read_text())
        assert (said["url"], said["pid"]) == (URL, os.getpid())
        assert stat.S_IMODE(written(tmp_path).stat().st_mode) == 0o600
    assert read_address(file) is None
    assert not written(tmp_path).exists()


def test_git_is_kept_away_from_a_folder_that_was_not_there(tmp_path: Path) -> None:
    with published_address(tmp_path / "space.yaml", URL):
        assert (tmp_path / ".mew" / ".gitignore").read_text() == "*\n"


def test_what_a_gateway_left_that_was_killed_counts_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    program = (
        "import os; from pathlib import Path; from mew.gateway.address_file import published_address\n"
        f"with published_address(Path({str(file)!r}), {OTHER!r}): os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert written(tmp_path).exists()
    assert read_address(file) is None
    with published_address(file, URL):
        assert read_address(file) == URL


def test_the_first_of_two_gateways_is_the_one_that_is_found(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    with published_address(file, URL):
        with published_address(file, OTHER):
            assert read_address(file) == URL
        assert read_address(file) == URL


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with published_address(tmp_path / "space.yaml", URL):
            assert read_address(tmp_path / "space.yaml") is None
    finally:
        tmp_path.chmod(0o700)


def test_a_file_in_the_place_of_the_folder_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / ".mew").write_text("")
    with published_address(tmp_path / "space.yaml", URL):
        assert read_address(tmp_path / "space.yaml") is None


@pytest.mark.parametrize("text", ["", "[", "[]", '{"url": 7}', "[" * 16_000, "\xff"])
def test_what_is_no_such_file_counts_for_nothing(tmp_path: Path, text: str) -> None:
    import fcntl

    written(tmp_path).parent.mkdir()
    written(tmp_path).write_bytes(text.encode("latin-1"))
    with written(tmp_path).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert read_address(tmp_path / "space.yaml") is None


def test_a_file_that_another_put_there_is_left(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    with published_address(file, URL):
        written(tmp_path).unlink()
        written(tmp_path).write_text("mine")
    assert written(tmp_path).read_text() == "mine"
