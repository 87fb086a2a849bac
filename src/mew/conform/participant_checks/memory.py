"""Forgetting, clearing and compacting (§3.9.4 to §3.9.8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, word_in
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import (
    calm,
    clear,
    count_of,
    every,
    feed,
    fresh_word,
    messages,
    needs_memory,
    since,
)

_FED: Final = 24
_FORGOTTEN: Final = 10


async def _full(ctx: ParticipantContext) -> tuple[int, int]:
    """With enough in its memory to forget some of; how many messages, and how many more with each question."""
    needs_memory(ctx)
    await clear(ctx)
    await feed(ctx, _FED)
    count, growth = await calm(ctx)
    if count < 2 * _FORGOTTEN:
        raise NotOffered(f"of {_FED} chats to all, the participant retains {count} messages")
    return count, growth


def _slack(growth: int) -> int:
    """By how much a count may be off: where questions are counted, so is what it was told to do."""
    return 1 if growth <= 0 else 2 + 3 * growth


def _forget(direction: str, entries: int = _FORGOTTEN) -> dict[str, Any]:
    return {"direction": direction, "entries": entries}


async def _obeyed(ctx: ParticipantContext, sent: Mapping[str, Any]) -> None:
    """Wait until it confirms what it was told; who does not confirm has had the time to do it."""
    await ctx.expect_optional(_confirms(sent), since=_since(ctx, sent))


async def _tokens(ctx: ParticipantContext) -> float | None:
    found = (await ctx.status()).get("tokens")
    return found if isinstance(found, int | float) else None


@check("forget.drops")
async def it_forgets_as_many_as_it_is_told(ctx: ParticipantContext) -> None:
    """After `participant/forget` it retains as many messages less, from the end that was named."""
    for direction in ("oldest", "newest"):
        before, growth = await _full(ctx)
        tokens = await _tokens(ctx)
        await _obeyed(ctx, await ctx.ask("participant/forget", _forget(direction)))
        later = await _tokens(ctx)
        after = await messages(ctx)
        dropped = before - after
        slack = _slack(growth)
        fewer = tokens is not None and later is not None and later < tokens
        if dropped == 0 and fewer:
            continue  # it takes `entries` for tokens, as it may
        expected = f"told to forget the {_FORGOTTEN} {direction} of {before} messages"
        demand(dropped > 0, f"{expected}, it retains {after}")
        near = _FORGOTTEN - slack <= dropped <= _FORGOTTEN + slack
        demand(near, f"{expected}, it retains {after}, {dropped} less")
    if "recall" in ctx.test_run.prompts.said:
        await _from_the_right_end(ctx)


async def _from_the_right_end(ctx: ParticipantContext) -> None:
    for direction in ("oldest", "newest"):
        await clear(ctx)
        words = await feed(ctx)
        await _obeyed(ctx, await ctx.ask("participant/forget", _forget(direction, len(words) // 2)))
        said = await _recalled(ctx)
        known = [word for word in words if word_in(word)(said)]
        first, last = (words[0] in known), (words[-1] in known)
        if not known:
            continue  # it cannot be asked, or took the number for tokens
        kept = last if direction == "oldest" else first
        gone = first if direction == "oldest" else last
        demand(kept or not gone, f"told to forget the {direction}, it remembers {known} of {words}")


async def _recalled(ctx: ParticipantContext) -> Mapping[str, Any]:
    """What it says when asked what it remembers."""
    since = ctx.subject.place
    sent = await ctx.prompt("recall")
    if sent["kind"] == "mcp/request":
        return await ctx.answer(sent)
    return await ctx.expect(is_kind("chat"), "what it remembers", since=since)


@check("forget.direction")
async def a_direction_that_is_none_drops_nothing(ctx: ParticipantContext) -> None:
    """A `participant/forget` whose direction is neither `oldest` nor `newest` drops nothing."""
    before, _ = await _full(ctx)
    wrong: tuple[dict[str, Any], ...] = (
        _forget("sideways"),
        _forget("Oldest"),
        {"entries": _FORGOTTEN},
        {"direction": ["oldest"], "entries": _FORGOTTEN},
    )
    for payload in wrong:
        await ctx.show("participant/forget", payload)
    await ctx.barrier()
    after = await messages(ctx)
    demand(after >= before, f"told to forget in directions that are none, it retains {after} of {before}")
    for envelope in ctx.said(is_kind("participant/forget"), since=0):
        direction = payload_of(envelope).get("direction")
        demand(direction in ("oldest", "newest"), f"`direction` is oldest or newest: {envelope}")


@check("forget.entries")
async def it_forgets_without_a_number(ctx: ParticipantContext) -> None:
    """A `participant/forget` without `entries` is obeyed as well: some is dropped."""
    before, _ = await _full(ctx)
    await _obeyed(ctx, await ctx.ask("participant/forget", {"direction": "oldest"}))
    after = await messages(ctx)
    demand(after < before, f"told to forget the oldest, it retains {after} of {before} messages")


@check("forget.entries-as-tokens")
async def entries_may_be_tokens(ctx: ParticipantContext) -> None:
    """Where it takes `entries` for tokens, `tokens` of its status falls by about so many."""
    before, _ = await _full(ctx)
    tokens = await _tokens(ctx)
    if tokens is None:
        raise NotOffered("the participant's status has no `tokens`")
    await _obeyed(ctx, await ctx.ask("participant/forget", _forget("oldest")))
    status = await ctx.status()
    fell = tokens - status.get("tokens", tokens)
    if before - count_of(status) >= _FORGOTTEN // 2:
        raise NotOffered("the participant takes `entries` for messages")
    demand(
        0 < fell <= 20 * _FORGOTTEN,
        f"told to forget {_FORGOTTEN}, tokens fell by {fell}, and few messages went",
    )


@check("forget.followed-up")
async def it_says_that_it_has_forgotten(ctx: ParticipantContext) -> None:
    """Once it has forgotten it sends `participant/status` or `chat/acknowledge`."""
    await _full(ctx)
    for direction in ("oldest", "newest"):
        sent = await ctx.ask("participant/forget", _forget(direction, 2))
        await ctx.expect(
            _confirms(sent),
            "participant/status or chat/acknowledge after participant/forget",
            since=_since(ctx, sent),
        )


def _confirms(sent: Mapping[str, Any]) -> Any:
    kinds = is_kind("participant/status", "chat/acknowledge")
    return lambda e: kinds(e) and (about(sent)(e) or not e.get("correlation_id"))


def _since(ctx: ParticipantContext, sent: Mapping[str, Any]) -> int:
    return ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place


@check("clear.stronger")
async def clearing_leaves_nothing(ctx: ParticipantContext) -> None:
    """After `participant/clear` `messages_in_context` is 0, however much there was."""
    await _full(ctx)
    _, growth = await calm(ctx)
    sent = await ctx.ask("participant/clear")
    await _obeyed(ctx, sent)
    told = ctx.said(both(is_kind("participant/status"), about(sent)))
    after = count_of(payload_of(told[0])) if told else await messages(ctx)
    slack = 0 if told or not growth else _slack(growth)
    demand(after <= slack, f"after participant/clear `messages_in_context` is {after}")


@check("clear.erases")
async def what_was_cleared_is_not_known(ctx: ParticipantContext) -> None:
    """After `participant/clear` nothing shows knowledge of what it was told before."""
    before, _ = await _full(ctx)
    word = fresh_word()
    knows = False
    if "recall" in ctx.test_run.prompts.said:
        await ctx.ask("chat", {"text": f"For your information, remember this: {word}."})
        await ctx.barrier()
        knows = word_in(word)(await _recalled(ctx))
    sent = await ctx.ask("participant/clear")
    await _obeyed(ctx, sent)
    after = await messages(ctx)
    demand(after <= since(ctx, sent), f"told to clear {before} messages, it retains {after}")
    if knows:
        knows = word_in(word)(await _recalled(ctx))
        demand(not knows, f"it was cleared, and still knows the word {word!r}")
        why = "after participant/clear it shows that it knows what it was told before"
        ctx.never(word_in(word), why, since=ctx.subject.place)


@check("clear.payload")
async def a_clear_needs_no_payload(ctx: ParticipantContext) -> None:
    """A `participant/clear` without a payload, or with an empty one, is obeyed."""
    variants: tuple[Any, ...] = (..., {}, {"reason": "conformance"})
    for payload in variants:
        before, _ = await _full(ctx)
        sent = await ctx.show("participant/clear", payload=payload)
        await _obeyed(ctx, sent)
        after = await messages(ctx)
        fell = after <= since(ctx, sent)
        what = "without a payload" if payload is ... else f"with the payload {payload}"
        demand(fell, f"a participant/clear {what} left {after} of {before} messages")


@check("clear.followed-up")
async def it_shows_that_it_is_empty(ctx: ParticipantContext) -> None:
    """Once it has cleared it sends a `participant/status` with `messages_in_context: 0`."""
    await _full(ctx)
    sent = await ctx.ask("participant/clear")
    status = await ctx.expect(
        lambda e: e.get("kind") == "participant/status" and (about(sent)(e) or not e.get("correlation_id")),
        "a participant/status after participant/clear",
        since=_since(ctx, sent),
    )
    count = count_of(payload_of(status))
    demand(
        count == 0,
        f"expected a status with `messages_in_context: 0` after participant/clear, it says {count}",
    )


_COMPACTED_WORDS: Final = 16
_TEXT_CHARS: Final = 2_000
_CHATS_MAX: Final = 400
_TOLD_BY: Final = ("compact", "trim", "forg", "drop", "prun", "summar")


async def _compacted(ctx: ParticipantContext, payload: Any = None) -> dict[str, Any]:
    """Ask it, with something in its memory, to compact; its `participant/compact-done`."""
    needs_memory(ctx)
    await clear(ctx)
    await feed(ctx, _COMPACTED_WORDS)
    sent = await ctx.show("participant/compact", {"reason": "token_pressure"} if payload is None else payload)
    return await _done(ctx, sent)


async def _done(ctx: ParticipantContext, sent: Mapping[str, Any]) -> dict[str, Any]:
    since = ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    return await ctx.expect(
        is_kind("participant/compact-done"), "participant/compact-done after participant/compact", since=since
    )


@check("compact-done.sent")
async def a_compaction_is_reported_once(ctx: ParticipantContext) -> None:
    """After the work that `participant/compact` set off, one `participant/compact-done` is sent, also for none."""
    done = await _compacted(ctx)
    again = await ctx.ask("participant/compact", {"reason": "token_pressure"})
    await _done(ctx, again)
    await ctx.barrier()
    for sent in (causes(done), [again["id"]]):
        many = ctx.said(lambda e, sent=sent: e["kind"] == "participant/compact-done" and causes(e) == sent)  # type: ignore[misc]
        demand(len(many) <= 1, f"one participant/compact-done for each participant/compact, not {len(many)}")
    all_done = ctx.said(is_kind("participant/compact-done"))
    demand(
        len(all_done) == 2,
        f"expected two participant/compact-done for two participant/compact, not {len(all_done)}",
    )


@check("compact-done.correlates")
async def a_report_names_its_request(ctx: ParticipantContext) -> None:
    """A `participant/compact-done` names the `participant/compact` in `correlation_id`."""
    needs_memory(ctx)
    await clear(ctx)
    await feed(ctx, _COMPACTED_WORDS)
    for _ in range(2):
        sent = await ctx.ask("participant/compact", {"reason": "token_pressure"})
        done = await _done(ctx, sent)
        demand(sent["id"] in causes(done), f"expected it to name {sent['id']}, it names {causes(done)}")


@check("compact.prompt")
async def it_compacts_at_once(ctx: ParticipantContext) -> None:
    """Soon after `participant/compact` a status says that it compacts, or `participant/compact-done` comes."""
    needs_memory(ctx)
    await feed(ctx, _COMPACTED_WORDS)
    sent = await ctx.ask("participant/compact", {"reason": "token_pressure"})
    since = ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    await ctx.expect(
        lambda e: e.get("kind") == "participant/compact-done" or _tells(e),
        "participant/compact-done, or a participant/status that says that it compacts",
        since=since,
    )


def _tells(envelope: Mapping[str, Any]) -> bool:
    """A status that says in words that something is being made room for."""
    if envelope.get("kind") != "participant/status":
        return False
    said = " ".join(str(value).lower() for value in payload_of(envelope).values() if isinstance(value, str))
    return any(word in said for word in _TOLD_BY)


@check("compact.interim-status")
async def it_says_that_it_compacts(ctx: ParticipantContext) -> None:
    """Between `participant/compact` and `participant/compact-done` comes a status such as `compacting`."""
    needs_memory(ctx)
    await clear(ctx)
    await feed(ctx, _COMPACTED_WORDS)
    sent = await ctx.ask("participant/compact", {"reason": "token_pressure"})
    since = ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    done = await ctx.expect_frame(
        is_kind("participant/compact-done"), "participant/compact-done", since=since
    )
    between = ctx.said(_tells, since=since, until=done.place)
    demand(between, "no participant/status such as `compacting` came before participant/compact-done")


@check("compact.reason", "compact.target-tokens")
async def it_compacts_with_and_without_hints(ctx: ParticipantContext) -> None:
    """A `participant/compact` with or without `reason` and `target_tokens` is obeyed."""
    variants: tuple[dict[str, Any], ...] = (
        {},
        {"reason": "token_pressure"},
        {"target_tokens": 100},
        {"reason": "any other words", "target_tokens": 1_000_000},
    )
    for payload in variants:
        await _compacted(ctx, payload)


@check("compact.target-ignored")
async def a_target_out_of_reach_is_answered(ctx: ParticipantContext) -> None:
    """Told to compact to less than it can, it answers with `participant/compact-done` all the same."""
    await _compacted(ctx, {"target_tokens": 0})
    await ctx.barrier()


@check("compact.reason-surfaced")
async def it_may_repeat_the_reason(ctx: ParticipantContext) -> None:
    """The reason of a compaction may be told in its status."""
    word = fresh_word()
    await _compacted(ctx, {"reason": word})
    await ctx.barrier()
    told = ctx.said(both(is_kind("participant/status"), word_in(word)))
    if not told:
        raise NotOffered("the participant's status does not repeat the reason")
    demand(all("messages_in_context" in payload_of(e) for e in told), f"a status lacks its count: {told[:1]}")


@check("compact-done.freed")
async def what_was_freed_is_a_number(ctx: ParticipantContext) -> None:
    """`freed_tokens` and `freed_messages` are numbers where they are there, and no more than there was."""
    needs_memory(ctx)
    await clear(ctx)
    await feed(ctx, _COMPACTED_WORDS)
    before, growth = await calm(ctx)
    done = payload_of(await _done(ctx, await ctx.ask("participant/compact", {})))
    named = [name for name in ("freed_tokens", "freed_messages") if name in done]
    if not named:
        raise NotOffered("the participant does not say what it freed")
    for name in named:
        number = isinstance(done[name], int | float) and not isinstance(done[name], bool) and done[name] >= 0
        demand(number, f"`{name}` must be a number: {done}")
    freed = done.get("freed_messages", 0)
    demand(freed <= before + 5 * (growth + 1), f"it had {before} messages and freed {freed}")


async def _nothing_to_compact(ctx: ParticipantContext) -> dict[str, Any] | None:
    """Have it compact when it has nothing to; None: it takes no notice."""
    if ctx.traits.remembers:
        await clear(ctx)
    sent = await ctx.ask("participant/compact", {"reason": "token_pressure"})
    since = ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    done = await ctx.expect_optional(is_kind("participant/compact-done"), since=since)
    if done is not None and payload_of(done).get("freed_messages", 0):
        raise NotOffered("the participant always has something to compact")
    return done


@check("compact.ignored")
async def who_has_nothing_to_compact_may_be_silent(ctx: ParticipantContext) -> None:
    """With nothing to compact it may take no notice of `participant/compact`, and goes on."""
    done = await _nothing_to_compact(ctx)
    if done is not None:
        raise NotOffered("the participant answers, also when there is nothing to compact")
    await ctx.barrier()


@check("compact.skipped", "compact-done.skipped")
async def who_compacts_nothing_says_so(ctx: ParticipantContext) -> None:
    """A `participant/compact-done` of who had nothing to compact has `skipped: true`."""
    done = await _nothing_to_compact(ctx)
    if done is None:
        raise NotOffered("the participant takes no notice when there is nothing to compact")
    skipped = payload_of(done).get("skipped")
    demand(skipped is True, f"nothing was compacted, and `skipped` is {skipped!r}: {done}")


@check("compact-done.reason")
async def a_skip_may_have_a_reason(ctx: ParticipantContext) -> None:
    """A `participant/compact-done` that skipped may say why, for people to read."""
    await _nothing_to_compact(ctx)
    skips = [e for e in every(ctx, "participant/compact-done") if payload_of(e).get("skipped") is True]
    reasons = [payload_of(e)["reason"] for e in skips if "reason" in payload_of(e)]
    if not reasons:
        raise NotOffered("the participant gives no reason when it skips a compaction")
    for reason in reasons:
        demand(isinstance(reason, str) and reason.strip(), f"a `reason` for people is a text, not {reason!r}")


# By itself.


@dataclass(frozen=True, slots=True)
class _Filled:
    """What came of filling its memory: where that began, whether it made room, and where its status told so."""

    since: int
    overfull: str
    fell: bool


async def _filled(ctx: ParticipantContext) -> _Filled:
    """Say so much that it has to make room; done once in a run."""
    needs_memory(ctx)
    known = ctx.test_run.findings.get("filled")
    if isinstance(known, _Filled):
        return known
    status = await ctx.status()
    most, now = status.get("max_tokens"), status.get("tokens")
    if not isinstance(most, int | float) or not isinstance(now, int | float):
        raise NotOffered("the participant's status does not say `tokens` and `max_tokens`")
    if most > ctx.test_run.prompts.feed_tokens_max:
        raise NotOffered(f"to fill {most} tokens is more than feed_tokens_max allows")
    await clear(ctx)
    since = ctx.subject.place
    found = await _fill(ctx, since)
    ctx.test_run.findings["filled"] = found
    return found


async def _fill(ctx: ParticipantContext, since: int) -> _Filled:
    count, overfull = 0, ""
    for number in range(_CHATS_MAX):
        text = f"Nobody need answer this: {number} {'la ' * (_TEXT_CHARS // 3)}"
        await ctx.ask("chat", {"text": text, "format": "plain"}, to=...)
        status = await ctx.status()
        tokens, most = status.get("tokens", 0), status.get("max_tokens", 0)
        if tokens >= most:
            overfull = f"{tokens} of {most}"
        if count_of(status) < count:
            return _Filled(since, overfull, fell=True)
        count = count_of(status)
        if overfull and number % 8 == 7:
            break
    return _Filled(since, overfull, fell=False)


@check("memory.watched")
async def it_makes_room_by_itself(ctx: ParticipantContext) -> None:
    """Fed until its context is nearly full, it drops or compacts some before it is."""
    filled = await _filled(ctx)
    demand(not filled.overfull, f"its context ran full: {filled.overfull} tokens")
    if not filled.fell:
        raise NotOffered("what the kit can say does not fill its memory")


@check("memory.compaction-told")
async def it_says_when_it_makes_room(ctx: ParticipantContext) -> None:
    """When it compacts by itself, a `participant/status` says so, and how much room there is now."""
    filled = await _filled(ctx)
    if not filled.fell:
        raise NotOffered("the participant did not compact by itself")
    await ctx.barrier()
    told = [e for e in ctx.said(_tells, since=filled.since) if not causes(e)]
    demand(told, "it compacted by itself, and no participant/status said so")
    roomy = [e for e in told if isinstance(payload_of(e).get("messages_in_context"), int)]
    demand(roomy, f"the status does not say how much room there is: {told[:1]}")


@check("status.near-limit")
async def it_may_warn_that_it_is_nearly_full(ctx: ParticipantContext) -> None:
    """A status may come by itself when little of its context is left, and says how much."""
    filled = await _filled(ctx)
    warned = ctx.said(
        lambda e: e.get("kind") == "participant/status" and not causes(e) and not _tells(e),
        since=filled.since,
    )
    if not warned:
        raise NotOffered("the participant does not tell when its context is nearly full")
    for status in warned:
        said = payload_of(status)
        demand(
            "tokens" in said and "max_tokens" in said,
            f"a warning without `tokens` and `max_tokens`: {status}",
        )
