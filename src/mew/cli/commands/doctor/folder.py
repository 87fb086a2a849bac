"""What `mew doctor` checks of a space.yaml and the folder beside it: what it says, who may read it, room, the lock."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mew.cli.locate.space_file import SpaceFile
from mew.gateway.address_file import read_address
from mew.gateway.auth.sealed import sealed_path
from mew.gateway.auth.tokens import token_path, token_variable

from .findings import Finding, Level

__all__ = ["folder_findings"]

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_ROOM_WARNING: Final = _GIB
_ROOM_PROBLEM: Final = 100 * _MIB
_LOCK: Final = ".lock"


def folder_findings(folder: SpaceFile) -> Iterator[Finding]:
    """All that can be seen without a gateway."""
    yield from _file(folder)
    yield from _tokens(folder)
    yield from _journal(folder)


def _file(folder: SpaceFile) -> Iterator[Finding]:
    spaces = folder.config.spaces
    yield Finding(Level.OK, "space.yaml", f"{folder.path} is valid; spaces: {', '.join(spaces)}")
    for note in folder.config.notes:
        yield Finding(Level.WARNING, "space.yaml", note)
    for space in spaces.values():
        if not space.participants and folder.config.jwt is None:
            yield Finding(
                Level.WARNING, f"space {space.id!r}", "names nobody", "add somebody under 'participants'"
            )
    held = folder.path.stat().st_mode
    has_secrets = any(one.tokens for space in spaces.values() for one in space.participants.values())
    if has_secrets and _is_open(held):
        yield Finding(
            Level.WARNING,
            "space.yaml",
            f"has tokens in it, and others may read it (mode {stat.S_IMODE(held):04o})",
            f"chmod 600 {folder.path}, or let the tokens be in files: leave out 'tokens'",
        )


def _tokens(folder: SpaceFile) -> Iterator[Finding]:
    state = folder.config.state_dir
    if not state.exists():
        says = f"{state} is not there yet"
        yield Finding(Level.OK, "tokens", f"{says}; the gateway makes it when it starts")
        return
    if not os.access(state, os.W_OK):
        yield Finding(
            Level.PROBLEM, "tokens", f"{state} cannot be written", f"whose is it? see: ls -ld {state}"
        )
    wrong, missing, there = [], [], 0
    for space in folder.config.spaces.values():
        for member in space.participants.values():
            path = token_path(folder.config, space.id, member.id)
            if not path.is_file():
                elsewhere = member.tokens or folder.environ.get(token_variable(member.id), "").strip()
                missing += [] if elsewhere or sealed_path(path).is_file() else [member.id]
                continue
            there += 1
            if _is_open(path.stat().st_mode):
                wrong.append(path)
    for path in wrong:
        yield Finding(
            Level.PROBLEM,
            "tokens",
            f"others may read {path} (mode {stat.S_IMODE(path.stat().st_mode):04o})",
            f"chmod 600 {path}; if it may have been read: mew token new {path.stem}",
        )
    if missing:
        names = ", ".join(missing)
        yield Finding(
            Level.WARNING, "tokens", f"none yet for {names}", "start the gateway once, which makes them"
        )
    if there and not wrong:
        yield Finding(
            Level.OK,
            "tokens",
            f"{there} in {state / 'tokens'}, for other users not to read; programs of yours can"
            " ('mew token seal NAME' puts a person's behind a passphrase)",
        )


def _journal(folder: SpaceFile) -> Iterator[Finding]:
    journal = folder.config.journal
    if journal is None:
        yield Finding(Level.OK, "journal", "off: everything is forgotten with the gateway")
        return
    place = _nearest_that_is(journal.folder)
    free = shutil.disk_usage(place).free
    says = f"{free / _GIB:.1f} GiB free for {journal.folder}"
    if free < _ROOM_PROBLEM:
        yield Finding(Level.PROBLEM, "disk", says, "make room, or put 'journal.folder' on another disk")
    elif free < _ROOM_WARNING:
        yield Finding(
            Level.WARNING, "disk", says, "make room, or limit the journal with 'journal.keep_bytes'"
        )
    else:
        yield Finding(Level.OK, "disk", says)
    if journal.folder.exists() and not os.access(journal.folder, os.W_OK):
        yield Finding(
            Level.PROBLEM, "journal", f"{journal.folder} cannot be written", f"see: ls -ld {journal.folder}"
        )
    yield from _lock(folder, journal.folder / _LOCK)


def _lock(folder: SpaceFile, path: Path) -> Iterator[Finding]:
    holder = _holder(path)
    if holder is None:
        yield Finding(Level.OK, "journal", "nobody has it open")
    elif read_address(folder.path) is not None:
        yield Finding(Level.OK, "journal", f"open by the gateway ({holder})")
    else:
        yield Finding(
            Level.WARNING,
            "journal",
            f"open by a process that is not known as the gateway of this file ({holder})",
            "a gateway with another space.yaml keeps its journal here, or one that is ending: stop it first",
        )


def _holder(path: Path) -> str | None:
    """Who has the lock, in a word or two; None: nobody."""
    if sys.platform == "win32" or not path.is_file():
        return None
    import fcntl  # not to be had on Windows

    try:
        with path.open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return lock.read(32).decode("ascii", "replace").strip() or "it does not say which"
    except OSError:
        return None
    return None


def _is_open(mode: int) -> bool:
    return os.name == "posix" and bool(stat.S_IMODE(mode) & 0o077)


def _nearest_that_is(folder: Path) -> Path:
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())
