"""Sign-in links for the page, and the sessions they are exchanged for (decision 0012)."""

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Raw, Struct

from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_payload, encode_json

from .tokens import hash_token

__all__ = ["PageSession", "PageSessions", "SignInLink", "SignInLinks", "sessions_path"]

_logger = logging.getLogger(__name__)

_BYTES_MAX: Final = 4 << 20


class SignInLink(Struct, frozen=True):
    """What a code is good for. `stands_for`: the hash of the token that asked for it."""

    space: str
    participant: ParticipantId
    stands_for: str
    expires: datetime


class SignInLinks:
    """The codes that have not been used; only hashes of them are kept, and never in a file.

    Who asks for more than `EACH_MAX` makes the oldest of their own worthless, and nobody else's.
    """

    LIFETIME: Final = timedelta(minutes=10)
    LIFETIME_MAX: Final = timedelta(days=1)
    EACH_MAX: Final = 16
    ALL_MAX: Final = 1024

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._links: dict[str, SignInLink] = {}  # by the hash of the code, the oldest first

    def make(
        self, space: str, participant: ParticipantId, stands_for: str, lifetime: timedelta = LIFETIME
    ) -> tuple[str, SignInLink]:
        """A new code, which is told to nobody else, and what it is good for; at most for `LIFETIME_MAX`."""
        self._drop_expired()
        own = [
            key for key, link in self._links.items() if (link.space, link.participant) == (space, participant)
        ]
        for key in own[: max(0, len(own) - self.EACH_MAX + 1)]:
            del self._links[key]
        while len(self._links) >= self.ALL_MAX:
            del self._links[next(iter(self._links))]
        code = secrets.token_urlsafe(32)
        link = SignInLink(space, participant, stands_for, self._now() + min(lifetime, self.LIFETIME_MAX))
        self._links[hash_token(code)] = link
        return code, link

    def take(self, code: str) -> SignInLink | None:
        """What the code is good for, this once; None: it never was, was used before, or is too old."""
        self._drop_expired()
        return self._links.pop(hash_token(code), None)

    def _drop_expired(self) -> None:
        now = self._now()
        for key in [key for key, link in self._links.items() if link.expires <= now]:
            del self._links[key]


class PageSession(Struct, frozen=True):
    """`digest` is the hash of its token, `stands_for` that of the token which asked for the link."""

    digest: str
    stands_for: str
    space: str
    participant: ParticipantId
    expires: datetime


class _Kept(Struct, frozen=True):
    sessions: list[PageSession]


def sessions_path(state_dir: Path) -> Path:
    return state_dir / "sessions.json"


class PageSessions:
    """The sessions there are, and a file of them where one is named: hashes only, for its owner alone.

    A file that cannot be read or written is said in the log, and costs no more than signing in again after a restart.
    Whether the token behind a session is still good is for others to say.
    """

    LIFETIME: Final = timedelta(days=30)
    EACH_MAX: Final = 32
    ALL_MAX: Final = 1024

    def __init__(self, file: Path | None, now: Callable[[], datetime]) -> None:
        """Reads the file, if there is one."""
        self._file = file
        self._now = now
        self._writing = asyncio.Lock()
        self._sessions: dict[str, PageSession] = {}  # by digest, the oldest first
        for session in _read(file) if file is not None else ():
            self._sessions[session.digest] = session
        self._make_room(0)

    def find(self, digest: str, space: str) -> PageSession | None:
        """The session of the token with this hash, in this space."""
        session = self._sessions.get(digest)
        if session is None or session.space != space or session.expires <= self._now():
            return None
        return session

    async def open(self, link: SignInLink) -> tuple[str, PageSession]:
        """A new token in place of a link, and what it is; returns once it is kept.

        Who opens more than `EACH_MAX` ends the oldest of their own.
        """
        own = [s.digest for s in self._sessions.values() if _holder(s) == (link.space, link.participant)]
        for digest in own[: max(0, len(own) - self.EACH_MAX + 1)]:
            del self._sessions[digest]
        self._make_room(1)
        token = secrets.token_urlsafe(32)
        expires = self._now() + self.LIFETIME
        session = PageSession(hash_token(token), link.stands_for, link.space, link.participant, expires)
        self._sessions[session.digest] = session
        await self._save()
        return token, session

    async def end(self, digest: str) -> bool:
        """Make a token worthless; whether there was one."""
        if self._sessions.pop(digest, None) is None:
            return False
        await self._save()
        return True

    def _make_room(self, count: int) -> None:
        now = self._now()
        for session in [s for s in self._sessions.values() if s.expires <= now]:
            del self._sessions[session.digest]
        while len(self._sessions) > self.ALL_MAX - count:
            del self._sessions[next(iter(self._sessions))]

    async def _save(self) -> None:
        if self._file is None:
            return
        async with self._writing:
            written = encode_json(_Kept(list(self._sessions.values())))
            try:
                await asyncio.to_thread(_write, self._file, written)
            except OSError as error:
                _logger.warning(
                    "sessions of the page are not kept over a restart: %s: %s", self._file, error.strerror
                )


def _holder(session: PageSession) -> tuple[str, ParticipantId]:
    return session.space, session.participant


def _read(file: Path) -> Iterable[PageSession]:
    try:
        # a pipe in the file's place must not make the gateway wait
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as found:
            kept = decode_payload(Raw(found.read(_BYTES_MAX)), _Kept)
    except FileNotFoundError:
        return ()
    except (OSError, ProtocolError) as error:
        _logger.warning("sessions of the page cannot be read, so all begin anew: %s: %s", file, error)
        return ()
    return [session for session in kept.sessions if session.expires.tzinfo is not None]


def _write(file: Path, written: bytes) -> None:
    """Whole or not at all."""
    try:
        file.parent.mkdir(mode=0o700)
        (file.parent / ".gitignore").write_text("*\n", encoding="ascii")
    except FileExistsError:
        pass
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as kept:
            kept.write(written)
            kept.flush()
            os.fsync(descriptor)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
