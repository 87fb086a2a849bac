"""Envelopes that nothing follows from, taken as one: `Space.standing` says what may be, C does it where it is there.

Most of what is said in a space is of this kind. The Python here and `plain_run` of `src/mew/c/plain.c` say the same,
but that C leaves what is rare to the rules; what neither takes goes through all of them.
"""

from datetime import datetime
from typing import TypeAlias

from mew import compiled
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import ProtocolError
from mew.space.space import Standing
from mew.space.state import GATEWAY_ID_PREFIX

from .admit import admit
from .pages import Record
from .ports import Guest
from .websocket import Opcode

__all__ = ["Heard", "plain_run"]

Heard: TypeAlias = tuple[Guest, int, bytes]
"""A message, with who says it and the opcode of its frame."""


def plain_run_in_python(
    heard: list[Heard],
    start: int,
    standing: Standing,
    record: type[Record],
    seq: int,
    at: datetime,
    now_s: float,
    bytes_max: int,
    nesting_max: int,
) -> tuple[list[Record], dict[str, ParticipantId], int]:
    """The envelopes from `start` on up to one that is not plain, their ids with who sent each, and where that one is.

    They are as they are to be shown, the first as the entry `seq`. Each costs its sender a token.
    """
    free, recent, connections, addressed = standing
    records: list[Record] = []
    said: dict[str, ParticipantId] = {}
    for number in range(start, len(heard)):
        guest, opcode, data = heard[number]
        if guest.closed:
            continue
        if opcode != Opcode.TEXT or guest.lenient or connections.get(guest.id) != guest.who:
            return records, said, number
        try:
            envelope = admit(data, guest.who, bytes_max=bytes_max)
        except ProtocolError:
            return records, said, number
        if (
            envelope.kind not in free.get(guest.who, ())
            or envelope.id in recent
            or envelope.id in said
            or envelope.id.startswith(GATEWAY_ID_PREFIX)
            or guest.bucket.take(now_s)
        ):
            return records, said, number
        said[envelope.id] = guest.who
        only = None
        if addressed and envelope.to:
            only = tuple(map(ParticipantId, dict.fromkeys((*envelope.to, guest.who))))
        records.append(record.of(envelope, data, at=at, only=only, seq=seq + len(records), sender=guest.who))
    return records, said, len(heard)


plain_run = compiled.plain_run or plain_run_in_python
