"""From the doors to the log of one space. Asks the space first, so that what it would refuse stays out of the log."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

from mew.log.base import Log, LogUnavailable
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind
from mew.space import Connection, Event, Refused, Sent, Space, Violated
from mew.space.space import CHANGING_KINDS

from .rate import Bucket
from .tokens import hash_token
from .trace import Trace

__all__ = ["Intake"]

_log = logging.getLogger(__name__)

_RECORDED_PER_S: Final = 20
_RECORDED_BURST: Final = 200
_NOT_RECORDED: Final = frozenset({Refusal.RATE_LIMITED, Refusal.DUPLICATE_ID})


class Intake:
    """Settles what is random or timed and appends; the space's answer at the entry's place is what counts."""

    __slots__ = (
        "_at",
        "_log",
        "_looked_s",
        "_loop",
        "_now",
        "_space",
        "_tokens",
        "_trace",
        "_violations",
        "appended",
        "applied",
        "unsettled",
    )

    def __init__(
        self,
        space: Space,
        log: Log,
        now: Callable[[], datetime],
        trace: Trace | None,
        since: datetime | None = None,
    ) -> None:
        """`since`: when the last entry was made. Times in a log never go back, though a clock may."""
        self._space = space
        self._log = log
        self._now = now
        self._trace = trace
        self._loop = asyncio.get_running_loop()
        self._looked_s = -1.0
        self._at = now() if since is None else max(since, now())
        self._violations = Bucket(_RECORDED_PER_S, _RECORDED_BURST)
        self._tokens: dict[str, str] = {}  # made for invitations on their way, by their hash
        self.appended = 0
        """Entries handed to the log."""
        self.applied = 0
        """Those of them that have come round."""
        self.unsettled = 0
        """Those on their way that can change what the space allows."""

    def submit(
        self,
        envelope: Envelope,
        raw: bytes,
        connection: Connection | None = None,
        *,
        lenient: bool = False,
        plain: bool = False,
    ) -> Refused | None:
        """Append an envelope, or say why not; `plain`: the space has said just now that it is.

        Raises:
            LogUnavailable: it was not taken.
        """
        at = self.at(self._loop.time())
        token_hash = ""
        if self.unsettled or not plain:
            if not self.unsettled:  # else what is on its way may allow it: its place in the log decides
                refused = self._space.refusal(at, envelope, lenient=lenient)
                if refused is not None:
                    return refused
            if envelope.kind in CHANGING_KINDS:
                self.unsettled += 1
                if envelope.kind == Kind.INVITE:
                    token_hash = self._make_token()
        self._log.append(at, Sent(envelope, raw, connection, lenient, token_hash))
        self.appended += 1
        return None

    def at(self, loop_s: float) -> datetime:
        """The time that an entry of now gets. The clock is looked at once for each millisecond of uvloop's."""
        return self._at if loop_s == self._looked_s else self._look_at_clock(loop_s)

    def append(self, event: Event) -> None:
        """Something other than an envelope happened.

        Raises:
            LogUnavailable: it was not taken.
        """
        if _may_change(event):
            self.unsettled += 1
        self._log.append(self._look_at_clock(self._loop.time()), event)
        self.appended += 1

    def settle(self, event: Event) -> None:
        """An event has come round."""
        if _may_change(event):
            self.unsettled -= 1

    def token(self, sent: Sent) -> str | None:
        """The token made here for an invitation; None if another node made it."""
        return self._tokens.get(sent.token_hash)

    def forget_token(self, sent: Sent) -> None:
        self._tokens.pop(sent.token_hash, None)

    def record(self, who: ParticipantId, envelope_id: EnvelopeId | None, kind: str, refused: Refused) -> None:
        """Note in the log that a rule said no, without what was sent, and not too often (§7.3)."""
        if self.note(who, envelope_id, kind, refused):
            with suppress(LogUnavailable):  # the room is closing: there is nobody to tell
                culprit = envelope_id or EnvelopeId("")
                self.append(Violated(who, culprit, kind, refused.refusal, refused.lacked or ""))

    def note(self, who: ParticipantId, envelope_id: EnvelopeId | None, kind: str, refused: Refused) -> bool:
        """Tell the operator; whether it is worth telling the space too."""
        space = self._space.state.rules.id
        if self._trace is not None:
            self._trace.refused(space, who, envelope_id or "", kind, refused)
        if not kind or refused.refusal in _NOT_RECORDED or self._violations.take(self._loop.time()):
            return False
        where = {"space": space, "who": who, "kind": kind, "refusal": str(refused.refusal)}
        _log.info("refused", extra=where)
        return True

    def _look_at_clock(self, loop_s: float) -> datetime:
        self._looked_s = loop_s
        self._at = max(self._at, self._now())
        return self._at

    def _make_token(self) -> str:
        token = secrets.token_urlsafe(32)
        token_hash = hash_token(token)
        self._tokens[token_hash] = token
        return token_hash


def _may_change(event: Event) -> bool:
    if isinstance(event, Sent):
        return event.envelope.kind in CHANGING_KINDS
    return not isinstance(event, Violated)
