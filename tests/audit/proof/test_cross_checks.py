"""What others say of a chain, snapshots and checkpoints, tells what the chain itself cannot."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec.structs import replace
from tests.audit.kept import (
    AT,
    ENTRIES,
    KEY,
    OTHER,
    SPACE,
    at,
    chat,
    drop_until,
    keep,
    put_records,
    records_in,
    rehash,
    save_snapshot,
    sign,
)

from mew.audit.proof.checkpoints import FILE as CHECKPOINTS
from mew.audit.proof.checkpoints import Signer, append_checkpoint
from mew.audit.proof.verification_result import EntryTime, VerificationResult
from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import FILE
from mew.journal.files.folder import space_folder
from mew.journal.record import ChainLink
from mew.protocol.envelopes import Envelopes
from mew.space import Entry, Sent

PUBLIC: Final = KEY.public_key()
COUNT: Final = ENTRIES[-1].last


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return keep(tmp_path)


def verified(folder: Path, *keys: Ed25519PublicKey) -> VerificationResult:
    return verify_journal(folder, SPACE, keys)


def point(seq: int) -> EntryTime:
    return EntryTime(seq, at(seq))


def link(folder: Path, seq: int) -> ChainLink:
    (row,) = (row for row in records_in(folder) if row.last == seq)
    return ChainLink(row.last, row.hash)


def cut_off(folder: Path, seq: int) -> None:
    """The records after an entry."""
    put_records(folder, [row for row in records_in(folder) if row.last <= seq])


# Snapshots.


def test_a_snapshot_tells_that_the_last_entries_are_missing(folder: Path) -> None:
    save_snapshot(folder, link(folder, COUNT))
    assert verified(folder).is_sound
    cut_off(folder, 8)
    verdict = verified(folder)
    assert verdict.broken is not None
    assert verdict.broken.seq == 9
    assert f"{COUNT}.snapshot says that there was entry {COUNT}" in verdict.broken.why
    assert verdict.last == point(8)


def test_a_snapshot_tells_that_the_chain_was_made_anew(folder: Path) -> None:
    save_snapshot(folder, link(folder, 8))
    put_records(folder, rehash(forged(1)))
    verdict = verified(folder)
    assert verdict.broken is not None
    assert verdict.broken.seq == 1
    assert "8.snapshot says that entry 8 was another" in verdict.broken.why


def test_a_snapshot_that_is_not_whole_says_nothing(folder: Path) -> None:
    file = save_snapshot(folder, ChainLink(8, bytes(32)))
    file.write_bytes(file.read_bytes()[:-1])
    assert verified(folder).is_sound


# Checkpoints.


def forged(seq: int = 4) -> list[Entry]:
    """Entry 4 with another envelope, or one at another time; and all after it as they were."""
    entries = list(ENTRIES)
    if seq == 4:
        never_mind = Envelopes.decode((chat("e2", "ann", "never mind"),))
        assert isinstance(ENTRIES[3].event, Sent)
        entries[3] = replace(ENTRIES[3], event=replace(ENTRIES[3].event, envelopes=never_mind))
    else:
        entries[seq - 1] = replace(ENTRIES[seq - 1], at=AT)
    return entries


def test_a_chain_that_was_made_anew_is_sound_by_itself(folder: Path) -> None:
    put_records(folder, rehash(forged()))
    assert verified(folder).is_sound


def test_a_checkpoint_tells_that_the_chain_was_made_anew_and_between_which_entries(folder: Path) -> None:
    sign(folder, 2, 8)
    put_records(folder, rehash(forged()))
    verdict = verified(folder, PUBLIC)
    assert verdict.broken is not None
    assert verdict.broken.seq == 3
    assert "one of the entries 3 to 8 is not what was written" in verdict.broken.why
    assert (verdict.entries, verdict.last) == (2, point(2))


def test_a_checkpoint_tells_that_records_were_put_together(folder: Path) -> None:
    """Two that were apart, as one batch: a checkpoint between them says otherwise."""
    sign(folder, 2, 3)
    chatting, calling = ENTRIES[2].event, ENTRIES[3].event
    assert isinstance(chatting, Sent)
    assert isinstance(calling, Sent)
    both = replace(
        chatting,
        envelopes=chatting.envelopes.joined(calling.envelopes),
        origins=chatting.origins + calling.origins,
    )
    put_records(folder, rehash([*ENTRIES[:2], Entry(3, ENTRIES[2].at, both, 2), *ENTRIES[4:]]))
    verdict = verified(folder, PUBLIC)
    assert verdict.broken is not None
    assert verdict.broken.seq == 3
    assert "says that a record ended with entry 3" in verdict.broken.why
    assert verdict.last == point(2)


def test_checkpoints_made_anew_too_are_found_with_the_key(folder: Path) -> None:
    put_records(folder, rehash(forged()))
    sign(folder, 2, 8, key=OTHER)
    assert verified(folder).is_sound
    verdict = verified(folder, PUBLIC)
    assert not verdict.is_sound
    assert verdict.broken is None
    assert verdict.checkpoints.wrong[0] == "the checkpoint after entry 2 was not signed with this key"


def test_checkpoints_that_fit_are_counted(folder: Path) -> None:
    sign(folder, 2, 8)
    unchecked = verified(folder).checkpoints
    assert (unchecked.fit, unchecked.checked) == (2, False)
    checked = verified(folder, OTHER.public_key(), PUBLIC).checkpoints
    assert (checked.fit, checked.checked, len(checked.keys)) == (2, True, 1)
    assert checked.last == EntryTime(8, AT + timedelta(minutes=8))


def test_with_a_key_something_must_be_signed(folder: Path) -> None:
    verdict = verified(folder, PUBLIC)
    assert not verdict.is_sound
    assert "nothing here was signed" in verdict.checkpoints.wrong[0]


def test_checkpoints_older_than_what_is_kept_cannot_be_compared_but_that_where_it_begins_can(
    folder: Path,
) -> None:
    sign(folder, 2, 8, 10)
    drop_until(folder, 8)
    checkpoints = verified(folder, PUBLIC).checkpoints
    assert (checkpoints.fit, checkpoints.before) == (2, 1)
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("UPDATE spaces SET hash = ?", (bytes(32),))
        connection.commit()
    verdict = verified(folder)
    assert verdict.broken is not None
    assert verdict.broken.seq == 9
    assert "says that entry 8 was another" in verdict.broken.why


def test_a_checkpoint_tells_that_the_last_entries_are_missing(folder: Path) -> None:
    sign(folder, 10)
    cut_off(folder, 8)
    verdict = verified(folder, PUBLIC)
    assert verdict.broken is not None
    assert verdict.broken.seq == 9
    assert "says that there was entry 10" in verdict.broken.why


def test_a_checkpoint_of_another_space_is_not_believed(folder: Path) -> None:
    sign(folder, 2, named="table")
    assert verified(folder).checkpoints.wrong == ("the checkpoint after entry 2 is of space table",)


def test_a_line_that_was_cut_off_is_told_and_one_that_was_changed_is_a_fault(folder: Path) -> None:
    sign(folder, 2, 8)
    file = space_folder(folder, SPACE) / CHECKPOINTS
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:40])
    verdict = verified(folder, PUBLIC)
    assert verdict.is_sound
    assert verdict.notes == ("line 2 of checkpoints.jsonl was cut off and does not count",)
    file.write_bytes(lines[0].replace(b'"seq"', b'"sec"') + lines[1])
    assert verified(folder).checkpoints.wrong == ("line 1 of checkpoints.jsonl is no checkpoint",)


def test_many_wrong_checkpoints_are_counted_not_listed(folder: Path) -> None:
    for _ in range(25):
        append_checkpoint(space_folder(folder, SPACE), Signer(OTHER).sign(SPACE, link(folder, 8), AT))
    wrong = verified(folder, PUBLIC).checkpoints.wrong
    assert (len(wrong), wrong[-1]) == (11, "and so on, 25 in all")
