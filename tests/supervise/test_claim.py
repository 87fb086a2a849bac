"""One supervisor for a folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mew.supervise.claim import Claimed, claim, is_claimed, until_free


def test_a_folder_is_had_by_one_and_free_again_after_it(tmp_path: Path) -> None:
    folder = tmp_path / ".mew"
    assert not is_claimed(folder)
    held = claim(folder)
    assert is_claimed(folder)
    assert not until_free(folder, 0.1)
    with pytest.raises(Claimed):
        claim(folder)
    os.close(held)
    assert until_free(folder, 0)
    os.close(claim(folder))


def test_it_is_had_until_the_last_who_holds_it_has_ended(tmp_path: Path) -> None:
    held = claim(tmp_path)
    reaper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(held,))
    os.close(held)
    assert is_claimed(tmp_path)
    reaper.communicate(b"\n", timeout=10)
    assert not is_claimed(tmp_path)
