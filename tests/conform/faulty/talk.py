"""Wrong participants: how they chat and reason."""

from collections.abc import Callable
from typing import Any, Final

from .faults import (
    Envelope,
    Fault,
    Kept,
    Say,
    Wrong,
    afresh,
    drop,
    edit,
    payload,
    sends,
    spoken,
    takes,
    twice,
    when,
)

__all__ = ["CHATS", "REASONINGS"]


# Chat.


def _all_but_one() -> Fault:
    seen: list[str] = []

    def sent(envelope: Envelope) -> Envelope | None:
        if envelope["kind"] != "chat/acknowledge":
            return envelope
        seen.append(envelope["id"])
        return envelope if len(seen) == 1 else None

    return Fault(sent=sent)


def _and_more(envelope: Envelope) -> Any:
    if envelope["kind"] != "chat/acknowledge":
        return envelope
    return [envelope, afresh(envelope, kind="chat", payload={"text": "and by the way"})]


CHATS: Final = {
    "chat.own-kind": sends(
        "chats.what_is_said_is_a_chat", "no MCP is in this", twice("chat", kind="mcp/response")
    ),
    "chat.text": sends("chats.a_chat_has_a_text", "`payload.text` of a chat", payload("chat", text=["a"])),
    "chat.format-values": sends(
        "chats.a_format_is_plain_or_markdown", "`format` is plain or markdown", payload("chat", format="html")
    ),
    "chat.format": takes(
        "chats.a_chat_without_a_format_is_attended_to",
        "an answer to a chat with no format",
        drop("chat", test=lambda e: "format" not in (e.get("payload") or {})),
    ),
    "chat.broadcast": sends(
        "chats.a_chat_may_be_for_all_or_some", "`to` of a chat is empty", when("chat", to=[7])
    ),
    "acknowledge.correlates": sends(
        "chats.an_acknowledgement_names_its_chat",
        "it names nothing that it was shown",
        when("chat/acknowledge", correlation_id=["nothing"]),
    ),
    "acknowledge.no-conversation": sends(
        "chats.an_acknowledgement_is_the_last_word", "who acknowledges a chat says no more", _and_more
    ),
    "acknowledge.status": sends(
        "chats.an_acknowledgement_has_a_status",
        "`payload.status` is a word",
        payload("chat/acknowledge", status=7),
    ),
    "chat-cancel.clears-attention": takes(
        "chats.a_cancelled_chat_is_not_answered", "before it was answered", drop("chat/cancel")
    ),
    "chat-cancel.correlates": sends(
        "chats.a_cancellation_names_its_chat",
        "it names no chat that there was",
        when("chat/cancel", correlation_id=[]),
    ),
    "chat-cancel.reason": sends(
        "chats.a_cancellation_says_why", "a cancellation says why", payload("chat/cancel", reason=" ")
    ),
    "acknowledge.queue-cleared": Wrong(
        "chats.clearing_the_queue_acknowledges_each",
        "expected that the participant sends chat/acknowledge for",
        _all_but_one,
    ),
    "chat-cancel.all": sends(
        "chats.cancelling_all_cancels_each", "one chat/cancel for each chat", twice("chat/cancel")
    ),
}

# Reasoning.


def _out_of_place() -> Fault:
    kept = Kept()

    def sent(envelope: Envelope) -> Envelope:
        start = kept.sent.get("reasoning/start")
        inside = start is not None and envelope["kind"] == "mcp/response"
        return edit(envelope, context=start["id"]) if inside and start is not None else envelope

    return Fault(sent=kept.out(sent))


def _thinks_on(envelope: Envelope) -> Any:
    if envelope["kind"] != "reasoning/conclusion":
        return envelope
    return [envelope, afresh(envelope, kind="reasoning/thought")]


def _unanswered(*kinds: str) -> Callable[[], Fault]:
    """These are lost once it has begun to reason about a request."""

    def make() -> Fault:
        kept = Kept()

        def sent(envelope: Envelope) -> Envelope | None:
            start = kept.sent.get("reasoning/start", {})
            about = set(start.get("correlation_id") or ()).intersection(envelope.get("correlation_id") or ())
            ends = envelope["kind"] == "mcp/response" and about
            return (
                None
                if (ends or envelope["kind"] != "mcp/response") and envelope["kind"] in kinds
                else envelope
            )

        return Fault(sent=kept.out(sent))

    return make


def _meddles(envelope: Envelope) -> Any:
    if envelope.get("kind") != "reasoning/start" or envelope.get("from") != "novice":
        return envelope
    me = "subject"
    return [envelope, Say(spoken(me, "reasoning/thought", {"message": "indeed"}, context=envelope["id"]))]


def _concludes_all_the_same() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Any:
        cancelled = kept.shown.get("reasoning/cancel")
        if cancelled is None or (envelope.get("payload") or {}).get("method") != "ping":
            return envelope
        said = spoken(
            envelope["to"][0], "reasoning/conclusion", {"message": "so"}, context=cancelled["context"]
        )
        return [Say(said), envelope]

    return Fault(shown=kept.into(shown))


def _easily_put_off() -> Fault:
    kept = Kept()

    def shown(envelope: Envelope) -> Envelope:
        start = kept.sent.get("reasoning/start")
        if envelope.get("kind") != "reasoning/cancel" or start is None:
            return envelope
        return edit(envelope, context=start["id"])

    return Fault(sent=kept.out(), shown=shown)


REASONINGS: Final = {
    "reasoning.start-correlates": sends(
        "reasoning.a_start_names_what_it_is_about",
        "expected it to name",
        when("reasoning/start", correlation_id=[]),
    ),
    "reasoning.context-is-start-id": sends(
        "reasoning.the_start_is_the_context",
        "its context is not that of a reasoning/start",
        when("reasoning/thought", context="elsewhere"),
    ),
    "context.in-sub-contexts": Wrong(
        "reasoning.a_sequence_has_one_context", "carries the context of its reasoning", _out_of_place
    ),
    "reasoning.thoughts": sends(
        "reasoning.thoughts_come_within_a_sequence",
        "a thought outside of any sequence",
        when("reasoning/thought", context=...),
    ),
    "reasoning.chat-in-context": takes(
        "reasoning.a_chat_in_a_context_is_attended_to",
        "an answer to a chat in the context",
        drop("chat", test=lambda e: "context" in e),
    ),
    "reasoning.conclusion": sends(
        "reasoning.a_conclusion_ends_a_sequence_of_its_own",
        "a sequence ends once",
        twice("reasoning/conclusion", kind="reasoning/cancel"),
    ),
    "reasoning.final-response": Wrong(
        "reasoning.what_was_reasoned_about_is_answered",
        "beside the reasoning",
        _unanswered("mcp/response"),
    ),
    "reasoning.autonomous": takes(
        "reasoning.reasoning_may_begin_at_any_time", "is not its own to go on with", _meddles
    ),
    "reasoning.no-reply": Wrong(
        "reasoning.nobody_need_answer_a_thought",
        "an end of its reasoning, though nobody replied",
        _unanswered("mcp/response", "reasoning/conclusion"),
    ),
    "reasoning.message": sends(
        "reasoning.reasoning_says_what_in_message",
        "`payload.message` is a string",
        payload("reasoning/thought", message=...),
    ),
    "reasoning.conclusion-ends": sends(
        "reasoning.nothing_comes_after_a_conclusion", "it comes after the conclusion", _thinks_on
    ),
    "reasoning.cancel-without-conclusion": Wrong(
        "reasoning.a_cancelled_sequence_has_no_conclusion",
        "it was cancelled, and is concluded",
        _concludes_all_the_same,
    ),
    "reasoning.cancel-stops-thoughts": takes(
        "reasoning.a_cancelled_sequence_has_no_more_thoughts",
        "it was cancelled, and goes on",
        drop("reasoning/cancel"),
    ),
    "reasoning.cancel-context": sends(
        "reasoning.a_cancellation_names_its_sequence",
        "`context` is the id of a reasoning/start",
        when("reasoning/cancel", context=...),
    ),
    "reasoning.cancel-correlates": sends(
        "reasoning.a_cancellation_may_name_what_was_asked",
        "it names what there never was",
        when("reasoning/cancel", correlation_id=["nothing"]),
    ),
    "reasoning.cancel-reason": sends(
        "reasoning.a_cancellation_has_a_code",
        "a code, one word",
        payload("reasoning/cancel", reason="it was too hard"),
    ),
    "context.parallel": Wrong(
        "reasoning.sequences_run_side_by_side",
        "another reasoning/thought after somebody else's reasoning/cancel",
        _easily_put_off,
    ),
    "reasoning.cancel-affordance": sends(
        "reasoning.a_person_can_cancel_reasoning",
        "reasoning/cancel with the context",
        drop("reasoning/cancel"),
    ),
}
