"""Gateways that pass control on wrongly."""

from typing import Any

from mew.protocol.envelope import Envelope

from .breaks import Break, Mutant, of, shown
from .deciding import allowing, changed, doubled, dropped, refusing

__all__ = ["MUTANTS"]


ASK, STATUS = "participant/request-status", "participant/status"
COMPACT, DONE = "participant/compact", "participant/compact-done"
KNOWN = {"messages_in_context", "tokens", "max_tokens", "latency_ms"}


def without(kind: str, field: str) -> Break:
    return refusing(lambda e: e.kind == kind and field not in e.content)


def losing(kind: str, field: str) -> Break:
    return changed(shown(kind), lambda said: said["payload"].pop(field, None))


def bare(kind: str) -> Break:
    """Wants a payload."""
    return refusing(lambda e: e.kind == kind and not bytes(e.payload))


def emptied(kind: str) -> Break:
    return changed(shown(kind), lambda said: said.update(payload={}))


def unasked(said: dict[str, Any]) -> bool:
    return said["kind"] == STATUS and not said.get("correlation_id")


def not_addressed(envelope: Envelope) -> bool:
    return envelope.kind == STATUS and not envelope.to


NAME = "control.the_kind_is_request_status_with_a_hyphen"
COMPACTION = "control.a_compaction_needs_no_reason_and_no_target"
REFUSED = "the gateway refused it"

MUTANTS = (
    Mutant(
        "status-request.name",
        NAME,
        changed(shown(ASK), lambda said: said.update(kind="participant/requestStatus")),
        "with another kind",
    ),
    Mutant(
        "status-request.name",
        NAME,
        allowing(of("participant/requestStatus")),
        "refuses the participant/requestStatus",
    ),
    Mutant(
        "status-request.name",
        NAME,
        allowing(of("participant/Request-Status")),
        "refuses the participant/Request",
    ),
    Mutant(
        "status-request.name",
        NAME,
        allowing(of(ASK, sender="guest")),
        "refuses the participant/request-status",
    ),
    Mutant("status-request.name", NAME, refusing(of(ASK, sender="guest")), REFUSED),
    Mutant(
        "status-request.fields", "control.a_status_request_may_name_fields", without(ASK, "fields"), REFUSED
    ),
    Mutant(
        "status-request.fields",
        "control.a_status_request_may_name_fields",
        losing(ASK, "fields"),
        "with another payload: {'fields': ['tokens']} was sent",
    ),
    Mutant(
        "status.proactive",
        "control.a_status_may_come_unasked",
        refusing(lambda e: e.kind == STATUS and not e.correlation_id),
        REFUSED,
    ),
    Mutant(
        "status.proactive", "control.a_status_may_come_unasked", dropped(unasked), "the participant/status"
    ),
    Mutant(
        "status.proactive",
        "control.a_status_may_come_unasked",
        refusing(not_addressed),
        "the gateway refused a participant/status",
    ),
    Mutant(
        "status.other-metrics",
        "control.a_status_may_have_other_metrics",
        changed(
            shown(STATUS),
            lambda said: said.update(payload={k: v for k, v in said["payload"].items() if k in KNOWN}),
        ),
        "with another payload",
    ),
    Mutant(
        "status.other-metrics",
        "control.a_status_may_have_other_metrics",
        refusing(lambda e: e.kind == STATUS and not KNOWN & e.content.keys()),
        REFUSED,
    ),
    Mutant("status.broadcast", "control.a_status_may_be_for_everyone", refusing(not_addressed), REFUSED),
    Mutant(
        "status.broadcast",
        "control.a_status_may_be_for_everyone",
        dropped(lambda said: said["kind"] == STATUS and said.get("to") == []),
        "expected that owner receives",
    ),
    Mutant(
        "status.dissemination-limited",
        "control.who_asked_for_a_status_gets_it",
        dropped(lambda said: said["kind"] == STATUS and not said.get("to")),
        "expected that owner receives",
    ),
    Mutant(
        "status.dissemination-limited",
        "control.who_asked_for_a_status_gets_it",
        changed(shown(STATUS), lambda said: said.pop("correlation_id")),
        "with another correlation_id",
    ),
    Mutant(
        "status.dissemination-limited",
        "control.who_asked_for_a_status_gets_it",
        doubled(shown(STATUS)),
        "2 times, not once",
    ),
    Mutant(
        "forget.entries",
        "control.a_forget_needs_no_entries",
        without("participant/forget", "entries"),
        REFUSED,
    ),
    Mutant(
        "forget.entries",
        "control.a_forget_needs_no_entries",
        changed(shown("participant/forget"), lambda said: said["payload"].setdefault("entries", 1)),
        "with another payload: {'direction': 'oldest'} was sent",
    ),
    Mutant("compact.reason", COMPACTION, without(COMPACT, "reason"), REFUSED),
    Mutant("compact.reason", COMPACTION, losing(COMPACT, "reason"), "with another payload: {'reason'"),
    Mutant("compact.target-tokens", COMPACTION, without(COMPACT, "target_tokens"), REFUSED),
    Mutant(
        "compact.target-tokens",
        COMPACTION,
        losing(COMPACT, "target_tokens"),
        "with another payload: {'target_tokens'",
    ),
    Mutant(
        "compact-done.freed",
        "control.a_compaction_may_say_what_it_freed",
        without(DONE, "freed_tokens"),
        REFUSED,
    ),
    Mutant(
        "compact-done.freed",
        "control.a_compaction_may_say_what_it_freed",
        losing(DONE, "freed_messages"),
        "with another payload",
    ),
    Mutant("clear.payload", "control.a_clear_needs_no_payload", bare("participant/clear"), REFUSED),
    Mutant(
        "clear.payload",
        "control.a_clear_needs_no_payload",
        dropped(lambda said: said["kind"] == "participant/clear" and said.get("payload") == {}),
        "expected that peer receives the participant/clear",
    ),
    Mutant(
        "restart.hints",
        "control.a_restart_may_have_hints_or_no_payload",
        bare("participant/restart"),
        REFUSED,
    ),
    Mutant(
        "restart.hints",
        "control.a_restart_may_have_hints_or_no_payload",
        emptied("participant/restart"),
        "with another payload: {'mode'",
    ),
    Mutant(
        "shutdown.context",
        "control.a_shutdown_may_have_context_or_no_payload",
        bare("participant/shutdown"),
        "receives the participant/shutdown",
    ),
    Mutant(
        "shutdown.context",
        "control.a_shutdown_may_have_context_or_no_payload",
        emptied("participant/shutdown"),
        "with another payload: {'reason'",
    ),
)
