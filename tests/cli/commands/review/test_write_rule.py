"""`mew rules write` adds one rule to a file and leaves the rest of it as it is."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mew.cli.commands.autopilot import read_config
from mew.cli.main import app
from mew.proposals.written_rule import WrittenRule

FILES = {
    "no list yet": "space:\n  id: x\nautopilot: # learns\n  mode: suggest # or act\n\nserver:\n  port: 1\n",
    "a list in blocks": "mode: act\nallow:\n  - tool: a\n    target: files # why\n\n# the end\naudit: 0.1\n",
    "a list in brackets": "allow: [{tool: a}] # as before\nmode: act\n",
    "no settings yet": "space: {id: x}\nparticipants: {}\n",
    "an empty file": "",
    "no line end": "autopilot:\n  mode: act",
}


def write(file: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["rules", "write", str(file), *words])
    return result.output if result.exit_code == 0 else f"failed: {result.output}"


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_a_rule_is_added_and_every_line_of_the_file_stays(text: str, tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_text(text)
    before = read_config(file)
    write(file, "--tool", "read_file", "--argument", "path=docs/**", "--proposer", "coder")
    write(file, "--tool", "delete_*", "--never")
    after = read_config(file)
    assert after.allow[:-1] == before.allow
    last = after.allow[-1]
    assert isinstance(last, WrittenRule)
    assert (last.tool, last.arguments) == ("read_file", {"path": "docs/**"})
    assert len(after.never) == 1
    assert (after.mode, after.audit) == (before.mode, before.audit)
    assert {line.split("]")[0] for line in text.splitlines()} <= {
        line.split(', {"tool"')[0].split("]")[0] for line in file.read_text().splitlines()
    }


@pytest.mark.parametrize(
    ("text", "words", "problem"),
    [
        ("autopilot: {mode: act}\n", ["--tool", "a"], "write it by hand"),
        ("mode: act\n", ["--tool", "a", "--argument", "path"], "expected a name and a pattern"),
        ("mode: act\n", ["--tool", "a", "--argument", "path=/[/"], "line 3"),
        ("mode: act\naudit: 7\n", ["--tool", "a"], "line 2"),
    ],
)
def test_a_file_that_cannot_take_the_rule_is_not_changed(
    text: str, words: list[str], problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "space.yaml"
    file.write_text(text)
    assert problem in write(file, *words)
    assert file.read_text() == text
