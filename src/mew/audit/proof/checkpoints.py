"""Checkpoints: where the chain of a space was at some moment, signed with a key that its journal does not hold.

Who can write to a journal can also make its hashes anew, from a change to the end. Who has no key cannot do so past a
checkpoint. They are kept beside the journal, a line of JSON each, and nothing here changes a line that was written.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta, Struct

from mew.journal.files.database import sync_folders
from mew.journal.files.folder import space_folder
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink

from .keys import fingerprint, load_private

__all__ = [
    "FILE",
    "Checkpoint",
    "CheckpointWriter",
    "Signer",
    "append_checkpoint",
    "has_valid_signature",
    "read_checkpoint_file",
    "read_checkpoints",
]

FILE: Final = "checkpoints.jsonl"
_DOMAIN: Final = b"mew/checkpoint/1\n"
_EVERY: Final = timedelta(minutes=1)

_Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Checkpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """Entry `seq` of a space had this hash at this time, says the one who has the key with this fingerprint."""

    space: str
    seq: Annotated[int, Meta(ge=0)]
    hash: _Hash
    at: Annotated[datetime, Meta(tz=True)]
    key: _Hash
    signature: Annotated[str, Meta(pattern=r"\A[0-9a-f]{128}\Z")]

    @property
    def link(self) -> ChainLink:
        return ChainLink(self.seq, bytes.fromhex(self.hash))


class Signer:
    """Signs with a private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.fingerprint = fingerprint(key.public_key())

    @classmethod
    def load(cls, path: Path) -> "Signer":
        """With the key in a PEM file.

        Raises:
            BadKey: it cannot be read, others may read it too, or it is no Ed25519 key in clear.
        """
        return cls(load_private(path))

    def sign(self, space: str, link: ChainLink, at: datetime) -> Checkpoint:
        """That the chain of a space is at this place, now."""
        digest = link.hash.hex()
        statement = _statement(space, link.seq, digest, at, self.fingerprint)
        return Checkpoint(
            space, link.seq, digest, at.astimezone(UTC), self.fingerprint, self._key.sign(statement).hex()
        )


def has_valid_signature(checkpoint: Checkpoint, public_key: Ed25519PublicKey) -> bool:
    """Whether it was signed with the private key that belongs to this one, and says what it said then."""
    if checkpoint.key != fingerprint(public_key):
        return False
    statement = _statement(checkpoint.space, checkpoint.seq, checkpoint.hash, checkpoint.at, checkpoint.key)
    try:
        public_key.verify(bytes.fromhex(checkpoint.signature), statement)
    except InvalidSignature:
        return False
    return True


def _statement(space: str, seq: int, digest: str, at: datetime, key: str) -> bytes:
    """What is signed; the name of the space stands last, because it alone could hold anything."""
    moment = at.astimezone(UTC).isoformat(timespec="microseconds")
    return _DOMAIN + f"{seq}\n{digest}\n{moment}\n{key}\n{space}".encode()


class CheckpointWriter:
    """Makes the checkpoints of a space: a minute apart at the least, and one when it is closed."""

    def __init__(self, folder: Path, space: str, signer: Signer, every: timedelta = _EVERY) -> None:
        """For a space with its journal in this folder."""
        self._folder = space_folder(folder, space)
        self._space = space
        self._signer = signer
        self._every = every
        self._last: ChainLink | None = None
        self._at: datetime | None = None

    def due(self, link: ChainLink, now: datetime) -> bool:
        """Whether it is time for one, and something happened since the last.

        Raises:
            JournalUnavailable: those that were made before cannot be read.
        """
        if self._is_signed(link):
            return False
        since = None if self._at is None else now - self._at
        return since is None or not timedelta() <= since < self._every  # clocks are also set back

    def make(self, link: ChainLink, at: datetime) -> Checkpoint | None:
        """Sign this place, which must be in the journal, and keep that; None where it was signed before.

        Waits for the disk: call it in a thread, and at the end whether it is due or not.

        Raises:
            JournalUnavailable: it could not be kept.
        """
        if self._is_signed(link):
            return None
        checkpoint = self._signer.sign(self._space, link, at)
        append_checkpoint(self._folder, checkpoint)
        self._last, self._at = link, at
        return checkpoint

    def _is_signed(self, link: ChainLink) -> bool:
        """Also by a process before this one: a space to which nothing happens gets no more checkpoints."""
        if self._last is None:
            ours = [one.link for one in read_checkpoints(self._folder) if one.key == self._signer.fingerprint]
            self._last = ours[-1] if ours else ChainLink(0, b"")
        return link.seq == 0 or link == self._last


def append_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Keep it behind those that are there; it survives a power cut.

    Raises:
        JournalUnavailable: it may or may not have been kept.
    """
    line = msgspec.json.encode(checkpoint) + b"\n"
    path = folder / FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_new = not path.exists()
        with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600), "r+b", buffering=0) as file:
            if file.seek(0, os.SEEK_END) and _last_byte(file.fileno()) != b"\n":
                line = b"\n" + line  # behind one that was cut off
            file.write(line)
            os.fsync(file.fileno())
        if is_new:
            sync_folders(folder)
    except OSError as error:
        raise JournalUnavailable(f"{path}: {error.strerror}") from error


def _last_byte(descriptor: int) -> bytes:
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1)


class CheckpointFile(NamedTuple):
    """What a file of checkpoints holds: those that can be read, lines that were cut off, and lines that are no such."""

    checkpoints: Sequence[Checkpoint]
    torn: Sequence[int] = ()
    wrong: Sequence[int] = ()


def read_checkpoints(folder: Path) -> list[Checkpoint]:
    """Those in the folder of a space, as they were written; what cannot be read is left out.

    Raises:
        JournalUnavailable: the file is there, and cannot be opened.
    """
    return list(read_checkpoint_file(folder).checkpoints)


def read_checkpoint_file(folder: Path) -> CheckpointFile:
    """Those in the folder of a space, and which lines of the file, counted from 1, are none.

    Raises:
        JournalUnavailable: the file is there, and cannot be opened.
    """
    path = folder / FILE
    good: list[Checkpoint] = []
    torn: list[int] = []
    wrong: list[int] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    good.append(_decoder.decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    # What a crash cut off lacks its end; what lacks something else was changed.
                    (wrong if line.rstrip().endswith(b"}") else torn).append(number)
    except FileNotFoundError:
        return CheckpointFile(())
    except OSError as error:
        raise JournalUnavailable(f"{path}: {error.strerror}") from error
    return CheckpointFile(good, torn, wrong)


_decoder: Final = msgspec.json.Decoder(Checkpoint)
