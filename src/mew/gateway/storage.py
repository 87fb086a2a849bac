"""Storage of a gateway: a journal with its index, journals shared with other nodes, or memory only."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from mew.audit.proof.checkpoints import Signer
from mew.audit.proof.keys import BadKey
from mew.audit.record.indexer import Indexer
from mew.journal.files.disk_watch import DiskStatus, DiskUsage
from mew.journal.memory import MemoryStorage
from mew.journal.port import JournalStorage, JournalUnavailable
from mew.journal.redis.address import RedisAddress
from mew.journal.retention import Retention
from mew.journal.sqlite import SqliteStorage
from mew.space import Rules

from .config.settings import JournalConfig, Limits
from .history.archive import Archive, Archives
from .room.ports import RoomEnvironment
from .room.room import Room
from .room.turns import Turns
from .trace import Trace

__all__ = ["Storage"]

_logger = logging.getLogger(__name__)

_WATCH_S: Final = 1.0
_USAGE_S: Final = 60.0
_ADVICE: Final = (
    "free some space, or limit retention with 'journal.keep_days', 'journal.keep_entries' or"
    " 'journal.keep_bytes': every space stops when the disk is full"
)


class Storage:
    """Open rooms from the journal, from one that is shared with other nodes, or empty if none is configured."""

    def __init__(
        self,
        journal: JournalConfig | None,
        trace: Trace | None = None,
        now: Callable[[], datetime] | None = None,
        *,
        redis: RedisAddress | None = None,
        is_ephemeral: bool = False,
        describe: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """Lock the journal folder until `close`. With `redis` no folder is used.

        `is_ephemeral`: that Redis may lose what it was given; `describe` says what others may know of this node.

        Raises:
            JournalUnavailable: another process uses it, it cannot be written, or the signing key is invalid.
        """
        self._trace = trace
        self._sqlite: SqliteStorage | None = None
        self._archives: Archives
        self.journals: JournalStorage = MemoryStorage()
        self.disk = DiskStatus()
        self.now = now
        if redis is not None:
            self._share(redis, is_ephemeral, describe)
            return
        if journal is None:
            return
        signer = None
        if journal.sign_key is not None:
            try:
                signer = Signer.load(journal.sign_key)
            except BadKey as error:
                raise JournalUnavailable(f"journal.sign_key: {error}") from error
        self._warn_bytes = journal.warn_bytes
        retention = Retention(journal.keep, now)
        self.journals = self._sqlite = SqliteStorage(journal.folder, journal.fsync, retention)
        indexer = Indexer(journal.folder, self._sqlite.committed, now or partial(datetime.now, UTC), signer)
        self._archives = Archives(journal.folder, retention, indexer)

    def _share(self, redis: RedisAddress, is_ephemeral: bool, describe: Callable[[], dict[str, Any]]) -> None:  # noqa: FBT001
        try:
            from mew.journal.redis.storage import RedisStorage  # its library is an extra
        except ImportError as error:
            message = "several nodes need the extra 'redis': pip install 'mew-protocol[redis]'"
            raise JournalUnavailable(message) from error
        self.journals = shared = RedisStorage(redis, is_ephemeral=is_ephemeral, describe=describe)
        self.now = self.now or shared.now

    def open_room(self, rules: Rules, limits: Limits, turns: Turns, world: RoomEnvironment) -> Room:
        """Open a room with the state and history of its journal.

        Raises:
            JournalUnavailable: the journal cannot be read.
        """
        archive = None if self._sqlite is None else Archive(self._archives, rules.id, turns.committed)
        return Room(rules, limits, turns, world, self._trace, archive)

    async def keep_index(self) -> None:
        """Keep the index up to date, until cancelled."""
        if self._sqlite is not None:
            await self._archives.indexer.run()

    async def watch(self, failed: Callable[[JournalUnavailable], None]) -> None:
        """Check the journal files every second and the disk usage every minute, until cancelled or a check fails."""
        loop = asyncio.get_running_loop()
        look_at_s = loop.time()
        while self._sqlite is not None:
            try:
                await asyncio.to_thread(self._sqlite.check_files)
            except JournalUnavailable as error:
                failed(error)
                await asyncio.to_thread(self._sqlite.save_unlinked)
                return
            if loop.time() >= look_at_s:
                look_at_s = loop.time() + _USAGE_S
                with suppress(OSError):
                    self._note(await asyncio.to_thread(DiskUsage.of, self._sqlite.folder))
            await asyncio.sleep(_WATCH_S)

    def _note(self, usage: DiskUsage) -> None:
        warnings = usage.warnings(self._warn_bytes)
        for short in warnings.keys() - self.disk.warnings.keys():
            _logger.warning("%s; %s", warnings[short], _ADVICE)
        self.disk.usage, self.disk.warnings = usage, warnings

    def update_settings(self, journal: JournalConfig | None) -> None:
        """Apply the journal settings that need no restart: retention and warning thresholds."""
        if self._sqlite is not None and journal is not None:
            self._sqlite.retention.policy = journal.keep
            self._warn_bytes = journal.warn_bytes

    def close(self) -> None:
        """Release the files. The rooms must be closed."""
        if self._sqlite is not None:
            self._archives.close()
            self._archives.indexer.close()
        self.journals.close()
