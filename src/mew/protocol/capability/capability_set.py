"""What one participant holds: a set of capabilities that answers fast for kinds it has seen."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from .capability import Capability
from .clause import CapabilityScope, KindScope
from .containment import ContainmentProof, ProofBudget, proven
from .json_path import PathWork
from .pattern import Exact, Fields, Pattern
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

    def fits(
        self,
        kind: str,
        to: Sequence[str],
        payload: Callable[[], JSON],
        work: PathWork | None = None,
        header: Callable[[], dict[str, JSON]] | None = None,
    ) -> bool:
        """Whether one of them allows an envelope; `payload` is called at most once, and only if it matters.

        `header`, for a large payload, has its `method` and `params.name`: where no capability asks for these, the
        payload is not decoded. JSONPaths are followed until their `work` for this envelope is spent; what has
        further ones does not fit.

        Raises:
            AmbiguousPayload: a pattern looked at a key that occurs twice.
        """
        known = self._by_kind.get(kind)
        if known is None:
            known = self._learn(kind)
        if known is True or known is False:
            return known
        return known.fits(to, payload, work, header)

    def allows(self, kind: str) -> bool:
        """Whether every envelope of this kind fits, whatever else it holds."""
        known = self._by_kind.get(kind)
        return (self._learn(kind) if known is None else known) is True

    def covers(self, capability: Capability, *, effort: ProofBudget | None = None) -> bool:
        """Whether it is proven that every envelope that fits the capability fits one of these.

        Proven member by member, also for each alternative of an `any of` in kind or payload by itself. The
        effort is shared by all questions it is given to; without one, this question has its own.
        """
        if capability in self._members:
            return True
        return proven(lambda proof: self._covers(capability.scope, proof), effort, otherwise=False)

    def _covers(self, scope: CapabilityScope, proof: ContainmentProof) -> bool:
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
            known = _Candidates([rule for rule in rules if isinstance(rule, KindScope)]) if rules else False
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

    def __init__(self, rules: Sequence[KindScope]) -> None:
        self._light = [rule for rule in rules if not rule.needs_payload]
        heavy = [rule for rule in rules if rule.needs_payload]
        self._heavy = sorted(heavy, key=lambda rule: len(rule.paths))  # the cheap ones first
        self._index: dict[_Key, list[KindScope]] = {}
        for rule in self._heavy:
            self._index.setdefault(_asked(rule.clause.payload), []).append(rule)

    def fits(
        self,
        to: Sequence[str],
        payload: Callable[[], JSON],
        work: PathWork | None,
        header: Callable[[], dict[str, JSON]] | None,
    ) -> bool:
        if self._light and _one_fits(self._light, to, None, work):
            return True
        if not any(rule.clause.fits_to(to) for rule in self._heavy):
            return False
        if header is not None:
            known = header()
            if not any(_may_fit(rule.clause.payload, known) for rule in self._heavy):
                return False
        try:
            document = payload()
        except AmbiguousPayload:
            raise
        except Exception:  # fail closed, whatever it was
            return False
        return _one_fits(self._worth_trying(document), to, document, work)

    def _worth_trying(self, document: JSON) -> Sequence[KindScope]:
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


def _one_fits(rules: Sequence[KindScope], to: Sequence[str], document: JSON, work: PathWork | None) -> bool:
    for rule in rules:
        if rule.paths:
            work = work or PathWork()
            if not rule.clause.fits_to(to) or not work.spend(rule.paths, document):
                continue
        try:
            if rule.fits(to, document):
                return True
        except AmbiguousPayload:
            raise
        except Exception:  # fail closed, whatever it was; another rule may still fit
            continue
    return False


def _may_fit(pattern: Pattern | None, known: dict[str, JSON]) -> bool:
    """Whether a payload can fit of which only these texts are known, at these places."""
    if not isinstance(pattern, Fields):
        return True
    for key, part in pattern.fields:
        if key in known:
            value = known[key]
            if not (_may_fit(part, value) if isinstance(value, dict) else part.fits(value)):
                return False
    return True


def _asked(payload: Pattern | None) -> _Key:
    """The exact method and tool name that every payload fitting the pattern has; None where it need not."""
    fields = dict(payload.fields) if isinstance(payload, Fields) else {}
    method, params = fields.get("method"), fields.get("params")
    name = dict(params.fields).get("name") if isinstance(params, Fields) else None
    return method.text if isinstance(method, Exact) else None, name.text if isinstance(name, Exact) else None
