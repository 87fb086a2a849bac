"""One capability: what it allows, compiled once, and how it is written."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

from mew.protocol.errors import InvalidCapability

from .clause import Clause
from .containment import proven
from .scope import Scope
from .values import JSON, AmbiguousPayload, frozen

__all__ = ["Capability"]

_EXCEPTIONS_MAX = 256

_Parsed = tuple[Clause, dict[str, JSON]]


class Capability:
    """The right to send the envelopes that fit it. Immutable; equal to another that is written alike."""

    __slots__ = ("_key", "_source", "scope")

    scope: Scope

    def __init__(self, clause: _Parsed, exceptions: Sequence[_Parsed]) -> None:
        """From parsed parts; `parse` is the way to make one."""
        self.scope = Scope(clause[0], tuple(exception for exception, _ in exceptions))
        self._source = dict(clause[1])
        if exceptions:
            self._source["except"] = [source for _, source in exceptions]
        self._key = frozen(self._source)

    @classmethod
    def parse(cls, written: object) -> "Capability":
        """Compile `{"kind": …, "payload": …, "to": …, "except": […]}` or the shorthand of decision 002.

        Raises:
            InvalidCapability: some part of it does not compile; the message says which and why.
        """
        if not isinstance(written, Mapping) or "except" not in written:
            return cls(Clause.parse(written, in_doubt=False), [])
        excepted = written["except"]
        if not isinstance(excepted, list | tuple):
            raise InvalidCapability("except must be an array of capabilities")
        if len(excepted) > _EXCEPTIONS_MAX:
            raise InvalidCapability(f"except has {len(excepted)} capabilities, {_EXCEPTIONS_MAX} are allowed")
        return cls(Clause.parse(written, in_doubt=False), [_parse_exception(item) for item in excepted])

    @property
    def source(self) -> dict[str, JSON]:
        """What the welcome lists: the object form; `except` only if there are exceptions."""
        return deepcopy(self._source)

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
            return rule.fits(to, payload() if rule.needs_payload else None)
        except AmbiguousPayload:
            raise
        except Exception:  # fail closed, whatever it was
            return False

    def covers(self, other: "Capability") -> bool:
        """Whether it is proven that every envelope that fits the other fits this one."""
        return proven(lambda proof: self.scope.covers(other.scope, proof), otherwise=False)

    def disjoint(self, other: "Capability") -> bool:
        """Whether it is proven that no envelope fits both."""
        return proven(lambda proof: self.scope.disjoint(other.scope, proof), otherwise=False)

    def without(self, pattern: "Capability") -> "Capability | None":
        """What is left when the pattern is revoked: None, itself, or itself with one more exception.

        The pattern's own exceptions cannot be carved back in: where they matter, more is taken, not less. So
        it is past 256 exceptions: the capability goes altogether.
        """
        if self.disjoint(pattern):
            return self
        taken = _parse_exception(_without_exceptions(pattern._source))
        clause, exceptions = self.scope.clause, self.scope.exceptions
        if proven(lambda proof: taken[0].covers(clause, proof), otherwise=False):
            return None
        if proven(lambda proof: any(e.covers(taken[0], proof) for e in exceptions), otherwise=False):
            return self
        parsed = list(zip(exceptions, self._source.get("except", ()), strict=True))
        kept = proven(lambda proof: [e for e in parsed if not taken[0].covers(e[0], proof)], otherwise=parsed)
        if len(kept) == _EXCEPTIONS_MAX:
            return None
        return Capability((clause, _without_exceptions(self._source)), [*kept, taken])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Capability) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Capability.parse({self._source!r})"


def _parse_exception(written: object) -> _Parsed:
    if isinstance(written, Mapping) and "except" in written:
        raise InvalidCapability("an exception has an 'except' of its own, which is not allowed")
    try:
        return Clause.parse(written, in_doubt=True)
    except InvalidCapability as error:
        raise InvalidCapability(f"in except: {error}") from error


def _without_exceptions(source: dict[str, JSON]) -> dict[str, JSON]:
    return {key: item for key, item in source.items() if key != "except"}
