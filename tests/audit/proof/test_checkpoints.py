"""Checkpoints are signed, kept in order, and believed only with the key; keys are kept from others."""

import os
import stat
from datetime import timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.kept import AT, KEY, OTHER

from mew.audit.proof.checkpoints import (
    Checkpoint,
    CheckpointWriter,
    Signer,
    append_checkpoint,
    has_valid_signature,
    read_checkpoint_file,
    read_checkpoints,
)
from mew.audit.proof.keys import BadKey, fingerprint, load_private, load_public, make_key, public_file
from mew.journal.files.folder import space_folder
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink

LINK = ChainLink(7, bytes(range(32)))
SIGNED = Signer(KEY).sign("desk", LINK, AT)


def test_what_was_signed_is_checked_with_the_public_key() -> None:
    assert has_valid_signature(SIGNED, KEY.public_key())
    assert not has_valid_signature(SIGNED, OTHER.public_key())
    assert SIGNED.link == LINK
    assert SIGNED.key == fingerprint(KEY.public_key()) == Signer(KEY).fingerprint


def test_what_is_signed_is_as_the_how_to_says() -> None:
    at = "2026-01-01T12:30:00.000000+00:00"
    lines = ("mew/checkpoint/1", "7", LINK.hash.hex(), at, SIGNED.key, "desk")
    KEY.public_key().verify(bytes.fromhex(SIGNED.signature), "\n".join(lines).encode())


@pytest.mark.parametrize(
    "changed",
    [
        {"space": "table"},
        {"seq": 8},
        {"hash": "00" * 32},
        {"at": AT + timedelta(microseconds=1)},
        {"key": fingerprint(OTHER.public_key())},
        {"signature": "00" * 64},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_nothing_in_it_can_be_changed(changed: dict[str, object]) -> None:
    assert not has_valid_signature(msgspec.structs.replace(SIGNED, **changed), KEY.public_key())


def test_a_key_put_in_place_of_the_one_that_signed_does_not_help() -> None:
    claimed = msgspec.structs.replace(Signer(OTHER).sign("desk", LINK, AT), key=SIGNED.key)
    assert not has_valid_signature(claimed, KEY.public_key())
    assert not has_valid_signature(claimed, OTHER.public_key())


def test_the_zone_in_which_a_moment_is_written_does_not_matter() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5.5)))
    assert Signer(KEY).sign("desk", LINK, elsewhere) == SIGNED
    assert has_valid_signature(msgspec.structs.replace(SIGNED, at=elsewhere), KEY.public_key())


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_the_name_of_a_space_cannot_stand_for_something_else(one: str, other: str) -> None:
    signed = Signer(KEY).sign(one, LINK, AT)
    assert has_valid_signature(msgspec.structs.replace(signed, space=other), KEY.public_key()) == (
        one == other
    )


# The file.


def signed(*numbers: int) -> list[Checkpoint]:
    return [Signer(KEY).sign("desk", ChainLink(n, LINK.hash), AT + timedelta(minutes=n)) for n in numbers]


def test_checkpoints_are_kept_one_behind_the_other_for_their_owner(tmp_path: Path) -> None:
    assert read_checkpoints(tmp_path) == []
    for checkpoint in signed(1, 2):
        append_checkpoint(tmp_path, checkpoint)
    assert read_checkpoints(tmp_path) == signed(1, 2)
    assert stat.S_IMODE((tmp_path / "checkpoints.jsonl").stat().st_mode) == 0o600


def test_one_that_was_cut_off_is_told_and_spoils_no_other(tmp_path: Path) -> None:
    first, second, third = signed(1, 2, 3)
    append_checkpoint(tmp_path, first)
    append_checkpoint(tmp_path, second)
    file = tmp_path / "checkpoints.jsonl"
    os.truncate(file, file.stat().st_size - 50)
    assert read_checkpoint_file(tmp_path).torn == [2]
    before = file.read_bytes()
    append_checkpoint(tmp_path, third)
    assert file.read_bytes().startswith(before)
    assert read_checkpoints(tmp_path) == [first, third]
    assert (read_checkpoint_file(tmp_path).torn, read_checkpoint_file(tmp_path).wrong) == ([2], [])


def test_a_line_that_is_whole_and_none_of_ours_is_wrong(tmp_path: Path) -> None:
    append_checkpoint(tmp_path, SIGNED)
    file = tmp_path / "checkpoints.jsonl"
    file.write_bytes(
        b"{}\n" + file.read_bytes().replace(b"}", b',"x":1}') + b'{"\xff":1}\n' + file.read_bytes()
    )
    assert read_checkpoint_file(tmp_path).wrong == [1, 2, 3]
    assert read_checkpoints(tmp_path) == [SIGNED]


def test_a_file_that_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "checkpoints.jsonl").mkdir()
    with pytest.raises(JournalUnavailable, match=r"checkpoints\.jsonl: "):
        append_checkpoint(tmp_path, SIGNED)
    with pytest.raises(JournalUnavailable, match=r"checkpoints\.jsonl: "):
        read_checkpoints(tmp_path)


# When they are made.


def test_one_is_due_after_a_minute_if_something_happened(tmp_path: Path) -> None:
    checkpointing = CheckpointWriter(tmp_path, "desk", Signer(KEY))
    assert not checkpointing.due(ChainLink(0, LINK.hash), AT)
    assert checkpointing.due(LINK, AT)
    assert checkpointing.make(LINK, AT) == SIGNED
    later = ChainLink(8, LINK.hash)
    assert not checkpointing.due(LINK, AT + timedelta(hours=1))
    assert not checkpointing.due(later, AT + timedelta(seconds=59))
    assert checkpointing.due(later, AT + timedelta(seconds=60))
    assert checkpointing.due(later, AT - timedelta(days=1))  # the clock was set back


def test_at_the_end_one_is_made_whether_it_is_due_or_not_but_none_twice(tmp_path: Path) -> None:
    checkpointing = CheckpointWriter(tmp_path, "desk", Signer(KEY))
    checkpointing.make(LINK, AT)
    assert checkpointing.make(LINK, AT + timedelta(seconds=1)) is None
    last = checkpointing.make(ChainLink(8, LINK.hash), AT + timedelta(seconds=1))
    assert read_checkpoints(space_folder(tmp_path, "desk")) == [SIGNED, last]


def test_one_that_could_not_be_kept_is_still_due(tmp_path: Path) -> None:
    checkpointing = CheckpointWriter(tmp_path, "desk", Signer(KEY))
    assert checkpointing.due(LINK, AT)
    space_folder(tmp_path, "desk").parent.mkdir()
    space_folder(tmp_path, "desk").write_text("in the way")
    with pytest.raises(JournalUnavailable):
        checkpointing.make(LINK, AT)
    assert checkpointing.due(LINK, AT)


def test_one_that_another_process_made_is_not_made_again(tmp_path: Path) -> None:
    CheckpointWriter(tmp_path, "desk", Signer(OTHER)).make(LINK, AT)
    CheckpointWriter(tmp_path, "desk", Signer(KEY)).make(LINK, AT)
    later = CheckpointWriter(tmp_path, "desk", Signer(KEY))
    assert not later.due(LINK, AT + timedelta(hours=1))
    assert later.make(LINK, AT + timedelta(hours=1)) is None
    assert later.due(ChainLink(8, LINK.hash), AT + timedelta(hours=1))


# Keys.


def private_pem(key: Ed25519PrivateKey | X25519PrivateKey, password: bytes | None = None) -> bytes:
    hidden = NoEncryption() if password is None else BestAvailableEncryption(password)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)


def test_a_key_is_made_for_its_owner_and_signs_for_its_public_key(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    public = make_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_public(public_file(file)) == public
    assert has_valid_signature(Signer.load(file).sign("desk", LINK, AT), public)


@pytest.mark.parametrize("name", ["key.pem", "key.pem.pub"])
def test_a_key_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(BadKey, match=rf"{name}: is there already"):
        make_key(tmp_path / "key.pem")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_of_a_key_that_could_not_be_made_nothing_is_left(tmp_path: Path) -> None:
    public_file(tmp_path / "key.pem").symlink_to("nowhere")
    with pytest.raises(BadKey, match=r"key.pem.pub: is there already"):
        make_key(tmp_path / "key.pem")
    assert [file.name for file in tmp_path.iterdir()] == ["key.pem.pub"]


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    make_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o640)
    with pytest.raises(BadKey, match="others may read this key; 'chmod 600"):
        load_private(tmp_path / "key.pem")


WRONG_PRIVATE = {
    "of another kind": (private_pem(X25519PrivateKey.generate()), "not an Ed25519 one"),
    "encrypted": (private_pem(KEY, b"secret"), "is encrypted"),
    "no key": (b"a diary", "is no private key in PEM"),
    "cut off": (private_pem(KEY)[:60], "is no private key in PEM"),
    "empty": (b"", "is no private key in PEM"),
}


@pytest.mark.parametrize("name", WRONG_PRIVATE)
def test_a_private_key_that_is_none_is_refused_and_not_shown(tmp_path: Path, name: str) -> None:
    content, why = WRONG_PRIVATE[name]
    file = tmp_path / "key.pem"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(BadKey, match=why) as failed:
        Signer.load(file)
    assert not content or content.decode() not in str(failed.value)


WRONG_PUBLIC = {
    "private": (private_pem(KEY), "is a private key, which should not leave the gateway; use 'key.pub'"),
    "of another kind": (
        X25519PrivateKey.generate()
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "not an Ed25519 one",
    ),
    "no key": (b"a diary", "is no public key in PEM"),
}


@pytest.mark.parametrize("name", WRONG_PUBLIC)
def test_a_public_key_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    content, why = WRONG_PUBLIC[name]
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(BadKey, match=why):
        load_public(tmp_path / "key")


def test_a_key_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadKey, match="No such file"):
        load_private(tmp_path / "key.pem")
    with pytest.raises(BadKey, match="No such file"):
        load_public(tmp_path / "key.pem")
