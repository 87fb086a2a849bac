"""PURE. What the record says of an entry: who did what, to whom, about what, and what came of it.

Everything but talk has a fact, and so has everything that was refused or that the gateway itself said. With the entries
kept, the facts tell what was shown; without them, they still tell what happened.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import UNSET, Struct

from mew.protocol.codec import encode
from mew.protocol.envelope import GATEWAY
from mew.protocol.kinds import Kind
from mew.space import Configured, Decision, Deliver, Entry, Identified, Refuse, Sent, Violated

from .subjects import subject

__all__ = ["CONFIGURED", "IDENTIFIED", "Fact", "facts_of", "is_talk", "microseconds", "moment"]

CONFIGURED: Final = "configured"
"""Stands as kind of what the operator did: no envelope has it that is in the record."""
IDENTIFIED: Final = "identified"

_RECORDED: Final = ("mcp/", "capability/", "space/", "participant/", "stream/")
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Fact(Struct, frozen=True, array_like=True, gc=False):
    """One line of the record.

    `n` 0: what the entry itself is; from 1 on: what the gateway said because of it, and below 0 what it said at that
    moment before it (a grant had ended). `made` has that as it was shown (to `only`; None: to everyone). `at` is in
    microseconds since 1970. `causes` are the ids it names as such. `refusal` is empty for what was accepted: what was
    refused may have any id, that of another's envelope too. `digest` is the same for two that ask for the same. `grant`
    is the id of the one grant that was taken back.
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
    made: str | None = None
    only: tuple[str, ...] | None = None
    digest: str = ""
    grant: str = ""

    @property
    def time(self) -> datetime:
        return moment(self.at)


def is_talk(kind: str) -> bool:
    """Whether envelopes of this kind that were accepted are not in the record: chat, reasoning, status, your own."""
    return not kind.startswith(_RECORDED) or kind == Kind.STATUS


def microseconds(at: datetime) -> int:
    """A moment as facts have it."""
    return (at - _START) // _MICROSECOND


def moment(at: int) -> datetime:
    """When such a moment was."""
    return _START + at * _MICROSECOND


def facts_of(entry: Entry, decisions: Sequence[Decision]) -> list[Fact]:
    """What the record says of an entry of which the space decided this."""
    at = microseconds(entry.at)
    own = _own(entry, at, decisions)
    facts = [] if own is None else [own]
    shows = [shown for shown in decisions if isinstance(shown, Deliver)]
    first = next((place for place, shown in enumerate(shows) if shown.raw), -1)
    for n, shown in enumerate(shows, -first):
        if shown.raw:
            continue
        envelope = shown.envelope
        found = subject(envelope)
        facts.append(
            Fact(
                seq=entry.seq,
                n=n,
                at=at,
                kind=envelope.kind,
                who=GATEWAY,
                id=envelope.id,
                about=found.about,
                note=found.note,
                whom=found.whom,
                causes=envelope.correlation_id,
                made=encode(envelope).decode(),
                only=shown.only,
                grant=found.grant,
            )
        )
    return facts


def _own(entry: Entry, at: int, decisions: Sequence[Decision]) -> Fact | None:
    match entry.event:
        case Sent() as sent:
            return _sent(entry.seq, at, sent, decisions)
        case Violated(who, envelope_id, kind, refusal, lacked):
            about = lacked.removeprefix(kind).removeprefix(":")
            return Fact(entry.seq, 0, at, kind, who, envelope_id, about, refusal=refusal)
        case Configured(rules):
            named = tuple(rules.profiles)
            return Fact(entry.seq, 0, at, CONFIGURED, GATEWAY, note=f"delivery: {rules.delivery}", whom=named)
        case Identified(who):
            return Fact(entry.seq, 0, at, IDENTIFIED, GATEWAY, whom=(who,))
        case _:
            return None  # a connection or time: what it meant, the gateway said


def _sent(seq: int, at: int, sent: Sent, decisions: Sequence[Decision]) -> Fact | None:
    envelope = sent.envelope
    refused = next((d.refused.refusal for d in decisions if isinstance(d, Refuse)), None)
    if refused is None and is_talk(envelope.kind):
        return None
    found = subject(envelope)
    return Fact(
        seq=seq,
        n=0,
        at=at,
        kind=envelope.kind,
        who=envelope.sender,
        id=envelope.id,
        about=found.about,
        note=found.note,
        refusal="" if refused is None else str(refused),
        context="" if envelope.context is UNSET else envelope.context,
        whom=found.whom,
        causes=envelope.correlation_id,
        digest=found.digest,
        grant=found.grant,
    )
