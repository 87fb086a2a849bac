"""Snapshots of a space: a file each, whole or not at all, good only with the very record it was made after.

First a line of JSON that says where it was made, then the state, and at the end the SHA-256 of both. The last two are
kept, and the journal drops nothing that the older of them needs: so no file is the only one that a start depends on.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from mew.journal.record import ChainLink

from .folder import free_name

__all__ = ["Snapshot", "Snapshots"]

_NAME: Final = re.compile(r"(\d{1,18})(?:-\d)?\.snapshot")
_LINE_BYTES_MAX: Final = 4096
_DIGEST_BYTES: Final = 32
_KEPT: Final = 2


class Snapshot(Struct, frozen=True):
    """The state after an entry; `hash` is that of its record."""

    seq: int
    hash: bytes
    format: int = 2

    @property
    def link(self) -> ChainLink:
        return ChainLink(self.seq, self.hash)


class Snapshots:
    """Those in the folder of a space. All methods read or write files, and may be called in several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changing = Lock()

    def good(self) -> list[Snapshot]:
        """Those that are whole, the oldest first."""
        return [one for path, one in self._listed() if _content(path) is not None]

    def load(self, snapshot: Snapshot) -> bytes | None:
        """The state in it; None if it is not what was written."""
        for path, one in self._listed():
            content = _content(path) if one == snapshot else None
            if content is not None:
                return content.partition(b"\n")[2]
        return None

    def save(self, snapshot: Snapshot, pieces: Iterable[bytes]) -> None:
        """Write it, and delete those before the last two; every piece is written before the next is made.

        Raises:
            OSError: it could not be kept.
        """
        with self._changing:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in os.listdir(self.folder):
                if name.startswith(".") and _NAME.fullmatch(name[1:]):
                    with suppress(OSError):
                        (self.folder / name).unlink()  # of an attempt that was cut off
            taken = {path for path, _ in self._listed()}
            names = [self.folder / f"{snapshot.seq}{suffix}.snapshot" for suffix in ("", "-2", "-3")]
            path = next((name for name in names if name not in taken), names[0])
            _write(path, _sealed(chain((msgspec.json.encode(snapshot) + b"\n",), pieces)))
            whole = [path for path, _ in self._listed() if _content(path) is not None]
            for path in whole[:-_KEPT]:
                with suppress(OSError):  # the next one tries again
                    path.unlink()

    def set_aside(self, snapshot: Snapshot) -> Iterator[Path]:
        """Keep it under a name that is not looked at again."""
        for path, one in self._listed():
            if one == snapshot:
                yield path.rename(free_name(path))

    def set_damaged_aside(self) -> Iterator[Path]:
        """Keep those that are not whole under other names."""
        good = {path for path, _ in self._listed() if _content(path) is not None}
        for path in self._files():
            if path not in good:
                yield path.rename(free_name(path))

    def _listed(self) -> list[tuple[Path, Snapshot]]:
        """Those whose first line can be read, the oldest first."""
        found = [(path, _first_line(path)) for path in self._files()]
        listed = [(path, one) for path, one in found if one is not None]
        return sorted(listed, key=lambda one: (one[1].seq, one[0].stat().st_mtime_ns, one[0].name))

    def _files(self) -> Sequence[Path]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return [self.folder / name for name in sorted(names) if _NAME.fullmatch(name)]


def _first_line(path: Path) -> Snapshot | None:
    try:
        with path.open("rb") as file:
            line = file.readline(_LINE_BYTES_MAX)
        found = msgspec.json.decode(line, type=Snapshot)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    named = _NAME.fullmatch(path.name)
    return found if found.format == 2 and named is not None and int(named[1]) == found.seq else None


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    """Whole or not at all."""
    draft = path.with_name(f".{path.name}")
    try:
        with open(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
            os.fsync(file.fileno())
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def _sealed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def _content(path: Path) -> bytes | None:
    """What is in a file before its digest; None if it is not what was written."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    content, digest = written[:-_DIGEST_BYTES], written[-_DIGEST_BYTES:]
    return content if sha256(content).digest() == digest else None
