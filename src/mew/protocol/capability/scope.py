"""A scope: a clause less its exceptions; and what it still asks of an envelope whose kind is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .clause import Clause
from .containment import Proof
from .paths import Path
from .values import JSON

__all__ = ["Rule", "Scope"]


@dataclass(frozen=True, slots=True)
class Rule:
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
class Scope:
    """The envelopes that fit a clause and none of its exceptions."""

    clause: Clause
    exceptions: tuple[Clause, ...]

    def on(self, kind: str) -> Rule | bool:
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
        return Rule(self.clause, exceptions, needs_payload, (*self.clause.paths, *forbidding, *forbidding))

    def covers(self, other: "Scope", proof: Proof) -> bool:
        return self.clause.covers(other.clause, proof) and all(
            exception.disjoint(other.clause, proof)
            or any(e.covers(exception, proof) for e in other.exceptions)
            for exception in self.exceptions
        )

    def disjoint(self, other: "Scope", proof: Proof) -> bool:
        return (
            self.clause.disjoint(other.clause, proof)
            or any(exception.covers(self.clause, proof) for exception in other.exceptions)
            or any(exception.covers(other.clause, proof) for exception in self.exceptions)
        )

    def alternatives(self, proof: Proof) -> Iterator["Scope"]:
        """Scopes without `any of` in kind and payload, of which one fits whenever this does."""
        return (replace(self, clause=clause) for clause in self.clause.alternatives(proof))
