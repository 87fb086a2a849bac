"""What others ask of us (`elicitation/create`): one question, and those that are open."""

import weakref
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.feed import Feed
from mew.client.errors import AlreadyDecided
from mew.proposals.bounded import Shares
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind, McpRequest, McpResponse
from mew.protocol.visible import literal, named, visible

from .validation import check

__all__ = ["ELICITATION", "Question", "Questions"]

_MESSAGE_CHARS_MAX: Final = 2_000
_FIELDS_MAX: Final = 24


class Question:
    """What somebody wants to know, who works on something for us; all it says is the asker's word.

    `async for question in me.questions()` gives them. Where several were asked, the first answer counts.
    """

    def __init__(self, connection: ClientConnection, envelope: Envelope, request: McpRequest) -> None:
        self._connection = connection
        self._envelope = envelope
        self._request = request
        self._params: dict[str, Any] = {} if request.params is UNSET else request.params
        self._closed: str | None = None
        self._answer: Envelope | None = None

    def __repr__(self) -> str:
        state = "open" if self.open else self._closed
        return f"<Question {self.id} of {self.asker}, {self.mode}, {state}>"

    @property
    def id(self) -> str:
        """Of its envelope."""
        return self._envelope.id

    @property
    def envelope(self) -> Envelope:
        return self._envelope

    @property
    def asker(self) -> str:
        return self._envelope.sender

    @property
    def about(self) -> tuple[str, ...]:
        """The ids of what it is asked for: the request that the asker works on, as far as it says."""
        return self._envelope.correlation_id

    @property
    def context(self) -> str | None:
        return None if self._envelope.context is UNSET else self._envelope.context

    @property
    def params(self) -> dict[str, Any]:
        """All of it as MCP has it; a copy."""
        return deepcopy(self._params)

    @property
    def message(self) -> str:
        said = self._params.get("message")
        return said if isinstance(said, str) else ""

    @property
    def mode(self) -> Literal["form", "url"]:
        """`form`: fields to fill in. `url`: a page to go to, and nothing secret is said here."""
        return "url" if self._params.get("mode") == "url" else "form"

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the fields of a form; a copy."""
        schema = self._params.get("requestedSchema") if self.mode == "form" else None
        return deepcopy(schema) if isinstance(schema, dict) else None

    @property
    def url(self) -> str | None:
        """The page to go to. Look where it leads before anybody opens it."""
        url = self._params.get("url") if self.mode == "url" else None
        return url if isinstance(url, str) else None

    @property
    def open(self) -> bool:
        """Whether it still waits for an answer: nobody gave one, and the asker has not taken it back."""
        return self._closed is None

    def is_known_as(self, request_id: Any) -> bool:
        """Whether its asker knows it by this: its JSON-RPC id, or that of its envelope."""
        is_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
        return is_id and request_id in (self._request.id, self.id)

    def preview(self) -> str:
        """A few lines, safe for a terminal, that say who asks what."""
        asks = f"{named(self.asker)} asks: {visible(self.message, _MESSAGE_CHARS_MAX)}"
        if self.mode == "url":
            return f"{asks}\n  go to {visible(self.url or '')} (on {visible(_host(self.url))})"
        return "\n".join([asks, *_fields(self.schema or {})])

    async def answer(self, content: dict[str, Any] | None = None, /, **more: Any) -> None:
        """Accept, with the fields by name or in `content`; returns once that was accepted by the gateway.

            await question.answer(branch="main")

        With a page to go to there are no fields: the answer says that somebody agreed to go there.

        Raises:
            InvalidArguments: the schema does not allow these; nothing was sent.
            ValueError: fields where there are none to fill in; nothing was sent.
            AlreadyDecided: it is no longer open; nothing was sent.
            Refused: the gateway said no.
            Disconnected: the connection ended for good.
        """
        fields = {**(content or {}), **more}
        if self.mode == "url":
            if fields:
                raise ValueError(f"question {self.id} is a page to go to, and has no fields")
            await self._respond({"action": "accept"})
            return
        check(fields, self.schema, whose="the question's")
        await self._respond({"action": "accept", "content": fields})

    async def decline(self) -> None:
        """Say no: somebody decided against it.

        Raises:
            AlreadyDecided, Refused, Disconnected: as `answer`.
        """
        await self._respond({"action": "decline"})

    async def cancel(self) -> None:
        """Leave it without a decision.

        Raises:
            AlreadyDecided, Refused, Disconnected: as `answer`.
        """
        await self._respond({"action": "cancel"})

    def close(self, why: str) -> None:
        """It is over; an answer of ours that has not left yet does not."""
        if self._closed is None or self._answer is not None:
            self._closed = why
            if self._answer is not None:
                gone = AlreadyDecided(f"question {self.id} {why}")
                self._connection.take_back(self._answer.id, gone)

    async def _respond(self, result: dict[str, Any]) -> None:
        if self._closed is not None:
            raise AlreadyDecided(f"question {self.id} {self._closed}")
        connection = self._connection
        payload = self._request.response({"result": result})
        self._answer = connection.compose(
            Kind.MCP_RESPONSE,
            payload,
            to=[self.asker],
            correlation_id=[self.id],
            context=self.context,
        )
        being = self._closed = f"is being answered by {connection.session.me}"
        try:
            await connection.send(self._answer)
            self._closed = f"was answered by {connection.session.me}"
        except AlreadyDecided:
            raise
        except BaseException:
            if self._closed == being:
                self._closed = None  # it may be answered again
            raise
        finally:
            self._answer = None


def _host(url: str | None) -> str:
    try:
        return urlsplit(url or "").hostname or "no host"
    except ValueError:
        return "no host"


def _fields(schema: dict[str, Any]) -> list[str]:
    properties, required = schema.get("properties"), schema.get("required")
    fields = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    lines = [
        f"  {named(name)}{' (required)' if name in needed else ''}: {_kind(field)}"
        for name, field in list(fields.items())[:_FIELDS_MAX]
    ]
    return [*lines, f"  … and {len(fields) - _FIELDS_MAX} more"] if len(fields) > _FIELDS_MAX else lines


def _kind(field: Any) -> str:
    if not isinstance(field, dict):
        return literal(field)
    said = [field.get("title"), field.get("description")]
    words = [visible(text) for text in said if isinstance(text, str)]
    shape = {name: value for name, value in field.items() if name not in ("title", "description")}
    return "; ".join([*words, literal(shape)])


ELICITATION: Final = "elicitation/create"
_CANCELLED: Final = "notifications/cancelled"
_OPEN_MAX: Final = 256
_UNKNOWN_METHOD: Final = -32601


class Questions:
    """Those that are open, at most 256: past that, the oldest of whoever asks the most is forgotten."""

    def __init__(self, connection: ClientConnection) -> None:
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
