"""All journals of a node in one Redis: one line, one write for all spaces of a pass, and the lease of the node.

A node's name lives as long as its line. If that is lost, every journal fails, the rooms close and are opened again
under a new name; what was on its way is in the log or not, as for any client that was cut off.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import hiredis
import msgspec

from mew.journal.port import CommitCallback, Follower, JournalContents, JournalUnavailable

from .address import RedisAddress
from .checks import parse_info, review_info
from .journal import NodeFenced, RedisJournal
from .line import Line
from .scripts import LEASE, SCRIPTS, SpaceKeys

__all__ = ["BEAT_S", "LEASE_S", "PREFIX", "RedisStorage"]

_logger = logging.getLogger(__name__)

PREFIX: Final = "mew:"
LEASE_S: Final = 12.0
BEAT_S: Final = 3.0
_SILENT_BEATS_MAX: Final = 2
_DESCRIBED_S: Final = 60


class RedisStorage:
    """Journals that are shared with other nodes."""

    is_shared = True

    def __init__(
        self,
        address: RedisAddress,
        *,
        is_ephemeral: bool = False,
        describe: Callable[[], dict[str, Any]] = dict,
        beat_s: float = BEAT_S,
        lease_s: float = LEASE_S,
    ) -> None:
        """`describe`: what other nodes and `mew cluster status` may know of this one. Connects when it is prepared."""
        self.node = ""
        self.is_leader = False
        """Whether this node is the one of all that makes snapshots."""
        self.reconnects = -1
        self._address = address
        self._is_ephemeral = is_ephemeral
        self._describe = describe
        self._beat_s = beat_s
        self._lease_s = lease_s
        self._line: Line | None = None
        self._preparing = asyncio.Lock()
        self._journals: dict[bytes, RedisJournal] = {}  # by their channel
        self._due: list[RedisJournal] = []
        self._touched: list[RedisJournal] = []
        self._done: CommitCallback | None = None
        self._dead: list[str] = []  # names that this node had before
        self._places: dict[
            str, tuple[str, int, bytes]
        ] = {}  # how far each log was followed when the line was lost
        self._suspects: set[bytes] = set()
        self._silent_beats = 0
        self._timer: asyncio.TimerHandle | None = None
        self._offset = timedelta()
        self._nodes = f"{PREFIX}nodes"

    def now(self) -> datetime:
        """The time by the clock of Redis, which is that of all nodes."""
        return datetime.now(UTC) + self._offset

    # The port.

    async def prepare(self, spaces: Iterable[str]) -> None:
        async with self._preparing:
            line = self._line or await self._connect()
            try:
                async with asyncio.TaskGroup() as loading:
                    for space in spaces:
                        loading.create_task(self._load(line, space))
            except ExceptionGroup as group:
                unavailable, bugs = group.split(JournalUnavailable)
                if bugs is not None or unavailable is None:
                    raise
                raise unavailable.exceptions[0] from None

    def open(self, space: str, follower: Follower) -> tuple[RedisJournal, JournalContents]:
        journal = self._journals.get(_channel(space))
        if journal is None:
            raise JournalUnavailable(f"space {space!r}: Redis at {self._address}: the connection was lost")
        return journal, journal.open(follower)

    def commit(self, done: CommitCallback) -> None:
        due, self._due = self._due, []
        line = self._line
        if line is None:
            lost = JournalUnavailable(f"Redis at {self._address}: the connection was lost")
            done(lost if due else None)
            return
        self._done = done
        for journal in due:
            journal.send(line, self._replied)
        line.send(self._committed, "PING")  # its reply comes after all that was announced until then
        line.flush()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._line is not None:
            self._line.send(_ignored, "ZREM", self._nodes, self.node)
            self._line.send(_ignored, "DEL", f"{PREFIX}node:{self.node}")
            self._line.close()
            self._line = None

    # Called by the journals.

    def due(self, journal: RedisJournal) -> None:
        """A journal has something for the next write."""
        self._due.append(journal)

    def closed(self, journal: RedisJournal) -> None:
        """A journal was closed: what it took is appended, and that this node left the space."""
        if self._line is not None and self._journals.get(_channel(journal.space)) is journal:
            journal.send(self._line, self._replied)
            journal.declare_gone(self.node)
            self._line.flush()

    def forget(self, journal: RedisJournal) -> None:
        """All that a closed journal took has come round."""
        channel = _channel(journal.space)
        if self._line is not None and self._journals.get(channel) is journal:
            del self._journals[channel]
            self._line.send_silent("UNSUBSCRIBE", channel)
            self._line.flush()

    # The line.

    async def _connect(self) -> Line:
        self.node = secrets.token_hex(6)
        line = Line(self._address, self._pushed, self._drained, self._fail)
        await line.connect()
        try:
            info = parse_info((await line.call("INFO")).decode())
            findings = review_info(info, is_ephemeral=self._is_ephemeral)
            if findings.errors:
                raise JournalUnavailable(f"Redis at {self._address}: {'; '.join(findings.errors)}")
            for warning in findings.warnings:
                _logger.warning("Redis at %s: %s", self._address, warning)
            for script in SCRIPTS:
                await line.call("SCRIPT", "LOAD", script.source)
            self._line = line
            self._silent_beats = 0
            self._suspects = set()
            self._renewed(await line.call(*self._renewal()))
        except BaseException:
            self._line = None
            line.close()
            raise
        self.reconnects += 1
        _logger.info("node of several", extra={"node": self.node, "redis": str(self._address)})
        self._beat()
        return line

    async def _load(self, line: Line, space: str) -> None:
        journal = RedisJournal(self, line, space, SpaceKeys.of(PREFIX, space))
        self._journals[_channel(space)] = journal
        await journal.load(secrets.token_hex(4), self._nodes, self._dead)
        before = self._places.pop(space, None)
        if before is not None:
            await self._check_kept(line, journal, *before)

    async def _check_kept(self, line: Line, journal: RedisJournal, epoch: str, seq: int, last: bytes) -> None:
        """Say so if entries that were shown are no longer in the log: Redis went back."""
        log = SpaceKeys.of(PREFIX, journal.space).log
        is_kept = epoch == journal.epoch and (last == b"0-0" or await line.call("XRANGE", log, last, last))
        if not is_kept:
            what = {"space": journal.space, "entry": seq, "id": last.decode()}
            _logger.error(
                "Redis has lost entries that were shown: the log of the space went back", extra=what
            )

    def _pushed(self, channel: bytes, data: bytes) -> None:
        journal = self._journals.get(channel)
        if journal is None:
            return
        try:
            journal.receive(data)
        except NodeFenced as error:
            self._fail(error)
        except Exception as error:  # in this space alone
            journal.tell(error)
        else:
            self._touched.append(journal)

    def _drained(self) -> None:
        if self._touched:
            touched, self._touched = dict.fromkeys(self._touched), []
            for journal in touched:
                journal.tell(None)

    def _replied(self, reply: Any) -> None:
        if isinstance(reply, hiredis.HiredisError) and self._line is not None:
            self._fail(self._line.refused(reply))

    def _committed(self, reply: Any) -> None:
        if isinstance(reply, hiredis.HiredisError):
            self._replied(reply)
            return
        done, self._done = self._done, None
        if done is not None:
            self._drained()
            done(None)

    def _fail(self, error: JournalUnavailable) -> None:
        """End this life of the node: nothing more comes round, and what was on its way may be in the log or not."""
        line, self._line = self._line, None
        if line is None:
            return
        line.close()
        if self._timer is not None:
            self._timer.cancel()
        self._dead.append(self.node)
        journals, self._journals = self._journals, {}
        self._due, self._touched = [], []
        self._places |= {journal.space: journal.place for journal in journals.values()}
        done, self._done = self._done, None
        if done is not None:
            done(error)
        for journal in journals.values():
            journal.tell(error)

    # The lease.

    def _renewal(self) -> tuple[str | int, ...]:
        return ("EVALSHA", LEASE.digest, 1, self._nodes, self.node, int(self._lease_s * 1000))

    def _beat(self) -> None:
        """Renew the lease; a line on which nothing is answered is given up."""
        line = self._line
        if line is None:
            return
        if self._silent_beats >= _SILENT_BEATS_MAX:
            self._fail(JournalUnavailable(f"Redis at {self._address}: it does not answer"))
            return
        self._silent_beats += 1
        about = msgspec.json.encode(self._describe())
        line.send(_ignored, "SET", f"{PREFIX}node:{self.node}", about, "EX", _DESCRIBED_S)
        line.send(self._renewed, *self._renewal())
        line.flush()
        self._timer = asyncio.get_running_loop().call_later(self._beat_s, self._beat)

    def _renewed(self, reply: Any) -> None:
        if isinstance(reply, hiredis.HiredisError):
            self._replied(reply)
            return
        now_ms, expired, living = reply
        self._silent_beats = 0
        self._offset = datetime.fromtimestamp(int(now_ms) / 1000, UTC) - datetime.now(UTC)
        self.is_leader = min(living).decode() == self.node
        suspects, self._suspects = self._suspects, set(expired)
        for node in suspects & self._suspects:  # at two looks: it did not renew while we watched
            for journal in self._journals.values():
                journal.declare_gone(node.decode())
        if self._line is not None:
            self._line.flush()


def _channel(space: str) -> bytes:
    return SpaceKeys.of(PREFIX, space).log.encode()


def _ignored(reply: Any) -> None:
    """A reply that changes nothing."""
