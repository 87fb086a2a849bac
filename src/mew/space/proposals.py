"""Withdrawal (§3.3.1): only by the proposer. Of a proposal the gateway knows nothing but id and sender."""

from datetime import datetime

from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import ReasonPayload

from .decisions import RefusalDetails
from .state import SpaceState

__all__ = ["check_withdraw"]


def check_withdraw(
    state: SpaceState, at: datetime, envelope: Envelope, asked: ReasonPayload
) -> RefusalDetails | None:
    if not envelope.correlation_id:
        return RefusalDetails(
            Refusal.INVALID_PAYLOAD, "mcp/withdraw must name the proposal in 'correlation_id'"
        )
    for proposal in envelope.correlation_id:
        proposer = state.recent.get(EnvelopeId(proposal))
        if proposer is not None and proposer != envelope.sender:
            return RefusalDetails(
                Refusal.NOT_PROPOSER, f"proposal {proposal!r} is {proposer!r}'s, not {envelope.sender!r}'s"
            )
    return None
