"""What one participant holds: a set of capabilities that answers fast for kinds it has seen."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from .capability import Capability
from .containment import Effort, Proof, proven
from .pattern import Exact, Fields, Pattern
from .scope import Rule, Scope
from .values import JSON, AmbiguousPayload, Repeated

__all__ = ["CapabilitySet"]

_KINDS_MAX = 1_024
_KIND_LENGTH_MAX = 256
_INDEX_FROM = 8  # rules; fewer are tried sooner than looked up


class CapabilitySet:
    """Capabilities in the order given, without duplicates. Immutable but for what it remembers of kinds."""

    __slots__ = ("_by_kind", "_members", "capabilities")

    def __init__(self, capabilities: Iterable[Capability] = ()) -> None:
        self._members = dict.fromkeys(capabilities)
        self.capabilities = tuple(self._members)
        self._by_kind: dict[str, _Candidates | bool] = {}

    def fits(self, kind: str, to: Sequence[str], payload: Callable[[], JSON]) -> bool:
        """Whether one of them allows an envelope; `payload` is called at most once, and only if it matters.

        Raises:
            AmbiguousPayload: a pattern looked at a key that occurs twice.
        """
        known = self._by_kind.get(kind)
        if known is None:
            known = self._learn(kind)
        if known is True or known is False:
            return known
        return known.fits(to, payload)

    def allows(self, kind: str) -> bool:
        """Whether every envelope of this kind fits, whatever else it holds."""
        known = self._by_kind.get(kind)
        return (self._learn(kind) if known is None else known) is True

    def covers(self, capability: Capability, *, effort: Effort | None = None) -> bool:
        """Whether it is proven that every envelope that fits the capability fits one of these.

        Proven member by member, also for each alternative of an `any of` in kind or payload by itself. The
        effort is shared by all questions it is given to; without one, this question has its own.
        """
        if capability in self._members:
            return True
        return proven(lambda proof: self._covers(capability.scope, proof), effort, otherwise=False)

    def _covers(self, scope: Scope, proof: Proof) -> bool:
        if any(held.scope.covers(scope, proof) for held in self.capabilities):
            return True
        return all(
            any(held.scope.covers(part, proof) for held in self.capabilities)
            for part in scope.alternatives(proof)
        )

    def _learn(self, kind: str) -> "_Candidates | bool":
        rules = [rule for held in self.capabilities if (rule := held.scope.on(kind)) is not False]
        known: _Candidates | bool
        if True in rules:
            known = True
        else:
            known = _Candidates([rule for rule in rules if isinstance(rule, Rule)]) if rules else False
        if len(kind) <= _KIND_LENGTH_MAX:  # kinds come from participants: neither many nor long ones are kept
            if len(self._by_kind) >= _KINDS_MAX:
                self._by_kind.clear()
            self._by_kind[kind] = known
        return known

    def __iter__(self) -> Iterator[Capability]:
        return iter(self.capabilities)

    def __len__(self) -> int:
        return len(self.capabilities)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CapabilitySet) and self.capabilities == other.capabilities

    def __hash__(self) -> int:
        return hash(self.capabilities)

    def __repr__(self) -> str:
        return f"CapabilitySet({list(self.capabilities)!r})"


_Key = tuple[str | None, str | None]


class _Candidates:
    """The rules for one kind, found by the exact `method` and `params.name` that they ask for, if they do."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._light = [rule for rule in rules if not rule.needs_payload]
        self._heavy = [rule for rule in rules if rule.needs_payload]
        self._index: dict[_Key, list[Rule]] = {}
        for rule in self._heavy:
            self._index.setdefault(_asked(rule.clause.payload), []).append(rule)

    def fits(self, to: Sequence[str], payload: Callable[[], JSON]) -> bool:
        if self._light and _one_fits(self._light, to, None):
            return True
        if not self._heavy:
            return False
        try:
            document = payload()
        except AmbiguousPayload:
            raise
        except Exception:  # fail closed, whatever it was
            return False
        return _one_fits(self._worth_trying(document), to, document)

    def _worth_trying(self, document: JSON) -> Sequence[Rule]:
        if len(self._heavy) < _INDEX_FROM or type(document) is not dict:
            return self._heavy
        method, params = document.get("method"), document.get("params")
        if isinstance(params, Repeated):
            return self._heavy
        method = method if isinstance(method, str) else None
        name = params.get("name") if isinstance(params, dict) else None
        name = name if isinstance(name, str) else None
        keys = {(method, name): None, (method, None): None, (None, name): None, (None, None): None}
        return [rule for key in keys for rule in self._index.get(key, ())]


def _one_fits(rules: Sequence[Rule], to: Sequence[str], document: JSON) -> bool:
    for rule in rules:
        try:
            if rule.fits(to, document):
                return True
        except AmbiguousPayload:
            raise
        except Exception:  # fail closed, whatever it was; another rule may still fit
            continue
    return False


def _asked(payload: Pattern | None) -> _Key:
    """The exact method and tool name that every payload fitting the pattern has; None where it need not."""
    fields = dict(payload.fields) if isinstance(payload, Fields) else {}
    method, params = fields.get("method"), fields.get("params")
    name = dict(params.fields).get("name") if isinstance(params, Fields) else None
    return method.text if isinstance(method, Exact) else None, name.text if isinstance(name, Exact) else None
