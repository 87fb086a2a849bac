"""What a gateway keeps of its spaces: a journal for each with its record, or nothing beyond this process."""

from collections.abc import Callable
from datetime import datetime

from mew.audit.auditor import Auditor, Writers
from mew.audit.checkpoints import Checkpointing, Signer
from mew.audit.keys import BadKey
from mew.log.base import LogUnavailable
from mew.log.journals import Journals
from mew.log.memory import MemoryLog
from mew.log.retention import Retention
from mew.space import Rules

from .archive import Archives
from .ports import Shell
from .room import Room
from .settings import JournalConfig, Limits
from .trace import Trace

__all__ = ["Keeping"]


class Keeping:
    """Opens rooms from what is kept of them. Without a journal each begins anew."""

    def __init__(
        self,
        journal: JournalConfig | None,
        trace: Trace | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        """Takes the folder of the journal until it is closed.

        Raises:
            LogUnavailable: another process has it, it cannot be written, or the key to sign with is none.
        """
        self._trace = trace
        self._signer: Signer | None = None
        self._journals: Journals | None = None
        self._archives: Archives
        self._writers: Writers
        if journal is None:
            return
        if journal.sign_key is not None:
            try:
                self._signer = Signer.load(journal.sign_key)
            except BadKey as error:
                raise LogUnavailable(f"journal.sign_key: {error}") from error
        self._journals = Journals(journal.folder, journal.fsync, Retention(journal.keep, now))
        self._archives = Archives(journal.folder, self._journals.retention)
        self._writers = Writers()

    def open_room(self, rules: Rules, limits: Limits, shell: Shell) -> Room:
        """The space as it was left.

        Raises:
            LogUnavailable: what is kept of it cannot be read.
        """
        if self._journals is None:
            return Room(rules, limits, MemoryLog(), shell, self._trace)
        auditor = self._auditor(rules.id, shell)
        log = self._journals.open(rules.id, auditor.covered)
        try:
            archive = self._archives.open(rules.id, log, auditor)
            return Room(rules, limits, log, shell, self._trace, auditor, archive)
        except BaseException:
            log.close()
            raise

    def heed(self, journal: JournalConfig | None) -> None:
        """What the file says now, as far as it does not need a restart: how long things are kept."""
        if self._journals is not None and journal is not None:
            self._journals.retention.keep = journal.keep

    def close(self) -> None:
        """Others may have the folder. The rooms must be closed."""
        if self._journals is not None:
            self._archives.close()
            self._writers.close()
            self._journals.close()

    def _auditor(self, space: str, shell: Shell) -> Auditor:
        assert self._journals is not None, "a record without a journal"
        folder = self._journals.folder / space
        signing = None if self._signer is None else Checkpointing(folder, space, self._signer)
        return Auditor(folder, shell.now, self._writers, signing)
