"""A clause: what a capability, or one of its exceptions, says of kind, addressees and payload."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mew.protocol.errors import InvalidCapability

from .containment import Proof, alternatives
from .pattern import Pattern
from .shorthand import expanded
from .values import JSON, Repeated
from .written import compiled, normalised

__all__ = ["Clause"]

_KEYS = ("kind", "payload", "to")


@dataclass(frozen=True, slots=True)
class Clause:
    """Three patterns that must all fit; None where there is none."""

    kind: Pattern
    to: Pattern | None
    payload: Pattern | None

    @classmethod
    def parse(cls, written: object, *, in_doubt: bool) -> tuple["Clause", dict[str, JSON]]:
        """The clause and its normalised source; `in_doubt` as in `Fields`.

        Raises:
            InvalidCapability: it is not an object with these keys and patterns that compile, nor a shorthand.
                An `except` in it is the caller's business.
        """
        source = _normalised(written)
        clause = cls(
            compiled(source["kind"], "kind", in_doubt=in_doubt),
            compiled(source["to"], "to", in_doubt=in_doubt) if "to" in source else None,
            compiled(source["payload"], "payload", in_doubt=in_doubt) if "payload" in source else None,
        )
        return clause, source

    def fits_to(self, to: Sequence[str]) -> bool:
        """Every addressee fits, and there is one, if this clause asks."""
        return self.to is None or (len(to) > 0 and all(map(self.to.fits, to)))

    def fits_payload(self, document: JSON) -> bool:
        """The payload fits, if this clause asks; None is a payload that is absent."""
        return self.payload is None or (document is not None and self.payload.fits(document))

    def covers(self, other: "Clause", proof: Proof) -> bool:
        return (
            proof.covers(self.kind, other.kind)
            and _covers_optional(self.to, other.to, proof)
            and _covers_optional(self.payload, other.payload, proof)
        )

    def disjoint(self, other: "Clause", proof: Proof) -> bool:
        return (
            proof.disjoint(self.kind, other.kind)
            or _disjoint_optional(self.to, other.to, proof)
            or _disjoint_optional(self.payload, other.payload, proof)
        )

    def alternatives(self, proof: Proof) -> Iterator["Clause"]:
        """Clauses of which one fits whenever this does. `to` stays whole: it speaks of several addressees."""
        payloads = [None] if self.payload is None else alternatives(self.payload, proof)
        for kind in alternatives(self.kind, proof):
            for payload in payloads:
                yield replace(self, kind=kind, payload=payload)


def _normalised(written: object) -> dict[str, JSON]:
    """A written clause as a plain object of checked shape."""
    if isinstance(written, str):
        written = expanded(written)
    if not isinstance(written, Mapping):
        raise InvalidCapability(f"a capability is an object or a string, this is a {type(written).__name__}")
    if isinstance(written, Repeated) and written.repeated:
        raise InvalidCapability("a capability has a key twice")
    for key in written:
        if key not in _KEYS and key != "except":
            allowed = ", ".join((*_KEYS, "except"))
            raise InvalidCapability(f"a capability has the key {str(key)[:64]!r}, allowed are {allowed}")
    if "kind" not in written:
        raise InvalidCapability("a capability has no 'kind'")
    source = {key: normalised(written[key], key) for key in _KEYS if key in written}
    for key in ("kind", "to"):
        if key in source and not _is_names(source[key]):
            raise InvalidCapability(f"{key} must be a non-empty string, or an array of such")
    if "payload" in source and not _is_objects(source["payload"]):
        raise InvalidCapability("payload must be an object, or an array of objects")
    return source


def _is_names(source: JSON) -> bool:
    return all(isinstance(item, str) and item for item in (source if isinstance(source, list) else [source]))


def _is_objects(source: JSON) -> bool:
    return all(isinstance(item, dict) for item in (source if isinstance(source, list) else [source]))


def _covers_optional(wide: Pattern | None, narrow: Pattern | None, proof: Proof) -> bool:
    return wide is None or (narrow is not None and proof.covers(wide, narrow))


def _disjoint_optional(left: Pattern | None, right: Pattern | None, proof: Proof) -> bool:
    return left is not None and right is not None and proof.disjoint(left, right)
