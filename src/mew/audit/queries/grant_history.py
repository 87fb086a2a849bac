"""PURE. The history of grants and how each ended, from facts alone, even after the entries were trimmed."""

from collections.abc import Collection, Iterable
from enum import StrEnum

from msgspec import Struct

from mew.audit.record.facts import CONFIGURED, Fact, FactKey
from mew.protocol.envelope import GATEWAY
from mew.protocol.kinds import Kind

__all__ = ["GrantEnd", "GrantRecord", "grant_history"]

_EXPIRED = "expired"


class GrantEnd(StrEnum):
    """What became of a grant.

    Taken back: by the gateway, since who gave it no longer holds it. Removed: who had it belongs to the space no more.
    Cut: by a revocation of all that fits a pattern.
    """

    IN_FORCE = "in_force"
    REVOKED = "revoked"
    EXPIRED = "expired"
    TAKEN_BACK = "taken_back"
    REMOVED = "removed"
    CUT = "cut"
    UNKNOWN = "unknown"


class GrantRecord(Struct):
    """A grant, or what somebody was invited with; `ended` is what ended it, if the record says."""

    fact: Fact
    end: GrantEnd = GrantEnd.UNKNOWN
    ended: Fact | None = None

    @property
    def recipient(self) -> str:
        return self.fact.whom[0] if self.fact.whom else ""


def grant_history(facts: Iterable[Fact], in_force: Collection[str]) -> list[GrantRecord]:
    """All grants among these facts, in order; those in force now are named."""
    story = _Story()
    for fact in facts:
        story.take(fact)
    for given in story.running.values():
        cut = story.cuts.get(given.recipient)
        if cut is not None and cut.seq > given.fact.seq:
            given.end, given.ended = GrantEnd.CUT, cut
    for given in {given.fact.id: given for given in story.all}.values():  # of those with one id, the last
        if given.fact.id in in_force:
            given.end, given.ended = GrantEnd.IN_FORCE, None
    return story.all


class _Story:
    def __init__(self) -> None:
        self.all: list[GrantRecord] = []
        self.running: dict[FactKey, GrantRecord] = {}
        self.cuts: dict[str, Fact] = {}  # by whose they are, the last of them
        self._latest: dict[tuple[str, str], GrantRecord] = {}  # by id, and whose it is
        self._configured: set[str] = set()
        self._invited: set[str] = set()

    def take(self, fact: Fact) -> None:
        match fact.kind:
            case Kind.GRANT | Kind.INVITE:
                self._give(fact)
            case Kind.REVOKE:
                self._revoke(fact)
            case Kind.KICK:
                self._invited.difference_update(fact.whom)
                self._remove(set(fact.whom), fact)
            case _ if fact.kind == CONFIGURED:
                gone = self._configured - set(fact.whom) - self._invited
                self._configured = set(fact.whom)
                self._remove(gone, fact)

    def _give(self, fact: Fact) -> None:
        if fact.kind == Kind.INVITE:
            self._invited.update(fact.whom)
        if fact.about:
            given = self.running[fact.key] = GrantRecord(fact)
            self._latest[fact.id, given.recipient] = given
            self.all.append(given)

    def _revoke(self, fact: Fact) -> None:
        if not fact.grant:
            self.cuts.update((who, fact) for who in fact.whom)
            return
        given = next(
            (self._latest[fact.grant, who] for who in fact.whom if (fact.grant, who) in self._latest), None
        )
        if given is None or given.fact.key not in self.running:
            return
        end = GrantEnd.REVOKED
        if fact.who == GATEWAY:
            end = GrantEnd.EXPIRED if fact.note == _EXPIRED else GrantEnd.TAKEN_BACK
        self._end(given, end, fact)

    def _remove(self, who: set[str], fact: Fact) -> None:
        for given in [given for given in self.running.values() if given.recipient in who]:
            self._end(given, GrantEnd.REMOVED, fact)

    def _end(self, given: GrantRecord, end: GrantEnd, fact: Fact) -> None:
        given.end, given.ended = end, fact
        del self.running[given.fact.key]
