"""One WebSocket connection of a participant: pass messages to its room and deliver through its outbox."""

import hmac
import logging
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from mew.gateway.auth.guard import Admission
from mew.gateway.room.outbox import Outbox
from mew.gateway.room.rate_limit import RateLimiter
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.frames import MARK
from mew.space import ConnectionId

from . import compat
from .wire import WebSocketWire

__all__ = ["WebSocketConnection"]

_log = logging.getLogger(__name__)

_REFUSALS_PER_S: Final = 100
_REFUSALS_BURST: Final = 2_000


class WebSocketConnection:
    """A participant's connection.

    Whoever joins by a frame is a TypeScript client and `lenient` (design §3.3, §3.19): with `join`, it did so before
    it was admitted; otherwise it may as its first frame, if `token`, which the handshake brought, is the same.
    """

    __slots__ = (
        "_claimed",
        "_now",
        "_token",
        "after",
        "budget",
        "id",
        "lenient",
        "outbox",
        "rate_limiter",
        "receive",
        "refusal_limiter",
        "room",
        "who",
        "wire",
    )

    def __init__(
        self,
        admission: Admission,
        wire: WebSocketWire,
        now: Callable[[], datetime],
        *,
        token: str | None = None,
        join: compat.JoinFrame | None = None,
        after: EnvelopeId | None = None,
    ) -> None:
        limits = admission.room.limits
        self.id = ConnectionId(admission.room.connection_prefix + uuid.uuid4().hex)
        self.room = admission.room
        self.who: ParticipantId = admission.who
        self.after = after
        self.rate_limiter = RateLimiter(limits.envelopes_per_second, limits.burst)
        self.refusal_limiter = RateLimiter(_REFUSALS_PER_S, _REFUSALS_BURST)
        self.budget = self.room.budget_of(self.who)
        tell_dropped = partial(self.room.tell_dropped, self)
        self.outbox = Outbox(wire.transport, limits.outbox_bytes, self._overflowed, tell_dropped)
        self.wire = wire
        self.lenient = join is not None
        self._claimed = None if join is None else join.claimed
        self._now = now
        self._token = token
        self.receive: Callable[[list[bytes], int], None] = (
            self._receive_first if join is None else self._receive_lenient
        )

    def _receive_first(self, texts: list[bytes], size: int) -> None:
        """Handle the first messages, which may begin with a join frame."""
        token, self._token = self._token, None
        if compat.is_join(texts[0]):
            self.receive = self._receive_lenient
            if self._join(texts[0], token):
                self._receive_lenient(texts[1:], size)
            return
        self.receive = partial(self.room.receive, self)
        self.receive(texts, size)

    def _join(self, text: bytes, token: str | None) -> bool:
        """Be lenient from here on; return whether the join fits the token of the handshake."""
        try:
            join = compat.read_join(text, token)
        except ProtocolError as error:
            is_version = error.refusal is Refusal.WRONG_VERSION
            self.close(CloseCode.WRONG_VERSION if is_version else CloseCode.BAD_JOIN, str(error))
            return False
        if token is None or not hmac.compare_digest(join.token.encode(), token.encode()):
            self.close(CloseCode.BAD_TOKEN, "the join has another token than the handshake")
            return False
        if join.space not in (None, self.room.id):
            self.close(CloseCode.NO_SUCH_SPACE, f"you are connected to space {self.room.id!r}")
            return False
        problem = compat.claim_problem(join.claimed, self.who, self.room.space.is_known)
        if problem is not None:
            self.close(CloseCode.BAD_TOKEN, problem)
            return False
        self.lenient, self._claimed = True, join.claimed
        return True

    def receive_binary(self, data: bytes) -> None:
        self.room.receive_binary(self, data)

    def receive_error(self, code: int, message: str) -> None:
        self.room.receive_error(self, code, message)

    def pause(self) -> None:
        self.wire.pause()

    def resume(self) -> None:
        self.wire.resume()

    def close(self, code: int, reason: str) -> None:
        self.outbox.stop()
        self.wire.close(code, reason)

    def _overflowed(self) -> None:
        _log.warning("slow reader closed", extra={"who": self.who, "connection": self.id})
        self.close(CloseCode.SLOW_READER, "you read too slowly; come back with ?after=ID")

    def _receive_lenient(self, texts: list[bytes], size: int) -> None:
        completed = [text for one in texts if (text := self._completed(one)) is not None]
        if completed:
            self.room.receive_lenient(self, completed, size)

    def _completed(self, text: bytes) -> bytes | None:
        """What a current client would have sent; None: nothing."""
        if text.startswith(MARK):
            return text
        try:
            if compat.is_heartbeat(text):
                return None
            new_id, ts = str(uuid.uuid4()), self._now().isoformat().replace("+00:00", "Z")
            return compat.complete(text, self.who, self._claimed, new_id=new_id, ts=ts)
        except ProtocolError:
            return text  # the room says what is wrong with it
