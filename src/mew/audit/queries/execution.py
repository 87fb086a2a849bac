"""PURE. Whether a request that names a proposal carries it out, and whether it is what was proposed."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from mew.audit.record.facts import Fact
from mew.proposals.differences import Difference, differences

from .proposals import is_as_proposed, record_of

__all__ = ["Execution", "Verdict", "executed"]


class Verdict(StrEnum):
    """What a request is beside the proposal it names."""

    AS_PROPOSED = "as_proposed"
    EDITED = "edited"
    UNRELATED = "unrelated"


class Execution(Struct, frozen=True):
    """`changes`: from what was proposed to what was sent, where both are still kept; None: they are not."""

    verdict: Verdict
    changes: tuple[Difference, ...] | None


def executed(proposal: Fact, request: Fact, payloads: tuple[Any, Any] | None) -> Execution:
    """Compare a request with the proposal it names; with the payloads of both, where they are kept."""
    if is_as_proposed(proposal, request):
        return Execution(Verdict.AS_PROPOSED, ())
    record = record_of(proposal)
    fulfils = record is not None and record.is_fulfilled_by(request.whom, request.about, {})
    verdict = Verdict.EDITED if fulfils else Verdict.UNRELATED
    if payloads is None:
        return Execution(verdict, None)
    changes = differences(*map(_compared, payloads))
    if proposal.whom and set(proposal.whom) != set(request.whom):
        changes = (Difference("$.target", _target(proposal.whom), _target(request.whom)), *changes)
    return Execution(verdict, changes)


def _compared(payload: Any) -> dict[str, Any]:
    asked = payload if isinstance(payload, dict) else {}
    return {"method": asked.get("method"), "params": asked.get("params", {})}


def _target(whom: Sequence[str]) -> Any:
    return whom[0] if len(whom) == 1 else list(whom)
