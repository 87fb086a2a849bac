"""`mew audit verify`, `export` and `key`, as somebody types them."""

import json
import os
import re
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.audit.kept import SPACE, JudgedTable, keep, put_records, records_in, sign
from tests.space.table import capabilities
from typer.testing import CliRunner, Result

from mew.audit.proof.checkpoints import FILE as CHECKPOINTS
from mew.audit.proof.keys import load_private
from mew.cli.main import app
from mew.journal.files.database import FILE as JOURNAL
from mew.journal.files.folder import space_folder
from mew.journal.files.high_water import LOSSES_FILE, record_loss
from mew.journal.port import LostEntries
from mew.protocol.envelope import ParticipantId
from mew.space import Rules

NOTICED = datetime(2026, 1, 2, 9, tzinfo=UTC)
HOW_TO = Path(__file__).parents[4] / "docs" / "howto" / "prove-what-happened.md"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a space.yaml stands, and its journal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text("space: {id: desk}\n")
    return keep(tmp_path / ".mew" / "journal")


def audit(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments], input=given)


def spoil(home: Path) -> None:
    rows = records_in(home)
    put_records(home, [row._replace(body=row.body.replace(b"read_file", b"read_fire")) for row in rows])


# Verify.


def test_a_sound_journal_is_said_to_be(home: Path) -> None:
    result = audit("verify")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "space desk is sound",
        "  entries       12, from 1 (2026-01-01 12:30:01Z) to 12 (2026-01-01 12:30:12Z)",
    ]
    assert not result.stderr


def test_the_first_entry_that_was_altered_is_named(home: Path) -> None:
    spoil(home)
    result = audit("verify")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "space desk is NOT sound",
        "  broken        entry 4 is not what was written",
        "  sound so far  3, from 1 (2026-01-01 12:30:01Z) to 3 (2026-01-01 12:30:03Z)",
    ]


def test_entries_that_a_start_found_missing_are_named(home: Path) -> None:
    record_loss(home, SPACE, LostEntries(12, 1_020, NOTICED))
    result = audit("verify")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "space desk is NOT sound",
        "  lost          entries 13 to 1,020, as they were counted then: committed, and missing at the start of"
        " 2026-01-02 09:00:00Z",
    ]
    (lost,) = json.loads(audit("verify", "--json").stdout)["lost"]
    assert (lost["after"], lost["last"], lost["noticed"]) == (12, 1_020, "2026-01-02T09:00:00Z")


@pytest.mark.parametrize("command", [["verify"], ["list"], ["export"]])
def test_a_file_that_is_no_journal_is_said_to_be_damaged_with_what_to_do(
    home: Path, command: list[str]
) -> None:
    (home / JOURNAL).write_bytes(bytes(8192))
    result = audit(*command)
    assert result.exit_code == 2
    assert result.stderr == (
        f"mew audit {command[0]}: the journal in {home} is damaged: file is not a database; restore journal.db from a"
        " backup, or start the gateway, which keeps the damaged file under another name and continues with what can be"
        " read\n"
    )


def test_a_page_of_the_journal_that_cannot_be_read_is_said_to_be_damaged_with_what_to_do(home: Path) -> None:
    file = home / JOURNAL
    content = bytearray(file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'records'").fetchone()
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file.write_bytes(content)
    result = audit("export")
    assert result.exit_code == 2
    assert (
        f"the journal in {home} is damaged: database disk image is malformed; restore journal.db"
        in result.stderr
    )


def test_programs_get_a_document(home: Path) -> None:
    sound = audit("verify", "--json")
    assert (sound.exit_code, json.loads(sound.stdout)["sound"]) == (0, True)
    spoil(home)
    broken = audit("verify", "--json")
    assert broken.exit_code == 1
    verdict = json.loads(broken.stdout)
    assert verdict["broken"] == {"seq": 4, "why": "entry 4 is not what was written"}
    assert (verdict["space"], verdict["entries"], verdict["last"]["seq"]) == ("desk", 3, 3)


def test_a_key_is_made_signs_and_verifies(home: Path) -> None:
    made = audit("key", "key.pem")
    assert made.exit_code == 0
    name = made.stdout.split()[-1]
    sign(home, 12, key=load_private(Path("key.pem")))
    assert "who signed them was not checked" in audit("verify").stdout
    checked = audit("verify", "--key", "key.pem.pub")
    assert checked.exit_code == 0
    assert checked.stdout.splitlines()[2:] == [
        "  checkpoints   1 fit, the last after entry 12 (2026-01-01 12:42:00Z)",
        f"  signed with   {name}",
    ]
    audit("key", "other.pem")
    other = audit("verify", "--key", "other.pem.pub")
    assert other.exit_code == 1
    assert "the checkpoint after entry 12 was not signed with this key" in other.stdout
    assert audit("verify", "--key", "other.pem.pub", "--key", "key.pem.pub").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["verify", "--config", "gone.yaml"], "gone.yaml: there is no such file"),
        (["verify", "--journal", "gone"], "gone: there is no journal here"),
        (["verify", "--space", "table"], "no journal of space 'table'"),
        (["verify", "gone.jsonl"], "gone.jsonl: No such file or directory"),
        (["verify", "."], ". is a folder; name a journal with --journal"),
        (["verify", "some.jsonl", "--space", "desk"], "name either an export or a journal"),
        (["verify", "--key", "gone.pub"], "gone.pub: No such file or directory"),
        (["verify", "--key", "space.yaml"], "space.yaml: is no public key in PEM"),
        (["export", "--since", "yesterday"], "--since 'yesterday' is no time"),
        (["export", "--from", "99"], "there are no entries from 99 to 12"),
        (["export", "-o", "gone/x.jsonl"], "gone/x.jsonl: No such file or directory"),
        (["export", "-o", "."], ".: is a folder"),
        (["key", "space.yaml"], "space.yaml: is there already, and is not overwritten"),
        (["key", "gone/key.pem"], "gone/key.pem: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_sentence(home: Path, arguments: list[str], why: str) -> None:
    result = audit(*arguments)
    assert result.exit_code == 2
    assert not result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mew audit {arguments[0]}: ")
    assert why in line


# Export.


def test_an_export_is_checked_with_nothing_but_the_file(home: Path, tmp_path: Path) -> None:
    written = audit("export", "--from", "3", "-o", "part.jsonl")
    assert (written.exit_code, written.stdout, written.stderr) == (0, "", "wrote part.jsonl\n")
    assert stat.S_IMODE((tmp_path / "part.jsonl").stat().st_mode) == 0o600
    result = audit("verify", "part.jsonl")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "space desk is sound",
        "  entries       10, from 3 (2026-01-01 12:30:03Z) to 12 (2026-01-01 12:30:12Z)",
        "  begins        after entry 2: what came before is not here",
    ]


def test_an_export_goes_through_a_pipe(home: Path) -> None:
    written = audit("export")
    assert written.exit_code == 0
    assert audit("verify", "-", given=written.stdout_bytes).exit_code == 0
    assert audit("verify", "-", given=written.stdout_bytes.replace(b"ann", b"bob")).exit_code == 1


def test_an_export_that_was_altered_is_named_by_its_entry(home: Path, tmp_path: Path) -> None:
    audit("export", "-o", "all.jsonl")
    file = tmp_path / "all.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"name":"read_file"', b'"name":"read_fire"'))
    result = audit("verify", "all.jsonl")
    assert result.exit_code == 1
    assert "  broken        entry 4 is not what was written: its name is not what it holds" in result.stdout


def test_a_file_is_not_overwritten_unless_it_is_forced(home: Path, tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text("mine")
    refused = audit("export", "-o", "all.jsonl")
    assert refused.exit_code == 2
    assert "all.jsonl: is there already; --force overwrites it" in refused.stderr
    assert (tmp_path / "all.jsonl").read_text() == "mine"
    assert audit("export", "-o", "all.jsonl", "--force").exit_code == 0
    assert audit("verify", "all.jsonl").exit_code == 0


def test_an_export_that_fails_leaves_no_file(home: Path, tmp_path: Path) -> None:
    spoil(home)
    result = audit("export", "-o", "all.jsonl")
    assert result.exit_code == 2
    assert "entry 4 is not what was written" in result.stderr
    assert sorted(os.listdir(tmp_path)) == [".mew", "space.yaml"]
    assert audit("export", "--to", "3", "-o", "all.jsonl").exit_code == 0


def test_a_table_is_written_for_a_time(home: Path) -> None:
    result = audit(
        "export", "--format", "csv", "--since", "2026-01-01T12:30:04Z", "--until", "2026-01-01T14:30:06+02:00"
    )
    assert result.exit_code == 0
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == ["seq", "4", "5", "5"]


def test_nothing_a_participant_wrote_moves_the_cursor(tmp_path: Path) -> None:
    raw = (
        b'{"protocol":"mew/v0.4","id":"\\u001b[2J","from":"ann","kind":"\xc2\x9b31m","context":"\\r\\u202e"}'
    )
    table = JudgedTable(Rules(id=SPACE, profiles={ParticipantId("ann"): capabilities(["*"])}))
    table.send_batch(raw)
    keep(tmp_path, table.entries)
    for form in ("jsonl", "csv"):
        shown = audit("export", "--journal", str(tmp_path), "--format", form).stdout
        assert all(char.isprintable() or char in "\r\n" for char in shown)
        assert "\r" not in shown.replace("\r\n", "")


# The how-to.


def test_the_how_to_goes_as_it_says(home: Path) -> None:
    shown = re.findall(r"^```console\n\$ mew audit (.+)\n((?:.*\n)*?)```$", HOW_TO.read_text(), re.MULTILINE)
    sound = records_in(home)
    for number, (typed, said) in enumerate(shown):
        put_records(home, sound)
        if number == 1:
            spoil(home)
        if number == 2:
            record_loss(home, SPACE, LostEntries(12, 20, NOTICED))
        else:
            (space_folder(home, SPACE) / LOSSES_FILE).unlink(missing_ok=True)
        if "--key" in typed and not (space_folder(home, SPACE) / CHECKPOINTS).exists():
            sign(home, 4, 9, key=load_private(Path("journal-key.pem")))
        assert unnamed(audit(*typed.split()).output) == unnamed(said), typed
    assert len(shown) == 7


def unnamed(said: str) -> str:
    """Without the fingerprint of the key that was made."""
    return re.sub(r"\b[0-9a-f]{64}\b", "FINGERPRINT", said)
