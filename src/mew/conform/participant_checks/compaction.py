"""Compacting, asked for or by itself (§3.9.4 to §3.9.7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mew.conform.matching import is_kind
from mew.conform.participant.checking import check
from mew.conform.participant.matching import both, causes, payload_of, word_in
from mew.conform.participant.scenes import calm, clear, count_of, every, feed, fresh_word, needs_memory
from mew.conform.participant.stage import ParticipantStage
from mew.conform.verdicts import NotOffered, demand

_FED: Final = 16
_TEXT_CHARS: Final = 2_000
_CHATS_MAX: Final = 400
_TOLD_BY: Final = ("compact", "trim", "forg", "drop", "prun", "summar")


async def _compacted(stage: ParticipantStage, payload: Any = None) -> dict[str, Any]:
    """Ask it, with something in its memory, to compact; its `participant/compact-done`."""
    needs_memory(stage)
    await clear(stage)
    await feed(stage, _FED)
    sent = await stage.show(
        "participant/compact", {"reason": "token_pressure"} if payload is None else payload
    )
    return await _done(stage, sent)


async def _done(stage: ParticipantStage, sent: Mapping[str, Any]) -> dict[str, Any]:
    since = stage.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    return await stage.hear(
        is_kind("participant/compact-done"), "participant/compact-done after participant/compact", since=since
    )


@check("compact-done.sent")
async def a_compaction_is_reported_once(stage: ParticipantStage) -> None:
    """After the work that `participant/compact` set off, one `participant/compact-done` is sent, also for none."""
    done = await _compacted(stage)
    again = await stage.ask("participant/compact", {"reason": "token_pressure"})
    await _done(stage, again)
    await stage.barrier()
    for sent in (causes(done), [again["id"]]):
        many = stage.said(lambda e, sent=sent: e["kind"] == "participant/compact-done" and causes(e) == sent)  # type: ignore[misc]
        demand(len(many) <= 1, f"one participant/compact-done for each participant/compact, not {len(many)}")
    all_done = stage.said(is_kind("participant/compact-done"))
    demand(
        len(all_done) == 2,
        f"expected two participant/compact-done for two participant/compact, not {len(all_done)}",
    )


@check("compact-done.correlates")
async def a_report_names_its_request(stage: ParticipantStage) -> None:
    """A `participant/compact-done` names the `participant/compact` in `correlation_id`."""
    needs_memory(stage)
    await clear(stage)
    await feed(stage, _FED)
    for _ in range(2):
        sent = await stage.ask("participant/compact", {"reason": "token_pressure"})
        done = await _done(stage, sent)
        demand(sent["id"] in causes(done), f"expected it to name {sent['id']}, it names {causes(done)}")


@check("compact.prompt")
async def it_compacts_at_once(stage: ParticipantStage) -> None:
    """Soon after `participant/compact` a status says that it compacts, or `participant/compact-done` comes."""
    needs_memory(stage)
    await feed(stage, _FED)
    sent = await stage.ask("participant/compact", {"reason": "token_pressure"})
    since = stage.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    await stage.hear(
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
async def it_says_that_it_compacts(stage: ParticipantStage) -> None:
    """Between `participant/compact` and `participant/compact-done` comes a status such as `compacting`."""
    needs_memory(stage)
    await clear(stage)
    await feed(stage, _FED)
    sent = await stage.ask("participant/compact", {"reason": "token_pressure"})
    since = stage.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    done = await stage.hear_frame(
        is_kind("participant/compact-done"), "participant/compact-done", since=since
    )
    between = stage.said(_tells, since=since, until=done.place)
    demand(between, "no participant/status such as `compacting` came before participant/compact-done")


@check("compact.reason", "compact.target-tokens")
async def it_compacts_with_and_without_hints(stage: ParticipantStage) -> None:
    """A `participant/compact` with or without `reason` and `target_tokens` is obeyed."""
    variants: tuple[dict[str, Any], ...] = (
        {},
        {"reason": "token_pressure"},
        {"target_tokens": 100},
        {"reason": "any other words", "target_tokens": 1_000_000},
    )
    for payload in variants:
        await _compacted(stage, payload)


@check("compact.target-ignored")
async def a_target_out_of_reach_is_answered(stage: ParticipantStage) -> None:
    """Told to compact to less than it can, it answers with `participant/compact-done` all the same."""
    await _compacted(stage, {"target_tokens": 0})
    await stage.barrier()


@check("compact.reason-surfaced")
async def it_may_repeat_the_reason(stage: ParticipantStage) -> None:
    """The reason of a compaction may be told in its status."""
    word = fresh_word()
    await _compacted(stage, {"reason": word})
    await stage.barrier()
    told = stage.said(both(is_kind("participant/status"), word_in(word)))
    if not told:
        raise NotOffered("the participant's status does not repeat the reason")
    demand(all("messages_in_context" in payload_of(e) for e in told), f"a status lacks its count: {told[:1]}")


@check("compact-done.freed")
async def what_was_freed_is_a_number(stage: ParticipantStage) -> None:
    """`freed_tokens` and `freed_messages` are numbers where they are there, and no more than there was."""
    needs_memory(stage)
    await clear(stage)
    await feed(stage, _FED)
    before, growth = await calm(stage)
    done = payload_of(await _done(stage, await stage.ask("participant/compact", {})))
    named = [name for name in ("freed_tokens", "freed_messages") if name in done]
    if not named:
        raise NotOffered("the participant does not say what it freed")
    for name in named:
        number = isinstance(done[name], int | float) and not isinstance(done[name], bool) and done[name] >= 0
        demand(number, f"`{name}` must be a number: {done}")
    freed = done.get("freed_messages", 0)
    demand(freed <= before + 5 * (growth + 1), f"it had {before} messages and freed {freed}")


async def _nothing_to_compact(stage: ParticipantStage) -> dict[str, Any] | None:
    """Have it compact when it has nothing to; None: it takes no notice."""
    if stage.traits.remembers:
        await clear(stage)
    sent = await stage.ask("participant/compact", {"reason": "token_pressure"})
    since = stage.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place
    done = await stage.heard_if(is_kind("participant/compact-done"), since=since)
    if done is not None and payload_of(done).get("freed_messages", 0):
        raise NotOffered("the participant always has something to compact")
    return done


@check("compact.ignored")
async def who_has_nothing_to_compact_may_be_silent(stage: ParticipantStage) -> None:
    """With nothing to compact it may take no notice of `participant/compact`, and goes on."""
    done = await _nothing_to_compact(stage)
    if done is not None:
        raise NotOffered("the participant answers, also when there is nothing to compact")
    await stage.barrier()


@check("compact.skipped", "compact-done.skipped")
async def who_compacts_nothing_says_so(stage: ParticipantStage) -> None:
    """A `participant/compact-done` of who had nothing to compact has `skipped: true`."""
    done = await _nothing_to_compact(stage)
    if done is None:
        raise NotOffered("the participant takes no notice when there is nothing to compact")
    skipped = payload_of(done).get("skipped")
    demand(skipped is True, f"nothing was compacted, and `skipped` is {skipped!r}: {done}")


@check("compact-done.reason")
async def a_skip_may_have_a_reason(stage: ParticipantStage) -> None:
    """A `participant/compact-done` that skipped may say why, for people to read."""
    await _nothing_to_compact(stage)
    skips = [e for e in every(stage, "participant/compact-done") if payload_of(e).get("skipped") is True]
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


async def _filled(stage: ParticipantStage) -> _Filled:
    """Say so much that it has to make room; done once in a run."""
    needs_memory(stage)
    known = stage.company.findings.get("filled")
    if isinstance(known, _Filled):
        return known
    status = await stage.status()
    most, now = status.get("max_tokens"), status.get("tokens")
    if not isinstance(most, int | float) or not isinstance(now, int | float):
        raise NotOffered("the participant's status does not say `tokens` and `max_tokens`")
    if most > stage.company.prompts.feed_tokens_max:
        raise NotOffered(f"to fill {most} tokens is more than feed_tokens_max allows")
    await clear(stage)
    since = stage.subject.place
    found = await _fill(stage, since)
    stage.company.findings["filled"] = found
    return found


async def _fill(stage: ParticipantStage, since: int) -> _Filled:
    count, overfull = 0, ""
    for number in range(_CHATS_MAX):
        text = f"Nobody need answer this: {number} {'la ' * (_TEXT_CHARS // 3)}"
        await stage.ask("chat", {"text": text, "format": "plain"}, to=...)
        status = await stage.status()
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
async def it_makes_room_by_itself(stage: ParticipantStage) -> None:
    """Fed until its context is nearly full, it drops or compacts some before it is."""
    filled = await _filled(stage)
    demand(not filled.overfull, f"its context ran full: {filled.overfull} tokens")
    if not filled.fell:
        raise NotOffered("what the kit can say does not fill its memory")


@check("memory.compaction-told")
async def it_says_when_it_makes_room(stage: ParticipantStage) -> None:
    """When it compacts by itself, a `participant/status` says so, and how much room there is now."""
    filled = await _filled(stage)
    if not filled.fell:
        raise NotOffered("the participant did not compact by itself")
    await stage.barrier()
    told = [e for e in stage.said(_tells, since=filled.since) if not causes(e)]
    demand(told, "it compacted by itself, and no participant/status said so")
    roomy = [e for e in told if isinstance(payload_of(e).get("messages_in_context"), int)]
    demand(roomy, f"the status does not say how much room there is: {told[:1]}")


@check("status.near-limit")
async def it_may_warn_that_it_is_nearly_full(stage: ParticipantStage) -> None:
    """A status may come by itself when little of its context is left, and says how much."""
    filled = await _filled(stage)
    warned = stage.said(
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
