"""`mew backup` and `mew restore`: copy all files of a gateway while it runs, verify the copy, put it back."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from mew.audit.proof.verification_result import VerificationResult
from mew.audit.proof.verify import verify_journal
from mew.cli.errors import CommandError, ExitCode
from mew.cli.locate.login import SpaceFileOption
from mew.cli.locate.space_file import read_space_file, require_space_file
from mew.cli.render.text import note, say, say_json
from mew.cli.session import JsonOption
from mew.journal.files.database import FILE, Database
from mew.journal.files.folder import FolderLock
from mew.journal.files.high_water import MARKS_FILE
from mew.journal.reader import spaces_in_journal

__all__ = ["backup", "copy_journal", "restore"]

_CONFIG: Final = "space.yaml"
_JOURNAL: Final = "journal"
_STATE: Final = "state"
_MANIFEST: Final = "backup.json"
_NOT_STATE: Final = frozenset({"logs", "gateway.json"})
_OF_THE_JOURNAL: Final = (MARKS_FILE, "spaces")  # the index is made again
_MANIFEST_BYTES_MAX: Final = 1 << 20


class _Manifest(msgspec.Struct, frozen=True):
    """What a backup says of itself: who made it, when, and the last entry of each space."""

    mew: str
    made: datetime
    spaces: dict[str, int]


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    config: SpaceFileOption = None,
    *,
    json: JsonOption = False,
) -> None:
    """Copy the space.yaml, the tokens and the journal while the gateway runs, and verify the copy.

    The copy holds secrets: keep it like one. Exit code 1: the copy is not sound.

    Example: mew backup /backups/2026-11-18
    """
    file = require_space_file(config)
    _make_empty(folder)
    shutil.copy2(file.path, folder / _CONFIG)
    journal = file.config.journal
    if file.config.redis is not None:
        note("the journal is in Redis, and not in this copy: back up Redis itself too")
        journal = None
    source = None if journal is None or not (journal.folder / FILE).exists() else journal.folder
    _copy_state(file.config.state_dir, folder / _STATE, source)
    if source is not None:
        copy_journal(source, folder / _JOURNAL)
    results = _verified(folder)
    last = {one.space: one.last.seq if one.last else 0 for one in results}
    made = _Manifest(version("mew-protocol"), datetime.now(UTC), last)
    (folder / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
    _report(results, as_json=json, done=f"Backed up to {folder}")


def restore(
    backup: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that 'mew backup' made.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the space.yaml goes.")] = Path(),
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Rename a journal that is there, and put this one in its place.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Put a verified backup in place.

    A space.yaml or token that is there already is kept. The gateway must be stopped. Exit code 1: the backup is not
    sound, and nothing was changed.

    Examples:
      mew restore /backups/2026-11-18
      mew restore /backups/2026-11-18 --replace
    """
    _read_manifest(backup)
    results = _verified(backup)
    if not all(one.is_sound for one in results):
        _report(results, as_json=json, done="")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / _CONFIG
    if not target.exists():
        shutil.copy2(backup / _CONFIG, target)
    elif target.read_bytes() != (backup / _CONFIG).read_bytes():
        note(f"{target} is kept; the one of the backup is {backup / _CONFIG}")
    config = read_space_file(target, None, os.environ).config
    if results:
        if config.journal is None:
            raise CommandError(
                f"{target} has 'journal: off': there is no place for the journal of the backup"
            )
        _place_journal(backup / _JOURNAL, config.journal.folder, replace=replace)
    for source, name in _files(backup / _STATE):
        if not (config.state_dir / name).exists():
            _copy(source, config.state_dir / name)
    _report(results, as_json=json, done=f"Restored to {target.parent.absolute()}; 'mew up' starts it")


def copy_journal(source: Path, target: Path) -> None:
    """Copy a journal that a gateway may be writing.

    Raises:
        JournalUnavailable, Damaged: it cannot be read.
    """
    target.mkdir(mode=0o700)
    # First what says how far the journal goes: a copy that is taken later has at least that.
    for name in _OF_THE_JOURNAL:
        for path, inside in _files(source / name):
            _copy(path, target / name / inside)
    with closing(Database.view(source / FILE)) as database:
        database.copy_to(target / FILE)


def _verified(folder: Path) -> list[VerificationResult]:
    journal = folder / _JOURNAL
    return [verify_journal(journal, space) for space in spaces_in_journal(journal)]


def _report(results: list[VerificationResult], *, as_json: bool, done: str) -> None:
    is_sound = all(one.is_sound for one in results)
    if as_json:
        say_json([{"space": one.space, "entries": one.entries, "sound": one.is_sound} for one in results])
    else:
        for one in results:
            why = "" if one.broken is None else f": {one.broken.why}"
            say(f"{one.space}: {one.entries:,} entries, {'sound' if one.is_sound else 'NOT SOUND'}{why}")
        if is_sound:
            say(done)
    if not is_sound:
        raise typer.Exit(ExitCode.NO)


def _read_manifest(folder: Path) -> _Manifest:
    try:
        with (folder / _MANIFEST).open("rb") as file:
            return msgspec.json.decode(file.read(_MANIFEST_BYTES_MAX), type=_Manifest)
    except (OSError, ValueError):
        raise CommandError(f"{folder}: not a folder that 'mew backup' made") from None


def _place_journal(source: Path, target: Path, *, replace: bool) -> None:
    FolderLock(target).release()  # no gateway writes it
    if (target / FILE).exists():
        if not replace:
            raise CommandError(
                f"{target} has a journal already; --replace renames it and puts this one there"
            )
        names = (target.with_name(f"{target.name}.before-restore-{n}") for n in count(1))
        aside = next(name for name in names if not name.exists())
        target.rename(aside)
        note(f"the journal that was there is kept as {aside}")
    for path, name in _files(source):
        _copy(path, target / name)


def _copy_state(source: Path, target: Path, journal: Path | None) -> None:
    for path, name in _files(source):
        of_the_journal = journal is not None and path.is_relative_to(journal)
        if name.parts[0] not in _NOT_STATE and path.suffix != ".lock" and not of_the_journal:
            _copy(path, target / name)


def _files(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The regular files in a folder, or the file it is, each with its name inside."""
    if folder.is_file():
        yield folder, Path()
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield path, path.relative_to(folder)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _make_empty(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CommandError(f"{folder} is not empty; name a new folder")
    folder.chmod(0o700)
