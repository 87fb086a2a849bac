"""Journals and exports for tests: written by the gateway's own storage, signed, and tampered with."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.space.table import EPOCH, Table, capabilities, envelope_of

from mew.audit.proof.checkpoints import Signer, append_checkpoint, read_checkpoints
from mew.audit.proof.export import ExportRange, as_json_lines, select
from mew.audit.record.facts import Fact
from mew.audit.record.index import Index, catch_up
from mew.journal.files.database import FILE, Database
from mew.journal.files.folder import space_folder
from mew.journal.files.high_water import MARKS_FILE
from mew.journal.files.locator import open_index
from mew.journal.files.snapshots import Snapshot, Snapshots
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.journal.record import ChainLink, Record, RecordRow, genesis_link, pack, to_microseconds, unpack
from mew.journal.sqlite import SqliteStorage
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.space import Configured, ConnectionId, Decision, Entry, Rules, Sent, Space, TimePassed, Violated
from mew.space.state import SpaceState

__all__ = [
    "AT",
    "CALL",
    "ENTRIES",
    "KEY",
    "OTHER",
    "SPACE",
    "JudgedTable",
    "as_indexed",
    "at",
    "chat",
    "drop_until",
    "export",
    "index_with",
    "keep",
    "opened",
    "put_facts",
    "put_records",
    "record_alone",
    "record_of",
    "records_in",
    "rehash",
    "save_snapshot",
    "sign",
]

SPACE: Final = "desk"
AT: Final = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
CALL: Final = (
    b'{"protocol":"mew/v0.4","id":"e2","from":"ann","to":["files","bot"],"correlation_id":["e1"],"context":"c/d",'
    b'"kind":"mcp/request","payload":{"method":"tools/call","params":{"name":"read_file","arguments":{}}}}'
)


class JudgedTable(Table):
    """A table at which envelopes are judged before they are journalled, as a room does it."""

    def send(
        self,
        who: str,
        kind: str,
        payload: Any = None,
        *,
        connection: str | None = None,
        lenient: bool = False,
        **fields: Any,
    ) -> list[Decision]:
        fields.setdefault("id", f"e{len(self.entries) + 1}")
        _, raw = envelope_of(who, kind, payload, **fields)
        return self.send_batch(raw, origins=(connection,), lenient=lenient)

    def send_batch(
        self, *raws: bytes, origins: Sequence[str | None] = (None,), lenient: bool = False
    ) -> list[Decision]:
        """Envelopes in one turn of a room; all of them are accepted, or the first is refused."""
        if self.space.is_due(self.now):
            self.apply(TimePassed())
        envelopes = Envelopes.decode(raws)
        accepted, refused = self.space.judge(self.now, envelopes, lenient)
        if refused is not None:
            assert not accepted, "a batch of which a part was refused"
            who, envelope_id, kind = envelopes.senders[0], envelopes.ids[0], envelopes.kinds[0]
            violated = Violated(
                ParticipantId(who), EnvelopeId(envelope_id), kind, refused.refusal, refused.lacked or ""
            )
            return self.apply(violated)
        assert accepted == len(envelopes), "a state-changing envelope ends its batch"
        token_hash = f"hash-of-{envelopes.ids[-1]}" if envelopes.kinds[-1] == "space/invite" else ""
        via = tuple(None if origin is None else ConnectionId(origin) for origin in origins)
        sent = Sent(
            envelopes,
            via if len(via) == len(raws) else via * len(raws),
            self.space.state.changed_at,
            lenient=lenient,
            token_hash=token_hash,
        )
        return self.apply(sent)


def chat(envelope_id: str, who: str, text: str, **fields: Any) -> bytes:
    return envelope_of(who, "chat", {"text": text}, id=envelope_id, **fields)[1]


def _entries() -> list[Entry]:
    """Twelve, a second apart: 6 to 8 are a batch of two participants, and one of those is addressed."""
    everything = capabilities(["*"])
    table = JudgedTable()

    def clock() -> None:
        table.now = AT + timedelta(seconds=table.space.seq + 1)

    clock()
    rules = Rules(
        id=SPACE,
        profiles={ParticipantId("ann"): everything, ParticipantId("bob"): everything},
        delivery="addressed",
        announce_violations=True,
    )
    table.apply(Configured(rules, EPOCH))
    clock()
    table.join("ann", "c1")
    clock()
    table.send_batch(
        '{"protocol":"mew/v0.4", "id":"e1","from":"ann","kind":"chat","payload":{"text":"grüß \\" dich"}}'.encode(),
        origins=("c1",),
    )
    clock()
    table.send_batch(CALL, origins=("c1",))
    clock()
    table.join("bob", "c2")
    clock()
    batch = (chat("e3", "ann", "one"), chat("e4", "bob", "two", to=["ann"]), chat("e5", "ann", "three"))
    table.send_batch(*batch, origins=("c1", "c2", "c1"))
    clock()
    violated = Violated(
        ParticipantId("bob"), EnvelopeId("e6"), "space/kick", Refusal.CAPABILITY_VIOLATION, "space/kick"
    )
    table.apply(violated)
    clock()
    table.leave("c1")
    clock()
    table.apply(TimePassed())
    clock()
    table.join("ann", "c3")
    return table.entries


ENTRIES: Final = _entries()


def at(seq: int) -> datetime:
    """When an entry of `ENTRIES` was made."""
    return next(entry.at for entry in ENTRIES if entry.seq <= seq <= entry.last)


def keep(folder: Path, entries: Sequence[Entry] = ENTRIES, space: str = SPACE) -> Path:
    """Have the storage of a gateway journal these in a folder, behind what is there; return the folder."""
    storage = SqliteStorage(folder)
    replica = Space()
    journal, past = storage.open(space, lambda entry: replica.apply(entry))
    if past.state is not None:
        replica = Space(SpaceState.restore(past.state))
    for entry in past.entries:
        replica.apply(entry)
    for entry in entries:
        journal.append(entry.at, entry.event)
    storage.commit(_succeed)
    journal.close()
    storage.close()
    return folder


def _succeed(error: JournalUnavailable | None) -> None:
    assert error is None, error


@contextmanager
def opened(folder: Path, space: str = SPACE) -> Iterator[tuple[JournalReader, Index]]:
    """The journal, and its index as it is."""
    with open_index(folder) as locator, JournalReader(locator, space) as journal:
        yield journal, Index(locator, space)


@contextmanager
def as_indexed(folder: Path, space: str = SPACE) -> Iterator[tuple[JournalReader, Index]]:
    """The journal, and its index brought up to date."""
    with opened(folder, space) as (journal, index):
        catch_up(index.locator)
        yield journal, index


@contextmanager
def index_with(folder: Path, facts: Iterable[Fact]) -> Iterator[Index]:
    """An index that says this, whatever the journal says."""
    with opened(keep(folder, [])) as (_, index):
        put_facts(index, facts)
        yield index


def put_facts(index: Index, facts: Iterable[Fact]) -> None:
    connection, space = index.locator.connection, index.locator.space(index.space)
    connection.execute("BEGIN")
    for fact in facts:
        columns = [
            msgspec.json.encode(value).decode() if isinstance(value, tuple) else value
            for value in msgspec.structs.astuple(fact)
        ]
        marks = ", ".join("?" * (len(columns) + 1))
        connection.execute(f"INSERT INTO all_facts VALUES ({marks})", (space, *columns))
        if not fact.refusal:
            connection.executemany(
                "INSERT OR IGNORE INTO all_causes VALUES (?, ?, ?, ?)",
                [(space, cause, fact.seq, fact.n) for cause in fact.causes],
            )
    connection.execute("COMMIT")


def records_in(folder: Path, space: str = SPACE) -> list[RecordRow]:
    with closing(Database.view(folder / FILE)) as database:
        number = database.spaces()[space].id
        return [row for _, row in database.scan(space=number)]


def put_records(folder: Path, rows: Sequence[RecordRow], space: str = SPACE) -> None:
    """In place of those of this space, as somebody does who removes the high-water marks too.

    Rows with number 0 get new ones.
    """
    (folder / MARKS_FILE).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / FILE)) as connection:
        ((number,),) = connection.execute("SELECT id FROM spaces WHERE name = ?", (space,)).fetchall()
        connection.execute("DELETE FROM records WHERE space = ?", (number,))
        connection.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?, 1, ?, ?)",
            [(row.n or None, number, row.last, row.at, row.hash, row.body) for row in rows],
        )
        connection.commit()


def drop_until(folder: Path, seq: int, space: str = SPACE) -> None:
    """As if all up to this entry, the last of a record, were too old."""
    (row,) = (row for row in records_in(folder, space) if row.last == seq)
    with closing(sqlite3.connect(folder / FILE)) as connection:
        of = "(SELECT id FROM spaces WHERE name = ?)"
        connection.execute(f"DELETE FROM records WHERE space = {of} AND last <= ?", (space, seq))
        connection.execute("UPDATE spaces SET seq = ?, hash = ? WHERE name = ?", (seq, row.hash, space))
        connection.commit()


def record_alone(entry: Entry, before: bytes, decisions: Sequence[Decision] = ()) -> RecordRow:
    """A record as somebody would forge it who can write to the file."""
    body, digest = pack(entry, to_microseconds(entry.at), decisions, before)
    return RecordRow(0, entry.last, to_microseconds(entry.at), body, digest)


def record_of(entry: Entry, decisions: Sequence[Decision]) -> Record:
    """What the journal has of an entry of which the space decided this."""
    return unpack(record_alone(entry, b"", decisions).body)


def rehash(entries: Sequence[Entry], space: str = SPACE) -> list[RecordRow]:
    """A chain that was made again from its beginning."""
    before, rows, replica = genesis_link(space).hash, list[RecordRow](), Space()
    for entry in entries:
        rows.append(record_alone(entry, before, replica.apply(entry)))
        before = rows[-1].hash
    return rows


def sign(folder: Path, *numbers: int, key: Ed25519PrivateKey = KEY, named: str = SPACE) -> None:
    """Checkpoints after these entries, as they are now; `named`: the space that they say they are of."""
    for row in records_in(folder):
        if row.last in numbers:
            when = AT + timedelta(minutes=row.last)
            append_checkpoint(
                space_folder(folder, SPACE), Signer(key).sign(named, ChainLink(row.last, row.hash), when)
            )


def save_snapshot(folder: Path, link: ChainLink, state: bytes = b"state", space: str = SPACE) -> Path:
    """A snapshot after this place; return its file."""
    home = space_folder(folder, space)
    Snapshots(home).save(Snapshot(*link), [state])
    return home / f"{link.seq}.snapshot"


def export(folder: Path, wanted: ExportRange | None = None) -> list[bytes]:
    with opened(folder) as (journal, _):
        selection = select(journal, wanted or ExportRange())
        return list(as_json_lines(selection, read_checkpoints(space_folder(folder, SPACE)), AT, "0.1"))
