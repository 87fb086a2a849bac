"""Participants that are wrong in a way that is easily missed: in part, in silence, or at second sight."""

from typing import Any, Final

from .faults import Envelope, Fault, Kept, Wrong, drop, edit, payload, sends, takes, tool_of, when

__all__ = ["SUBTLE"]


def _asked_as_well(envelope: Envelope) -> Envelope:
    said = envelope.get("payload") or {}
    if envelope.get("kind") != "mcp/request" or "id" in said:
        return envelope
    return edit(envelope, payload={**said, "id": 1, "method": "ping"})


def _feels_addressed() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Envelope:
        me = kept.shown.get("system/welcome", {}).get("to", ["?"])
        return edit(envelope, to=me) if envelope.get("kind") == "mcp/request" else envelope

    return Fault(shown=kept.into(shown))


def _in_silence(taken: Any) -> Any:
    """It acts on what `taken` gives, and says nothing of it."""

    def make() -> Fault:
        quiet: list[str] = []

        def shown(envelope: Envelope) -> Envelope:
            found: Envelope = taken(envelope)
            quiet.extend([envelope["id"]] if found is not envelope else [])
            return found

        return Fault(
            shown=shown,
            sent=drop(test=lambda e: bool(set(quiet).intersection(e.get("correlation_id", ())))),
        )

    return make


def _proposed(envelope: Envelope) -> Envelope:
    if envelope.get("kind") != "mcp/proposal" or tool_of(envelope) != "touch":
        return envelope
    return edit(envelope, kind="mcp/request", payload={"id": 1, **envelope["payload"]})


def _of_any_version(envelope: Envelope) -> Envelope:
    if envelope.get("protocol") == "mew/v0.4" or tool_of(envelope) != "touch":
        return envelope
    return edit(envelope, protocol="mew/v0.4")


def _the_other_end(envelope: Envelope) -> Envelope:
    ends = {"oldest": "newest", "newest": "oldest"}
    if envelope.get("kind") != "participant/forget":
        return envelope
    said = envelope["payload"]
    return edit(envelope, payload={**said, "direction": ends.get(said.get("direction"), "sideways")})


def _parrots() -> Fault:
    kept = Kept()
    return Fault(shown=kept.into(), sent=when("chat", id=lambda e: kept.shown["chat"]["id"]))


def _deaf_to_grants() -> Fault:
    seen: list[str] = []

    def shown(envelope: Envelope) -> Envelope | None:
        if envelope.get("kind") == "capability/grant":
            return None
        if envelope.get("kind") == "system/welcome":
            seen.append(envelope["id"])
            return envelope if len(seen) == 1 else None
        return envelope

    return Fault(shown=shown)


SUBTLE: Final[dict[str, Wrong]] = {
    "answers what is no question": takes(
        "requests.each_request_gets_one_answer", "a notification, without an `id`", _asked_as_well
    ),
    "answers for others": Wrong(
        "requests.each_request_gets_one_answer", "names somebody else in `to`", _feels_addressed
    ),
    "carries out proposals in silence": Wrong(
        "requests.a_proposal_runs_nothing", "carried out for a mere proposal", _in_silence(_proposed)
    ),
    "carries out what is of another version in silence": Wrong(
        "validation.another_version_has_no_effect",
        "a request of another version was carried out",
        _in_silence(_of_any_version),
    ),
    "names the JSON-RPC id": sends(
        "requests.an_answer_names_its_request",
        "expected `correlation_id` to name the request",
        when("mcp/response", correlation_id=lambda e: [str(e["payload"]["id"])]),
    ),
    "forgets from the other end": takes(
        "memory.it_forgets_as_many_as_it_is_told", "told to forget the oldest, it remembers", _the_other_end
    ),
    "forgets more than it is told": takes(
        "memory.it_forgets_as_many_as_it_is_told",
        "told to forget the 10 oldest of 24 messages",
        payload("participant/forget", entries=13),
    ),
    "does not know who came later": takes(
        "connection.it_knows_who_is_there",
        "expected that the participant sends an mcp/response",
        drop("mcp/request", test=lambda e: e.get("from") == "reviewer"),
    ),
    "uses the ids of others": Wrong(
        "audits.each_envelope_has_its_own_id", "this id was used by somebody else", _parrots
    ),
    "does not know where it is": sends(
        "audits.each_time_is_a_time", "no RFC 3339 time", when("chat", ts="2026-01-01T00:00:00")
    ),
    "is resumed only by name": takes(
        "control.a_resume_lifts_the_pause",
        "after a resume, an mcp/response",
        drop("participant/resume", test=lambda e: not e.get("correlation_id")),
    ),
    "pauses only when there is a time limit": takes(
        "control.who_is_paused_does_no_work",
        "who is paused sends nothing",
        drop("participant/pause", test=lambda e: "timeout_seconds" not in e["payload"]),
    ),
    "leaves its streams open when it restarts": sends(
        "shutdown.a_restart_ends_what_goes_on",
        "stream/close for the stream it had open",
        drop("stream/close"),
    ),
    "does not notice what it was granted": Wrong(
        "connection.it_tries_only_what_it_may", "it still proposes", _deaf_to_grants
    ),
    "empties its memory for a wrong direction": takes(
        "memory.a_direction_that_is_none_drops_nothing",
        "in directions that are none",
        lambda e: edit(e, kind="participant/clear") if e.get("kind") == "participant/forget" else e,
    ),
}
"""What is wrong with them, and what finds that."""
