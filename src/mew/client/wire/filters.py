"""PURE. Which envelopes somebody wants to see."""

from collections.abc import Iterable

from msgspec import UNSET, Struct

from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, ParticipantId

__all__ = ["Filter"]


class Filter(Struct, frozen=True):
    """Everything that is given must fit; what is not given fits always."""

    kinds: tuple[Capability, ...] = ()
    senders: frozenset[str] = frozenset()
    context: str | None = None
    to: ParticipantId | None = None
    about: str | None = None

    @classmethod
    def of(
        cls,
        *,
        kind: str | Iterable[str] | None = None,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        to: ParticipantId | None = None,
        about: str | None = None,
    ) -> "Filter":
        """`kind` may have wildcards as in capabilities; `context` is a path, and what is under it fits too; `to`:
        addressed to this one, by name or, being addressed to nobody, to everyone; `about`: an id that
        `correlation_id` must have.

        Raises:
            InvalidCapability: a kind is no pattern.
        """
        kinds = tuple(Capability.parse({"kind": pattern}) for pattern in _several(kind))
        return cls(kinds, frozenset(_several(sender)), context, to, about)

    def fits(self, envelope: Envelope) -> bool:
        if self.kinds and not any(
            pattern.fits(envelope.kind, envelope.to, lambda: None) for pattern in self.kinds
        ):
            return False
        if self.senders and envelope.sender not in self.senders:
            return False
        if self.to is not None and envelope.to and self.to not in envelope.to:
            return False
        if self.about is not None and self.about not in envelope.correlation_id:
            return False
        return self.context is None or self._within(envelope)

    def _within(self, envelope: Envelope) -> bool:
        context = envelope.context
        if context is UNSET:
            return False
        return context == self.context or context.startswith(f"{self.context}/")


def _several(names: str | Iterable[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)
