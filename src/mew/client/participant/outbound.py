"""What a participant says by itself: only what it may, and of what it may not, one line in the log."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mew.client.connection.connection import ClientConnection
from mew.protocol.envelope import Envelope

__all__ = ["Outbound"]

_log = logging.getLogger(__name__)

_UNACCEPTED_MAX: Final = 4_096


class Outbound:
    """Posts envelopes, and knows which of them are not accepted yet."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._told: set[str] = set()
        self._unaccepted: dict[str, asyncio.Future[Envelope]] = {}
        self._is_full = False

    def may(self, kind: str, payload: Mapping[str, Any], *, to: Sequence[str] = ()) -> bool:
        return self._connection.session.may(kind, to, payload)

    def say(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        to: Sequence[str] = (),
        about: Sequence[str] = (),
        context: str | None = None,
    ) -> asyncio.Future[Envelope] | None:
        """Send without waiting; the future is that of `ClientConnection.post`.

        None: it may not be said, or 4,096 that were said before are not accepted yet, as while we are paused.

        Raises:
            TypeError, ValueError: the payload has no form in JSON.
        """
        if not self.may(kind, payload, to=to):
            if kind not in self._told:
                self._told.add(kind)
                me = self._connection.session.me
                _log.warning("%s may not send %s: it lacks the capability, so none is sent", me, kind)
            return None
        if len(self._unaccepted) >= _UNACCEPTED_MAX:
            if not self._is_full:
                self._is_full = True
                _log.warning(
                    "%d envelopes are not accepted yet: what is said now is dropped", _UNACCEPTED_MAX
                )
            return None
        self._is_full = False
        envelope = self._connection.compose(kind, payload, to=to, correlation_id=about, context=context)
        accepted = self._connection.post(envelope)
        self._unaccepted[envelope.id] = accepted
        accepted.add_done_callback(lambda _: self._unaccepted.pop(envelope.id, None))
        return accepted

    def said(self, envelope_id: str) -> bool:
        """Whether this is what we have just said, and now see."""
        return envelope_id in self._unaccepted

    async def flush(self, within_s: float) -> None:
        """Until everything said was accepted or refused, or that time is over."""
        if self._unaccepted:
            await asyncio.wait(tuple(self._unaccepted.values()), timeout=within_s)
