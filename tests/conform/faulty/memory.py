"""Wrong participants: how they pause, what they say of themselves, and what they remember."""

from typing import Any, Final

from mew.client.participant import control

from .faults import (
    Envelope,
    Fault,
    Say,
    Wrong,
    drop,
    edit,
    patched,
    payload,
    sends,
    some_payload,
    spoken,
    takes,
    twice,
    when,
)

__all__ = ["CONTROL", "MEMORY"]


def _has(name: str) -> Any:
    return lambda said: isinstance(said, dict) and name in said


def _lacks(name: str) -> Any:
    return lambda said: not isinstance(said, dict) or name not in said


# Pauses and status.


def _errs(envelope: Envelope) -> Any:
    if "moon_phase" not in str(envelope.get("payload")) or "to" not in envelope:
        return envelope
    return [envelope, Say(spoken(envelope["to"][0], "system/error", {"error": "unknown metric"}))]


CONTROL: Final = {
    "pause.obeyed": takes(
        "control.who_is_paused_does_no_work",
        "who is paused sends nothing but acknowledgements",
        drop("participant/pause"),
    ),
    "pause.timeout": takes(
        "control.a_pause_ends_with_its_time",
        "paused for 1 s, it answers after 0.",
        lambda e: (
            payload("participant/pause", timeout_seconds=0.2)(e)
            if "timeout_seconds" in str(e.get("payload"))
            else e
        ),
    ),
    "resume.autonomous": takes(
        "control.a_pause_ends_with_its_time",
        "lasts until a resume, and it answers before",
        payload("participant/pause", timeout_seconds=1),
    ),
    "resume.documented": sends(
        "control.who_resumes_by_itself_says_so", "sent no participant/resume", drop("participant/resume")
    ),
    "resume.correlates": sends(
        "control.its_resume_names_the_pause",
        "expected it to name the pause",
        when("participant/resume", correlation_id=[]),
    ),
    "resume.lifts": takes(
        "control.a_resume_lifts_the_pause", "after a resume, an mcp/response", drop("participant/resume")
    ),
    "status-request.answered": sends(
        "control.it_tells_its_status",
        "expected that the participant sends a participant/status",
        drop("participant/status"),
    ),
    "status.correlates": sends(
        "control.a_status_names_the_question",
        "expected it to name",
        when("participant/status", correlation_id=[]),
    ),
    "status-request.fields": takes(
        "control.a_status_may_be_asked_in_part",
        "expected that the participant sends a participant/status",
        drop("participant/request-status", test=lambda e: (e.get("payload") or {}).get("fields") == []),
    ),
    "status-request.name": sends(
        "control.the_hyphenated_name_counts",
        "the kind is participant/request-status",
        twice("chat", kind="participant/requestStatus"),
    ),
    "status.messages-in-context": sends(
        "control.a_status_counts_messages",
        "twelve chats to all later it is 5",
        payload("participant/status", messages_in_context=5),
    ),
    "status.tokens": sends(
        "control.a_status_counts_tokens",
        "expected a number in `tokens`",
        payload("participant/status", tokens="many"),
    ),
    "status.other-metrics": takes(
        "control.unknown_metrics_upset_nothing", "only the gateway reports errors so", _errs
    ),
    "status.snake-case": sends(
        "audits.metrics_are_named_in_snake_case",
        "'maxTokens' is not in snake_case",
        payload("participant/status", maxTokens=7),
    ),
    "status.proactive": sends(
        "audits.a_status_may_come_unasked",
        "a status lacks messages_in_context",
        twice("chat", kind="participant/status", payload={"tokens": 7}, correlation_id=...),
    ),
    "status.broadcast": sends(
        "audits.a_status_may_go_to_all",
        "to everyone is an empty `to`, or none",
        when("participant/status", to=None),
    ),
}

# What is remembered.


def _unconfirmed(kind: str) -> Any:
    """What it says about an envelope of this kind is lost."""

    def make() -> Fault:
        told: list[str] = []

        def shown(envelope: Envelope) -> Envelope:
            told.extend([envelope["id"]] if envelope.get("kind") == kind else [])
            return envelope

        return Fault(
            shown=shown,
            sent=drop(
                "participant/status",
                "chat/acknowledge",
                test=lambda e: bool(set(told).intersection(e.get("correlation_id", ()))),
            ),
        )

    return make


def _surfaced() -> Fault:
    reasons: list[str] = []

    def shown(envelope: Envelope) -> Envelope:
        if envelope.get("kind") == "participant/compact":
            reasons.append((envelope.get("payload") or {}).get("reason", ""))
        return envelope

    def sent(envelope: Envelope) -> Envelope:
        if (envelope.get("payload") or {}).get("status") != "compacting":
            return envelope
        return edit(envelope, payload={"status": "compacting", "reason": reasons[-1] if reasons else ""})

    return Fault(shown=shown, sent=sent)


def _struck_dumb() -> Fault:
    asked: list[str] = []

    def shown(envelope: Envelope) -> Envelope | None:
        asked.extend([envelope["id"]] if envelope.get("kind") == "participant/compact" else [])
        return None if asked else envelope

    return Fault(shown=shown)


_halved = when("participant/clear", kind="participant/forget", payload={"direction": "oldest"})

MEMORY: Final = {
    "forget.drops": takes(
        "memory.it_forgets_as_many_as_it_is_told",
        "told to forget the 10 oldest of",
        lambda e: payload("participant/forget", entries=3)(e),
    ),
    "forget.direction": takes(
        "memory.a_direction_that_is_none_drops_nothing",
        "in directions that are none",
        payload("participant/forget", direction="oldest"),
    ),
    "forget.entries": takes(
        "memory.it_forgets_without_a_number",
        "told to forget the oldest, it retains",
        drop("participant/forget", test=some_payload(_lacks("entries"), "participant/forget")),
    ),
    "forget.entries-as-tokens": takes(
        "memory.entries_may_be_tokens", "tokens fell by", drop("participant/forget")
    ),
    "forget.followed-up": Wrong(
        "memory.it_says_that_it_has_forgotten",
        "participant/status or chat/acknowledge after participant/forget",
        _unconfirmed("participant/forget"),
    ),
    "clear.stronger": takes(
        "memory.clearing_leaves_nothing", "after participant/clear `messages_in_context` is", _halved
    ),
    "clear.erases": takes("memory.what_was_cleared_is_not_known", "told to clear", _halved),
    "clear.payload": takes(
        "memory.a_clear_needs_no_payload",
        "a participant/clear without a payload left",
        drop("participant/clear", test=lambda e: "payload" not in e),
    ),
    "clear.followed-up": Wrong(
        "memory.it_shows_that_it_is_empty",
        "a participant/status after participant/clear",
        _unconfirmed("participant/clear"),
    ),
    "compact-done.sent": sends(
        "memory.a_compaction_is_reported_once",
        "one participant/compact-done for each",
        twice("participant/compact-done"),
    ),
    "compact-done.correlates": sends(
        "memory.a_report_names_its_request",
        "expected it to name",
        when("participant/compact-done", correlation_id=[]),
    ),
    "compact.prompt": takes(
        "memory.it_compacts_at_once",
        "participant/compact-done, or a participant/status",
        drop("participant/compact"),
    ),
    "compact.interim-status": sends(
        "memory.it_says_that_it_compacts",
        "no participant/status such as `compacting`",
        drop("participant/status", test=lambda e: e["payload"].get("status") == "compacting"),
    ),
    "compact.reason": takes(
        "memory.it_compacts_with_and_without_hints",
        "participant/compact-done after participant/compact",
        drop("participant/compact", test=some_payload(_lacks("reason"), "participant/compact")),
    ),
    "compact.target-tokens": takes(
        "memory.it_compacts_with_and_without_hints",
        "participant/compact-done after participant/compact",
        drop("participant/compact", test=some_payload(_has("target_tokens"), "participant/compact")),
    ),
    "compact.target-ignored": takes(
        "memory.a_target_out_of_reach_is_answered",
        "participant/compact-done after participant/compact",
        drop("participant/compact", test=some_payload(_has("target_tokens"), "participant/compact")),
    ),
    "compact.reason-surfaced": Wrong(
        "memory.it_may_repeat_the_reason", "a status lacks its count", _surfaced
    ),
    "compact-done.freed": sends(
        "memory.what_was_freed_is_a_number",
        "`freed_messages` must be a number",
        payload("participant/compact-done", freed_messages="many"),
    ),
    "compact.ignored": Wrong(
        "memory.who_has_nothing_to_compact_may_be_silent",
        "expected that the participant sends an mcp/response to ping",
        _struck_dumb,
    ),
    "compact.skipped": sends(
        "memory.who_compacts_nothing_says_so",
        "nothing was compacted, and `skipped` is 'yes'",
        payload("participant/compact-done", skipped="yes"),
    ),
    "compact-done.skipped": sends(
        "memory.who_compacts_nothing_says_so",
        "nothing was compacted, and `skipped` is None",
        payload("participant/compact-done", skipped=...),
    ),
    "compact-done.reason": sends(
        "memory.a_skip_may_have_a_reason",
        "a `reason` for people is a text",
        payload("participant/compact-done", reason=7),
    ),
    "memory.watched": patched(
        "memory.it_makes_room_by_itself",
        "its context ran full",
        lambda monkeypatch: monkeypatch.setattr(control, "_FULL", 99),
    ),
    "memory.compaction-told": sends(
        "memory.it_says_when_it_makes_room",
        "it compacted by itself, and no participant/status said so",
        drop("participant/status", test=lambda e: str(e["payload"].get("status")).startswith("compact")),
    ),
    "status.near-limit": sends(
        "memory.it_may_warn_that_it_is_nearly_full",
        "a warning without `tokens`",
        lambda e: e if e.get("correlation_id") else payload("participant/status", max_tokens=...)(e),
    ),
}
