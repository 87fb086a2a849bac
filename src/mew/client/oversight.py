"""Control of others (§3.9): what a coordinator asks of a participant, and waits for where there is an answer."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar

from msgspec import UNSET, UnsetType

from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Compact, CompactDone, Forget, Kind, Nothing, Pause, Reason, RequestStatus

from .errors import Absent
from .wire.awaiting import answered, awaiting, gone
from .wire.connection import Connection

__all__ = ["Oversight"]

Field = TypeVar("Field")

_PAUSED_MAX: Final = 1_024
_PAUSES_MAX: Final = 32


class Oversight:
    """All of these raise `Refused` where the gateway says no, which it does where one's capabilities do not reach."""

    def __init__(self, connection: Connection) -> None:
        """From here on, the pauses of everyone are known."""
        self._connection = connection
        self._pauses: dict[str, tuple[str, ...]] = {}
        connection.listen(self._listen, (Kind.PAUSE, Kind.RESUME))

    async def pause(self, who: str, *, timeout_s: float | None = None, reason: str | None = None) -> Envelope:
        """Stop `who` from sending (§3.9.1): until somebody resumes it, or for `timeout_s`."""
        return await self._tell(
            Kind.PAUSE, who, Pause(reason=_given(reason), timeout_seconds=_given(timeout_s))
        )

    async def resume(self, who: str, *, reason: str | None = None) -> Envelope:
        """Lift the pause of `who`, naming those that it lifts where we saw them (§3.9.2)."""
        pauses = self._pauses.get(who, ())
        return await self._tell(Kind.RESUME, who, Reason(reason=_given(reason)), correlation_id=pauses)

    async def request_status(
        self, who: str, *, fields: Sequence[str] | None = None, timeout_s: float = 5.0
    ) -> dict[str, Any]:
        """What `who` says of itself (§3.9.4): `messages_in_context`, and whatever else it measures.

        Raises:
            Absent: it is not here, or has left.
            Unanswered: it did not say within `timeout_s`.
        """
        asked = RequestStatus(fields=UNSET if fields is None else list(fields))
        answer = await self._ask(Kind.REQUEST_STATUS, who, asked, Kind.STATUS, timeout_s)
        return answer.content

    async def forget(
        self, who: str, direction: Literal["oldest", "newest"], entries: int | None = None
    ) -> Envelope:
        """Have `who` drop the oldest or newest of what it remembers (§3.9.5).

        Raises:
            ValueError: the direction is neither.
        """
        if direction not in ("oldest", "newest"):
            raise ValueError(f"the direction is 'oldest' or 'newest', not {direction!r}")
        return await self._tell(Kind.FORGET, who, Forget(direction=direction, entries=_given(entries)))

    async def compact(
        self,
        who: str,
        *,
        target_tokens: int | None = None,
        reason: str | None = None,
        timeout_s: float = 60.0,
    ) -> CompactDone:
        """Have `who` make room in its memory (§3.9.6); returns once it is done, or was skipped.

        Raises:
            Absent: it is not here, or has left.
            Unanswered: it was not done within `timeout_s`; who has nothing to compact may ignore it.
        """
        asked = Compact(reason=_given(reason), target_tokens=_given(target_tokens))
        answer = await self._ask(Kind.COMPACT, who, asked, Kind.COMPACT_DONE, timeout_s)
        return answer.read(CompactDone)

    async def clear(self, who: str) -> Envelope:
        """Have `who` forget everything (§3.9.8)."""
        return await self._tell(Kind.CLEAR, who, Nothing())

    async def restart(self, who: str) -> Envelope:
        """Have `who` begin again as it was configured (§3.9.9)."""
        return await self._tell(Kind.RESTART, who, Nothing())

    async def shutdown(self, who: str, *, timeout_s: float = 10.0) -> Envelope:
        """Have `who` cease (§3.9.10); returns once it acknowledged or left, at once where it is not here now.

        Raises:
            Unanswered: it did neither within `timeout_s`; nothing it sends passes the gateway any more.
        """
        connection = self._connection
        envelope = connection.compose(Kind.SHUTDOWN, Nothing(), to=[who])

        def look(seen: Envelope, payload: Any) -> bool | None:
            if gone(connection, who):
                return True
            return True if _answers(seen, Kind.CHAT_ACKNOWLEDGE, who, envelope) else None

        with awaiting(connection, look) as answer:
            await connection.send(envelope)
            if not gone(connection, who):
                await answered(answer, timeout_s, f"{who!r} neither acknowledged its shutdown nor left")
        return envelope

    async def _tell(
        self, kind: str, who: str, payload: Any, *, correlation_id: Sequence[str] = ()
    ) -> Envelope:
        connection = self._connection
        return await connection.send(
            connection.compose(kind, payload, to=[who], correlation_id=correlation_id)
        )

    async def _ask(self, kind: str, who: str, payload: Any, wanted: str, timeout_s: float) -> Envelope:
        connection = self._connection
        envelope = connection.compose(kind, payload, to=[who])

        def look(seen: Envelope, payload: Any) -> Envelope | None:
            if gone(connection, who):
                raise Absent(f"{who!r} has left")
            return seen if _answers(seen, wanted, who, envelope) else None

        if gone(connection, who):
            raise Absent(f"{who!r} is not in the space")
        with awaiting(connection, look) as answer:
            await connection.send(envelope)
            return await answered(answer, timeout_s, f"no {wanted} of {who!r}")

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind == Kind.PAUSE:
            for who in envelope.to:
                before = self._pauses.pop(who, ())
                self._pauses[who] = (*before, envelope.id)[-_PAUSES_MAX:]
            while len(self._pauses) > _PAUSED_MAX:
                del self._pauses[next(iter(self._pauses))]
        elif envelope.kind == Kind.RESUME:
            named = set(envelope.correlation_id)
            lifted = envelope.to or (who for who, pauses in self._pauses.items() if named & set(pauses))
            for who in tuple(lifted):
                self._pauses.pop(who, None)


def _answers(seen: Envelope, kind: str, who: str, asked: Envelope) -> bool:
    return seen.kind == kind and seen.sender == who and asked.id in seen.correlation_id


def _given(value: Field | None) -> Field | UnsetType:
    return UNSET if value is None else value
