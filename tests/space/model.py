"""Who may send what, told again as simply as it can be said: nothing is compiled, contained or remembered.

Where the space proves that one pattern is inside another, this follows a single envelope up the chain: a grant gives
it to somebody only while the granter, without later grants, may send it too. The space may allow less (what it cannot
prove it refuses, and what is lost stays lost), never more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from mew.protocol.capability import AmbiguousPayload, Capability
from mew.protocol.envelope import Envelope
from mew.space import Rules

__all__ = ["Model"]


@dataclass
class _Gift:
    id: str
    by: str
    to: str
    capabilities: tuple[Capability, ...]
    until: datetime | None
    cuts: list[Capability] = field(default_factory=list)


@dataclass
class Model:
    """Follows what was accepted."""

    rules: Rules = field(default_factory=lambda: Rules(id=""))
    identities: dict[str, tuple[Capability, ...]] = field(default_factory=dict)
    invited: set[str] = field(default_factory=set)
    kicked: set[str] = field(default_factory=set)
    cuts: dict[str, list[Capability]] = field(default_factory=dict)
    gifts: list[_Gift] = field(default_factory=list)

    def knows(self, who: str) -> bool:
        return who in self.invited or (
            who not in self.kicked and (who in self.rules.profiles or who in self.identities)
        )

    def may_send(self, envelope: Envelope, at: datetime) -> bool:
        return self._holds(envelope.sender, envelope, at, len(self.gifts))

    def has_of_itself(self, who: str, envelope: Envelope) -> bool:
        return (
            self.knows(who)
            and _fits(self._own(who), envelope)
            and not _fits(self.cuts.get(who, ()), envelope)
        )

    def configured(self, rules: Rules) -> None:
        known = [who for who in self.rules.profiles if self.knows(who)]
        self.rules = rules
        for who in known:
            if not self.knows(who):
                self._removed(who)

    def identified(self, who: str, capabilities: tuple[Capability, ...] | None) -> None:
        if who in self.invited and who not in self.kicked:
            self._removed(who)
        if capabilities is None:
            self.identities.pop(who, None)
        else:
            self.identities[who] = capabilities

    def granted(self, envelope: Envelope, at: datetime, to: str, written: Iterable[Any], until: Any) -> None:
        capabilities = tuple(map(Capability.parse, written))
        self.gifts.append(_Gift(envelope.id, envelope.sender, to, capabilities, until))

    def revoked(self, who: str, grant_id: str | None, written: Iterable[Any]) -> None:
        if grant_id is not None:
            self.gifts = [gift for gift in self.gifts if gift.id != grant_id]
            return
        cuts = list(map(Capability.parse, written))
        self.cuts.setdefault(who, []).extend(cuts)
        for gift in self.gifts:
            if gift.to == who:
                gift.cuts += cuts

    def was_kicked(self, who: str) -> None:
        self.kicked.add(who)
        self._removed(who)

    def _removed(self, who: str) -> None:
        self.invited.discard(who)
        self.identities.pop(who, None)
        self.cuts.pop(who, None)
        self.gifts = [gift for gift in self.gifts if who not in (gift.by, gift.to)]

    def _own(self, who: str) -> tuple[Capability, ...]:
        if who in self.invited:
            return self.rules.baseline
        own = self.identities.get(who)
        return (*(self.rules.profiles[who] if own is None else own), *self.rules.baseline)  # type: ignore[index]

    def _holds(self, who: str, envelope: Envelope, at: datetime, before: int) -> bool:
        if not self.knows(who):
            return False
        return self.has_of_itself(who, envelope) or any(
            gift.to == who
            and (gift.until is None or gift.until > at)
            and _fits(gift.capabilities, envelope)
            and not _fits(gift.cuts, envelope)
            and self._holds(gift.by, envelope, at, n)
            for n, gift in enumerate(self.gifts[:before])
        )


def _fits(capabilities: Iterable[Capability], envelope: Envelope) -> bool:
    raw = bytes(envelope.payload)
    try:
        return any(
            c.fits(envelope.kind, envelope.to, lambda: msgspec.json.decode(raw) if raw else None)
            for c in capabilities
        )
    except AmbiguousPayload:
        return False
