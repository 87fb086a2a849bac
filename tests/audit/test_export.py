"""An export says what happened to people and programs, and proves it to whoever has nothing but the file."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.kept import (
    AT,
    ENTRIES,
    KEY,
    OTHER,
    drop_until,
    export,
    keep,
    put_turns,
    rehash,
    sent,
    sign,
    turns_in,
)

from mew.audit.export import Wanted, as_csv, select
from mew.audit.exported import read_export, verify_export
from mew.audit.verdict import Point, Verdict
from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.space import Entry, TimePassed

PUBLIC = KEY.public_key()
COUNT = len(ENTRIES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return keep(tmp_path, 1, 5)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A header, entries 3 to 9 with checkpoints after 2, 4 and 9, and the end."""
    home = keep(tmp_path_factory.mktemp("exported"), 1, 5)
    sign(home, 1, 2, 4, 9, 10)
    return export(home, Wanted(first=3, last=9))


def verified(*parts: bytes, keys: bool = False) -> Verdict:
    return verify_export(io.BytesIO(b"".join(parts)), [PUBLIC] if keys else [])


def values(lines: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]


def at(seq: int) -> Point:
    return Point(seq, AT + timedelta(seconds=seq))


# What is in it.


def test_a_line_can_be_read_and_holds_what_proves_it(home: Path) -> None:
    line = values(export(home))[4]
    assert list(line) == [
        *("seq", "at", "type", "who", "kind", "id", "to", "correlation_id", "context", "method", "name"),
        *("connection", "event", "envelope", "hash"),
    ]
    assert (line["seq"], line["at"], line["type"]) == (4, "2026-01-01T12:30:04.000000Z", "Sent")
    assert (line["who"], line["to"], line["context"]) == ("ann", ["files", "bot"], "c/d")
    assert (line["method"], line["name"]) == ("tools/call", "read_file")
    assert json.loads(line["envelope"])["payload"]["params"]["name"] == "read_file"


def test_the_first_line_says_what_it_follows_and_the_last_where_it_ends(home: Path) -> None:
    first, *_, last = values(export(home, Wanted(first=3, last=9)))
    assert (first["mew_export"], first["space"], first["after"]["seq"]) == (1, "desk", 2)
    assert (first["made_at"], first["mew"]) == ("2026-01-01T12:30:00.000000Z", "0.1")
    assert (last["until"]["seq"], last["entries"]) == (9, 7)


def test_checkpoints_stand_behind_the_entries_they_are_about(lines: list[bytes]) -> None:
    assert [line.get("seq") or line.get("checkpoint", {}).get("seq") for line in values(lines)] == [
        *(None, 2, 3, 4, 4, 5, 6, 7, 8, 9, 9, None),
    ]


def test_a_hash_can_be_computed_from_a_line_as_the_how_to_says(home: Path) -> None:
    before = sha256(b"mew/journal/1\ndesk").digest()
    for line in values(export(home))[1:-1]:
        event, envelope = line["event"].encode(), line.get("envelope", "").encode()
        since = datetime.fromisoformat(line["at"]) - datetime(1970, 1, 1, tzinfo=UTC)
        microseconds = since // timedelta(microseconds=1)
        head = line["seq"].to_bytes(8, "big") + microseconds.to_bytes(8, "big")
        sizes = len(event).to_bytes(4, "big") + len(envelope).to_bytes(4, "big")
        before = sha256(before + head + sizes + event + envelope).digest()
        assert line["hash"] == before.hex()


def test_nothing_in_a_line_reaches_a_terminal_as_a_control(tmp_path: Path) -> None:
    raw = '{"protocol":"mew/v0.4","id":"e\x9b2J","from":"ann","kind":"chat","context":"\u202ex\x7f\\u001b"}'
    home = keep(tmp_path, entries=[Entry(1, AT, sent(raw.encode()))])
    whole = export(home)
    assert all(char.isprintable() or char == "\n" for char in b"".join(whole).decode())
    assert values(whole)[1]["envelope"] == raw
    assert verified(*whole).is_sound


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (Wanted(), range(1, COUNT + 1)),
        (Wanted(first=5), range(5, COUNT + 1)),
        (Wanted(last=5), range(1, 6)),
        (Wanted(last=1_000), range(1, COUNT + 1)),
        (Wanted(since=AT + timedelta(seconds=4)), range(4, COUNT + 1)),
        (Wanted(until=AT + timedelta(seconds=4)), range(1, 4)),
        (
            Wanted(first=2, last=8, since=AT + timedelta(seconds=3.5), until=AT + timedelta(seconds=7)),
            range(4, 7),
        ),
    ],
)
def test_a_range_is_what_was_asked_for_and_proves_itself(home: Path, wanted: Wanted, numbers: range) -> None:
    whole = export(home, wanted)
    assert [line["seq"] for line in values(whole)[1:-1]] == list(numbers)
    verdict = verified(*whole)
    assert verdict.is_sound
    assert (verdict.first, verdict.last) == (at(numbers[0]), at(numbers[-1]))
    assert verdict.begins == (numbers[0] == 1)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted(first=13), "there are no entries from 13 to 12: it has those from 1 to 12"),
        (Wanted(first=5, last=4), "no entries from 5 to 4"),
        (Wanted(since=AT + timedelta(days=1)), "no entries of that time"),
        (Wanted(until=AT), "no entries of that time"),
    ],
)
def test_a_range_without_entries_is_refused(home: Path, wanted: Wanted, why: str) -> None:
    with pytest.raises(LogUnavailable, match=why):
        export(home, wanted)


def test_what_is_no_longer_kept_is_not_exported(home: Path) -> None:
    drop_until(home, 6)
    with pytest.raises(LogUnavailable, match="it has those from 7 to 12"):
        export(home, Wanted(first=5))
    assert verified(*export(home)).first == at(7)


def test_a_journal_that_is_not_sound_is_exported_up_to_there_and_no_further(home: Path) -> None:
    turns = turns_in(home)
    put_turns(home, turns | {12: turns[12].replace(b"p2", b"p3")})
    with pytest.raises(Damaged, match="entry 10 is not what was written; 'mew audit verify' says"):
        export(home)
    assert verified(*export(home, Wanted(last=9))).is_sound


def test_a_journal_that_a_checkpoint_contradicts_is_not_exported(home: Path) -> None:
    sign(home, 6)
    put_turns(home, rehash([Entry(1, AT, TimePassed()), *ENTRIES[1:]]))
    with pytest.raises(Damaged, match="one of the entries 1 to 6 is not what was written"):
        export(home)


# What is done to it.


def test_an_export_proves_itself_with_its_checkpoints(lines: list[bytes]) -> None:
    verdict = verified(*lines, keys=True)
    assert verdict.is_sound
    assert (verdict.entries, verdict.checkpoints.fit, verdict.checkpoints.checked) == (7, 3, True)
    assert verdict.checkpoints.last == Point(9, AT + timedelta(minutes=9))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_byte_flipped_in_any_line_is_found_and_the_entry_is_named(
    lines: list[bytes], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(lines) - 1))
    line = bytearray(lines[number])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    spoilt = [*lines[:number], bytes(line), *lines[number + 1 :]]
    try:
        verdict = verified(*spoilt)
    except LogUnavailable:  # it says that it is of a later version
        assert number == 0
        return
    seq = json.loads(lines[number]).get("seq")
    if verdict.is_sound:
        assert values(b"".join(spoilt).splitlines()) == values(lines)  # `\u00E4` for `\u00e4`
    elif seq is not None:
        assert verdict.broken is not None
        assert verdict.broken.seq == seq


def test_a_line_removed_doubled_or_moved_is_found(lines: list[bytes]) -> None:
    for number in range(len(lines)):
        assert not verified(*lines[:number], *lines[number + 1 :]).is_sound
        assert not verified(*lines[: number + 1], *lines[number:]).is_sound
    for number in range(len(lines) - 1):
        moved = [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]
        assert not verified(*moved).is_sound


def test_a_file_that_was_cut_off_is_found_wherever_it_was(lines: list[bytes]) -> None:
    whole = b"".join(lines)
    for size in range(0, len(whole) - 1, 7):
        assert not verified(whole[:size]).is_sound
    verdict = verified(*lines[:-1])
    assert verdict.broken is not None
    assert verdict.broken.seq == 10
    assert "breaks off after entry 9" in verdict.broken.why
    assert verdict.last == at(9)


FORGED = {"who": "bob", "kind": "chat", "id": "e9", "to": ["eve"], "method": "ping", "name": "rm", "seq": 5}
FORGED |= {
    "at": "2026-01-01T12:30:05.000000Z",
    "type": "Left",
    "context": "c",
    "connection": "c9",
    "note": "!",
}


@pytest.mark.parametrize("field", FORGED)
def test_a_field_that_says_otherwise_than_the_proof_is_found(lines: list[bytes], field: str) -> None:
    line = json.loads(lines[3]) | {field: FORGED[field]}
    verdict = verified(*lines[:3], json.dumps(line).encode() + b"\n", *lines[4:])
    assert verdict.broken is not None
    assert verdict.broken.seq == 4
    assert verdict.last == at(3)


def test_a_field_given_twice_is_found(lines: list[bytes]) -> None:
    twice = lines[3].replace(b'"who":', b'"who":"eve","who":')
    verdict = verified(*lines[:3], twice, *lines[4:])
    assert verdict.broken is not None
    assert verdict.broken.seq == 4
    assert "occurs twice" in verdict.broken.why


def test_other_tools_may_write_the_json_anew(lines: list[bytes]) -> None:
    anew = [
        json.dumps(line, sort_keys=True, ensure_ascii=True, separators=(" , ", " : ")).encode() + b"\r\n"
        for line in values(lines)
    ]
    assert anew != lines
    assert verified(*anew, keys=True).is_sound


def test_an_export_made_of_a_chain_that_was_made_anew_is_found_by_its_checkpoints(home: Path) -> None:
    sign(home, 2, 6)
    (signed,) = [line for line in export(home) if b'"checkpoint":{"space":"desk","seq":6' in line]
    (home / "checkpoints.jsonl").unlink()
    put_turns(home, rehash([*ENTRIES[:3], Entry(4, AT, TimePassed()), *ENTRIES[4:]]))
    forged = export(home)
    assert verified(*forged).is_sound
    assert not verified(*forged, keys=True).is_sound
    verdict = verified(*forged[:7], signed, *forged[7:])
    assert verdict.broken is not None
    assert "one of the entries 1 to 6 is not what was written" in verdict.broken.why


def test_a_checkpoint_by_another_key_is_found(home: Path) -> None:
    sign(home, 2)
    sign(home, 6, key=OTHER)
    verdict = verified(*export(home), keys=True)
    assert verdict.broken is None
    assert verdict.checkpoints.wrong == ("the checkpoint after entry 6 was not signed with this key",)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n", b"[1]", b"\xff" * 100, b'{"mew_export":1}\n', b"[" * 9999]
)
def test_what_is_no_export_is_not_sound(content: bytes) -> None:
    verdict = verified(content)
    assert verdict.broken is not None
    assert verdict.broken.seq is None


def test_an_export_of_another_space_does_not_pass_for_this_one(home: Path) -> None:
    first, *rest = export(home)
    verdict = verified(first.replace(b'"desk"', b'"table"'), *rest)
    assert verdict.broken is not None
    assert verdict.broken.seq == 1


def test_its_entries_can_be_read_again(lines: list[bytes]) -> None:
    selection = read_export(io.BytesIO(b"".join(lines)))
    assert (selection.space, selection.after.seq) == ("desk", 2)
    assert [row.seq for row in selection.rows] == list(range(3, 10))
    with pytest.raises(Damaged, match="breaks off after entry 8"):
        list(read_export(io.BytesIO(b"".join(lines[:-3]))).rows)
    with pytest.raises(Damaged, match="not that of an export"):
        read_export(io.BytesIO(b"{}"))


# As a table.


def test_a_table_has_what_can_be_read(home: Path) -> None:
    with JournalReader(home) as reader:
        written = b"".join(as_csv(select(reader, Wanted(first=4, last=5))))
    assert written.count(b"\r\n") == written.count(b"\n") == 3
    call, violation = csv.DictReader(io.StringIO(written.decode()))
    assert (call["seq"], call["who"], call["to"], call["name"]) == ("4", "ann", "files bot", "read_file")
    assert (violation["kind"], violation["refusal"]) == ("space/kick", "capability_violation")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(1)", "\\t=1", "\\r=1", "＝1", '=HYPERLINK(\\"x\\",\\"y\\")']
)
def test_no_cell_is_a_formula(tmp_path: Path, text: str) -> None:
    raw = f'{{"protocol":"mew/v0.4","id":"e1","from":"ann","kind":"chat","context":"{text}"}}'
    home = keep(tmp_path, entries=[Entry(1, AT, sent(raw.encode()))])
    with JournalReader(home) as reader:
        written = b"".join(as_csv(select(reader, Wanted()))).decode()
    (row,) = csv.DictReader(io.StringIO(written))
    assert row["context"].startswith("'")
    assert all(char.isprintable() or char in "\r\n" for char in written)
