"""PURE. Whether a request that names a proposal carries it out, and whether it is what was proposed."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from mew.protocol.differences import Difference, differences

__all__ = ["Execution", "Verdict", "carries_out", "executed", "is_as_proposed"]


class Asked(Protocol):
    """What the record has of a proposal or a request."""

    @property
    def about(self) -> str: ...
    @property
    def whom(self) -> tuple[str, ...]: ...
    @property
    def digest(self) -> str: ...


class Verdict(StrEnum):
    """What a request is beside the proposal it names."""

    AS_PROPOSED = "as_proposed"
    EDITED = "edited"
    UNRELATED = "unrelated"


class Execution(Struct, frozen=True):
    """`changes`: from what was proposed to what was sent, where both are still kept; None: they are not."""

    verdict: Verdict
    changes: tuple[Difference, ...] | None


def carries_out(proposal: Asked, request: Asked) -> bool:
    """Whether it asks the same of one that the proposal names, be it with other arguments."""
    meant, asked = set(proposal.whom), set(request.whom)
    return request.about == proposal.about and (not meant or (bool(asked) and asked <= meant))


def is_as_proposed(proposal: Asked, request: Asked) -> bool:
    """Whether it is what was proposed: a proposal to everybody leaves open who is to act."""
    same = bool(proposal.digest) and request.digest == proposal.digest
    return same and not _retargeted(proposal, request)


def executed(proposal: Asked, request: Asked, payloads: tuple[Any, Any] | None) -> Execution:
    """A request beside the proposal it names; with the payloads of both, where they are kept."""
    if is_as_proposed(proposal, request):
        return Execution(Verdict.AS_PROPOSED, ())
    verdict = Verdict.EDITED if carries_out(proposal, request) else Verdict.UNRELATED
    if payloads is None:
        return Execution(verdict, None)
    changes = differences(*map(_compared, payloads))
    if _retargeted(proposal, request):
        changes = (Difference("$.target", _target(proposal.whom), _target(request.whom)), *changes)
    return Execution(verdict, changes)


def _retargeted(proposal: Asked, request: Asked) -> bool:
    return bool(proposal.whom) and set(proposal.whom) != set(request.whom)


def _compared(payload: Any) -> dict[str, Any]:
    asked = payload if isinstance(payload, dict) else {}
    return {"method": asked.get("method"), "params": asked.get("params", {})}


def _target(whom: Sequence[str]) -> Any:
    return whom[0] if len(whom) == 1 else list(whom)
