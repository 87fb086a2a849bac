"""Update the index in the background while a gateway runs.

What was not indexed when a process dies is indexed by the next one, or by whoever asks.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Final

from mew.audit.proof.checkpoints import CheckpointWriter, Signer
from mew.journal.files.database import FILE, Damaged
from mew.journal.files.folder import identity
from mew.journal.files.locator import Locator
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink

from .index import catch_up

__all__ = ["Indexer"]

_logger = logging.getLogger(__name__)

_EVERY_S: Final = 2.0
_LAST_S: Final = 0.5  # for what is left when all ends: the next process does the rest


class Indexer:
    """The one writer of the index of a gateway, in a thread of its own. Signs checkpoints too, if there is a key."""

    def __init__(
        self,
        folder: Path,
        committed: Callable[[], int],
        now: Callable[[], datetime],
        signer: Signer | None = None,
        every_s: float = _EVERY_S,
    ) -> None:
        """`committed`: the number of the last record that was committed."""
        self._folder = folder
        self._committed = committed
        self._now = now
        self._signer = signer
        self._every_s = every_s
        self._signing: dict[str, CheckpointWriter] = {}
        self._indexed = 0
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="mew-index")
        self._stopped = Event()
        self._locator: Locator | None = None
        self._journal: tuple[int, int] | None = None
        self._has_failed = False

    async def run(self) -> None:
        """Index every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            if self._committed() != self._indexed or self._signer is not None:
                await self.settle()

    async def settle(self) -> None:
        """Return when all that is committed now is in the index, or could not be put there."""
        committed = self._committed()
        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._worker, self._catch_up, self._stopped.is_set):
            self._indexed = max(self._indexed, committed)

    def close(self) -> None:
        """Index what can be in a moment, and sign where it ends."""
        self._stopped.set()
        self._worker.submit(self._finish).result()
        self._worker.shutdown()

    # In the thread.

    def _catch_up(self, is_over: Callable[[], bool], *, is_last: bool = False) -> bool:
        try:
            locator = self._open()
            try:
                catch_up(locator, is_over=is_over)
            finally:
                self._sign(locator, is_last=is_last)
        except (Damaged, JournalUnavailable) as error:
            if not self._has_failed:
                what = {"folder": str(self._folder), "error": str(error)}
                _logger.warning("the index is not up to date; it is made from the journal later", extra=what)
            self._has_failed = True
            return False
        self._has_failed = False
        return True

    def _open(self) -> Locator:
        """The index. It is opened again if another file took the place of the journal: one that was repaired."""
        journal = identity(self._folder / FILE)
        if self._locator is not None and journal != self._journal:
            self._locator.close()
            self._locator = None
        if self._locator is None:
            self._locator, self._journal = Locator(self._folder), journal
        return self._locator

    def _finish(self) -> None:
        end_s = time.monotonic() + _LAST_S
        self._catch_up(lambda: time.monotonic() >= end_s, is_last=True)
        if self._locator is not None:
            self._locator.close()

    def _sign(self, locator: Locator, *, is_last: bool) -> None:
        """A checkpoint for each space to which something happened: a minute apart at the least, and one at the end."""
        if self._signer is None:
            return
        now = self._now()
        for space, seq, digest in locator.ask(_LAST_RECORDS):
            signing = self._signing.get(space)
            if signing is None:
                signing = self._signing[space] = CheckpointWriter(self._folder, space, self._signer)
            link = ChainLink(seq, digest)
            if is_last or signing.due(link, now):
                signing.make(link, now)


_LAST_RECORDS: Final = """
SELECT spaces.name, records.last, records.hash FROM spaces CROSS JOIN places ON places.space = spaces.id
    AND places.last = (SELECT max(last) FROM places AS other WHERE other.space = spaces.id)
CROSS JOIN journal.records ON records.n = places.n
"""
