"""Requests of a server to its client (elicitation, sampling, roots), forwarded to its callers (decision 0010, 4)."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from msgspec import UNSET

from mew.client.client import Client
from mew.client.errors import MewError, RpcError
from mew.protocol.kinds import Kind

from .errors import failure
from .inflight import InflightRequest, InflightRequests

__all__ = ["ServerRequests"]

_UNKNOWN_METHOD: Final = -32601
_AT_ONCE: Final = 16
_QUESTIONS: Final = frozenset({"elicitation/create", "sampling/createMessage"})


class ServerRequests:
    """Asks whoever the server works for, or those who are named; the first answer counts, and the others are told."""

    def __init__(
        self, inflight: InflightRequests, *, names: Sequence[str], roots: Sequence[str], timeout_s: float
    ) -> None:
        self.client: Client | None = None
        self._inflight = inflight
        self._names = names
        self._roots = roots
        self._timeout_s = timeout_s
        self._open = 0

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer, as it came.

        Raises:
            RpcError: nobody can be asked, or nobody answered: a sentence for the server.
        """
        if method == "ping":
            return {}
        if method == "roots/list" and self._roots:
            return {"roots": [{"uri": uri} for uri in self._roots]}
        if method not in _QUESTIONS:
            raise RpcError(_UNKNOWN_METHOD, f"{method} is not answered here")
        if self._open >= _AT_ONCE:
            raise failure("question_unanswered", f"more than {_AT_ONCE} questions at once")
        about = self._inflight.concerned()
        concerned = tuple(one for one in about if not one.has_asked_too_much)
        if about and not concerned:
            raise failure("question_unanswered", "too many questions about one request")
        self._open += 1
        try:
            with ExitStack() as clocks:
                for one in concerned:
                    clocks.enter_context(one.asking())
                return await self._first(method, params, self._askable(method, params, concerned))
        finally:
            self._open -= 1

    async def ask_all(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """The answers to several questions, as `input_required` has them: by the server's own keys.

        Raises:
            RpcError: one of them was not answered.
        """
        answers: dict[str, Any] = {}
        refusals: list[RpcError] = []

        async def put(key: str, method: str, params: dict[str, Any]) -> None:
            try:
                answers[key] = await self.ask(method, params)
            except RpcError as error:
                refusals.append(error)
                raise

        try:
            async with asyncio.TaskGroup() as tasks:
                for key, asked in requests.items():
                    tasks.create_task(put(key, *_question(asked)))
        except* RpcError:
            pass
        if len(answers) == len(requests):
            return answers
        why = refusals[0].message if refusals else "it is no question"
        raise failure(
            "question_unanswered", f"the server needs an answer before it goes on, and has none: {why}"
        )

    def _askable(
        self, method: str, params: dict[str, Any], concerned: Sequence[InflightRequest]
    ) -> dict[str, list[InflightRequest]]:
        """Whom to ask, and about which of their requests."""
        if self.client is None:
            raise failure("question_unanswered", "nobody can be asked: there is no space yet")
        asked: dict[str, list[InflightRequest]] = {name: [*concerned] for name in self._names}
        if not asked:
            for one in concerned:
                if one.call is not None:
                    asked.setdefault(one.call.sender, []).append(one)
        if not asked:
            raise failure("question_unanswered", "nobody can be asked: no request is under way")
        payload = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        allowed = {
            name: about
            for name, about in asked.items()
            if self.client.can_send(Kind.MCP_REQUEST, payload, to=name)
        }
        if not allowed:
            names = ", ".join(asked)
            raise failure(
                "question_unanswered",
                f"nobody can be asked: {self.client.id} lacks the capability mcp/request:{method} to {names}",
            )
        return allowed

    async def _first(
        self, method: str, params: dict[str, Any], asked: dict[str, list[InflightRequest]]
    ) -> dict[str, Any]:
        refusals: list[MewError] = []
        async with asyncio.TaskGroup() as tasks:
            waiting = {
                tasks.create_task(self._ask_one(name, method, params, about)) for name, about in asked.items()
            }
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for answer in (task.result() for task in done):
                    if isinstance(answer, dict):
                        for task in waiting:
                            task.cancel()  # which tells them that their answer is not needed any more
                        return answer
                    refusals.append(answer)
        first = refusals[0]
        if isinstance(first, RpcError):
            raise first
        raise failure("question_unanswered", f"{method} was not answered: {first}")

    async def _ask_one(
        self, name: str, method: str, params: dict[str, Any], about: Sequence[InflightRequest]
    ) -> dict[str, Any] | MewError:
        assert self.client is not None, "a question without a space"
        envelopes = [one.call.envelope for one in about if one.call is not None]
        contexts = {envelope.context for envelope in envelopes if envelope.context is not UNSET}
        try:
            answer = await self.client.request(
                name,
                method,
                params,
                timeout_s=self._timeout_s,
                correlation_id=[envelope.id for envelope in envelopes],
                context=str(contexts.pop()) if len(contexts) == 1 else None,
            )
        except MewError as error:
            return error
        if isinstance(answer, dict):
            return answer
        return failure("question_unanswered", f"what {name!r} answers to {method} is no result")


def _question(asked: Any) -> tuple[str, dict[str, Any]]:
    method = asked.get("method") if isinstance(asked, dict) else None
    params = asked.get("params") if isinstance(asked, dict) else None
    return method if isinstance(method, str) else "", params if isinstance(params, dict) else {}
