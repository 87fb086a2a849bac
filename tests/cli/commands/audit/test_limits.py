"""Where a question to the record is answered only in part, the answer says so."""

from pathlib import Path

import pytest
from tests.audit.office import office
from typer.testing import CliRunner

from mew.cli.main import app


def test_where_more_was_refused_than_is_counted_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(office().keep(tmp_path))

    def remarks(*options: str) -> str:
        arguments = ["audit", "violations", "--journal", folder, *options]
        return CliRunner().invoke(app, arguments, catch_exceptions=False).stderr

    assert "newest" not in remarks()
    monkeypatch.setattr("mew.cli.commands.audit.queries._REFUSED_MAX", 2)
    for form in ([], ["--json"]):
        assert "only the newest 2 refusals are counted" in remarks(*form)
    assert "newest" not in remarks("--summary")
