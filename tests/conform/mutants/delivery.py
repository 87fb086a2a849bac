"""Gateways that lose, double, mix, hide or change what they should pass on, or know better what it means."""

import posixpath
from collections.abc import Callable
from typing import Any, Final

from mew.conform.roles import ROLES
from mew.gateway.room.outbox import Outboxes
from mew.protocol.envelope import Envelope

from .breaks import Break, Said, mutants, of, shown, wrapping
from .deciding import altered, changed, doubled, dropped, narrowed, refusing
from .doors import saying, signing, taken_for

__all__ = ["MUTANTS"]

MCP: Final = ("mcp/request", "mcp/response", "mcp/proposal")


def anything(one: Any) -> bool:
    return True


def but(*names: str) -> Callable[[Envelope], list[str]]:
    return lambda envelope: [name for name in ROLES if name not in names]


def field(name: str, change: Callable[[Any], Any]) -> Callable[[Said], None]:
    """Change a field where there is one."""

    def alter(said: Said) -> None:
        if name in said:
            said[name] = change(said[name])

    return alter


def filled(name: str, value: Any) -> Callable[[Said], None]:
    """Give a field where there is none."""
    return lambda said: None if name in said else said.update({name: value})


def emptied(name: str) -> Callable[[Said], None]:
    def change(said: Said) -> None:
        said.pop(name, None)

    return change


def without_nothing(payload: Any) -> Any:
    return {name: value for name, value in payload.items() if value is not None}


def to_five_digits(payload: Any) -> Any:
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in payload.items()}


def numbers_as_text(payload: Any) -> Any:
    """As some do with those that are too large for a double."""
    large = {
        name: str(value) for name, value in payload.items() if isinstance(value, int) and value > 1 << 53
    }
    return {**payload, **large}


# Whom it reaches, and how often.


def every_seventh_lost() -> Break:
    numbers = iter(range(10**9))
    return dropped(lambda said: not said["kind"].startswith("system/") and next(numbers) % 7 == 6)


def pairs_swapped() -> Break:
    """Of two chats that follow each other the second is shown first."""
    held: list[Said] = []

    def alter(said: Said) -> list[Said]:
        if "number" in said.get("payload", {}):
            if said["payload"]["number"] == 3:
                held.append(said)
                return []
            return [said, *(held.pop() for _ in tuple(held))]
        return [said]

    return altered(alter)


def lost_when_long(right: Any, outboxes: Outboxes, frames: bytes, *to: Any, **but: Any) -> Any:
    return right(outboxes, frames, *to, **but) if len(frames) < 65_536 else 0


# What belongs together.


def after_a_cancel() -> Break:
    """A sequence that is cancelled ends them all."""
    cancelled: list[str] = []

    def when(envelope: Envelope) -> bool:
        if envelope.kind == "reasoning/cancel":
            cancelled.append(envelope.id)
        return envelope.kind == "reasoning/thought" and bool(cancelled)

    return refusing(when)


def one_context_for_all() -> Break:
    """All that is in a context is put in the one that was started last."""
    started: list[str] = []

    def change(said: Said) -> None:
        if said["kind"] == "reasoning/start":
            started.append(said["id"])
        elif "context" in said and started:
            said["context"] = started[-1]

    return changed(anything, change)


def content(envelope: Envelope) -> dict[str, Any]:
    return envelope.content


def only_one_response() -> Break:
    answered: dict[str, str] = {}  # it is asked twice about each

    def when(envelope: Envelope) -> bool:
        request = "".join(envelope.correlation_id) if envelope.kind == "mcp/response" else envelope.id
        return answered.setdefault(request, envelope.id) != envelope.id

    return refusing(when)


MUTANTS: Final = [
    *mutants(
        "delivery.broadcast",
        "delivery.without_addressees_it_is_for_all",
        (
            narrowed(lambda e: e.kind == "chat" and not e.to, but("listener")),
            "expected that listener receives",
        ),
        (narrowed(lambda e: e.sender == "granter", but("peer")), "expected that peer receives"),
        (dropped(lambda said: said.get("to") == []), "receives the chat"),
    ),
    *mutants(
        "delivery.addressed",
        "delivery.who_is_addressed_receives_it",
        (
            narrowed(lambda e: bool(e.to), lambda e: [e.to[0], e.sender]),
            "expected that proposer receives the chat",
        ),
        (
            narrowed(lambda e: bool(e.to), lambda e: [e.to[-1], e.sender]),
            "expected that peer receives the chat",
        ),
        (narrowed(anything, lambda e: but(e.sender)(e)), "expected that owner receives the chat"),
        (refusing(lambda e: "nobody-here" in e.to), "expected that peer receives the chat"),
    ),
    *mutants(
        "delivery.visible-to-all",
        "delivery.who_is_not_addressed_sees_it_too",
        (narrowed(lambda e: bool(e.to), lambda e: [*e.to, e.sender]), "§8.1 has messages routed by `to`"),
        (narrowed(of("mcp/response"), lambda e: [*e.to, e.sender]), "receives the mcp/response"),
        (narrowed(of("mcp/proposal"), but("reader")), "expected that reader receives the mcp/proposal"),
    ),
    *mutants(
        "delivery.accepted",
        "delivery.what_is_allowed_arrives_once",
        (every_seventh_lost(), "it did not within"),
        (doubled(shown("mcp/proposal")), "2 times, not once"),
    ),
    *mutants(
        "delivery.accepted",
        "delivery.any_kind_that_is_allowed_passes",
        (refusing(of("vendor/thing")), "refused it"),
        (refusing(lambda e: e.kind.startswith("system")), "refused it"),
        (changed(shown("Chat"), field("kind", str.lower)), "with another kind"),
    ),
    *mutants(
        "delivery.accepted",
        "delivery.a_long_envelope_arrives_or_is_refused",
        (wrapping(Outboxes, "send", lost_when_long), "it did not within"),
        (
            saying(field("payload", lambda p: {"text": p["text"][:1000]} if "text" in p else p)),
            "another payload",
        ),
    ),
    *mutants(
        "delivery.one-stream",
        "delivery.all_see_the_same_stream",
        (narrowed(anything, lambda e: but(e.sender)(e)), "what it sent itself"),
        (pairs_swapped(), "in another order"),
    ),
    *mutants(
        "delivery.unmodified",
        "delivery.it_arrives_as_it_was_sent",
        (saying(field("payload", to_five_digits)), "`payload.pi` was "),
        (saying(field("payload", numbers_as_text)), "`payload.integer` was "),
        (saying(lambda said: said.update(received_at="now")), '`received_at` was missing and is "now"'),
        (
            saying(filled("ts", "2026-01-01T00:00:00Z")),
            "`ts` was ",
        ),
        (saying(filled("to", [])), "`to` was "),
        (saying(filled("payload", {})), "`payload` was "),
        (saying(emptied("x-vendor")), "`x-vendor` was "),
        (saying(field("to", lambda to: list(dict.fromkeys(to)))), "`to` was "),
        (saying(field("context", str.lower)), "`context` was "),
        (saying(field("payload", without_nothing)), "`payload.nothing` was "),
        (saying(field("ts", lambda ts: ts.replace(".50+", ".5+"))), "`ts` was "),
    ),
    *mutants(
        "kind.vocabulary",
        "envelopes.every_kind_may_be_sent",
        (refusing(of("mcp/reject")), "refused it"),
        (refusing(of("chat/acknowledge")), "the gateway refused a chat/acknowledge"),
        (
            changed(shown("reasoning/cancel"), field("kind", lambda _: "reasoning/canceled")),
            "with another kind",
        ),
    ),
    *mutants(
        "kind.vocabulary",
        "envelopes.every_kind_that_manages_may_be_sent",
        (refusing(of("participant/request-status")), "refused it"),
        (
            changed(
                shown("participant/request-status"), field("kind", lambda _: "participant/requestStatus")
            ),
            "kind",
        ),
        (dropped(shown("space/kick")), "receives the space/kick"),
    ),
    *mutants(
        "kind.vocabulary",
        "envelopes.a_stream_is_asked_for_and_closed",
        (dropped(shown("stream/open")), "a stream/open"),
        (changed(shown("stream/open"), field("kind", lambda _: "stream/opened")), "a stream/open"),
        (refusing(of("stream/close")), "refused it"),
    ),
    *mutants(
        "kind.vocabulary",
        "envelopes.the_gateway_uses_the_kinds_of_the_list",
        (signing("system/presence", kind="system/join"), "expected system/error, system/presence"),
        (signing("system/error", kind="error"), "expected system/error, system/presence"),
    ),
    *mutants(
        "correlation.request-names-proposal",
        "proposals.a_request_may_name_a_proposal",
        (changed(shown("mcp/request"), lambda said: said.pop("correlation_id", 0)), "another correlation_id"),
        (refusing(lambda e: e.kind == "mcp/request" and bool(e.correlation_id)), "refused it"),
    ),
    *mutants(
        "correlation.any-envelope",
        "proposals.any_envelope_may_name_others",
        (refusing(lambda e: "no-such-envelope" in e.correlation_id), "refused it"),
        (changed(shown("chat"), lambda said: said.pop("correlation_id", 0)), "another correlation_id"),
        (refusing(lambda e: e.kind == "reasoning/start" and bool(e.correlation_id)), "refused it"),
    ),
    *mutants(
        "correlation.several",
        "proposals.several_may_be_named",
        (changed(anything, field("correlation_id", lambda ids: ids[:1])), "another correlation_id"),
        (changed(anything, field("correlation_id", sorted)), "another correlation_id"),
        (
            changed(anything, field("correlation_id", lambda ids: list(dict.fromkeys(ids)))),
            "another correlation_id",
        ),
        (refusing(lambda e: len(e.correlation_id) > 32), "refused it"),
    ),
    *mutants(
        "error.correlates",
        "proposals.an_error_names_its_cause",
        (signing("system/error", correlation_id=...), "names that in correlation_id; it has null"),
        (signing("system/error", correlation_id=["last"]), 'it has ["last"]'),
    ),
    *mutants(
        "context.optional",
        "proposals.a_context_may_be_left_out",
        (changed(anything, lambda said: said.setdefault("context", "main")), "another context"),
        (changed(anything, lambda said: said.setdefault("context", None)), "that nobody sent"),
        (changed(shown("mcp/request"), lambda said: said.pop("context", 0)), "another context"),
        (refusing(lambda e: e.kind == "reasoning/thought" and not isinstance(e.context, str)), "refused it"),
        (
            taken_for("context", "7", lambda context: isinstance(context, int)),
            "`context` is 7 must reach no one",
        ),
    ),
    *mutants(
        "context.path",
        "proposals.a_path_stays_as_it_is",
        (changed(anything, field("context", posixpath.normpath)), "another context"),
        (changed(anything, field("context", str.lower)), "another context"),
        (changed(anything, field("context", lambda path: path.partition("/")[0])), "another context"),
        (refusing(lambda e: isinstance(e.context, str) and e.context.count("/") > 8), "refused it"),
    ),
    *mutants(
        "context.parallel",
        "proposals.sequences_run_side_by_side",
        (after_a_cancel(), "refused it"),
        (one_context_for_all(), "another context"),
    ),
    *mutants(
        "lazy.json-rpc-not-validated",
        "delivery.json_rpc_is_not_validated",
        (refusing(lambda e: e.kind in MCP and content(e).get("jsonrpc") != "2.0"), "refused it"),
        (refusing(lambda e: e.kind in MCP and "id" not in content(e)), "refused it"),
        (
            refusing(lambda e: e.kind == "mcp/request" and not isinstance(content(e).get("method"), str)),
            "refused",
        ),
        (refusing(lambda e: e.kind == "chat" and not isinstance(content(e).get("text"), str)), "refused it"),
        (refusing(lambda e: e.kind == "chat" and content(e).get("format") == "html"), "refused it"),
        (refusing(lambda e: "result" in content(e) and "error" in content(e)), "refused it"),
        (dropped(lambda said: said["kind"] == "mcp/proposal" and "payload" not in said), "it did not within"),
    ),
    *mutants(
        "lazy.no-mcp-semantics",
        "delivery.mcp_is_not_understood",
        (refusing(lambda e: content(e).get("method") == "frobnicate"), "refused it"),
        (refusing(lambda e: content(e).get("params") == {"name": "no_such_tool"}), "refused it"),
        (refusing(lambda e: e.kind == "mcp/response" and not e.correlation_id), "refused it"),
        (refusing(lambda e: "no-such-request" in e.correlation_id), "refused it"),
        (only_one_response(), "refused it"),
    ),
    *mutants(
        "lazy.mismatch-not-detected",
        "delivery.kind_and_payload_need_not_belong_together",
        (refusing(lambda e: e.kind == "mcp/request" and "result" in content(e)), "refused it"),
        (refusing(lambda e: e.kind == "mcp/response" and "method" in content(e)), "refused it"),
        (refusing(lambda e: e.kind == "chat" and "jsonrpc" in content(e)), "refused it"),
        (refusing(lambda e: str(content(e).get("kind")).startswith("system/")), "refused it"),
    ),
]
