"""The questions that others ask us: which are open, and who wants to be given them."""

import weakref
from collections.abc import Iterable
from typing import Any, Final

from msgspec import UNSET

from mew.client.wire.connection import Connection
from mew.client.wire.feed import Feed
from mew.proposals.bounded import Shares
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind, McpRequest, McpResponse

from .question import Question

__all__ = ["ELICITATION", "Questions"]

ELICITATION: Final = "elicitation/create"
_CANCELLED: Final = "notifications/cancelled"
_OPEN_MAX: Final = 256
_UNKNOWN_METHOD: Final = -32601


class Questions:
    """Those that are open, at most 256: past that, the oldest of whoever asks the most is forgotten."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._open: dict[str, Question] = {}
        self._shares: Shares[str] = Shares()
        self._feeds: weakref.WeakSet[Feed[Question]] = weakref.WeakSet()
        connection.listen(self._listen, (Kind.MCP_REQUEST, Kind.MCP_RESPONSE))

    def questions(self) -> Feed[Question]:
        """Those that are open, and each that comes."""
        feed: Feed[Question] = self._connection.feed()
        for question in self._open.values():
            feed.offer(question)
        self._feeds.add(feed)
        return feed

    @property
    def wanted(self) -> bool:
        """Whether anybody here takes them, so that nobody else need answer."""
        return any(not feed.closed for feed in self._feeds)

    def recall(self, shown: Iterable[Envelope]) -> None:
        """Know of what was asked before we came."""
        for envelope in shown:
            try:
                if envelope.kind == Kind.MCP_REQUEST:
                    self._listen(envelope, envelope.read(McpRequest))
                elif envelope.kind == Kind.MCP_RESPONSE:
                    self._listen(envelope, envelope.read(McpResponse))
            except ProtocolError:
                continue

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        match payload:
            case McpRequest(method=method) if method == ELICITATION:
                if self._connection.session.me in envelope.to:
                    self._ask(Question(self._connection, envelope, payload))
            case McpRequest(method=method) if method == _CANCELLED and self._open:
                self._take_back(envelope)
            case McpResponse() if self._open:
                self._answered(envelope, payload)

    def _ask(self, question: Question) -> None:
        if question.id in self._open:
            return
        self._open[question.id] = question
        self._shares.hold(question.asker, question.id)
        if self._shares.count > _OPEN_MAX:
            self._close(self._open[self._shares.oldest_of_most()], "was one too many")
        for feed in tuple(self._feeds):
            feed.offer(question)

    def _take_back(self, envelope: Envelope) -> None:
        """By its asker, who knows it by its JSON-RPC id, or by that of its envelope."""
        params = envelope.content.get("params")
        wanted = params.get("requestId") if isinstance(params, dict) else None
        for question in tuple(self._open.values()):
            is_meant = question.id in envelope.correlation_id or question.is_known_as(wanted)
            if question.asker == envelope.sender and is_meant:
                self._close(question, f"was taken back by {question.asker}")

    def _answered(self, envelope: Envelope, payload: McpResponse) -> None:
        """By one of those it was addressed to. That one cannot answer is no answer where others can."""
        for about in envelope.correlation_id:
            question = self._open.get(about)
            if question is None or envelope.sender not in question.envelope.to:
                continue
            is_unable = payload.error is not UNSET and payload.error.code == _UNKNOWN_METHOD
            if not is_unable or len(question.envelope.to) == 1:
                self._close(question, f"was answered by {envelope.sender}")

    def _close(self, question: Question, why: str) -> None:
        del self._open[question.id]
        self._shares.release(question.asker, question.id)
        question.close(why)
