"""PURE. What was said and done about a proposal: rejections, fulfilments with their responses, its withdrawal (§3.3).

Frozen values with the field names of §10.2's style, so that a page gets them as they are.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from mew.protocol.differences import Difference
from mew.protocol.kinds import JsonRpcError

__all__ = [
    "TIMEOUT",
    "Explanation",
    "Fulfilment",
    "ProposalStatus",
    "Rejection",
    "Response",
    "Target",
    "Withdrawal",
    "names_in",
]

TIMEOUT: Final = "timeout"

Target: TypeAlias = str | tuple[str, ...] | None
"""Who is to act: one participant, several, or None where everybody was addressed."""


def names_in(target: Target) -> tuple[str, ...]:
    """The participants a target names."""
    if target is None:
        return ()
    return (target,) if isinstance(target, str) else target


class ProposalStatus(StrEnum):
    """Where a proposal stands.

    Approved: somebody sent the request, and nobody answered it yet. Rejected: its proposer gave up after a rejection.
    Timed out is nobody's no.
    """

    OPEN = "open"
    APPROVED = "approved"
    FULFILLED = "fulfilled"
    FAILED = "failed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    TIMED_OUT = "timed_out"


class _Said(Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    at: datetime


class Explanation(_Said, frozen=True):
    """A chat in which whoever rejected says more (§3.3.3)."""

    text: str


class Rejection(_Said, frozen=True):
    """One participant's no. `reason` is what it said, known code or not; None if nothing."""

    by: str
    reason: str | None = None
    explanations: tuple[Explanation, ...] = ()


class Response(_Said, frozen=True):
    """What came of a fulfilment: `result`, or `error`. Abridged: the result was too long to keep."""

    by: str
    result: Any = UNSET
    error: JsonRpcError | UnsetType = UNSET
    abridged: bool = False

    @property
    def failed(self) -> bool:
        """A JSON-RPC error, or a result that MCP marks as one."""
        if self.error is not UNSET:
            return True
        return isinstance(self.result, dict) and self.result.get("isError") is True


class Fulfilment(_Said, frozen=True):
    """A request that carried a proposal out (decision 001), and whether it is what was proposed.

    `digest` is of what was sent, with the tool's schema as last seen then; None if it has none. Abridged: neither its
    params nor the values of its differences were kept, being too long. Unrelated: it asks for something else, or of
    somebody else, and so carried nothing out.
    """

    by: str
    target: Target
    method: str
    params: dict[str, Any] | UnsetType
    digest: str | None
    edited: bool
    differences: tuple[Difference, ...] = ()
    schema_changed: bool = False
    after_close: bool = False
    unrelated: bool = False
    abridged: bool = False
    response: Response | None = None

    @property
    def is_as_proposed(self) -> bool:
        """Whether what ran is what was proposed, on a tool that was still the same."""
        return not self.edited and not self.schema_changed


class Withdrawal(_Said, frozen=True):
    """The proposer's own end of it. `after_rejection`: somebody had rejected it by then."""

    reason: str | None = None
    after_rejection: bool = False
