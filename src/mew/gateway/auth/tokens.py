"""The tokens of configured participants: found, made where there are none, kept in memory as hashes only."""

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mew.gateway.config.settings import Config, ParticipantConfig
from mew.gateway.config.value import ConfigError
from mew.journal.files.folder import file_name
from mew.protocol.envelope import ParticipantId

from .sealed import read_sealed, sealed_path

__all__ = ["TokenTable", "Tokens", "hash_token", "is_token", "load_tokens", "token_path", "token_variable"]

_TOKEN = re.compile(r"[!-+\--~]{1,4096}")  # printable ASCII, without space and comma
_FILE_BYTES_MAX: Final = 16_384


def is_token(text: str) -> bool:
    """Whether a configured token may be this: it must survive a header unchanged."""
    return _TOKEN.fullmatch(text) is not None


def hash_token(token: str) -> str:
    """What is stored in place of a token. One round will do: tokens are random, not chosen by people."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class TokenTable:
    """Whose token it is, in one space; knows hashes only."""

    def __init__(self, holders: Mapping[str, ParticipantId]) -> None:
        """Takes the holders by `hash_token` of their tokens."""
        self._holders = {digest: (digest, holder) for digest, holder in holders.items()}

    def __len__(self) -> int:
        return len(self._holders)

    def find(self, token: str) -> ParticipantId | None:
        """The participant with this token; the time it takes says nothing about the tokens there are."""
        return self.holder(hash_token(token))

    def holder(self, digest: str) -> ParticipantId | None:
        """The participant whose token has this hash."""
        # The lookup compares keyed hashes of hashes, so it tells as little as the comparison after it.
        kept, holder = self._holders.get(digest, ("", None))
        return holder if hmac.compare_digest(kept, digest) else None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tables by space, the token files made just now, and what the log should say once."""

    tables: Mapping[str, TokenTable]
    made: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def token_path(config: Config, space: str, participant: str) -> Path:
    """The file for a participant's token, there or not; with `spaces` each space has a folder of its own."""
    folder = config.state_dir / "tokens"
    return (folder / file_name(space) if config.tokens_by_space else folder) / f"{participant}.token"


def token_variable(participant: str) -> str:
    """The environment variable that may hold a participant's token."""
    return "MEW_TOKEN_" + re.sub(r"[^A-Z0-9]", "_", participant.upper())


def load_tokens(config: Config, environ: Mapping[str, str]) -> Tokens:
    """Collect the tokens of all participants; who has none gets one, kept in a file. Reads and writes files.

    Those in `tokens`, that in the participant's file, the sealed one and that in `MEW_TOKEN_<ID>` are all valid.

    Raises:
        ConfigError: a file or variable is no token, two participants share one, or a file cannot be written.
    """
    tables: dict[str, TokenTable] = {}
    made: list[Path] = []
    notes: list[str] = []
    for space in config.spaces.values():
        holders: dict[str, tuple[ParticipantId, str]] = {}
        for participant in space.participants.values():
            path = token_path(config, space.id, participant.id)
            found = list(_digests_of(participant, path, environ, notes))
            for digest, source in found or [_make(config, path, made)]:
                holder, first = holders.setdefault(digest, (participant.id, source))
                if holder != participant.id:
                    raise ConfigError(
                        f"space '{space.id}': the token of '{participant.id}' ({source})"
                        f" is also that of '{holder}' ({first})"
                    )
        tables[space.id] = TokenTable({digest: holder for digest, (holder, _) in holders.items()})
    return Tokens(MappingProxyType(tables), tuple(made), tuple(notes))


def _digests_of(
    participant: ParticipantConfig, path: Path, environ: Mapping[str, str], notes: list[str]
) -> Iterator[tuple[str, str]]:
    """The hashes of the participant's tokens, each with where it comes from."""
    for token in participant.tokens:
        yield hash_token(token), "tokens"
    if (kept := _read(path, notes)) is not None:
        yield hash_token(kept), str(path)
    if (sealed := read_sealed(sealed_path(path))) is not None:
        yield sealed.digest, str(sealed_path(path))
    variable = token_variable(participant.id)
    if token := environ.get(variable, "").strip():
        if not is_token(token):
            raise ConfigError(
                f"{variable}: expected a token of printable ASCII without space and comma, is not one"
            )
        yield hash_token(token), variable


def _read(path: Path, notes: list[str]) -> str | None:
    try:
        # a pipe in the file's place must not make the gateway wait
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: the token cannot be read: {error.strerror}") from error
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{path}: expected a file with a token, is no file")
        notes.extend(_tighten(path, descriptor, mode, 0o600))
        written = file.read(_FILE_BYTES_MAX).decode("ascii", "replace").strip()
    if not written:
        raise ConfigError(f"{path}: the token file is empty; delete it to have a token made")
    if not is_token(written):
        raise ConfigError(f"{path}: expected a token of printable ASCII without space and comma, is not one")
    return written


def _make(config: Config, path: Path, made: list[Path]) -> tuple[str, str]:
    """Make a token and keep it, or take the one that another process has just kept there."""
    token = secrets.token_urlsafe(32)
    try:
        _prepare(config, path.parent)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(token + "\n")
                file.flush()
                os.fsync(descriptor)
            os.link(draft, path)  # whole or not at all, and never over another
            made.append(path)
        except FileExistsError:
            token = _read(path, []) or token
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: the token cannot be kept: {error.strerror}") from error
    return hash_token(token), str(path)


def _prepare(config: Config, folder: Path) -> None:
    """Make the folders a token is kept in, for the owner alone, and keep git away from them."""
    tokens = config.state_dir / "tokens"
    config.state_dir.mkdir(mode=0o700, exist_ok=True)
    for path in dict.fromkeys((tokens, folder)):
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
    # where space.yaml itself lies in .mew, the rest of .mew is the user's to commit
    ignoring = tokens if config.file.parent == config.state_dir else config.state_dir
    try:
        with (ignoring / ".gitignore").open("x", encoding="ascii") as file:
            file.write("*\n")
    except FileExistsError:
        pass


def _tighten(path: Path, descriptor: int, mode: int, wanted: int) -> Iterator[str]:
    if os.name != "posix" or not stat.S_IMODE(mode) & ~wanted & 0o077:
        return
    found = f"{stat.S_IMODE(mode):04o}"
    try:
        os.fchmod(descriptor, wanted)
    except OSError:  # someone else's file, or mounted read-only
        yield f"{path}: others may read this token, mode {found}, and it cannot be changed"
    else:
        yield f"{path}: others could read this token, mode {found}, now {wanted:04o}"
