"""A space with a past: what happened in it, in a journal with its index, and the last of it in memory."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.space.table import EPOCH, START, capabilities, envelope_of

from mew.audit.record.indexer import Indexer
from mew.gateway.history.archive import Archive, Archives
from mew.gateway.history.query import DeliveredEnvelope, HistoryPage, HistoryQuery, envelopes_in
from mew.gateway.history.recent import RecentHistory
from mew.journal.files.database import FILE, Database, Durability
from mew.journal.files.locator import open_index
from mew.journal.port import Delivered, JournalUnavailable, RetentionStats
from mew.journal.reader import JournalReader
from mew.journal.sqlite import SqliteStorage
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Entry,
    Event,
    Joined,
    Left,
    Rules,
    Sent,
    Space,
    TimePassed,
    Violated,
)

__all__ = ["RULES", "SPACE", "WHO", "Past", "naive", "past", "walk"]

SPACE = "desk"
WHO = ("ann", "bob", "cid")
RULES = Rules(id=SPACE, profiles={ParticipantId(who): capabilities(["*"]) for who in WHO})


class Past:
    """`shown` is all that was ever delivered; `history` what of it is in memory."""

    def __init__(self, folder: Path, envelopes_max: int, rules: Rules | None = RULES) -> None:
        self.folder = folder
        self.now = START
        self.shown: list[DeliveredEnvelope] = []
        self.history = RecentHistory(envelopes_max, 1 << 30)
        self.storage = SqliteStorage(folder)
        self.retention = self.storage.retention
        self._archives = Archives(
            folder, self.retention, Indexer(folder, self.storage.committed, lambda: self.now)
        )
        self.archive = Archive(self._archives, SPACE, self._committed)
        self.space = Space()
        self._journal, _ = self.storage.open(SPACE, self._apply)
        self._delivered: list[tuple[Delivered, int]] = []
        self._sent = 0
        if rules is not None:
            self.append(Configured(rules, EPOCH))

    async def select(self, query: HistoryQuery) -> HistoryPage:
        return await self.archive.select(self.history, self.stats, query)

    @property
    def stats(self) -> RetentionStats:
        """What the journal keeps, as it says itself."""
        with open_index(self.folder) as locator, JournalReader(locator, SPACE) as journal:
            first = next(journal.entries(journal.begin.seq), None)
            return RetentionStats(None if first is None else first.at, begin=journal.begin.seq)

    # What happens.

    def append(self, event: Event) -> None:
        """Journalled, delivered and committed."""
        self._journal.append(self.now, event)
        self.storage.commit(_expect_success)

    def send(self, who: str, kind: str, payload: Any = None, *, lenient: bool = False, **fields: Any) -> None:
        """An envelope over HTTP, if the space accepts it."""
        self.send_all([(who, kind, payload, fields)], lenient=lenient)

    def send_all(
        self, said: Sequence[tuple[str, str, Any, dict[str, Any]]], *, lenient: bool = False
    ) -> None:
        """Several in one turn, as a room takes them: those that are accepted, in as few batches as can be."""
        envelopes = Envelopes((), (), (), (), (), ())
        for who, kind, payload, fields in said:
            self._sent += 1
            made, raw = envelope_of(who, kind, payload, **{"id": f"e{self._sent}", **fields})
            envelopes = envelopes.joined(Envelopes.of(made, raw))
        while len(envelopes):
            if self.space.is_due(self.now):
                self.append(TimePassed())
            accepted, refused = self.space.judge(self.now, envelopes, lenient)
            if accepted:
                batch = envelopes.part(0, accepted)
                changed_at = self.space.state.changed_at
                self.append(Sent(batch, (None,) * accepted, changed_at, lenient))
            if refused is not None and refused.refusal is not Refusal.DUPLICATE_ID:
                who, culprit = ParticipantId(envelopes.senders[accepted]), EnvelopeId(envelopes.ids[accepted])
                self.append(Violated(who, culprit, envelopes.kinds[accepted], refused.refusal))
            envelopes = envelopes.part(accepted + (refused is not None), len(envelopes))

    def happen(self, seed: int, count: int) -> None:
        """Something of everything, with refusals and changes of who sees what, until there are so many entries more."""
        chance = random.Random(seed)
        if not self.space.seq:
            _configure(self, chance)
        until = self.space.seq + count
        while self.space.seq < until:
            self.now += timedelta(milliseconds=chance.choice([0, 0, 700, 5000]))
            chance.choice(_EVENTS)(self, chance)

    # What becomes of it.

    def remember(self, envelopes_max: int) -> None:
        """Have so many in memory, from now on."""
        self.history = RecentHistory(envelopes_max, 1 << 30)
        for delivered, size in self._delivered:
            self.history.append(delivered, size)

    async def index(self) -> None:
        """Have the index be up to date."""
        await self._archives.indexer.settle()

    def drop(self, until: int) -> int:
        """What comes up to this entry is no longer kept; returns the last entry that went."""
        with open_index(self.folder) as locator, closing(self._database()) as database:
            locator.locate()
            places = [place for place in locator.places(SPACE) if place.last <= until]
            last = database.row(places[-1].n)
            assert last is not None
            for place in places:
                database.ask("DELETE FROM records WHERE n = ?", (place.n,))
            database.ask("UPDATE spaces SET seq = ?, hash = ?", (last.last, last.hash))
            locator.forget(SPACE, last.last)
            return last.last

    def spoil(self, seq: int) -> int:
        """The record with this entry cannot be read; returns the first entry in it."""
        with open_index(self.folder) as locator, closing(self._database()) as database:
            locator.locate()
            place = locator.find(SPACE, seq)
            assert place is not None
            with JournalReader(locator, SPACE) as journal:
                record = journal.record(seq)
            assert record is not None
            database.ask("UPDATE records SET body = substr(body, 1, 60) WHERE n = ?", (place.n,))
            return record.entry.seq

    def close(self) -> None:
        self._archives.close()
        self._archives.indexer.close()
        self._journal.close()
        self.storage.close()

    def _apply(self, entry: Entry) -> Sequence[Decision]:
        decisions = self.space.apply(entry)
        start = 0
        for decision in decisions:
            if isinstance(decision, Deliver):
                envelopes = decision.envelopes
                delivered = Delivered(
                    entry.seq, entry.at, envelopes.ids, envelopes.raws, decision.only, start
                )
                size = sum(map(len, envelopes.raws))
                self._delivered.append((delivered, size))
                self.history.append(delivered, size)
                self.shown += envelopes_in(delivered)
                start += len(envelopes)
        return decisions

    def _database(self) -> Database:
        return Database.open(self.folder / FILE, Durability.PROCESS)

    async def _committed(self) -> None:
        """It always is."""


def _expect_success(error: JournalUnavailable | None) -> None:
    assert error is None, error


@contextmanager
def past(folder: Path, envelopes_max: int = 0, rules: Rules | None = RULES) -> Iterator[Past]:
    with closing(Past(folder, envelopes_max, rules)) as made:
        yield made


async def walk(
    past: Past, query: HistoryQuery, between: Callable[[], None] = lambda: None
) -> tuple[list[DeliveredEnvelope], bool]:
    """All that the pages of a query have, and whether each says that nothing is gone; `between`: done after each."""
    found: list[DeliveredEnvelope] = []
    complete = True
    while True:
        page = await past.select(query)
        found += page.envelopes
        complete = complete and page.complete
        if page.next is None:
            return found, complete
        query = replace(query, before=page.next) if query.newest_first else replace(query, after=page.next)
        between()


def naive(shown: Sequence[DeliveredEnvelope], query: HistoryQuery) -> list[DeliveredEnvelope]:
    """What a query asks for of all that was delivered, said as simply as it can be."""
    ids = [one.id for one in shown]
    first = 0 if query.after is None else ids.index(query.after) + 1
    end = len(shown) if query.before is None else ids.index(query.before)
    found = [
        one
        for one in shown[first:end]
        if one.is_for(query.who)
        and (query.kind is None or query.kind.fits(one.kind, (), lambda: None))
        and (query.participant is None or one.sender == query.participant)
        and (query.since is None or one.at >= query.since)
        and (query.until is None or one.at <= query.until)
    ]
    return found[::-1] if query.newest_first else found


def _configure(past: Past, chance: random.Random) -> None:
    held = {who: ["*"] if who == "ann" else ["chat", "mcp/*", "stream/*"] for who in WHO}
    rules = Rules(
        id=SPACE,
        profiles={ParticipantId(who): capabilities(some) for who, some in held.items()},
        delivery=chance.choice(["everyone", "addressed"]),
        announce_violations=chance.random() < 0.5,
    )
    past.append(Configured(rules, EPOCH))


def _send(past: Past, chance: random.Random) -> None:
    """Some in one turn. Also what is refused: an id again, or what one may not."""
    past.send_all([_envelope(past, chance) for _ in range(chance.choice([1, 1, 1, 2, 5]))])


def _envelope(past: Past, chance: random.Random) -> tuple[str, str, Any, dict[str, Any]]:
    kinds = [
        *("chat", "chat", "chat", "configured", "mcp/proposal", "mcp/request"),
        *("stream/request", "space/kick"),
    ]
    payload = {"direction": "upload", "participant_id": "zoe", "method": "tools/list"}
    to = chance.choice([[], [chance.choice(WHO)], [chance.choice(WHO), chance.choice(WHO)]])
    fields: dict[str, Any] = {"to": to} if to else {}
    number = chance.randint(1, past.space.seq)
    if chance.random() < 0.4:
        fields["correlation_id"] = [f"e{number}"]
    if chance.random() < 0.1:
        fields["id"] = f"e{number}"
    return chance.choice(WHO), chance.choice(kinds), payload, fields


def _join(past: Past, chance: random.Random) -> None:
    past.append(Joined(ParticipantId(chance.choice(WHO)), ConnectionId(f"c{past.space.seq}")))


def _leave(past: Past, chance: random.Random) -> None:
    past.append(Left(chance.choice([*past.space.state.connections, ConnectionId("nobody's")])))


def _grant(past: Past, chance: random.Random) -> None:
    """For a short time: it ends while somebody sends something else."""
    grant = {
        "recipient": chance.choice(WHO),
        "capabilities": ["space/*"],
        "ttl_seconds": chance.randint(1, 9),
    }
    past.send("ann", "capability/grant", grant, to=[grant["recipient"]])


def _wait(past: Past, chance: random.Random) -> None:
    past.now += timedelta(seconds=chance.randint(0, 9))
    past.append(TimePassed())


_EVENTS = (_send, _send, _send, _send, _send, _send, _join, _leave, _grant, _grant, _wait, _configure)
