"""`.mew/env`: what variables stand for."""

from pathlib import Path

import pytest

from mew.gateway.config.loader import ConfigError
from mew.supervise.env_file import read_env


def test_its_lines_are_variables(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(
        "# a comment\n\nA=1\nexport B = no\n".replace(" = ", "=") + "C=' x=y '\nD=\n"
    )
    assert read_env(tmp_path) == {"A": "1", "B": "no", "C": " x=y ", "D": ""}


def test_where_there_is_none_there_are_none(tmp_path: Path) -> None:
    assert read_env(tmp_path) == {}


def test_a_line_that_is_none_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("A=1\nsecret\n")
    with pytest.raises(ConfigError) as error:
        read_env(tmp_path)
    assert str(error.value) == f"{tmp_path / 'env'}:2: expected NAME=value, is another text"
