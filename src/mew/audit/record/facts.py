"""PURE. Facts of the audit record: who did what, to whom, about what, and with which result.

Everything but talk has a fact, and so has everything that was refused or that the gateway itself said. What was said in
words is in the journal, for as long as that is kept; without it, the facts still tell what happened.
"""

from datetime import datetime
from typing import Final, TypeAlias

from msgspec import UNSET, Struct

from mew.journal.record import Record, from_microseconds, to_microseconds
from mew.protocol.codec import decode
from mew.protocol.envelope import GATEWAY, Envelope
from mew.protocol.kinds import is_talk
from mew.space import Configured, Identified, Sent, Violated

from .subjects import summarize

__all__ = ["CONFIGURED", "IDENTIFIED", "REFUSED_LATE", "Fact", "FactKey", "facts_of"]

FactKey: TypeAlias = tuple[int, int]
"""Where a fact is in the order: the number of its entry, and `n`."""

CONFIGURED: Final = "configured"
"""Stands as kind of what the operator did: no envelope has it that is in the record."""
IDENTIFIED: Final = "identified"
REFUSED_LATE: Final = "refused"
"""Stands as the code of an envelope that was refused at its place in the order: its sender alone was told why."""


class Fact(Struct, frozen=True, array_like=True, gc=False):
    """One line of the record.

    `n` 0: what the entry itself is; from 1 on: what the gateway said because of it. `at` is in microseconds since
    1970. `causes` are the ids it names as such. `refusal` is empty for what was accepted: what was refused may have
    any id, that of another's envelope too. `digest` is the same for two that ask for the same. `grant` is the id of the
    one grant that was taken back. `expires`: when a proposal can no longer be approved, as `at`; 0: it does not say.
    """

    seq: int
    n: int
    at: int
    kind: str
    who: str
    id: str = ""
    about: str = ""
    note: str = ""
    refusal: str = ""
    context: str = ""
    whom: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    digest: str = ""
    grant: str = ""
    expires: int = 0

    @property
    def key(self) -> FactKey:
        return self.seq, self.n

    @property
    def time(self) -> datetime:
        return from_microseconds(self.at)


def facts_of(record: Record) -> list[Fact]:
    """What the audit record says of an entry."""
    entry = record.entry
    at, event, last = to_microseconds(entry.at), entry.event, entry.last
    facts: list[Fact] = []
    match event:
        case Sent(envelopes):
            for place, kind in enumerate(envelopes.kinds):
                refusal = REFUSED_LATE if place in record.refused else ""
                if refusal or not is_talk(kind):
                    facts.append(_of_envelope(entry.seq + place, 0, at, envelopes[place], refusal))
        case Violated(who, envelope_id, kind, refusal, lacked):
            about = lacked.removeprefix(kind).removeprefix(":")
            facts.append(Fact(last, 0, at, kind, who, envelope_id, about, refusal=refusal))
        case Configured(rules):
            named = tuple(rules.profiles)
            note = f"delivery: {rules.delivery}"
            facts.append(Fact(last, 0, at, CONFIGURED, GATEWAY, note=note, whom=named))
        case Identified(who):
            facts.append(Fact(last, 0, at, IDENTIFIED, GATEWAY, whom=(who,)))
        case _:
            pass  # a connection or time: what it meant, the gateway said
    facts += [_of_envelope(last, n, at, decode(raw)) for n, raw in enumerate(record.made, 1)]
    return facts


def _of_envelope(seq: int, n: int, at: int, envelope: Envelope, refusal: str = "") -> Fact:
    found = summarize(envelope)
    return Fact(
        seq=seq,
        n=n,
        at=at,
        kind=envelope.kind,
        who=envelope.sender,
        id=envelope.id,
        about=found.about,
        note=found.note,
        refusal=refusal,
        context="" if envelope.context is UNSET else envelope.context,
        whom=found.whom,
        causes=envelope.correlation_id,
        digest=found.digest,
        grant=found.grant,
        expires=found.expires,
    )
