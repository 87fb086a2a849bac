"""PURE. What our capabilities make of a call that is not written yet: it may be made, only proposed, or it depends."""

import re
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mew.protocol.capability import Capability, CapabilitySet, name_field
from mew.protocol.errors import InvalidCapability
from mew.protocol.kinds import Kind

__all__ = ["Permit", "Permits"]

_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")  # of a URI template (RFC 6570)
_REMEMBERED: Final = 65_536


class Permit(Enum):
    """Whether a call needs approval, as far as that can be said before its arguments are known: a word and a note."""

    DIRECT = ("never", "")
    """Whatever the arguments are, it may be made."""
    MIXED = ("sometimes", "some calls need approval")
    """With some arguments it may be made, with others only proposed."""
    SOME = ("never", "allowed with some arguments only")
    """With some arguments it may be made, and nothing may be proposed."""
    PROPOSED = ("always", "needs approval")
    """It may only be proposed."""
    NONE = ("never", "not allowed")
    """Neither."""

    @property
    def needs_approval(self) -> str:
        return self.value[0]

    @property
    def note(self) -> str:
        """What those who would call it should know; empty where there is nothing to know."""
        return self.value[1]


class _Reach(NamedTuple):
    """How much of all such envelopes is allowed: all of them, or some."""

    all: bool
    some: bool


class Permits:
    """What one set of capabilities permits; what was found out is remembered.

    In doubt, more is said to be possible, and less without approval: the gateway has the last word.
    """

    def __init__(self, held: CapabilitySet) -> None:
        self.held = held
        self._named = lru_cache(_REMEMBERED)(self._permit)
        self._reach = lru_cache(_REMEMBERED)(self._reached)

    def of(self, participant: str, method: str, name: str | None = None) -> Permit:
        """What may become of a request to `participant`, whatever its further params; without a name, of any such.

        The name may be a URI template.
        """
        return self._named(participant, method, name)

    def _permit(self, participant: str, method: str, name: str | None) -> Permit:
        requests = self._reach(Kind.MCP_REQUEST, participant, method, name)
        if requests.all:
            return Permit.DIRECT
        proposals = self._reach(Kind.MCP_PROPOSAL, participant, method, name)
        if requests.some:
            return Permit.MIXED if proposals.some else Permit.SOME
        return Permit.PROPOSED if proposals.some else Permit.NONE

    def _reached(self, kind: str, participant: str, method: str, name: str | None) -> _Reach:
        if name is not None:  # most often, what goes for all of them answers it
            general = self._reach(kind, participant, method, None)
            if general.all or not general.some:
                return general
        probe = _probe(kind, participant, method, name)
        if self.held.covers(probe):
            return _Reach(all=True, some=True)
        return _Reach(all=False, some=any(not capability.disjoint(probe) for capability in self.held))


def _probe(kind: str, participant: str, method: str, name: str | None) -> Capability:
    """All envelopes that such a call could be. A name that has wildcards in it stands for more than itself."""
    payload: dict[str, Any] = {"method": method}
    key = name_field(method)
    if key is not None and name is not None:
        payload["params"] = {key: _EXPRESSION.sub("**", name) if key == "uri" else name}
    try:
        return Capability.parse({"kind": kind, "to": participant, "payload": payload})
    except InvalidCapability:  # too long, or what looks like a regular expression and is none
        return Capability.parse({"kind": kind, "to": participant, "payload": {"method": method}})
