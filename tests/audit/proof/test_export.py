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
    SPACE,
    JudgedTable,
    at,
    chat,
    drop_until,
    export,
    keep,
    opened,
    put_records,
    records_in,
    rehash,
    sign,
)
from tests.audit.proof.test_cross_checks import forged
from tests.space.table import Table, capabilities

from mew.audit.proof.checkpoints import FILE as CHECKPOINTS
from mew.audit.proof.checkpoints import Signer
from mew.audit.proof.export import ExportRange, as_csv, as_json_lines, select
from mew.audit.proof.export_check import read_export, verify_export
from mew.audit.proof.verification_result import EntryTime, VerificationResult
from mew.audit.record.facts import REFUSED_LATE
from mew.journal.files.database import Damaged
from mew.journal.files.folder import space_folder
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink
from mew.protocol.envelope import ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.space import Entry, Rules, Sent

PUBLIC = KEY.public_key()
COUNT = ENTRIES[-1].last


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return keep(tmp_path)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A header, entries 3 to 9 with checkpoints after 2, 4 and 9, and the end. 6 to 8 are one record."""
    folder = keep(tmp_path_factory.mktemp("exported"))
    sign(folder, 1, 2, 4, 9, 10)
    return export(folder, ExportRange(first=3, last=9))


def verified(*parts: bytes, keys: bool = False) -> VerificationResult:
    return verify_export(io.BytesIO(b"".join(parts)), [PUBLIC] if keys else [])


def values(lines: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]


def point(seq: int) -> EntryTime:
    return EntryTime(seq, at(seq))


def alone(raw: bytes) -> list[Entry]:
    """What a space would have in which somebody sends this."""
    table = JudgedTable(Rules(id=SPACE, profiles={ParticipantId("ann"): capabilities(["*"])}))
    table.send_batch(raw)
    return table.entries


# What is in it.


def test_a_line_can_be_read_and_the_last_of_a_record_has_its_proof(folder: Path) -> None:
    (line,) = (one for one in values(export(folder)) if one.get("seq") == 4)
    assert list(line) == [
        *("seq", "at", "type", "who", "kind", "id", "to", "correlation_id", "context", "method", "name"),
        *("connection", "envelope", "record"),
    ]
    assert list(line["record"]) == ["event", "judged_at", "flags", "hash"]
    assert (line["seq"], line["at"], line["type"]) == (4, "2026-01-01T12:30:04.000000Z", "Sent")
    assert (line["who"], line["to"], line["context"]) == ("ann", ["files", "bot"], "c/d")
    assert (line["method"], line["name"]) == ("tools/call", "read_file")
    assert json.loads(line["envelope"])["payload"]["params"]["name"] == "read_file"


def test_each_envelope_has_a_line_those_of_the_gateway_too(folder: Path) -> None:
    found = [
        (line["seq"], line.get("n", 0), line["type"], line.get("who", ""), line.get("connection", ""))
        for line in values(export(folder))[1:-1]
    ]
    assert found[3:12] == [
        (3, 0, "Sent", "ann", "c1"),
        (4, 0, "Sent", "ann", "c1"),
        (5, 0, "Joined", "bob", "c2"),
        (5, 1, "Made", "system:gateway", ""),
        (6, 0, "Sent", "ann", "c1"),
        (7, 0, "Sent", "bob", "c2"),
        (8, 0, "Sent", "ann", "c1"),
        (9, 0, "Violated", "bob", ""),
        (9, 1, "Made", "system:gateway", ""),
    ]
    proofs = [line["seq"] for line in values(export(folder)) if "record" in line]
    assert proofs == [entry.last for entry in ENTRIES]


def test_what_was_refused_at_its_place_in_the_order_is_marked(tmp_path: Path) -> None:
    table = Table(Rules(id=SPACE, profiles={ParticipantId("ann"): capabilities(["chat"])}))
    raws = (chat("a", "ann", "hi"), chat("b", "nobody", "ho"), chat("c", "ann", "hu"))
    table.apply(Sent(Envelopes.decode(raws), (None,) * 3))
    whole = export(keep(tmp_path, table.entries))
    assert [line.get("refusal") for line in values(whole)[2:-1]] == [None, REFUSED_LATE, None]
    assert verified(*whole).is_sound


def test_the_first_line_says_what_it_follows_and_the_last_where_it_ends(folder: Path) -> None:
    first, *_, last = values(export(folder, ExportRange(first=3, last=9)))
    assert (first["mew_export"], first["space"], first["after"]["seq"]) == (2, SPACE, 2)
    assert (first["made_at"], first["mew"]) == ("2026-01-01T12:30:00.000000Z", "0.1")
    assert (last["until"]["seq"], last["entries"]) == (9, 7)


def test_checkpoints_stand_behind_the_entries_they_are_about(lines: list[bytes]) -> None:
    assert [line.get("seq") or line.get("checkpoint", {}).get("seq") for line in values(lines)] == [
        *(None, 2, 3, 4, 4, 5, 5, 6, 7, 8, 9, 9, 9, None),
    ]


def test_a_hash_can_be_computed_from_the_lines_as_the_how_to_says(folder: Path) -> None:
    before = sha256(b"mew/journal/2\ndesk").digest()
    own: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []
    for line in values(export(folder))[1:-1]:
        (made if "n" in line else own).append(line)
        if "record" not in line:
            continue
        first, proof = own[0], line["record"]
        event, audiences = proof["event"].encode(), proof.get("audiences", "").encode()
        envelopes = [one["envelope"].encode() for one in (*own, *made) if "envelope" in one]
        since = datetime.fromisoformat(first["at"]) - datetime(1970, 1, 1, tzinfo=UTC)
        numbers = [
            (first["seq"], 8),
            (since // timedelta(microseconds=1), 8),
            (proof.get("judged_at", 0), 8),
            (len(envelopes) - len(made), 4),
            (len(made), 4),
            (len(event), 4),
            (len(audiences), 4),
            (proof.get("flags", 0), 1),
        ]
        head = b"".join(number.to_bytes(size, "big", signed=True) for number, size in numbers)
        sizes = b"".join(len(one).to_bytes(4, "big") for one in envelopes)
        before = sha256(before + head + event + audiences + sizes + b"".join(envelopes)).digest()
        assert proof["hash"] == before.hex()
        own, made = [], []


def test_nothing_in_a_line_reaches_a_terminal_as_a_control(tmp_path: Path) -> None:
    raw = '{"protocol":"mew/v0.4","id":"e\x9b2J","from":"ann","kind":"chat","context":"\u202ex\x7f\\u001b"}'
    whole = export(keep(tmp_path, alone(raw.encode())))
    assert all(char.isprintable() or char == "\n" for char in b"".join(whole).decode())
    assert values(whole)[2]["envelope"] == raw
    assert verified(*whole).is_sound


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (ExportRange(), range(1, COUNT + 1)),
        (ExportRange(first=5), range(5, COUNT + 1)),
        (ExportRange(last=5), range(1, 6)),
        (ExportRange(last=1_000), range(1, COUNT + 1)),
        (ExportRange(since=AT + timedelta(seconds=4)), range(4, COUNT + 1)),
        (ExportRange(until=AT + timedelta(seconds=4)), range(1, 4)),
        (
            ExportRange(first=2, last=9, since=AT + timedelta(seconds=3.5), until=AT + timedelta(seconds=9)),
            range(4, 9),
        ),
        # A record proves itself as a whole.
        (ExportRange(first=7), range(6, COUNT + 1)),
        (ExportRange(first=7, last=7), range(6, 9)),
    ],
)
def test_a_range_is_what_was_asked_for_and_proves_itself(
    folder: Path, wanted: ExportRange, numbers: range
) -> None:
    whole = export(folder, wanted)
    assert sorted({line["seq"] for line in values(whole)[1:-1]}) == list(numbers)
    verdict = verified(*whole)
    assert verdict.is_sound
    assert (verdict.first, verdict.last) == (point(numbers[0]), point(numbers[-1]))
    assert verdict.begins == (numbers[0] == 1)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (ExportRange(first=13), "there are no entries from 13 to 12: it has those from 1 to 12"),
        (ExportRange(first=5, last=4), "no entries from 5 to 4"),
        (ExportRange(since=AT + timedelta(days=1)), "no entries of that time"),
        (ExportRange(until=AT), "no entries of that time"),
    ],
)
def test_a_range_without_entries_is_refused(folder: Path, wanted: ExportRange, why: str) -> None:
    with pytest.raises(JournalUnavailable, match=why):
        export(folder, wanted)


def test_what_is_no_longer_kept_is_not_exported(folder: Path) -> None:
    drop_until(folder, 5)
    with pytest.raises(JournalUnavailable, match="it has those from 6 to 12"):
        export(folder, ExportRange(first=5))
    assert verified(*export(folder)).first == point(6)


def test_a_journal_that_is_not_sound_is_exported_up_to_there_and_no_further(folder: Path) -> None:
    rows = records_in(folder)
    put_records(folder, [row._replace(body=row.body.replace(b"space/kick", b"space/pick")) for row in rows])
    with pytest.raises(Damaged, match="entry 9 is not what was written; 'mew audit verify' says"):
        export(folder)
    assert verified(*export(folder, ExportRange(last=8))).is_sound


def test_a_journal_that_a_checkpoint_contradicts_is_not_exported(folder: Path) -> None:
    sign(folder, 8)
    put_records(folder, rehash(forged(1)))
    with pytest.raises(Damaged, match="one of the entries 1 to 8 is not what was written"):
        export(folder)


def test_so_it_is_with_one_of_a_place_within_a_record(folder: Path) -> None:
    wrong = Signer(KEY).sign(SPACE, ChainLink(7, bytes(32)), AT)
    with opened(folder) as (journal, _):
        lines = as_json_lines(select(journal, ExportRange()), [wrong], AT, "0.1")
        with pytest.raises(Damaged, match="says that a record ended with entry 7"):
            list(lines)


# What is done to it.


def test_an_export_proves_itself_with_its_checkpoints(lines: list[bytes]) -> None:
    verdict = verified(*lines, keys=True)
    assert verdict.is_sound
    assert (verdict.entries, verdict.checkpoints.fit, verdict.checkpoints.checked) == (7, 3, True)
    assert verdict.checkpoints.last == EntryTime(9, AT + timedelta(minutes=9))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_byte_flipped_in_any_line_is_found_and_the_record_is_named(
    lines: list[bytes], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(lines) - 1))
    line = bytearray(lines[number])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    spoilt = [*lines[:number], bytes(line), *lines[number + 1 :]]
    try:
        verdict = verified(*spoilt)
    except JournalUnavailable:  # it says that it is of a later version
        assert number == 0
        return
    seq = json.loads(lines[number]).get("seq")
    if verdict.is_sound:
        assert values(b"".join(spoilt).splitlines()) == values(lines)  # `\u00E4` for `\u00e4`
    elif seq is not None:
        assert verdict.broken is not None
        assert verdict.broken.seq in (seq, first_of(seq))


def first_of(seq: int) -> int:
    """The number of the first entry in the record that holds this one."""
    return next(entry.seq for entry in ENTRIES if entry.seq <= seq <= entry.last)


@pytest.mark.parametrize(
    ("seq", "n", "named", "why"),
    [
        (3, 0, 3, "entry 3 is missing, the next one is 4"),
        (5, 0, 5, "the record has 2 lines, not 1"),
        (5, 1, 5, "is not what was written"),
        (6, 0, 6, "entry 6 is missing, the next one is 7"),
        (7, 0, 6, "line 9, in the record of entry 6, is not what was written: it says that it is entry 8"),
        (8, 0, 6, "line 10, in the record of entry 6, is not what was written: it says that it is entry 9"),
        (9, 1, 9, "in the record of entry 9"),
    ],
)
def test_the_first_line_that_is_missing_is_named(
    lines: list[bytes], seq: int, n: int, named: int, why: str
) -> None:
    left = [
        line
        for line, value in zip(lines, values(lines), strict=True)
        if (value.get("seq"), value.get("n", 0)) != (seq, n)
    ]
    assert len(left) == len(lines) - 1
    verdict = verified(*left)
    assert verdict.broken is not None
    assert verdict.broken.seq == named
    assert why in verdict.broken.why
    assert verdict.last == point(named - 1) or named == 3


@pytest.mark.parametrize("place", range(2, 13))
def test_a_line_that_was_put_in_is_found_and_its_place_is_named(lines: list[bytes], place: int) -> None:
    later = [line["seq"] for line in values(lines[place:]) if "seq" in line]
    seq = later[0] if later else 10
    line = {"seq": seq, "at": "2026-01-01T12:30:06.000000Z", "type": "Sent", "who": "ann", "kind": "chat"}
    line |= {"id": "x", "envelope": chat("x", "ann", "never said").decode()}
    verdict = verified(*lines[:place], json.dumps(line).encode() + b"\n", *lines[place:])
    assert verdict.broken is not None
    assert verdict.broken.seq == (first_of(seq) if later else seq)


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
    assert verdict.last == point(9)


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
    assert verdict.last == point(3)


def test_a_field_of_one_in_a_batch_is_named_by_its_own_entry(lines: list[bytes]) -> None:
    (place,) = (place for place, line in enumerate(values(lines)) if line.get("seq") == 7)
    line = json.loads(lines[place]) | {"who": "ann"}
    verdict = verified(*lines[:place], json.dumps(line).encode() + b"\n", *lines[place + 1 :])
    assert verdict.broken is not None
    assert verdict.broken.seq == 7
    assert "its who is not what it holds" in verdict.broken.why
    assert verdict.last == point(6)


def test_a_field_given_twice_is_found(lines: list[bytes]) -> None:
    twice = lines[3].replace(b'"who":', b'"who":"eve","who":', 1)
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


def test_an_export_made_of_a_chain_that_was_made_anew_is_found_by_its_checkpoints(folder: Path) -> None:
    sign(folder, 2, 8)
    (signed,) = [line for line in export(folder) if b'"checkpoint":{"space":"desk","seq":8' in line]
    (space_folder(folder, SPACE) / CHECKPOINTS).unlink()
    put_records(folder, rehash(forged()))
    anew = export(folder)
    assert verified(*anew).is_sound
    assert not verified(*anew, keys=True).is_sound
    (place,) = (place for place, line in enumerate(values(anew)) if line.get("seq") == 8)
    verdict = verified(*anew[: place + 1], signed, *anew[place + 1 :])
    assert verdict.broken is not None
    assert "one of the entries 1 to 8 is not what was written" in verdict.broken.why


def test_a_checkpoint_by_another_key_is_found(folder: Path) -> None:
    sign(folder, 2)
    sign(folder, 8, key=OTHER)
    verdict = verified(*export(folder), keys=True)
    assert verdict.broken is None
    assert verdict.checkpoints.wrong == ("the checkpoint after entry 8 was not signed with this key",)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n", b"[1]", b"\xff" * 100, b'{"mew_export":1}\n', b"[" * 9999]
)
def test_what_is_no_export_is_not_sound(content: bytes) -> None:
    verdict = verified(content)
    assert verdict.broken is not None
    assert verdict.broken.seq is None


def test_an_export_of_another_space_does_not_pass_for_this_one(folder: Path) -> None:
    first, *rest = export(folder)
    verdict = verified(first.replace(b'"desk"', b'"table"'), *rest)
    assert verdict.broken is not None
    assert verdict.broken.seq == 1


def test_its_entries_can_be_read_again(lines: list[bytes]) -> None:
    selection = read_export(io.BytesIO(b"".join(lines)))
    assert (selection.space, selection.after.seq) == ("desk", 2)
    assert [row.last for row in selection.rows] == [3, 4, 5, 8, 9]
    with pytest.raises(Damaged, match="breaks off after entry 8"):
        list(read_export(io.BytesIO(b"".join(lines[:-3]))).rows)
    with pytest.raises(Damaged, match="not that of an export"):
        read_export(io.BytesIO(b"{}"))


# As a table.


def table_of(folder: Path, wanted: ExportRange | None = None) -> bytes:
    with opened(folder) as (journal, _):
        return b"".join(as_csv(select(journal, wanted or ExportRange())))


def test_a_table_has_a_row_for_each_envelope_and_each_other_event(folder: Path) -> None:
    written = table_of(folder, ExportRange(first=4, last=9))
    assert written.count(b"\r\n") == written.count(b"\n") == 9
    rows = list(csv.DictReader(io.StringIO(written.decode())))
    assert [(row["seq"], row["n"], row["type"]) for row in rows] == [
        ("4", "", "Sent"),
        ("5", "", "Joined"),
        ("5", "1", "Made"),
        ("6", "", "Sent"),
        ("7", "", "Sent"),
        ("8", "", "Sent"),
        ("9", "", "Violated"),
        ("9", "1", "Made"),
    ]
    call, *_, violation, _ = rows
    assert (call["who"], call["to"], call["name"]) == ("ann", "files bot", "read_file")
    assert (violation["kind"], violation["refusal"]) == ("space/kick", "capability_violation")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(1)", "\\t=1", "\\r=1", "＝1", '=HYPERLINK(\\"x\\",\\"y\\")']
)
def test_no_cell_is_a_formula(tmp_path: Path, text: str) -> None:
    raw = f'{{"protocol":"mew/v0.4","id":"e1","from":"ann","kind":"chat","context":"{text}"}}'
    written = table_of(keep(tmp_path, alone(raw.encode()))).decode()
    *_, row = csv.DictReader(io.StringIO(written))
    assert row["context"].startswith("'")
    assert all(char.isprintable() or char in "\r\n" for char in written)
