"""Forgetting and clearing (§3.9.5, §3.9.8)."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.matching import is_kind
from mew.conform.participant.checking import check
from mew.conform.participant.matching import about, both, payload_of, word_in
from mew.conform.participant.scenes import (
    calm,
    clear,
    count_of,
    feed,
    fresh_word,
    messages,
    needs_memory,
    since,
)
from mew.conform.participant.stage import ParticipantStage
from mew.conform.verdicts import NotOffered, demand

_FED: Final = 24
_FORGOTTEN: Final = 10


async def _full(stage: ParticipantStage) -> tuple[int, int]:
    """With enough in its memory to forget some of; how many messages, and how many more with each question."""
    needs_memory(stage)
    await clear(stage)
    await feed(stage, _FED)
    count, growth = await calm(stage)
    if count < 2 * _FORGOTTEN:
        raise NotOffered(f"of {_FED} chats to all, the participant retains {count} messages")
    return count, growth


def _slack(growth: int) -> int:
    """By how much a count may be off: where questions are counted, so is what it was told to do."""
    return 1 if growth <= 0 else 2 + 3 * growth


def _forget(direction: str, entries: int = _FORGOTTEN) -> dict[str, Any]:
    return {"direction": direction, "entries": entries}


async def _obeyed(stage: ParticipantStage, sent: Mapping[str, Any]) -> None:
    """Wait until it confirms what it was told; who does not confirm has had the time to do it."""
    await stage.heard_if(_confirms(sent), since=_since(stage, sent))


async def _tokens(stage: ParticipantStage) -> float | None:
    found = (await stage.status()).get("tokens")
    return found if isinstance(found, int | float) else None


@check("forget.drops")
async def it_forgets_as_many_as_it_is_told(stage: ParticipantStage) -> None:
    """After `participant/forget` it retains as many messages less, from the end that was named."""
    for direction in ("oldest", "newest"):
        before, growth = await _full(stage)
        tokens = await _tokens(stage)
        await _obeyed(stage, await stage.ask("participant/forget", _forget(direction)))
        later = await _tokens(stage)
        after = await messages(stage)
        dropped = before - after
        slack = _slack(growth)
        fewer = tokens is not None and later is not None and later < tokens
        if dropped == 0 and fewer:
            continue  # it takes `entries` for tokens, as it may
        expected = f"told to forget the {_FORGOTTEN} {direction} of {before} messages"
        demand(dropped > 0, f"{expected}, it retains {after}")
        near = _FORGOTTEN - slack <= dropped <= _FORGOTTEN + slack
        demand(near, f"{expected}, it retains {after}, {dropped} less")
    if "recall" in stage.company.prompts.said:
        await _from_the_right_end(stage)


async def _from_the_right_end(stage: ParticipantStage) -> None:
    for direction in ("oldest", "newest"):
        await clear(stage)
        words = await feed(stage)
        await _obeyed(stage, await stage.ask("participant/forget", _forget(direction, len(words) // 2)))
        said = await _recalled(stage)
        known = [word for word in words if word_in(word)(said)]
        first, last = (words[0] in known), (words[-1] in known)
        if not known:
            continue  # it cannot be asked, or took the number for tokens
        kept = last if direction == "oldest" else first
        gone = first if direction == "oldest" else last
        demand(kept or not gone, f"told to forget the {direction}, it remembers {known} of {words}")


async def _recalled(stage: ParticipantStage) -> Mapping[str, Any]:
    """What it says when asked what it remembers."""
    since = stage.subject.place
    sent = await stage.prompt("recall")
    if sent["kind"] == "mcp/request":
        return await stage.answer(sent)
    return await stage.hear(is_kind("chat"), "what it remembers", since=since)


@check("forget.direction")
async def a_direction_that_is_none_drops_nothing(stage: ParticipantStage) -> None:
    """A `participant/forget` whose direction is neither `oldest` nor `newest` drops nothing."""
    before, _ = await _full(stage)
    wrong: tuple[dict[str, Any], ...] = (
        _forget("sideways"),
        _forget("Oldest"),
        {"entries": _FORGOTTEN},
        {"direction": ["oldest"], "entries": _FORGOTTEN},
    )
    for payload in wrong:
        await stage.show("participant/forget", payload)
    await stage.barrier()
    after = await messages(stage)
    demand(after >= before, f"told to forget in directions that are none, it retains {after} of {before}")
    for envelope in stage.said(is_kind("participant/forget"), since=0):
        direction = payload_of(envelope).get("direction")
        demand(direction in ("oldest", "newest"), f"`direction` is oldest or newest: {envelope}")


@check("forget.entries")
async def it_forgets_without_a_number(stage: ParticipantStage) -> None:
    """A `participant/forget` without `entries` is obeyed as well: some is dropped."""
    before, _ = await _full(stage)
    await _obeyed(stage, await stage.ask("participant/forget", {"direction": "oldest"}))
    after = await messages(stage)
    demand(after < before, f"told to forget the oldest, it retains {after} of {before} messages")


@check("forget.entries-as-tokens")
async def entries_may_be_tokens(stage: ParticipantStage) -> None:
    """Where it takes `entries` for tokens, `tokens` of its status falls by about so many."""
    before, _ = await _full(stage)
    tokens = await _tokens(stage)
    if tokens is None:
        raise NotOffered("the participant's status has no `tokens`")
    await _obeyed(stage, await stage.ask("participant/forget", _forget("oldest")))
    status = await stage.status()
    fell = tokens - status.get("tokens", tokens)
    if before - count_of(status) >= _FORGOTTEN // 2:
        raise NotOffered("the participant takes `entries` for messages")
    demand(
        0 < fell <= 20 * _FORGOTTEN,
        f"told to forget {_FORGOTTEN}, tokens fell by {fell}, and few messages went",
    )


@check("forget.followed-up")
async def it_says_that_it_has_forgotten(stage: ParticipantStage) -> None:
    """Once it has forgotten it sends `participant/status` or `chat/acknowledge`."""
    await _full(stage)
    for direction in ("oldest", "newest"):
        sent = await stage.ask("participant/forget", _forget(direction, 2))
        await stage.hear(
            _confirms(sent),
            "participant/status or chat/acknowledge after participant/forget",
            since=_since(stage, sent),
        )


def _confirms(sent: Mapping[str, Any]) -> Any:
    kinds = is_kind("participant/status", "chat/acknowledge")
    return lambda e: kinds(e) and (about(sent)(e) or not e.get("correlation_id"))


def _since(stage: ParticipantStage, sent: Mapping[str, Any]) -> int:
    return stage.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place


@check("clear.stronger")
async def clearing_leaves_nothing(stage: ParticipantStage) -> None:
    """After `participant/clear` `messages_in_context` is 0, however much there was."""
    await _full(stage)
    _, growth = await calm(stage)
    sent = await stage.ask("participant/clear")
    await _obeyed(stage, sent)
    told = stage.said(both(is_kind("participant/status"), about(sent)))
    after = count_of(payload_of(told[0])) if told else await messages(stage)
    slack = 0 if told or not growth else _slack(growth)
    demand(after <= slack, f"after participant/clear `messages_in_context` is {after}")


@check("clear.erases")
async def what_was_cleared_is_not_known(stage: ParticipantStage) -> None:
    """After `participant/clear` nothing shows knowledge of what it was told before."""
    before, _ = await _full(stage)
    word = fresh_word()
    knows = False
    if "recall" in stage.company.prompts.said:
        await stage.ask("chat", {"text": f"For your information, remember this: {word}."})
        await stage.barrier()
        knows = word_in(word)(await _recalled(stage))
    sent = await stage.ask("participant/clear")
    await _obeyed(stage, sent)
    after = await messages(stage)
    demand(after <= since(stage, sent), f"told to clear {before} messages, it retains {after}")
    if knows:
        knows = word_in(word)(await _recalled(stage))
        demand(not knows, f"it was cleared, and still knows the word {word!r}")
        why = "after participant/clear it shows that it knows what it was told before"
        stage.never(word_in(word), why, since=stage.subject.place)


@check("clear.payload")
async def a_clear_needs_no_payload(stage: ParticipantStage) -> None:
    """A `participant/clear` without a payload, or with an empty one, is obeyed."""
    variants: tuple[Any, ...] = (..., {}, {"reason": "conformance"})
    for payload in variants:
        before, _ = await _full(stage)
        sent = await stage.show("participant/clear", payload=payload)
        await _obeyed(stage, sent)
        after = await messages(stage)
        fell = after <= since(stage, sent)
        what = "without a payload" if payload is ... else f"with the payload {payload}"
        demand(fell, f"a participant/clear {what} left {after} of {before} messages")


@check("clear.followed-up")
async def it_shows_that_it_is_empty(stage: ParticipantStage) -> None:
    """Once it has cleared it sends a `participant/status` with `messages_in_context: 0`."""
    await _full(stage)
    sent = await stage.ask("participant/clear")
    status = await stage.hear(
        lambda e: e.get("kind") == "participant/status" and (about(sent)(e) or not e.get("correlation_id")),
        "a participant/status after participant/clear",
        since=_since(stage, sent),
    )
    count = count_of(payload_of(status))
    demand(
        count == 0,
        f"expected a status with `messages_in_context: 0` after participant/clear, it says {count}",
    )
