"""PURE. What a policy makes of a call: hide, deny, ask or allow it, by tool, argument and number of calls."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from mew.proposals.written_rule import CallFacts, CallRule, WrittenRule
from mew.protocol.capability import Capability, CapabilitySet, name_field
from mew.protocol.kinds import Kind

from .permits import Permit, Permits

__all__ = ["CallLimit", "CallPolicy", "PolicyAction", "PolicyDecision", "PolicySettings"]

_PERIODS_S: Final = {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0}
_READ: Final = "resources/read"
_READS: Final = (_READ, "resources/subscribe", "resources/unsubscribe")
_USES: Final = ("tools/call", "prompts/get", *_READS)


class PolicyAction(StrEnum):
    """What becomes of a call: the host sees no such tool, gets a no, waits for a person, or has it made."""

    HIDE = "hide"
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class CallLimit(WrittenRule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """At most `calls` of the calls that fit, in any such period; `then` says what becomes of the others."""

    calls: int
    per: Literal["minute", "hour", "day"] = "hour"
    then: Literal["deny", "ask"] = "deny"


class PolicySettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules as they are written. The first list that has a rule for a call decides, in this order."""

    hide: tuple[str | WrittenRule, ...] = ()
    deny: tuple[str | WrittenRule, ...] = ()
    ask: tuple[str | WrittenRule, ...] = ()
    allow: tuple[str | WrittenRule, ...] = ()
    limits: tuple[CallLimit, ...] = ()
    default: PolicyAction = PolicyAction.ASK

    def and_also(self, more: "PolicySettings") -> "PolicySettings":
        """The rules of both; the default is that of the other."""
        return PolicySettings(
            hide=(*self.hide, *more.hide),
            deny=(*self.deny, *more.deny),
            ask=(*self.ask, *more.ask),
            allow=(*self.allow, *more.allow),
            limits=(*self.limits, *more.limits),
            default=more.default,
        )


@dataclass(frozen=True)
class PolicyDecision:
    """`why` is for whoever made the call: the rule that decided, or that none did."""

    action: PolicyAction
    why: str
    is_default: bool = False


class _CallCount:
    """How many calls fitted a limit lately."""

    def __init__(self, limit: CallLimit) -> None:
        self.limit = limit
        written = {name: getattr(limit, name) for name in WrittenRule.__struct_fields__}
        self.rule = CallRule(WrittenRule(**written))
        self._times_s: deque[float] = deque(maxlen=max(limit.calls, 1))

    def retry_after_s(self, now_s: float) -> float | None:
        """How long the limit stays used up; None if a call is left."""
        if self.limit.calls == 0:
            return _PERIODS_S[self.limit.per]
        if len(self._times_s) < self.limit.calls:
            return None
        left_s = self._times_s[0] + _PERIODS_S[self.limit.per] - now_s
        return left_s if left_s > 0 else None

    def take(self, now_s: float) -> None:
        self._times_s.append(now_s)


class CallPolicy:
    """The policy in force for one host and one server. `use` puts another in its place."""

    def __init__(
        self, settings: PolicySettings, *, host: str, server: str, clock: Callable[[], float]
    ) -> None:
        """
        Raises:
            InvalidCapability: a rule does not compile.
        """
        self._host = host
        self._server = server
        self._clock = clock
        self._changed: list[Callable[[], None]] = []
        self._counts: list[_CallCount] = []
        self._load(settings)

    def use(self, settings: PolicySettings) -> None:
        """Put these rules in force; calls that were counted for a limit that stays are still counted.

        Raises:
            InvalidCapability: a rule does not compile; those before stay in force.
        """
        self._load(settings)
        for changed in self._changed:
            changed()

    def on_change(self, changed: Callable[[], None]) -> None:
        """Have this called whenever other rules came into force."""
        self._changed.append(changed)

    def decide(
        self, method: str, params: Mapping[str, Any], annotations: Mapping[str, Any] | None
    ) -> PolicyDecision:
        """Decide about a call, and count it unless it is refused."""
        call = self._call(method, params, annotations)
        for action, rules in ((PolicyAction.HIDE, self._hide), (PolicyAction.DENY, self._deny)):
            for rule in rules:
                if rule.forbids(call):
                    return PolicyDecision(action, f"the policy of this server denies {rule}")
        now_s, asked = self._clock(), None
        counts = [count for count in self._counts if count.rule.forbids(call)]
        for count in counts:
            left_s = count.retry_after_s(now_s)
            if left_s is not None:
                limit = count.limit
                why = f"the limit of {limit.calls} calls of {count.rule} per {limit.per} is used up"
                if limit.then == "deny":
                    return PolicyDecision(PolicyAction.DENY, f"{why}; try again in {left_s:.0f} s")
                asked = PolicyDecision(PolicyAction.ASK, why)
        decision = asked or self._by_rule(call)
        if decision.action in (PolicyAction.ASK, PolicyAction.ALLOW):
            for count in counts:
                count.take(now_s)
        return decision

    def hides(self, method: str, name: str, annotations: Mapping[str, Any] | None) -> bool:
        """Whether hosts do not see this tool, prompt or resource."""
        call = self._call(method, {name_field(method) or "name": name}, annotations)
        if any(rule.forbids(call) for rule in self._hide):
            return True
        is_rest = self.permit(method, name, annotations) is Permit.NONE
        return is_rest and self.settings.default is PolicyAction.HIDE

    def permit(self, method: str, name: str, annotations: Mapping[str, Any] | None) -> Permit:
        """Whether calls of it need approval, as far as that can be said before the arguments are known."""
        said = {key: (annotations or {}).get(key) is True for key in self._annotations}
        known = self._permits.get(key := tuple(said.items()))
        if known is None:
            held = [Capability.parse(written) for written in self.capabilities(said)]
            known = self._permits[key] = Permits(CapabilitySet(held))
        return known.of(self._server, method, name)

    @property
    def tool_patterns(self) -> list[str]:
        """The tools that may be called without approval, as patterns."""
        tools = [rule.name or "*" for rule in self._allow if rule.method in ("tools/call", "**")]
        return [*dict.fromkeys([*tools, *(["*"] if self.settings.default is PolicyAction.ALLOW else [])])]

    def capabilities(self, annotations: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """What the host may send by these rules, for tools that say this of themselves.

        None: for all tools, as far as capabilities can say it; the gateway enforces these.
        """
        allow, ask, refuse = (
            [rule for rule in rules if _holds(rule, annotations, unknown=unknown)]
            for rules, unknown in (
                (self._allow, True),
                (self._ask, False),
                ((*self._hide, *self._deny), False),
            )
        )
        default = self.settings.default
        requests = [*map(_payload, allow)]
        if default is PolicyAction.ALLOW:
            requests.append({"method": list(_USES)})
        proposals: list[dict[str, Any] | None] = [None]
        if default in (PolicyAction.DENY, PolicyAction.HIDE):
            proposals = [*map(_payload, (*allow, *ask))]
        if any(name_field(method) in ("name", "uri") for method in _methods(requests) - {"tools/call"}):
            requests.append({"method": "completion/complete"})  # it tells of what is there
        made = [_capability(Kind.MCP_REQUEST, payload, (*refuse, *ask)) for payload in requests]
        made += [_capability(Kind.MCP_PROPOSAL, payload, refuse) for payload in proposals]
        return [{**one, "to": self._server} for one in made]

    def _load(self, settings: PolicySettings) -> None:
        hide, deny, ask, allow = (
            [rule for rule in map(CallRule, rules) if self._is_for_us(rule)]
            for rules in (settings.hide, settings.deny, settings.ask, settings.allow)
        )
        counts = [_CallCount(limit) for limit in settings.limits]
        before = {msgspec.json.encode(count.limit): count for count in self._counts}
        self._counts = [
            before.get(msgspec.json.encode(count.limit), count)
            for count in counts
            if self._is_for_us(count.rule)
        ]
        self.settings = settings
        self._hide, self._deny, self._ask, self._allow = hide, deny, ask, allow
        self._annotations = sorted(
            {name for rule in (*hide, *deny, *ask, *allow) for name in rule.annotation}
        )
        self._permits: dict[tuple[tuple[str, bool], ...], Permits] = {}

    def _is_for_us(self, rule: CallRule) -> bool:
        """Whether the rule can speak of calls of this host to this server: a file may be for several."""
        written = rule.written
        if isinstance(written, str):
            return True
        to = None if written.target is None else Capability.parse({"kind": "*", "to": written.target})
        return written.proposer in (None, self._host) and (
            to is None or to.fits(Kind.MCP_REQUEST, [self._server], dict)
        )

    def _by_rule(self, call: CallFacts) -> PolicyDecision:
        for rule in self._ask:
            if rule.forbids(call):
                return PolicyDecision(PolicyAction.ASK, f"the policy asks about {rule}")
        for rule in self._allow:
            if rule.allows(call):
                return PolicyDecision(PolicyAction.ALLOW, f"the policy allows {rule}")
        default = self.settings.default
        return PolicyDecision(default, "the policy of this server has no rule for it", is_default=True)

    def _call(
        self, method: str, params: Mapping[str, Any], annotations: Mapping[str, Any] | None
    ) -> CallFacts:
        return CallFacts(
            proposer=self._host,
            target=[self._server],
            method=method,
            params=params,
            annotations=annotations or {},
        )


def _holds(rule: CallRule, annotations: Mapping[str, Any] | None, *, unknown: bool) -> bool:
    if annotations is None:
        return unknown or not rule.annotation
    return all(annotations.get(name) is wanted for name, wanted in rule.annotation.items())


def _payload(rule: CallRule) -> dict[str, Any] | None:
    payload: Any = rule.capability.source.get("payload")
    if isinstance(payload, dict) and payload.get("method") == _READ:
        return {**payload, "method": list(_READS)}
    return payload if isinstance(payload, dict) else None


def _methods(payloads: Iterable[dict[str, Any] | None]) -> set[str]:
    found = [payload.get("method") for payload in payloads if payload is not None]
    return {str(method) for one in found for method in (one if isinstance(one, list) else [one])}


def _capability(kind: str, payload: dict[str, Any] | None, less: Sequence[CallRule]) -> dict[str, Any]:
    excepted = [
        {"kind": kind, **({} if found is None else {"payload": found})} for found in map(_payload, less)
    ]
    return {
        "kind": kind,
        **({} if payload is None else {"payload": payload}),
        **({"except": _merged(excepted)} if excepted else {}),
    }


def _merged(capabilities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same in fewer: names of one method in one list, since the number of exceptions is limited."""
    names: dict[str, list[str]] = {}
    rest = []
    for one in capabilities:
        match one.get("payload"):
            case {"method": "tools/call", "params": {"name": str(name), **more}} if not more:
                names.setdefault(one["kind"], []).append(name)
            case _:
                rest.append(one)
    for kind, listed in names.items():
        rest.append({"kind": kind, "payload": {"method": "tools/call", "params": {"name": listed}}})
    return [*{msgspec.json.encode(one): one for one in rest}.values()]
