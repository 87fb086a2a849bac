"""One capability: what it allows, compiled once, and how it is written."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

from mew.protocol.errors import InvalidCapability

from .clause import CapabilityScope, Clause
from .containment import ProofBudget, proven
from .json_path import PathWork
from .syntax import BYTES_MAX, written_bytes
from .values import JSON, AmbiguousPayload, frozen

__all__ = ["Capability"]

_EXCEPTIONS_MAX = 256
_CARVING_STEPS = 8

_Key = tuple[int, tuple[object, ...]]


class _Parsed(NamedTuple):
    """A clause, how it is written, and the bytes of that."""

    clause: Clause
    source: dict[str, JSON]
    size: int

    @classmethod
    def of(cls, written: object, *, in_doubt: bool) -> "_Parsed":
        clause, source = Clause.parse(written, in_doubt=in_doubt)
        return cls(clause, source, written_bytes(source))


class Capability:
    """The right to send the envelopes that fit it. Immutable; equal to another that is written alike."""

    __slots__ = ("_clause", "_exceptions", "_key", "_taken", "paths", "scope", "size")

    scope: CapabilityScope
    size: int
    """Bytes of it as JSON."""
    paths: int
    """How many JSONPaths it has."""

    def __init__(self, clause: _Parsed, exceptions: Sequence[_Parsed]) -> None:
        """From parsed parts; `parse` is the way to make one."""
        self._clause, self._exceptions = clause, tuple(exceptions)
        self.scope = CapabilityScope(clause.clause, tuple([exception.clause for exception in exceptions]))
        self.size = _size(clause, exceptions)
        self.paths = sum([len(part.clause.paths) for part in (clause, *exceptions)])
        self._key: _Key | None = None
        self._taken: _Parsed | None = None

    @classmethod
    def parse(cls, written: object) -> "Capability":
        """Compile `{"kind": …, "payload": …, "to": …, "except": […]}` or the shorthand of decision 002.

        Raises:
            InvalidCapability: some part of it does not compile; the message says which and why.
        """
        excepted = written.get("except", []) if isinstance(written, Mapping) else []
        if not isinstance(excepted, list | tuple):
            raise InvalidCapability("except must be an array of capabilities")
        if len(excepted) > _EXCEPTIONS_MAX:
            raise InvalidCapability(f"except has {len(excepted)} capabilities, {_EXCEPTIONS_MAX} are allowed")
        made = cls(_Parsed.of(written, in_doubt=False), [_parse_exception(item) for item in excepted])
        if made.size > BYTES_MAX:
            raise InvalidCapability(f"a capability has {made.size} bytes as JSON, {BYTES_MAX} are allowed")
        return made

    @property
    def source(self) -> dict[str, JSON]:
        """What the welcome lists: the object form; `except` only if there are exceptions."""
        return deepcopy(self._written())

    def fits(self, kind: str, to: Sequence[str], payload: Callable[[], JSON]) -> bool:
        """Whether it allows an envelope. `payload` is called at most once, and only if the rest fits.

        An error while matching is a no, also in an exception.

        Raises:
            AmbiguousPayload: a pattern looked at a key that occurs twice.
        """
        try:
            rule = self.scope.on(kind)
            if isinstance(rule, bool):
                return rule
            if not rule.clause.fits_to(to):
                return False
            document = payload() if rule.needs_payload else None
            return (not rule.paths or PathWork().spend(rule.paths, document)) and rule.fits(to, document)
        except AmbiguousPayload:
            raise
        except Exception:  # fail closed, whatever it was
            return False

    def covers(self, other: "Capability", *, effort: ProofBudget | None = None) -> bool:
        """Whether it is proven that every envelope that fits the other fits this one.

        The effort is shared by all questions it is given to; without one, each question has its own.
        """
        return proven(lambda proof: self.scope.covers(other.scope, proof), effort, otherwise=False)

    def disjoint(self, other: "Capability", *, effort: ProofBudget | None = None) -> bool:
        """Whether it is proven that no envelope fits both."""
        return proven(lambda proof: self.scope.disjoint(other.scope, proof), effort, otherwise=False)

    def without(self, pattern: "Capability", *, effort: ProofBudget | None = None) -> "Capability | None":
        """What is left when the pattern is revoked: None, itself, or itself with one more exception.

        The pattern's own exceptions cannot be carved back in: where they matter, more is taken, not less. So
        it is past 256 exceptions or 8 KiB, or when the effort is used up: the capability goes altogether.
        """
        if self.disjoint(pattern, effort=effort):
            return self
        if effort is not None and effort.left <= 0:
            return None
        taken, clause, exceptions = pattern._as_exception(), self.scope.clause, self.scope.exceptions
        if proven(lambda proof: taken.clause.covers(clause, proof), effort, otherwise=False):
            return None
        if proven(
            lambda proof: any(e.covers(taken.clause, proof) for e in exceptions), effort, otherwise=False
        ):
            return self
        kept = proven(
            lambda proof: [e for e in self._exceptions if not taken.clause.covers(e.clause, proof)],
            effort,
            otherwise=list(self._exceptions),
        )
        kept.append(taken)
        size = _size(self._clause, kept)
        if len(kept) > _EXCEPTIONS_MAX or size > BYTES_MAX:
            return None
        if effort is not None and not effort.spend(_CARVING_STEPS + size // 64):
            return None
        return Capability(self._clause, kept)

    def _as_exception(self) -> _Parsed:
        """This one, without its own exceptions, as others have it in theirs."""
        if self._taken is None:
            self._taken = _parse_exception(self._clause.source)
        return self._taken

    def _written(self) -> dict[str, JSON]:
        if not self._exceptions:
            return self._clause.source
        return {**self._clause.source, "except": [exception.source for exception in self._exceptions]}

    def _identity(self) -> _Key:
        if self._key is None:
            parts = frozen(self._written())
            self._key = hash(parts), parts
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Capability) and (self is other or self._identity() == other._identity())

    def __hash__(self) -> int:
        return self._identity()[0]

    def __repr__(self) -> str:
        return f"Capability.parse({self._written()!r})"


def _size(clause: _Parsed, exceptions: Sequence[_Parsed]) -> int:
    if not exceptions:
        return clause.size
    return clause.size + len(',"except":[]') - 1 + sum([exception.size + 1 for exception in exceptions])


def _parse_exception(written: object) -> _Parsed:
    if isinstance(written, Mapping) and "except" in written:
        raise InvalidCapability("an exception has an 'except' of its own, which is not allowed")
    try:
        return _Parsed.of(written, in_doubt=True)
    except InvalidCapability as error:
        raise InvalidCapability(f"in except: {error}") from error
