"""The questions that wait for an answer of one's own: asked before one came, or since."""

from collections import deque
from typing import Any, Final

from mew.cli.locate.ids import pick_id
from mew.client.client import Client
from mew.client.connection.feed import Feed
from mew.client.mcp.questions import Question, Questions
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

__all__ = ["Inbox"]

_PAST_MAX: Final = 1_000
_MEANWHILE_MAX: Final = 16_384


class Inbox:
    """Made by `Inbox.open`. `waiting` are those that were open then, `coming` gives those that come."""

    def __init__(self, waiting: list[Question], coming: Feed[Question]) -> None:
        self.waiting = waiting
        self.coming = coming

    @classmethod
    async def open(cls, me: Client) -> "Inbox":
        """With what was asked in the last 1,000 envelopes of MCP.

        Raises:
            ConnectError: the gateway does not tell.
        """
        meanwhile: deque[Envelope] = deque(maxlen=_MEANWHILE_MAX)

        def listen(envelope: Envelope, payload: Any) -> None:
            meanwhile.append(envelope)

        me.connection.listen(listen, (Kind.MCP_REQUEST, Kind.MCP_RESPONSE))
        try:
            newest_first = await me.history(kind="mcp/*", limit=_PAST_MAX, newest_first=True).list()
        finally:
            me.connection.unlisten(listen)
        asked = Questions(me.connection)  # which listens itself: nothing is waited for from here
        past = {envelope.id: envelope for envelope in (*reversed(newest_first), *meanwhile)}
        asked.recall(past.values())
        coming = asked.questions()
        waiting = [await anext(coming) for _ in range(len(coming))]
        here = [one for one in waiting if one.asker in me.participants]
        return cls(here, coming)

    def find(self, written: str) -> Question:
        """The question with this id, or one that begins or ends so.

        Raises:
            SaidNo: there is none, or several could be meant.
        """
        waiting = {one.id: one for one in self.waiting}
        unknown = f"no question {written!r} waits for you; 'mew questions' lists those that do"
        return waiting[pick_id(written, waiting, what="question", unknown=unknown)]
