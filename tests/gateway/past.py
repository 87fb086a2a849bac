"""A space with a past: what happened on a table, in a journal with its index, and the last of it in memory."""

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.space.table import EPOCH, Table, capabilities

from mew.audit.catching_up import catch_up
from mew.audit.index import Index
from mew.gateway.archive import Archive, Readers
from mew.gateway.history import History
from mew.gateway.pages import Query, Record
from mew.gateway.recovery import record_of
from mew.log.base import Kept
from mew.log.database import Database, Durability
from mew.log.opening import FILE
from mew.log.reading import JournalReader
from mew.log.record import first_link, pack
from mew.log.retention import Retention
from mew.protocol.envelope import ParticipantId
from mew.space import Configured, Decision, Deliver, Entry, Rules

__all__ = ["SPACE", "WHO", "Past", "eventful", "past", "walk"]

SPACE = "desk"
WHO = ("ann", "bob", "cid")


class Past:
    """`shown` is all that was ever shown; `history` what of it is in memory."""

    def __init__(self, folder: Path, readers: Readers, envelopes_max: int) -> None:
        self.folder = folder
        self.shown: list[Record] = []
        self.history = History(envelopes_max, 1 << 30)
        self.retention = Retention()
        self.archive = Archive(folder, self.retention, readers, self, self._kept)
        self.is_sure = True
        self.auditing = True
        """Whether the record is brought up to date when somebody needs it."""
        self._end = first_link(SPACE)
        self._database = Database.create(folder / FILE, SPACE, self._end, Durability.PROCESS)

    def happen(self, entries: Sequence[Entry], decided: Sequence[Sequence[Decision]], turn: int = 3) -> None:
        """These are journalled, so many a turn, and shown."""
        for start in range(0, len(entries), turn):
            packed, self._end = pack(entries[start : start + turn], self._end)
            self._database.write(self._end.seq, packed)
        for entry, decisions in zip(entries, decided, strict=True):
            for decision in decisions:
                if isinstance(decision, Deliver):
                    self.shown.append(record_of(entry, decision))
                    self.history.append(self.shown[-1])

    def remember(self, envelopes_max: int) -> None:
        """Have so many in memory, from now on."""
        self.history = History(envelopes_max, 1 << 30)
        for record in self.shown:
            self.history.append(record)

    def index(self) -> None:
        """Have the record be up to date."""
        with JournalReader(self.folder) as journal, Index(self.folder) as index:
            catch_up(journal, index)

    def drop(self, until: int) -> None:
        """What comes up to this entry is no longer kept."""
        with closing(sqlite3.connect(self.folder / FILE)) as connection:
            connection.execute("DELETE FROM turns WHERE last <= ?", (until,))
            connection.execute("UPDATE journal SET seq = ?", (until,))
            connection.commit()

    def spoil(self, last: int) -> None:
        """The turn that ends with this entry cannot be read."""
        with closing(sqlite3.connect(self.folder / FILE)) as connection:
            connection.execute("UPDATE turns SET entries = substr(entries, 1, 40) WHERE last = ?", (last,))
            connection.commit()

    async def settle(self, until: int) -> None:
        if self.auditing:
            self.index()

    def _kept(self) -> Kept:
        with JournalReader(self.folder) as journal:
            first = next(journal.entries(journal.begin.seq), None)
            return Kept(None if first is None else first.at, begin=journal.begin.seq)

    def close(self) -> None:
        self._database.close()


@contextmanager
def past(folder: Path, envelopes_max: int = 0) -> Iterator[Past]:
    folder.mkdir(exist_ok=True)
    with closing(Readers()) as readers, closing(Past(folder, readers, envelopes_max)) as made:
        yield made


async def walk(
    past: Past, query: Query, between: Callable[[], None] = lambda: None
) -> tuple[list[Record], bool]:
    """All that the pages of a query have, and whether each says that nothing is gone; `between`: done after each."""
    found: list[Record] = []
    complete = True
    while True:
        page = await past.archive.select(past.history, query)
        found += page.records
        complete = complete and page.complete
        if page.next is None:
            return found, complete
        query = replace(query, before=page.next) if query.newest_first else replace(query, after=page.next)
        between()


def eventful(seed: int, entries: int) -> Table:
    """Something of everything: talk, requests, grants that end, refusals, changes of who sees what."""
    chance = random.Random(seed)
    table = Table()
    _configure(table, chance)
    while len(table.entries) < entries:
        table.now += timedelta(milliseconds=chance.choice([0, 0, 700, 5000]))
        chance.choice(_EVENTS)(table, chance)
    return table


def _configure(table: Table, chance: random.Random) -> None:
    held = {who: ["*"] if who == "ann" else ["chat", "mcp/*", "stream/*"] for who in WHO}
    rules = Rules(
        id=SPACE,
        profiles={ParticipantId(who): capabilities(some) for who, some in held.items()},
        delivery=chance.choice(["everyone", "addressed"]),
        announce_violations=chance.random() < 0.5,
    )
    table.apply(Configured(rules, EPOCH))


def _send(table: Table, chance: random.Random) -> None:
    """Also what is refused: an id again, or what one may not."""
    kinds = [
        "chat",
        "chat",
        "chat",
        "configured",
        "mcp/proposal",
        "mcp/request",
        "stream/request",
        "space/kick",
    ]
    kind = chance.choice(kinds)
    payload = {"direction": "upload", "participant_id": "zoe", "method": "tools/list"}
    to = chance.choice([[], [chance.choice(WHO)], [chance.choice(WHO), chance.choice(WHO)]])
    fields: dict[str, Any] = {"to": to} if to else {}
    number = chance.randint(1, len(table.entries))
    if chance.random() < 0.4:
        fields["correlation_id"] = [f"e{number}"]
    if chance.random() < 0.1:
        fields["id"] = f"e{number}"
    table.send(chance.choice(WHO), kind, payload, **fields)


def _join(table: Table, chance: random.Random) -> None:
    table.join(chance.choice(WHO), f"c{len(table.entries)}")


def _leave(table: Table, chance: random.Random) -> None:
    table.leave(chance.choice([*table.space.state.connections, "nobody's"]))


def _grant(table: Table, chance: random.Random) -> None:
    """For a short time: it ends while somebody sends something else."""
    grant = {
        "recipient": chance.choice(WHO),
        "capabilities": ["space/*"],
        "ttl_seconds": chance.randint(1, 9),
    }
    table.send("ann", "capability/grant", grant, to=[grant["recipient"]])


def _wait(table: Table, chance: random.Random) -> None:
    table.wait(chance.randint(0, 9))


_EVENTS = (_send, _send, _send, _send, _send, _send, _join, _leave, _grant, _grant, _wait, _configure)
