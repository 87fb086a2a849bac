"""Caller: somebody in a space who uses what others offer there as MCP servers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Unpack

from mew.proposals.book import ProposalBook
from mew.proposals.catalogue import Catalogue, Tool

from .connection.connection import ClientConnection
from .errors import RpcError
from .mcp.requests import OnProgress, Requests, tool_call
from .mcp.results import Message, contents_of, messages_of, value_of
from .member import Member
from .proposals.proposer import AskOptions, Proposer
from .proposals.review import Reviews
from .proposals.tracker import keep_current
from .streams.streams import Streams

__all__ = ["Caller"]

_INVALID: Final = -32603


class Caller(Member):
    """Asks others: by a request where it may, by a proposal where it may only propose."""

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__(connection)
        self.catalogue = Catalogue()
        """What each participant offers, as far as anyone asked."""
        self.book = ProposalBook(self.catalogue)
        """All proposals: which are open, who decided what, and whether that is what ran."""
        self.streams = Streams(connection)
        """Streams: open, read, find (§3.10)."""
        self._requests = Requests(connection, self.streams)
        keep_current(connection, self.book)
        self._reviews = Reviews(connection, self.book, self._requests)
        self._proposals = Proposer(connection, self._requests, self.book)

    async def request(
        self,
        to: str,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float = 60.0,
        on_progress: OnProgress | None = None,
        context: str | None = None,
        correlation_id: Sequence[str] = (),
    ) -> Any:
        """Ask a participant, and return the `result` of its answer.

        Raises:
            RpcError: the answer is a JSON-RPC error.
            Absent: nobody of that name is in the space.
            Unanswered: no answer came in time.
            StreamBroken: the result came over a stream, and not all of it arrived.
            Refused, Disconnected: as `send`.
        """
        return await self._requests.request(
            to,
            method,
            params,
            timeout_s=timeout_s,
            on_progress=on_progress,
            context=context,
            correlation_id=correlation_id,
        )

    async def notify(self, to: str | None, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell a participant, or with None everyone, something that is not answered."""
        await self._requests.notify(to, method, params)

    async def ask(
        self,
        participant: str,
        method: str,
        params: dict[str, Any] | None = None,
        **options: Unpack[AskOptions],
    ) -> dict[str, Any]:
        """Any MCP request, by a request where I may, by a proposal where I may only propose: the result as MCP has it.

        Without `timeout_s` a request has 60 seconds, a proposal 300; `strategy` and `reviewers` are for the latter, as
        in `propose`, as are `why`, which reviewers are shown, and `expires_in`, the seconds after which nobody can
        approve it. `on_update` is told where it stands. Cancelled, it takes back what it sent.

        Raises:
            RpcError: the answer is a JSON-RPC error, or no result as MCP has them.
            NotFulfilled: the proposal was rejected, withdrawn, or nobody took it up in time: `outcome` says which.
            UnknownTool: of `tools/call`, as `call`.
            Absent: nobody of that name is in the space.
            Unanswered: no answer came in time.
            Refused: I may neither request nor propose it, or the gateway said no.
            StreamBroken: the result came over a stream, and not all of it arrived.
            Disconnected: the connection ended for good.
        """
        result = await self._proposals.ask(
            participant,
            method,
            params,
            **options,
        )
        if not isinstance(result, dict):
            raise RpcError(_INVALID, f"what {participant!r} answers to {method} is no result of MCP")
        return result

    # Tools.

    async def tools(self, participant: str | None = None) -> Sequence[Tool]:
        """The tools of one participant as it lists them now, or of everyone here who answers.

        Who leaves a listing unanswered for 3 seconds is not asked again until they rejoin.

        Raises:
            Unanswered: the participant named did not answer.
            RpcError, Absent, Refused, Disconnected: as `request`, for the participant named.
        """
        listings = self._proposals.listings
        return await (listings.all() if participant is None else listings.of(participant))

    async def call(
        self,
        participant: str,
        tool: str,
        /,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[AskOptions],
    ) -> Any:
        """Call a tool and return its value: by a request where I may, by a proposal where I may only propose.

            total = await me.call("calculator", "add", {"a": 2, "b": 3})

        The tool's arguments are one mapping, apart from the options of this call, which are those of `ask`. So a
        misspelt option is a `TypeError`, and an error in mypy, instead of one more argument of the tool.

        Raises:
            ToolError: the tool ran and failed.
            NotFulfilled: the proposal was rejected, withdrawn, or nobody took it up in time: `outcome` says which.
            UnknownTool: the participant is known to list no such tool; nothing was sent.
            RpcError, Absent, Unanswered, Refused, StreamBroken, Disconnected: as `ask`.
        """
        result = await self._proposals.ask(
            participant,
            "tools/call",
            tool_call(tool, arguments),
            **options,
        )
        return value_of(result)

    # Resources.

    async def resources(self, participant: str) -> Sequence[dict[str, Any]]:
        """The resources that a participant offers, as it lists them now; see also `resource_templates`."""
        return await self._requests.listing(participant, "resources")

    async def resource_templates(self, participant: str) -> Sequence[dict[str, Any]]:
        """The resources whose URI has variables, `notes://{name}`, as a participant lists them now."""
        return await self._requests.listing(participant, "resourceTemplates", "resources/templates/list")

    async def read(
        self,
        participant: str,
        uri: str,
        **options: Unpack[AskOptions],
    ) -> Any:
        """Read a resource: its text, or its `bytes`, and a list of these where it has not exactly one content.

            notes = await me.read("files", "file:///notes.txt")

        Raises:
            RpcError, NotFulfilled, Absent, Unanswered, Refused, StreamBroken, Disconnected: as `ask`.
        """
        result = await self._proposals.ask(
            participant,
            "resources/read",
            {"uri": uri},
            **options,
        )
        return contents_of(result)

    # Prompts.

    async def prompts(self, participant: str) -> Sequence[dict[str, Any]]:
        """The prompts that a participant offers, as it lists them now."""
        return await self._requests.listing(participant, "prompts")

    async def prompt(
        self,
        participant: str,
        name: str,
        /,
        arguments: Mapping[str, str] | None = None,
        **options: Unpack[AskOptions],
    ) -> list[Message]:
        """Get a prompt's messages, with arguments as in `call`; text messages have plain text.

            messages = await me.prompt("coder", "review", {"language": "python"})

        Raises:
            RpcError, NotFulfilled, Absent, Unanswered, Refused, StreamBroken, Disconnected: as `ask`.
        """
        result = await self._proposals.ask(
            participant,
            "prompts/get",
            tool_call(name, arguments),
            **options,
        )
        return messages_of(result)

    async def complete(
        self,
        participant: str,
        argument: str,
        begun: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        given: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Sequence[str]:
        """What an argument of a `prompt`, or a variable of a `resource`, could go on to be: at most 100 values.

            languages = await me.complete("coder", "language", "py", prompt="review")

        `given`: the other arguments that are known already.

        Raises:
            ValueError: neither a prompt nor a resource, or both.
            RpcError, NotFulfilled, Absent, Unanswered, Refused, Disconnected: as `ask`.
        """
        if (prompt is None) == (resource is None):
            raise ValueError("say with prompt= or resource= what the argument belongs to")
        ref = (
            {"type": "ref/resource", "uri": resource}
            if prompt is None
            else {"type": "ref/prompt", "name": prompt}
        )
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": begun}}
        if given is not None:
            params["context"] = {"arguments": dict(given)}
        result = await self.ask(participant, "completion/complete", params, timeout_s=timeout_s)
        completion = result.get("completion")
        values = completion.get("values") if isinstance(completion, dict) else None
        return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
