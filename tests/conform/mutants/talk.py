"""Gateways that pass on wrongly what is said."""

from typing import Any

from mew.protocol.envelope import Envelope

from .breaks import Break, Mutant, of, shown
from .deciding import changed, doubled, dropped, narrowed, refusing

__all__ = ["MUTANTS"]


ACKNOWLEDGE = "chat/acknowledge"
START, THOUGHT, CONCLUSION = "reasoning/start", "reasoning/thought", "reasoning/conclusion"
CANCEL = "reasoning/cancel"


def no_thought_twice() -> Break:
    thoughts: set[tuple[str, str]] = set()

    def when(said: dict[str, Any]) -> bool:
        thought = (said.get("context", ""), str(said.get("payload")))
        again = said["kind"] == THOUGHT and thought in thoughts
        thoughts.add(thought)
        return again

    return dropped(when)


def one_sequence_at_a_time() -> Break:
    thinking: dict[str, str] = {}

    def when(envelope: Envelope) -> bool:
        if envelope.kind == CONCLUSION:
            thinking.pop(envelope.sender, None)
        return envelope.kind == START and thinking.setdefault(envelope.sender, envelope.id) != envelope.id

    return refusing(when)


MUTANTS = (
    Mutant(
        "chat.format",
        "talk.a_chat_needs_no_format",
        changed(shown("chat"), lambda said: said["payload"].setdefault("format", "plain")),
        "with another payload: {'text': 'hi'} was sent",
    ),
    Mutant(
        "chat.format",
        "talk.a_chat_needs_no_format",
        refusing(lambda e: e.kind == "chat" and e.content["text"] == "hi" and "format" not in e.content),
        "the gateway refused it",
    ),
    Mutant(
        "chat.broadcast",
        "talk.a_chat_goes_to_everyone_or_to_some",
        dropped(lambda said: said["kind"] == "chat" and said.get("to") == []),
        "expected that peer receives the chat",
    ),
    Mutant(
        "chat.broadcast",
        "talk.a_chat_goes_to_everyone_or_to_some",
        narrowed(lambda e: e.kind == "chat" and bool(e.to), lambda e: [e.to[0]]),
        "expected that proposer receives the chat",
    ),
    Mutant(
        "chat.broadcast",
        "talk.a_chat_goes_to_everyone_or_to_some",
        changed(
            lambda said: said["kind"] == "chat" and len(said.get("to", ())) > 1, lambda said: said["to"].pop()
        ),
        "with another to",
    ),
    Mutant(
        "acknowledge.status",
        "talk.an_acknowledgement_has_any_status",
        refusing(lambda e: e.kind == ACKNOWLEDGE and e.content.get("status") not in ("received", "read")),
        "the gateway refused it",
    ),
    Mutant(
        "acknowledge.status",
        "talk.an_acknowledgement_has_any_status",
        changed(shown(ACKNOWLEDGE), lambda said: said["payload"].setdefault("status", "received")),
        "with another payload: {} was sent",
    ),
    Mutant(
        "acknowledge.suppressed",
        "talk.an_acknowledgement_is_shown_whole_or_not_at_all",
        changed(shown(ACKNOWLEDGE), lambda said: said.pop("correlation_id")),
        "with another correlation_id",
    ),
    Mutant(
        "acknowledge.suppressed",
        "talk.an_acknowledgement_is_shown_whole_or_not_at_all",
        refusing(lambda e: e.kind == ACKNOWLEDGE and not e.to),
        "the gateway refused a chat/acknowledge",
    ),
    Mutant(
        "acknowledge.suppressed",
        "talk.an_acknowledgement_is_shown_whole_or_not_at_all",
        doubled(shown(ACKNOWLEDGE)),
        "2 times, not once",
    ),
    *(
        Mutant(
            "reasoning.observable",
            "talk.reasoning_is_seen_by_everyone",
            narrowed(of(kind), lambda e: ["owner", "peer", "proposer"]),
            f"expected that listener receives the {kind}",
        )
        for kind in (START, THOUGHT, CONCLUSION, CANCEL)
    ),
    Mutant(
        "reasoning.observable",
        "talk.reasoning_is_seen_by_everyone",
        changed(
            lambda said: "/" in said.get("context", ""),
            lambda said: said.update(context=said["context"].partition("/")[0]),
        ),
        "with another context",
    ),
    Mutant(
        "reasoning.observable",
        "talk.reasoning_is_seen_by_everyone",
        changed(
            lambda said: len(said.get("correlation_id", ())) > 1,
            lambda said: said["correlation_id"].reverse(),
        ),
        "with another correlation_id",
    ),
    Mutant(
        "reasoning.thoughts",
        "talk.any_number_of_thoughts_passes",
        no_thought_twice(),
        "the reasoning/thought",
    ),
    Mutant(
        "reasoning.thoughts",
        "talk.any_number_of_thoughts_passes",
        refusing(lambda e: e.kind == THOUGHT and e.content["message"] == "thought 27"),
        "the gateway refused it",
    ),
    Mutant(
        "reasoning.chat-in-context",
        "talk.a_chat_may_belong_to_a_sequence",
        changed(shown("chat"), lambda said: said.pop("context", None)),
        "with another context",
    ),
    Mutant(
        "reasoning.chat-in-context",
        "talk.a_chat_may_belong_to_a_sequence",
        refusing(lambda e: e.kind == "chat" and e.sender == "listener" and bool(e.context)),
        "the gateway refused it",
    ),
    Mutant(
        "reasoning.conclusion",
        "talk.a_sequence_may_be_concluded_or_not",
        dropped(shown(CONCLUSION)),
        "the reasoning/conclusion",
    ),
    Mutant(
        "reasoning.conclusion",
        "talk.a_sequence_may_be_concluded_or_not",
        one_sequence_at_a_time(),
        "the gateway refused it",
    ),
    Mutant(
        "reasoning.autonomous",
        "talk.reasoning_may_start_by_itself",
        refusing(lambda e: e.kind == START and not e.correlation_id),
        "the gateway refused it",
    ),
    Mutant(
        "reasoning.autonomous",
        "talk.reasoning_may_start_by_itself",
        changed(shown(START), lambda said: said.update(correlation_id=[said["id"]])),
        "with another correlation_id: [] was sent",
    ),
    Mutant(
        "reasoning.cancel-correlates",
        "talk.a_cancellation_may_name_what_was_reasoned_about",
        changed(shown(CANCEL), lambda said: said.pop("correlation_id", None)),
        "with another correlation_id",
    ),
    Mutant(
        "reasoning.cancel-correlates",
        "talk.a_cancellation_may_name_what_was_reasoned_about",
        refusing(lambda e: e.kind == CANCEL and not e.correlation_id),
        "the gateway refused it",
    ),
)
