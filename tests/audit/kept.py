"""Journals and exports for tests: written at once, signed, and tampered with."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mew.audit.checkpoints import Signer, append, read
from mew.audit.export import Wanted, as_json_lines, select
from mew.log.database import Database, Durability
from mew.log.reading import JournalReader
from mew.log.record import Link, Row, first_link, pack, pack_again, unpack
from mew.protocol.codec import decode
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.space import Configured, Connection, Entry, Event, Joined, Left, Rules, Sent, TimePassed, Violated

__all__ = [
    "AT",
    "CALL",
    "ENTRIES",
    "KEY",
    "OTHER",
    "drop_until",
    "export",
    "keep",
    "put_turns",
    "rehash",
    "sent",
    "sign",
    "stored",
    "turns_in",
]

AT: Final = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
ANN: Final = ParticipantId("ann")
CALL: Final = (
    b'{"protocol":"mew/v0.4","id":"e2","from":"ann","to":["files","bot"],"correlation_id":["e1"],"context":"c/d",'
    b'"kind":"mcp/request","payload":{"method":"tools/call","params":{"name":"read_file","arguments":{}}}}'
)


def sent(raw: bytes) -> Sent:
    return Sent(decode(raw), raw, Connection("c1"))


EVENTS: Final[tuple[Event, ...]] = (
    Configured(Rules(id="desk", profiles={ANN: ()}), "epoch"),
    Joined(ANN, Connection("c1")),
    sent(
        '{"protocol":"mew/v0.4", "id":"e1","from":"ann","kind":"chat","payload":{"text":"grüß \\" dich"}}'.encode()
    ),
    sent(CALL),
    Violated(ANN, EnvelopeId("e3"), "space/kick", Refusal.CAPABILITY_VIOLATION),
    Left(Connection("c1")),
    TimePassed(),
    *(Joined(ParticipantId(f"p{n}"), Connection(f"d{n}")) for n in range(5)),
)
ENTRIES: Final = [Entry(n, AT + timedelta(seconds=n), event) for n, event in enumerate(EVENTS, 1)]


def keep(folder: Path, *sizes: int, space: str = "desk", entries: Sequence[Entry] = ENTRIES) -> Path:
    """A journal of a space in its folder, with turns of these sizes and one with the rest; returns that folder."""
    home = folder / space
    home.mkdir(parents=True)
    end = first_link(space)
    database = Database.create(home / "entries.db", space, end, Durability.PROCESS)
    at = 0
    for size in (*sizes, len(entries)):
        if turn := entries[at : at + size]:
            packed, end = pack(turn, end)
            database.write(end.seq, packed)
        at += size
    database.close()
    return home


def turns_in(home: Path) -> dict[int, bytes]:
    with closing(sqlite3.connect(home / "entries.db")) as connection:
        return dict(connection.execute("SELECT last, entries FROM turns ORDER BY last"))


def put_turns(home: Path, turns: dict[int, bytes]) -> None:
    """In place of those that are there."""
    with closing(sqlite3.connect(home / "entries.db")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("DELETE FROM turns")
        connection.executemany("INSERT INTO turns VALUES (?, ?)", turns.items())
        connection.commit()


def drop_until(home: Path, seq: int) -> None:
    """As if all up to this entry, the last of a turn, were too old."""
    (row,) = (row for row in stored(home) if row.seq == seq)
    with closing(sqlite3.connect(home / "entries.db")) as connection:
        connection.execute("DELETE FROM turns WHERE last <= ?", (seq,))
        connection.execute("UPDATE journal SET seq = ?, hash = ?", (seq, row.hash))
        connection.commit()


def stored(home: Path) -> list[Row]:
    return [row for packed in turns_in(home).values() for row in unpack(packed)]


def rehash(entries: Sequence[Entry], space: str = "desk") -> dict[int, bytes]:
    """A chain made anew, as somebody would who can write to the file: the rows in one turn."""
    rows = list(unpack(pack(entries, first_link(space))[0]))
    return {rows[-1].seq: pack_again(rows)}


def sign(home: Path, *numbers: int, key: Ed25519PrivateKey = KEY, space: str = "desk") -> None:
    """Checkpoints after these entries, as they are now."""
    for row in stored(home):
        if row.seq in numbers:
            at = AT + timedelta(minutes=row.seq)
            append(home, Signer(key).sign(space, Link(row.seq, row.hash), at))


def export(home: Path, wanted: Wanted | None = None) -> list[bytes]:
    with JournalReader(home) as reader:
        return list(as_json_lines(select(reader, wanted or Wanted()), read(home), AT, "0.1"))
