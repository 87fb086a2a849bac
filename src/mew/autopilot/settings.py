"""What `autopilot:` in space.yaml, or the file of `mew autopilot --config`, says."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from mew.protocol.capability import Capability
from mew.protocol.errors import InvalidCapability

__all__ = [
    "AutopilotSettings",
    "InvalidSettings",
    "Mode",
    "RiskClass",
    "WrittenRule",
    "never_capability",
    "read_settings",
]


class Mode(StrEnum):
    """How far the autopilot goes: predict, offer rules, or act on its evidence."""

    OFF = "off"
    SHADOW = "shadow"
    SUGGEST = "suggest"
    ACT = "act"


class RiskClass(StrEnum):
    """What a tool says it does, by its annotations. Rules for destructive tools never activate by themselves."""

    READ = "read"
    WRITE = "write"
    OUTWARD = "outward"
    DESTRUCTIVE = "destructive"


class InvalidSettings(ValueError):
    """The settings cannot be used; the text names the key and what is wrong with it."""


_RISK: Final = {RiskClass.READ: 0.20, RiskClass.WRITE: 0.10, RiskClass.OUTWARD: 0.05}


class WrittenRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule written by hand: every part that is given must fit. Strings may have wildcards, as in capabilities.

    If `arguments` is given, a call with other arguments than these does not fit an `allow` rule.
    """

    tool: str | None = None
    method: str = "tools/call"
    arguments: dict[str, Any] | None = None
    proposer: str | None = None
    target: str | None = None
    annotation: dict[str, bool] = {}

    def capability(self) -> Capability:
        """The calls it speaks of, as a capability.

        Raises:
            InvalidCapability: one of its patterns does not compile.
        """
        params: dict[str, Any] = {}
        if self.tool is not None:
            params["name"] = self.tool
        if self.arguments:
            params["arguments"] = self.arguments
        written: dict[str, Any] = {"kind": "mcp/request", "payload": {"method": self.method}}
        if params:
            written["payload"]["params"] = params
        if self.target is not None:
            written["to"] = self.target
        return Capability.parse(written)


class AutopilotSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings with their defaults; `risk` may be one number for all classes."""

    mode: Mode = Mode.SUGGEST
    reviewers: tuple[str, ...] = ()
    risk: float | dict[RiskClass, float] = field(default_factory=lambda: dict(_RISK))
    delta: float = 0.05
    min_review_s: float = 1.0
    audit: float = 0.05
    careful: tuple[RiskClass, ...] = (RiskClass.OUTWARD,)
    budget_per_hour: int = 600
    idle_days: float = 30.0
    never: tuple[str | WrittenRule, ...] = ()
    allow: tuple[WrittenRule, ...] = ()

    def risk_of(self, risk_class: RiskClass) -> float:
        """The rejection rate that a rule for such tools must exclude; 0 if such a rule never activates."""
        if risk_class is RiskClass.DESTRUCTIVE:
            return 0.0
        if isinstance(self.risk, float | int):
            return float(self.risk)
        return self.risk.get(risk_class, _RISK[risk_class])


def read_settings(written: Mapping[str, Any]) -> AutopilotSettings:
    """Settings from decoded YAML.

    Raises:
        InvalidSettings: a key is unknown, or a value is of the wrong type or out of range.
    """
    try:
        settings = msgspec.convert(dict(written), AutopilotSettings)
    except msgspec.ValidationError as error:
        raise InvalidSettings(f"autopilot: {error}") from None
    risks = settings.risk if isinstance(settings.risk, dict) else {"": settings.risk}
    for name, level in risks.items():
        where = f"risk.{name}" if name else "risk"
        _check(0 < level < 1, where, f"{level} is not between 0 and 1")
    _check(0 < settings.delta <= 0.5, "delta", f"{settings.delta} is not between 0 and 0.5")
    _check(0 <= settings.audit <= 1, "audit", f"{settings.audit} is not between 0 and 1")
    _check(settings.min_review_s >= 0, "min_review_s", "less than 0")
    _check(settings.budget_per_hour >= 0, "budget_per_hour", "less than 0")
    _check(settings.idle_days > 0, "idle_days", "not more than 0")
    for key, rules in (("never", settings.never), ("allow", settings.allow)):
        for place, rule in enumerate(rules):
            try:
                never_capability(rule)
            except InvalidCapability as error:
                raise InvalidSettings(f"autopilot.{key}[{place}]: {error}") from None
    for place, rule in enumerate(settings.allow):
        if rule.tool is None and rule.method == "tools/call":
            raise InvalidSettings(f"autopilot.allow[{place}]: name the tool")
    return settings


def never_capability(rule: str | WrittenRule) -> Capability:
    """The calls that an entry of `never` speaks of: a capability without its kind (`tools/call:delete_*`), or a rule.

    Raises:
        InvalidCapability: it does not compile.
    """
    return Capability.parse(f"mcp/request:{rule}") if isinstance(rule, str) else rule.capability()


def _check(holds: bool, key: str, problem: str) -> None:  # noqa: FBT001 -- reads as an assertion
    if not holds:
        raise InvalidSettings(f"autopilot.{key}: {problem}")
