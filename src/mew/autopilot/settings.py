"""What `autopilot:` in space.yaml, or the file of `mew autopilot --config`, says."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from mew.proposals.written_rule import CallRule, WrittenRule
from mew.protocol.errors import InvalidCapability

__all__ = [
    "AutopilotSettings",
    "InvalidSettings",
    "Mode",
    "RiskClass",
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
    allow: tuple[str | WrittenRule, ...] = ()

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
        for place, one in enumerate(rules):
            try:
                rule = CallRule(one)
            except InvalidCapability as error:
                raise InvalidSettings(f"autopilot.{key}[{place}]: {error}") from None
            if key == "allow" and rule.name is None and rule.method in ("tools/call", "**"):
                raise InvalidSettings(f"autopilot.allow[{place}]: name the tool")
    return settings


def _check(holds: bool, key: str, problem: str) -> None:  # noqa: FBT001 -- reads as an assertion
    if not holds:
        raise InvalidSettings(f"autopilot.{key}: {problem}")
