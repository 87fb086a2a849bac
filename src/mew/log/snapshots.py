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
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from .base import Mark
from .salvage import free_name

__all__ = ["Snapshot", "Snapshots", "oldest_needed"]

_NAME: Final = re.compile(r"(\d{1,18})\.snapshot")
_COPY: Final = ".copy"
_LINE_BYTES_MAX: Final = 4096
_DIGEST_BYTES: Final = 32


class Snapshot(Struct, frozen=True):
    """`hash` is that of the entry it was made after."""

    mark: Mark
    hash: bytes
    format: int = 1


class Snapshots:
    """Those in one folder. All methods read or write files, and may be called in several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changing = Lock()

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
        with self._changing:
            for name in os.listdir(self._folder):
                if name.startswith(".") and _NAME.fullmatch(name[1:].removesuffix(_COPY)):
                    with suppress(OSError):
                        (self._folder / name).unlink()  # of an attempt that was cut off
        _write(self._path(snapshot), _sealed(chain((msgspec.json.encode(snapshot) + b"\n",), pieces)))

    def load(self, snapshot: Snapshot) -> bytes | None:
        """The state in it; None if it is not what was written."""
        content = _content(self._path(snapshot))
        return None if content is None else content.partition(b"\n")[2]

    def needed(self) -> Snapshot | None:
        """The one that a start begins with."""
        return _needed(self.list())

    def secure(self) -> None:
        """For a journal that does not begin with the first entry: have a copy of the snapshot that a start begins with,
        if none comes after it that could take its place.

        Raises:
            OSError: it could not be kept.
        """
        with self._changing:
            snapshots = self.list()
            if not snapshots or snapshots[-1] is not (_needed(snapshots) or snapshots[0]):
                return
            path = self._path(snapshots[-1])
            if _content(path) not in (None, _content(_copy_of(path))):
                _write(_copy_of(path), (path.read_bytes(),))

    def mend(self) -> Iterator[tuple[Path, Path | None]]:
        """Put copies in the place of those that are not what was written: which, and what they are called now."""
        for path in self._files(_COPY):
            place = path.with_name(path.name.removesuffix(_COPY))
            if _content(place) is None and _content(path) is not None:
                aside = place.rename(free_name(place)) if place.exists() else None
                _write(place, (path.read_bytes(),))
                yield place, aside

    def prune(self) -> None:
        """Delete those that no history needs any more."""
        with self._changing:
            snapshots = self.list()
            needed = _needed(snapshots)
            for snapshot in snapshots:
                if needed is not None and snapshot.mark.seq < needed.mark.seq:
                    with suppress(OSError):  # the next one tries again
                        _copy_of(self._path(snapshot)).unlink(missing_ok=True)
                        self._path(snapshot).unlink()

    def set_aside(self, snapshot: Snapshot) -> Path:
        """Keep it under a name that is not looked at again."""
        path = self._path(snapshot)
        copy = _copy_of(path)
        if copy.exists():
            copy.rename(free_name(copy))
        return path.rename(free_name(path))

    def _files(self, suffix: str = "") -> Sequence[Path]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [
            self._folder / name
            for name in names
            if name.endswith(suffix) and _NAME.fullmatch(name.removesuffix(suffix))
        ]

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


def _needed(snapshots: Sequence[Snapshot]) -> Snapshot | None:
    mark = oldest_needed([snapshot.mark for snapshot in snapshots])
    return next((snapshot for snapshot in snapshots if snapshot.mark == mark), None)


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_COPY}")


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


def oldest_needed(marks: Sequence[Mark]) -> Mark | None:
    """The newest from which all that was at hand at the last of them can be shown again; None: none is that old."""
    if not marks:
        return None
    return next((mark for mark in reversed(marks) if mark.end <= marks[-1].first), None)
