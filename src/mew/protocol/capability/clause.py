"""Clauses and scopes: what a capability requires of kind, addressees and payload, less its exceptions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mew.protocol.errors import InvalidCapability

from .containment import ContainmentProof, alternatives, may_be_rewritten
from .json_path import Path
from .pattern import AnyOf, Fields, Pattern
from .syntax import compiled, expanded, normalised
from .values import JSON, Repeated, regular

__all__ = ["CapabilityScope", "Clause", "KindScope"]

_KEYS = ("kind", "payload", "to")


@dataclass(frozen=True, slots=True)
class Clause:
    """Three patterns that must all fit; None where there is none. `forbids`: it is an exception."""

    kind: Pattern
    to: Pattern | None
    payload: Pattern | None
    forbids: bool = False
    paths: tuple[Path, ...] = ()
    """All that are in `payload`."""

    @classmethod
    def parse(cls, written: object, *, in_doubt: bool) -> tuple["Clause", dict[str, JSON]]:
        """The clause and its normalised source; `in_doubt` as in `Fields`.

        Raises:
            InvalidCapability: it is not an object with these keys and patterns that compile, nor a shorthand.
                An `except` in it is the caller's business.
        """
        source = _normalised(written)
        payload = compiled(source["payload"], "payload", in_doubt=in_doubt) if "payload" in source else None
        clause = cls(
            compiled(source["kind"], "kind", in_doubt=in_doubt),
            compiled(source["to"], "to", in_doubt=in_doubt) if "to" in source else None,
            payload,
            forbids=in_doubt,
            paths=() if payload is None else tuple(_paths_in(payload)),
        )
        return clause, source

    def fits_to(self, to: Sequence[str]) -> bool:
        """Every addressee fits, and there is one, if this clause asks.

        An exception fits as soon as one addressee does, and where nobody is named: it may be anyone who acts.
        """
        if self.to is None:
            return True
        if self.forbids:
            return not to or any(map(self.to.fits, to))
        return len(to) > 0 and all(map(self.to.fits, to))

    def fits_payload(self, document: JSON) -> bool:
        """The payload fits, if this clause asks; None is a payload that is absent.

        An exception also fits where the payload does once its paths are written plainly.
        """
        if self.payload is None:
            return True
        if document is None:
            return False
        return self.payload.fits(document) or (self.forbids and self._fits_plainly(document))

    def _fits_plainly(self, document: JSON) -> bool:
        plain = regular(document)
        return plain is not document and self.payload is not None and self.payload.fits(plain)

    def covers(self, other: "Clause", proof: ContainmentProof) -> bool:
        return (
            proof.covers(self.kind, other.kind)
            and _covers_optional(self.to, other.to, proof)
            and _covers_optional(self.payload, other.payload, proof)
        )

    def disjoint(self, other: "Clause", proof: ContainmentProof) -> bool:
        return (
            proof.disjoint(self.kind, other.kind)
            or _disjoint_optional(self.to, other.to, proof)
            or (not self._may_be_rewritten(other) and _disjoint_optional(self.payload, other.payload, proof))
        )

    def _may_be_rewritten(self, other: "Clause") -> bool:
        """Whether one of them is an exception, which also fits what the other names once that is written plainly."""
        return (self.forbids and other.payload is not None and may_be_rewritten(other.payload)) or (
            other.forbids and self.payload is not None and may_be_rewritten(self.payload)
        )

    def alternatives(self, proof: ContainmentProof) -> Iterator["Clause"]:
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


def _paths_in(pattern: Pattern) -> Iterator[Path]:
    if isinstance(pattern, AnyOf):
        for part in pattern.patterns:
            yield from _paths_in(part)
    elif isinstance(pattern, Fields):
        for _, part in pattern.fields:
            yield from _paths_in(part)
        for path, part in pattern.paths:
            yield path
            yield from _paths_in(part)


def _is_names(source: JSON) -> bool:
    return all(isinstance(item, str) and item for item in (source if isinstance(source, list) else [source]))


def _is_objects(source: JSON) -> bool:
    return all(isinstance(item, dict) for item in (source if isinstance(source, list) else [source]))


def _covers_optional(wide: Pattern | None, narrow: Pattern | None, proof: ContainmentProof) -> bool:
    return wide is None or (narrow is not None and proof.covers(wide, narrow))


def _disjoint_optional(left: Pattern | None, right: Pattern | None, proof: ContainmentProof) -> bool:
    return left is not None and right is not None and proof.disjoint(left, right)


@dataclass(frozen=True, slots=True)
class KindScope:
    """A clause whose kind fits, and the exceptions whose kind fits too."""

    clause: Clause
    exceptions: tuple[Clause, ...]
    needs_payload: bool
    paths: tuple[Path, ...]
    """All that may be followed; those of an exception twice, since it looks at the payload in two spellings."""

    def fits(self, to: Sequence[str], document: JSON) -> bool:
        """Whether the rest fits; the document may be None if `needs_payload` is false."""
        clause = self.clause
        if clause.to is not None and not clause.fits_to(to):
            return False
        if clause.payload is not None and not clause.fits_payload(document):
            return False
        return not self.exceptions or not any(
            exception.fits_to(to) and exception.fits_payload(document) for exception in self.exceptions
        )


@dataclass(frozen=True, slots=True)
class CapabilityScope:
    """The envelopes that fit a clause and none of its exceptions."""

    clause: Clause
    exceptions: tuple[Clause, ...]

    def on(self, kind: str) -> KindScope | bool:
        """What is left to ask of envelopes of this kind; a plain answer if nothing is."""
        if not self.clause.kind.fits(kind):
            return False
        exceptions = tuple(exception for exception in self.exceptions if exception.kind.fits(kind))
        if any(exception.to is None and exception.payload is None for exception in exceptions):
            return False
        if not exceptions and self.clause.to is None and self.clause.payload is None:
            return True
        needs_payload = any(asked.payload is not None for asked in (self.clause, *exceptions))
        forbidding = tuple(path for exception in exceptions for path in exception.paths)
        return KindScope(
            self.clause, exceptions, needs_payload, (*self.clause.paths, *forbidding, *forbidding)
        )

    def covers(self, other: "CapabilityScope", proof: ContainmentProof) -> bool:
        return self.clause.covers(other.clause, proof) and all(
            exception.disjoint(other.clause, proof)
            or any(e.covers(exception, proof) for e in other.exceptions)
            for exception in self.exceptions
        )

    def disjoint(self, other: "CapabilityScope", proof: ContainmentProof) -> bool:
        return (
            self.clause.disjoint(other.clause, proof)
            or any(exception.covers(self.clause, proof) for exception in other.exceptions)
            or any(exception.covers(other.clause, proof) for exception in self.exceptions)
        )

    def alternatives(self, proof: ContainmentProof) -> Iterator["CapabilityScope"]:
        """Scopes without `any of` in kind and payload, of which one fits whenever this does."""
        return (replace(self, clause=clause) for clause in self.clause.alternatives(proof))
