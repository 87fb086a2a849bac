"""The snapshots of a journal: a file each, whole or not at all, good only with the very entry it was made after.

First a line of JSON that says where it was made, then the state, and at the end the SHA-256 of both.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from .base import Mark
from .salvage import free_name

__all__ = ["Snapshot", "Snapshots", "oldest_needed"]

_NAME: Final = re.compile(r"(\d{1,18})\.snapshot")
_LINE_BYTES_MAX: Final = 4096
_DIGEST_BYTES: Final = 32


class Snapshot(Struct, frozen=True):
    """`hash` is that of the entry it was made after."""

    mark: Mark
    hash: bytes
    format: int = 1


class Snapshots:
    """Those in one folder. All methods read or write files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> list[Snapshot]:
        """Those whose first line can be read, the oldest first."""
        found = [self._first_line(path) for path in self._files()]
        return sorted((one for one in found if one is not None), key=lambda one: one.mark.seq)

    def set_strays_aside(self) -> Iterator[Path]:
        """Keep those whose first line cannot be read under other names."""
        for path in self._files():
            if self._first_line(path) is None:
                yield path.rename(free_name(path))

    def save(self, snapshot: Snapshot, pieces: Iterable[bytes]) -> None:
        """Write it; every piece is written before the next is made, so that others get a turn in between.

        Raises:
            OSError: it could not be kept.
        """
        for name in os.listdir(self._folder):
            if name.startswith(".") and _NAME.fullmatch(name[1:]):
                with suppress(OSError):
                    (self._folder / name).unlink()  # of an attempt that was cut off
        path = self._path(snapshot)
        draft = path.with_name(f".{path.name}")
        digest = sha256()
        try:
            with open(
                os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb", buffering=0
            ) as file:
                for piece in chain((msgspec.json.encode(snapshot) + b"\n",), pieces):
                    digest.update(piece)
                    file.write(piece)
                file.write(digest.digest())
                os.fsync(file.fileno())
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)

    def load(self, snapshot: Snapshot) -> bytes | None:
        """The state in it; None if it is not what was written."""
        try:
            written = self._path(snapshot).read_bytes()
        except OSError:
            return None
        content, digest = written[:-_DIGEST_BYTES], written[-_DIGEST_BYTES:]
        if sha256(content).digest() != digest:
            return None
        return content.partition(b"\n")[2]

    def prune(self, snapshots: Sequence[Snapshot]) -> None:
        """Delete those that no history needs any more."""
        needed = oldest_needed([snapshot.mark for snapshot in snapshots])
        for snapshot in snapshots:
            if needed is not None and snapshot.mark.seq < needed.seq:
                with suppress(OSError):  # the next one tries again
                    self._path(snapshot).unlink()

    def set_aside(self, snapshot: Snapshot) -> Path:
        """Keep it under a name that is not looked at again."""
        path = self._path(snapshot)
        return path.rename(free_name(path))

    def _files(self) -> Sequence[Path]:
        try:
            return [self._folder / name for name in os.listdir(self._folder) if _NAME.fullmatch(name)]
        except FileNotFoundError:
            return []

    def _path(self, snapshot: Snapshot) -> Path:
        return self._folder / f"{snapshot.mark.seq}.snapshot"

    def _first_line(self, path: Path) -> Snapshot | None:
        try:
            with path.open("rb") as file:
                line = file.readline(_LINE_BYTES_MAX)
            found = msgspec.json.decode(line, type=Snapshot)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found.format == 1 and self._path(found) == path else None


def oldest_needed(marks: Sequence[Mark]) -> Mark | None:
    """The newest from which all that was at hand at the last of them can be shown again; None: none is that old."""
    if not marks:
        return None
    return next((mark for mark in reversed(marks) if mark.end <= marks[-1].first), None)
