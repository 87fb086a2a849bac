"""Which refusals are worth a line in the log and an entry in the journal (§7.3)."""

import asyncio
import logging
from typing import Final

from mew.gateway.trace import Trace
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.space import RefusalDetails

from .rate_limit import RateLimiter

__all__ = ["Violations"]

_logger = logging.getLogger(__name__)

_PER_S: Final = 20
_BURST: Final = 200
_NOT_RECORDED: Final = frozenset({Refusal.RATE_LIMITED, Refusal.DUPLICATE_ID})


class Violations:
    """The refusals of one space, at a bounded rate."""

    def __init__(self, space: str, trace: Trace | None) -> None:
        self._space = space
        self._trace = trace
        self._loop = asyncio.get_running_loop()
        self._limiter = RateLimiter(_PER_S, _BURST)

    def is_worth_recording(
        self, who: ParticipantId, envelope_id: EnvelopeId | None, kind: str, refused: RefusalDetails
    ) -> bool:
        """Log and trace a refusal; return whether to journal it."""
        if self._trace is not None:
            self._trace.refused(self._space, who, envelope_id or "", kind, refused)
        if not kind or refused.refusal in _NOT_RECORDED or not self._limiter.take(self._loop.time()):
            return False
        what = {"space": self._space, "who": who, "kind": kind, "refusal": str(refused.refusal)}
        _logger.info("refused", extra=what)
        return True
