"""One question that somebody asks us (`elicitation/create` of MCP), and our answer to it."""

from copy import deepcopy
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import UNSET

from mew.client.errors import AlreadyDecided
from mew.client.wire.connection import Connection
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest
from mew.protocol.visible import literal, named, visible

from .validation import check

__all__ = ["Question"]

_MESSAGE_CHARS_MAX: Final = 2_000
_FIELDS_MAX: Final = 24


class Question:
    """What somebody wants to know, who works on something for us; all it says is the asker's word.

    `async for question in me.questions()` gives them. Where several were asked, the first answer counts.
    """

    def __init__(self, connection: Connection, envelope: Envelope, request: McpRequest) -> None:
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
