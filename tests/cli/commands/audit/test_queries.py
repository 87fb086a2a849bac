"""`mew audit list`, `chain`, `grants`, `violations` and `stats`, as somebody types them."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.audit.kept import drop_until, put_records, records_in
from tests.audit.office import OFFICE, Office, call, office
from typer.testing import CliRunner, Result

from mew.cli.main import app

HOW_TO = Path(__file__).parents[4] / "docs" / "howto" / "audit-a-space.md"
SHOWN = re.compile(r"^```console\n\$ mew audit (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = (
    "list",
    "chain edited-request",
    "grants",
    "grants --history",
    "violations",
    "violations --summary",
    "stats",
)


@pytest.fixture(autouse=True)
def somewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where the time is UTC, and nothing tells how wide the terminal is."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("COLUMNS", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def table() -> Office:
    return office()


@pytest.fixture
def home(table: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the journal; beside a space.yaml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(f"space: {{id: {OFFICE}}}\n")
    return table.keep(tmp_path / ".mew" / "journal")


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)


def said(*arguments: str) -> list[list[str]]:
    """The words of what it prints, line by line; columns are two blanks apart."""
    result = audit(*arguments)
    assert result.exit_code == 0, result.stderr
    return [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]


def documents(*arguments: str) -> list[Any]:
    result = audit(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


# List.


def test_who_did_what_the_newest_last(home: Path) -> None:
    assert said("list", "--limit", "3") == [
        ["time", "entry", "who", "what", "about", "whom", "outcome", "id"],
        ["2026-01-01"],
        ["00:04:33", "36", "files", "kicks", "refused: capability_violation", "refused-"],
        ["00:04:33", "37", "(operator)", "configures", "ann, bob, bot +2", "delivery: addressed"],
        ["00:04:33", "38", "files", "leaves"],
    ]


def test_a_response_and_a_rejection_say_what_was_asked(home: Path) -> None:
    lines = said("list", "--kind", "mcp/re*", "--oldest")[2:]
    assert [line[2:5] for line in lines if not line[3].startswith(("approved", "requests"))] == [
        ["files", "fulfilled edited-p", "write_file"],
        ["files", "failed plain-pr", "read_file"],
        ["bob", "rejected bad-prop", "delete_file"],
        ["files", "responds", "tools/list"],
    ]


@pytest.mark.parametrize(
    ("arguments", "entries"),
    [
        ("--who bob", [3, 11, 14, 25]),
        ("--who bob --accepted --kind mcp/*", [11, 14]),
        ("--whom aide --management", [1, 22, 23, 24, 37]),
        ("--about tools/call:delete_* --refused", [33, 34, 35]),
        ("--since 2026-01-01T00:04:33Z", [36, 37, 38]),
        ("--until 2026-01-01T00:00:02+00:00 --kind mcp/*", [7]),
        ("--since 2025-12-31 --until 2026-01-02 --limit 1", [38]),
        ("--oldest --limit 2", [1, 2]),
        ("--who gateway --management", [1, 24, 27, 37]),
    ],
)
def test_filters(home: Path, arguments: str, entries: list[int]) -> None:
    assert [fact["seq"] for fact in documents("list", *arguments.split())] == entries


def test_a_time_may_be_so_long_ago(home: Path) -> None:
    assert documents("list", "--since", "1h") == []
    assert len(documents("list", "--until", "0.5d", "--limit", "1000")) == 39


def test_json_has_every_field_and_utc(home: Path) -> None:
    (fact,) = documents("list", "--about", "tools/call:write_file", "--kind", "mcp/request")
    assert fact == {
        "time": "2026-01-01T00:00:22Z",
        "seq": 8,
        "n": 0,
        "who": "ann",
        "kind": "mcp/request",
        "whom": ["files"],
        "about": "tools/call:write_file",
        "note": "",
        "refusal": None,
        "id": "edited-request",
        "correlation_id": ["edited-proposal"],
        "context": None,
        "expires_at": None,
        "proposal": {"id": "edited-proposal", "decision": "approved"},
    }


def test_times_are_those_of_this_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    assert said("list", "--limit", "1")[-1][0] == "05:34:33"
    assert (
        documents("list", "--limit", "1", "--since", "2026-01-01T05:34")[0]["time"] == "2026-01-01T00:04:33Z"
    )


def test_that_there_is_more_or_nothing_is_said_beside(home: Path) -> None:
    assert audit("list", "--limit", "2").stderr == "there are older ones: use --limit 8\n"
    assert audit("list", "--limit", "2", "--oldest").stderr == "there are newer ones: use --limit 8\n"
    nothing = audit("list", "--who", "nobody")
    assert (nothing.stdout, nothing.stderr) == ("", "nothing found\n")
    assert audit("list", "--limit", "2", "--json").stderr == ""


# Chain.


def test_the_life_of_a_proposal(home: Path) -> None:
    assert audit("chain", "edited-req").stdout.splitlines() == [
        '2026-01-01 00:00:01  bot proposes write_file(path: "/etc/hosts", text: "x") → files  edited-p',
        '└── 00:00:22 +21 s  ann approved edited-p write_file(path: "/tmp/hosts", text: "x") → files  edited-r ◂',
        "    edited:",
        '      $.params.arguments.path  "/etc/hosts" → "/tmp/hosts"',
        "    └── 00:00:23 +1.0 s  files fulfilled edited-p wrote 1 byte → ann  edited-r",
    ]


def test_what_went_wrong_and_by_whom(home: Path, table: Office) -> None:
    lines = audit("chain", "plain-response").stdout.splitlines()
    assert lines[2:] == [
        "    as proposed",
        "    └── 00:00:29 +1.0 s  files failed plain-pr error -32000: no such file\\n\\u001b[31mred → bob  plain-re ◂",
    ]


def test_a_chain_for_programs_is_nested(home: Path) -> None:
    (document,) = documents("chain", "8")
    assert document["focus"] == {"seq": 8, "n": 0, "id": "edited-request"}
    root = document["root"]
    assert root["payload"] == call("write_file", path="/etc/hosts", text="x")
    (request,) = root["children"]
    assert request["execution"] == {
        "verdict": "edited",
        "changes": [{"path": "$.params.arguments.path", "old": "/etc/hosts", "new": "/tmp/hosts"}],
    }
    assert request["after_s"] == 21
    assert request["children"][0]["payload"]["result"]["content"][0]["text"] == "wrote 1 byte"
    assert request["children"][0]["children"] == []


def test_what_is_no_longer_kept_is_told_as_the_record_has_it(home: Path) -> None:
    audit("list")
    drop_until(home, 11, OFFICE)
    lines = audit("chain", "edited-proposal").stdout.splitlines()
    assert lines == [
        "2026-01-01 00:00:01  bot proposes write_file → files  edited-p",
        "its content is no longer at hand: this is what the record says of it",
        "└── 00:00:22 +21 s  ann approved edited-p write_file → files  edited-r",
        "    edited; what was changed is no longer kept",
        "    its content is no longer at hand: this is what the record says of it",
        "    └── 00:00:23 +1.0 s  files fulfilled edited-p write_file → ann  edited-r",
        "        its content is no longer at hand: this is what the record says of it",
    ]


def test_of_several_that_it_may_be_all_are_shown(home: Path) -> None:
    result = audit("chain", "edited")
    assert result.exit_code == 2
    listed = [line.split()[-1] for line in result.stdout.splitlines()[1:]]
    assert listed == ["edited-proposal", "edited-request", "edited-response"]
    assert "'edited' could be any of these; write more of the id, or the entry: '#9'\n" in result.stderr
    assert documents("chain", "#9")[0]["focus"]["id"] == "edited-response"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("nosuchid", "no envelope whose id begins or ends with 'nosuchid'"),
        ("ab", "write at least 3 characters"),
        ("999", "no envelope whose id begins or ends with '999'"),
    ],
)
def test_an_id_that_is_not_there(home: Path, written: str, why: str) -> None:
    result = audit("chain", written)
    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr


def test_what_was_refused_says_why(home: Path) -> None:
    assert audit("chain", "33").stdout.splitlines() == [
        "2026-01-01 00:04:30  aide requests delete_file: refused: capability_violation  refused-"
    ]


# Grants.


def test_who_holds_what_and_from_whom(home: Path) -> None:
    lines = said("grants", "--participant", "aide")
    assert lines == [
        ["who", "may", "from", "until", "grant"],
        ["aide", "chat, mcp/proposal", "configuration"],
        ["mcp/response, capability/grant-ack", "baseline"],
        ["mcp/request:tools/call:read_*file", "bot ← ann", "grant-ai"],
    ]


def test_who_held_what_at_some_time(home: Path) -> None:
    lines = said("grants", "--participant", "aide", "--at", "2026-01-01T00:03:30Z")
    assert lines[-1] == ["stream/*", "ann", "2026-01-01 00:04:20 (in 50 s)", "grant-sh"]
    nobody = audit("grants", "--at", "2025-01-01")
    assert (nobody.exit_code, nobody.stdout) == (0, "")


def test_holders_for_programs(home: Path) -> None:
    found = {one["participant"]: one for one in documents("grants")}
    assert list(found) == ["ann", "bob", "bot", "aide", "files"]
    assert found["aide"]["held"][-1] == {
        "capability": {
            "kind": "mcp/request",
            "payload": {"method": "tools/call", "params": {"name": "read_*file"}},
        },
        "origin": "grant",
        "grant_id": "grant-aide",
        "given": "2026-01-01T00:03:19Z",
        "until": None,
        "chain": [
            {"giver": "bot", "grant_id": "grant-bot", "in_force": True, "others": 0},
            {"giver": "ann", "grant_id": None, "in_force": True, "others": 0},
        ],
        "narrowed": False,
    }


def test_every_grant_there_was(home: Path) -> None:
    ends = {line[-2]: line[-1] for line in said("grants", "--history")[1:]}
    assert ends == {
        "grant-bo": "in force",
        "grant-ai": "in force",
        "grant-sh": "expired, 00:04:21",
        "grant-ol": "revoked by ann, 00:04:24",
        "grant-on": "taken back: its giver lost it, 00:04:24",
        "invite-d": "its holder was removed by ann, 00:04:27",
    }
    assert [one["end"] for one in documents("grants", "--history", "--limit", "2")] == [
        "taken_back",
        "removed",
    ]
    assert audit("grants", "--history", "--limit", "2").stderr == "there are older ones: use --limit 8\n"


# Violations.


def test_what_was_refused_and_how_often(home: Path) -> None:
    assert said("violations")[2:] == [
        ["00:04:29", "32", "bot", "chat", "paused", "1"],
        ["00:04:32", "35", "aide", "mcp/request", "delete_file", "capability_violation", "3"],
        ["00:04:33", "36", "files", "space/kick", "capability_violation", "1"],
    ]
    assert said("violations", "--code", "paused")[2:] == [["00:04:29", "32", "bot", "chat", "paused", "1"]]
    attempt = documents("violations", "--who", "aide")[0]
    assert (attempt["times"], attempt["first"], attempt["time"]) == (
        3,
        "2026-01-01T00:04:30Z",
        "2026-01-01T00:04:32Z",
    )


def test_how_often_whom_and_why(home: Path) -> None:
    assert said("violations", "--summary")[1][:3] == ["aide", "capability_violation", "3"]
    assert [one["times"] for one in documents("violations", "--summary")] == [3, 1, 1]


# Stats.


def test_a_space_in_numbers(home: Path) -> None:
    lines = {line[0]: line[1:] for line in said("stats")}
    assert lines["entries"] == ["38; 39 facts (talk and connections have none)"]
    assert lines["proposals"] == ["5: 2 open, 0 approved, 1 fulfilled, 1 failed, 1 withdrawn, 0 expired"]
    assert lines["decisions"] == ["1 edited, 1 rejected by somebody; after 21 s (median), 90 % within 101 s"]
    assert lines["write_file"] == ["1", "0", "0", "1", "0", "0", "0", "1", "0", "21 s", "21 s"]
    assert lines["aide"] == ["2", "3"]
    assert re.search(
        r"^files +journal of all spaces \S+ KiB, its index \S+ KiB$", audit("stats").stdout, re.M
    )
    (numbers,) = documents("stats")
    assert numbers["proposals"]["decided_median_s"] == 21
    assert numbers["refusals"] == {"capability_violation": 4, "paused": 1}
    (later,) = documents("stats", "--since", "2026-01-01T00:04:33Z")
    assert later["entries"] == 3


# What goes wrong.


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_nothing_that_was_written_acts_on_a_terminal(
    home: Path, table: Office, tmp_path: Path, command: str, form: list[str]
) -> None:
    evil = "\x1b]0;x\x07\u202e\u009b31m\r[red]"
    params = {"name": evil, "arguments": {evil: evil}}
    table.say(
        evil, "ann", "mcp/proposal", {"method": "tools/call", "params": params}, to=[evil], context=evil
    )
    table.say("e2", "ann", "mcp/request", {"method": evil, "params": {"name": evil}}, to=[evil], names=evil)
    table.say("e3", "ann", f"mcp/{evil}", {"reason": evil}, names=evil)
    table.say("e4", "ann", "mcp/response", {"result": {"content": [{"text": evil}]}}, names="e2")
    table.say(
        "e5", "ann", "capability/grant", {"recipient": "bob", "capabilities": [f"own/{evil}"], "reason": evil}
    )
    table.violate("bob", evil, f"{evil}:{evil}")
    folder = table.keep(tmp_path / "evil")
    result = audit(*command.replace("edited-request", "e4").split(), "--journal", str(folder), *form)
    assert result.exit_code == 0
    assert not set(result.stdout) & set("\x1b\x07\u202e\u009b\r")
    if not form and command in ("list", "chain edited-request", "violations"):
        assert "[red]" in result.stdout  # which is no colour here


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_journal_it_says_so(tmp_path: Path, command: str) -> None:
    result = audit(*command.split(), "--journal", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"mew audit {command.split()[0]}: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["list", "--since", "yesterday"], "--since 'yesterday' is no time; write 2026-01-31, "),
        (["list", "--since", "9999999999d"], "is no time"),
        (["list", "--until", "1e3h"], "is no time"),
        (["grants", "--at", "h"], "--at 'h' is no time"),
        (["list", "--who", os.fsdecode(b"\xff")], "--who is not UTF-8 text"),
        (["chain", os.fsdecode(b"\xff") * 6], "ID is not UTF-8 text"),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_sentence(home: Path, arguments: list[str], why: str) -> None:
    result = audit(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert why in result.stderr


def test_of_a_damaged_journal_what_there_is_is_told_and_that_it_is_not_all(home: Path) -> None:
    rows = records_in(home, OFFICE)
    put_records(home, [row._replace(body=row.body[:-1]) if row.last == 20 else row for row in rows], OFFICE)
    result = audit("list", "--json")
    assert result.exit_code == 1
    assert "or goes on; the answer may be incomplete" in result.stderr
    assert len(result.stdout.splitlines()) == 38
    put_records(home, rows, OFFICE)
    assert len(documents("list")) == 39


# The page.


@pytest.mark.parametrize(("command", "shown"), SHOWN.findall(HOW_TO.read_text(encoding="utf-8")))
def test_what_the_page_shows_is_what_it_says(home: Path, command: str, shown: str) -> None:
    printed = re.sub(" +$", "", audit(*command.split()).stdout, flags=re.MULTILINE)
    sizes = re.compile("^files .*$", re.MULTILINE)  # which depend on how SQLite was built
    assert sizes.sub("", printed) == sizes.sub("", shown)


# Words and differences.


def test_a_rejection_is_listed_and_shown_with_its_words(
    table: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.say(
        "wordy-proposal", "aide", "mcp/proposal", call("read", path="/") | {"why": "To look."}, to=["files"]
    )
    no = {"reason": "unsafe", "message": "Not the whole disk, please."}
    table.say("wordy-rejection", "ann", "mcp/reject", no, to=["aide"], names="wordy-proposal")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(f"space: {{id: {OFFICE}}}\n")
    table.keep(tmp_path / ".mew" / "journal")
    proposed, rejected = said("list", "--limit", "2")[2:]
    assert (proposed[3], proposed[-2]) == ("proposes", "why: To look.")
    assert (rejected[3], rejected[-2]) == ("rejected wordy-pr", "unsafe: Not the whole disk, please.")
    assert "unsafe: Not the whole disk, please." in audit("chain", "wordy-proposal").stdout


def test_texts_of_several_lines_are_compared_line_by_line(
    table: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (call("write", text=f"one\n{word}\nthree\n") for word in ("two", "2"))
    table.say("lines-proposal", "aide", "mcp/proposal", old, to=["files"])
    table.say("lines-request", "ann", "mcp/request", new, to=["files"], names="lines-proposal")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(f"space: {{id: {OFFICE}}}\n")
    table.keep(tmp_path / ".mew" / "journal")
    lines = [line.strip() for line in audit("chain", "lines-proposal").stdout.splitlines()]
    at = lines.index("$.params.arguments.text")
    assert [line[:1] for line in lines[at + 1 : at + 6]] == ["@", "o", "-", "+", "t"]
    assert lines[at + 3 : at + 5] == ["-two", "+2"]
