"""PURE. Rules about calls that people write: the autopilot's `never` and `allow`, and the policy of a wrapped server.

A rule is a capability without its kind (`tools/call:delete_*`), or an object with the parts of a call that must fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import Any, Final

from msgspec import Struct

from mew.protocol.capability import Capability, name_field
from mew.protocol.errors import InvalidCapability
from mew.protocol.kinds import Kind

__all__ = ["CallFacts", "CallRule", "WrittenRule"]

_CALL: Final = "tools/call"


class WrittenRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule written as an object: every part that is given must fit. Strings may have wildcards, as in capabilities.

    If `arguments` is given, a call with other arguments than these does not fit an `allow` rule.
    """

    tool: str | None = None
    method: str = _CALL
    arguments: dict[str, Any] | None = None
    proposer: str | None = None
    target: str | None = None
    annotation: dict[str, bool] = {}


@dataclass(frozen=True, kw_only=True)
class CallFacts:
    """What a rule is compared with. `annotations` are what the tool says of itself."""

    proposer: str
    target: Sequence[str]
    method: str
    params: Mapping[str, Any]
    annotations: Mapping[str, Any]


class CallRule:
    """A written rule, compiled."""

    def __init__(self, written: str | WrittenRule) -> None:
        """
        Raises:
            InvalidCapability: one of its patterns does not compile.
        """
        self.written = written
        self.capability = Capability.parse(
            _from_text(written) if isinstance(written, str) else _from_parts(written)
        )
        """The calls it speaks of, apart from who proposes them and what their tools say of themselves."""
        self._forbidding = Capability.parse({"kind": Kind.MCP_REQUEST, "except": [self.capability.source]})

    @property
    def method(self) -> str:
        """The method, or the pattern of methods."""
        payload = self.capability.source.get("payload")
        method = payload.get("method") if isinstance(payload, dict) else None
        return method if isinstance(method, str) else "**"

    @property
    def name(self) -> str | None:
        """The tool, prompt or URI, or a pattern of such; None if the rule names none."""
        match self.capability.source.get("payload"):
            case {"params": {"name": str(name)} | {"uri": str(name)}}:
                return name
            case _:
                return None

    @property
    def annotation(self) -> Mapping[str, bool]:
        """What a tool has to say of itself."""
        return self.written.annotation if isinstance(self.written, WrittenRule) else {}

    def allows(self, call: CallFacts) -> bool:
        """Whether the call fits and, where the rule names arguments, has no others."""
        if not self._is_about(call) or not self._fits(self.capability, call):
            return False
        known = self.written.arguments if isinstance(self.written, WrittenRule) else None
        passed = call.params.get("arguments", {})
        return known is None or (isinstance(passed, Mapping) and all(name in known for name in passed))

    def forbids(self, call: CallFacts) -> bool:
        """Whether the call fits, or may: a path that leads to what is named by a detour is taken for it."""
        if not self._is_about(call):
            return False
        return not self._fits(self._forbidding, call) or not self._fits(
            self._forbidding, replace(call, params=_without_detours(call.params))
        )

    def _is_about(self, call: CallFacts) -> bool:
        rule = self.written
        if isinstance(rule, str):
            return True
        return (rule.proposer is None or rule.proposer == call.proposer) and all(
            call.annotations.get(name) is wanted for name, wanted in rule.annotation.items()
        )

    def _fits(self, capability: Capability, call: CallFacts) -> bool:
        payload = {"method": call.method, "params": dict(call.params)}
        return capability.fits(Kind.MCP_REQUEST, call.target, lambda: payload)

    def __str__(self) -> str:
        """The rule in a few words."""
        rule = self.written
        if isinstance(rule, str):
            return f"`{rule}`"
        parts = [f"`{rule.tool or rule.method}`"]
        parts += [f"{name} `{pattern}`" for name, pattern in (rule.arguments or {}).items()]
        parts += [f"{name} `{str(wanted).lower()}`" for name, wanted in rule.annotation.items()]
        parts += [f"by `{rule.proposer}`"] if rule.proposer else []
        parts += [f"of `{rule.target}`"] if rule.target else []
        return " ".join(parts)


def _from_text(written: str) -> str:
    method = written.partition(":")[0]
    if "/" not in method and method.strip("*"):
        raise InvalidCapability(f"{written[:64]!r} names no method; write 'tools/call:{written[:64]}'")
    return f"{Kind.MCP_REQUEST}:{written}"


def _without_detours(value: Any) -> Any:
    """The same value with `..` in its paths resolved, as far as that can be done without the file system."""
    if isinstance(value, str):
        return normpath(value.replace("\\", "/")) if ".." in value else value
    if isinstance(value, Mapping):
        return {name: _without_detours(item) for name, item in value.items()}
    return [_without_detours(item) for item in value] if isinstance(value, list) else value


def _from_parts(rule: WrittenRule) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if rule.tool is not None:
        params[name_field(rule.method) or "name"] = rule.tool
    if rule.arguments:
        params["arguments"] = rule.arguments
    payload = {"method": rule.method, **({"params": params} if params else {})}
    return {
        "kind": Kind.MCP_REQUEST,
        "payload": payload,
        **({} if rule.target is None else {"to": rule.target}),
    }
