"""What a host is answered: lists of what there is, and what came of using it."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from mew.client.client import Client
from mew.client.errors import MewError, RpcError
from mew.mcp_bridge.host.calls.call import HostCall
from mew.mcp_bridge.host.calls.params import inward, is_json
from mew.mcp_bridge.host.calls.registry import HostCalls
from mew.mcp_bridge.host.calls.results import (
    WHY,
    DeniedByPolicy,
    HostOperation,
    NoResultCode,
    completed,
    failed,
    joined,
)
from mew.mcp_bridge.host.calls.wait import CallWait, RetryState
from mew.mcp_bridge.host.offers.discovery import OfferKind
from mew.mcp_bridge.host.offers.offers import HostOffer, HostOffers, OfferOrigin
from mew.mcp_bridge.policy.policy import PolicyAction
from mew.proposals.differences import same
from mew.protocol.kinds import Kind
from mew.protocol.visible import named, visible

from .history import history_resource, history_template, is_history, read_history
from .host_request import HostRequest
from .logs import LogForwarder
from .own_tools import OwnTools
from .settings import HostSettings

__all__ = ["HostAnswers"]

_PAGE_SIZE: Final = 1_000
_INVALID_PARAMS: Final = -32602
_NOT_FOUND: Final = -32002
_COMPLETE_S: Final = 10.0
_REMIND_S: Final = 5.0
_NOTHING_TO_ADD: Final[dict[str, Any]] = {"completion": {"values": []}}
_LOST: Final = (
    "what this call was is no longer known: it was made before a restart, and may have been carried out"
)


class HostAnswers:
    """Every method raises `RpcError` for what is answered with a JSON-RPC error."""

    def __init__(
        self,
        me: Client,
        settings: HostSettings,
        offers: HostOffers,
        calls: HostCalls,
        logs: LogForwarder,
        own: OwnTools,
    ) -> None:
        self._me = me
        self._settings = settings
        self._offers = offers
        self._calls = calls
        self._logs = logs
        self._own = own

    async def listing(self, what: OfferKind, params: Mapping[str, Any]) -> dict[str, Any]:
        """A page of what there is, of the participants and of ours."""
        await self._offers.settled()
        items = [offer.shown for offer in self._offers.of(what)] + self._ours(what)
        return _page(what, items, params.get("cursor"))

    async def call_tool(self, host: HostRequest, params: Mapping[str, Any]) -> dict[str, Any]:
        name = params["name"]
        if name in self._own.names:
            return await self._own.call(name, params.get("arguments"), host)
        return await self._use(host, OfferKind.TOOLS, name, params)

    async def read_resource(self, host: HostRequest, params: Mapping[str, Any]) -> dict[str, Any]:
        uri = params["uri"]
        if is_history(uri) and self._settings.takes_part:
            return await read_history(self._me, uri)
        return await self._use(host, OfferKind.RESOURCES, uri, params)

    async def get_prompt(self, host: HostRequest, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._use(host, OfferKind.PROMPTS, params["name"], params)

    async def complete(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What an argument could go on to be; nothing, where we may not ask."""
        meant, ref = self._referred(params.get("ref"))
        if meant is None:
            return _NOTHING_TO_ADD
        asked = inward(params) | {"ref": ref}
        payload = {"jsonrpc": "2.0", "id": 0, "method": "completion/complete", "params": asked}
        if meant not in self._me.participants or not self._me.can_send(Kind.MCP_REQUEST, payload, to=meant):
            return _NOTHING_TO_ADD
        said = await self._me.request(meant, "completion/complete", asked, timeout_s=_COMPLETE_S)
        return (
            completed(OfferOrigin(meant, self._me.space), said) if isinstance(said, dict) else _NOTHING_TO_ADD
        )

    def _referred(self, ref: Any) -> tuple[str | None, Any]:
        """Whose prompt or template is meant, and the reference as they know it."""
        match ref:
            case {"type": "ref/prompt", "name": str(name)}:
                meant, key = self._offers.meant(OfferKind.PROMPTS, name), "name"
            case {"type": "ref/resource", "uri": str(uri)}:
                meant, key = self._offers.meant(OfferKind.TEMPLATES, uri), "uri"
            case _:
                return None, ref
        return (None, ref) if meant is None else (meant[0], {**ref, key: meant[1]})

    def _ours(self, what: OfferKind) -> list[dict[str, Any]]:
        if what is not OfferKind.TOOLS and not self._settings.takes_part:
            return []
        match what:
            case OfferKind.TOOLS:
                return self._own.listed()
            case OfferKind.RESOURCES:
                return [history_resource(self._me.space)]
            case OfferKind.TEMPLATES:
                return [history_template(self._me.space)]
            case OfferKind.PROMPTS:
                return []

    async def _use(
        self, host: HostRequest, what: OfferKind, name: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        if self._offers.find(what, name) is None:  # it may know from an earlier time what is not listed yet
            await self._wait_for_start(host)
        meant = self._offers.meant(what, name)
        if meant is None:
            raise self._unknown(what, name)
        participant, own_name = meant
        key = "uri" if what is OfferKind.RESOURCES else "name"
        asked = inward(params, **{key: own_name})
        if not is_json(asked):
            raise RpcError(_INVALID_PARAMS, "params: there is a number in them that JSON does not have")
        offer = self._offers.find(what, name)
        operation = HostOperation(
            what.use,
            own_name,
            OfferOrigin(participant, self._me.space),
            self._offers.lists(what, participant, own_name),
            is_structured=offer is not None and "outputSchema" in offer.item,
        )
        try:
            state, is_joined = params.get("requestState"), False
            if state is not None:
                call = await self._again(RetryState.read(state), operation, asked)
            else:
                known = await self._calls.same_call(operation, asked, is_repeatable=_is_repeatable(offer))
                is_joined = known is not None
                call = known or await self._begin(host, what, name, operation, asked)
            _take_answers(call, params.get("inputResponses"))
        except RpcError:
            raise  # our own: nobody was asked anything yet
        except MewError as error:
            return failed(operation, error)
        try:
            result = await CallWait(call, host, self._settings, RetryState.read(state)).answer()
        finally:
            if call.end is not None and call.handle is None:
                self._calls.forget(call)
        if is_joined and call.end is not None:
            result = joined(result, call.handle)
        return self._offers.uris.result(participant, result)

    async def _wait_for_start(self, host: HostRequest) -> None:
        """Wait for those who are here, or for the only one, whose server may be starting: then tell the host so."""
        only, loop = self._settings.only, asyncio.get_running_loop()
        if only is None or only in self._me.participants:
            await self._offers.settled()
            return
        begun_s = loop.time()
        while (waited_s := loop.time() - begun_s) < self._settings.start_s:
            await host.progress(None, message=f"waiting for {named(only)} to start ({waited_s:.0f} s)")
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_REMIND_S, self._settings.start_s - waited_s)):
                    await self._offers.answered(only)
                    return

    async def _begin(
        self, host: HostRequest, what: OfferKind, name: str, operation: HostOperation, asked: dict[str, Any]
    ) -> HostCall:
        participant = operation.origin.participant
        payload = {"jsonrpc": "2.0", "id": 0, "method": operation.method, "params": asked}
        offer = self._offers.find(what, name)
        is_asked = self._judged(what, name, operation.method, asked)
        is_trusted = what is not OfferKind.TOOLS or self._offers.trusts(offer)
        if (
            what is not OfferKind.RESOURCES  # of which a template stands for any number
            and operation.is_listed is False
            and not (is_trusted and self._me.can_send(Kind.MCP_REQUEST, payload, to=participant))
        ):
            raise self._unknown(what, name)  # nobody should have to approve what is not there
        schema = offer.item.get("inputSchema") if offer is not None and what is OfferKind.TOOLS else None
        if host.news.level is not None:
            self._logs.want((participant,), host.news.level)
        approved = partial(self._offers.approve, offer) if not is_trusted else _nothing if is_asked else None
        return await self._calls.begin(operation, asked, host.news, schema=schema, approved=approved)

    def _judged(self, what: OfferKind, name: str, method: str, asked: Mapping[str, Any]) -> bool:
        """Whether a person has to decide by the policy, whatever our capabilities allow.

        Raises:
            DeniedByPolicy: the policy says no.
            RpcError: the host is not to know that there is such a thing.
        """
        policy, offer = self._settings.policy, self._offers.find(what, name)
        if policy is None:
            return False
        annotations = offer.item.get("annotations") if offer is not None else None
        decision = policy.decide(method, asked, annotations if isinstance(annotations, Mapping) else None)
        match decision.action:
            case PolicyAction.HIDE:
                raise self._unknown(what, name)
            case PolicyAction.DENY:
                raise DeniedByPolicy(decision.why)
            case PolicyAction.ASK:
                return what is OfferKind.TOOLS or not decision.is_default
            case PolicyAction.ALLOW:
                return False

    async def _again(
        self, state: RetryState | None, operation: HostOperation, asked: dict[str, Any]
    ) -> HostCall:
        """The call that a host asks for again.

        Raises:
            RpcError: it is not to be found, or is another call.
        """
        try:
            if state is None:
                call = None
            elif state.is_proposal:
                call = await self._calls.proposed(state.key)
            else:
                call = self._calls.get(state.key)
        except KeyError:
            call = None
        if call is None:  # never another call in its place
            raise RpcError(_INVALID_PARAMS, _LOST, {WHY: NoResultCode.LOST.value})
        is_same = call.operation.origin == operation.origin and call.operation.method == operation.method
        if not is_same or not same(call.params, asked):
            raise RpcError(_INVALID_PARAMS, "this requestState is of another call")
        return call

    def _unknown(self, what: OfferKind, name: str) -> RpcError:
        if what is OfferKind.RESOURCES:
            return RpcError(_NOT_FOUND, f"no resource {visible(name)}", {"uri": name})
        known = [offer.shown[what.key] for offer in self._offers.of(what)]
        near = get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        kind = "tool" if what is OfferKind.TOOLS else "prompt"
        why = {WHY: NoResultCode.NO_SUCH_TOOL.value} if what is OfferKind.TOOLS else {}
        return RpcError(_INVALID_PARAMS, f"unknown {kind} {visible(name)!r}{hint}", why)


def _is_repeatable(offer: HostOffer | None) -> bool:
    """Whether the tool says that to call it twice is as to call it once, or is none."""
    hints = {} if offer is None else offer.item.get("annotations")
    return isinstance(hints, dict) and True in (hints.get("readOnlyHint"), hints.get("idempotentHint"))


def _nothing() -> None:
    """Trust nothing more than before: the policy asks about each call."""


def _take_answers(call: HostCall, answers: Any) -> None:
    """What the host brings back to questions that it was answered with."""
    for key, result in answers.items() if isinstance(answers, Mapping) else ():
        question = call.take_question(key)
        if question is not None and isinstance(result, dict):
            call.respond(question, result)


def _page(what: OfferKind, items: Sequence[dict[str, Any]], cursor: Any) -> dict[str, Any]:
    start = 0
    if cursor is not None:
        if not (isinstance(cursor, str) and cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise RpcError(_INVALID_PARAMS, f"unknown cursor {visible(str(cursor))}")
        start = int(cursor)
    end = start + _PAGE_SIZE
    page: dict[str, Any] = {what.value: list(items[start:end])}
    return page | ({"nextCursor": str(end)} if end < len(items) else {})
