"""What a participant is told that does what it may not, and what others are told of it (§3.8.2, §5.4)."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.giving import granted
from mew.conform.guests import somebody
from mew.conform.matching import is_id, is_kind, part, refuses, same
from mew.conform.sayings import CHAT, Say, call, fresh
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, Violation, demand
from mew.conform.wire import Actor

_VIOLATIONS: Final = (
    Say("mcp/request", {"method": "tools/call", "params": {"name": "write_file"}}),
    Say("mcp/proposal", {"method": "tools/list"}),
    Say("reasoning/thought", {"text": "so"}),
    Say("chat/acknowledge", {}, {"correlation_id": ["c-1"]}),
    Say("participant/clear", {}),
    Say("capability/grant", {"recipient": "nobody", "capabilities": []}),
    Say("space/kick", {"participant_id": "nobody"}),
    Say("stream/request", {"direction": "upload"}),
)


async def _told(speaker: Actor, sent: Mapping[str, Any]) -> dict[str, Any]:
    what = f"a system/error for its {sent['kind']} {sent['id']}, which it holds no capability for (§3.8.2)"
    return await speaker.hear(refuses(sent), what)


@check("violation.answered")
async def a_violator_is_told(stage: Stage) -> None:
    """Every violation is answered with a `system/error` addressed to its sender, one for each, in whatever role."""
    owner, reader, listener = await stage.enter_all("owner", "reader", "listener")
    for speaker in (reader, *await stage.twice(listener, owner)):
        for say in (*_VIOLATIONS, *_VIOLATIONS[:2], Say("mcp/request", {"method": "x"}, {"to": [owner.id]})):
            error = await _told(speaker, await say.by(speaker))
            demand(
                isinstance(error.get("to"), list) and speaker.id in error["to"],
                f"the system/error for {speaker.name} is not addressed to it: `to` is {error.get('to')!r}, "
                f"not [{speaker.id!r}] (§3.8.2)",
            )
            demand(
                error.get("from") not in (speaker.id, owner.id),
                f"the system/error is from {error.get('from')!r}, a participant, not from the gateway (§3.8.2)",
            )


def _check_payload(error: Mapping[str, Any], kind: str, speaker: Actor) -> None:
    payload = error.get("payload")
    demand(
        isinstance(payload, dict), f"the system/error for a violation has the payload {payload!r} (§3.8.2)"
    )
    assert isinstance(payload, dict)
    for field, value in {"error": "capability_violation", "attempted_kind": kind}.items():
        demand(
            payload.get(field) == value,
            f"`{field}` of the system/error for a {kind} is {payload.get(field)!r}, not {value!r} (§3.8.2)",
        )
    listed = payload.get("your_capabilities")
    demand(
        same(listed, speaker.capabilities),
        f"`your_capabilities` of the system/error is {json.dumps(listed)}, "
        f"the welcome said {json.dumps(speaker.capabilities)} (§3.8.2)",
    )


@check("violation.payload")
async def the_error_says_what_and_why(stage: Stage) -> None:
    """The error has its code, the kind that was attempted, and what the sender holds, as its welcome has it."""
    await stage.enter("owner")
    for name in ("listener", "reader", "proposer"):
        speaker = await stage.enter(name)
        for say in _VIOLATIONS:
            if name == "proposer" and say.kind in ("mcp/proposal", "reasoning/thought"):
                continue
            _check_payload(await _told(speaker, await say.by(speaker)), say.kind, speaker)


@check("violation.payload")
async def the_error_knows_what_changed(stage: Stage) -> None:
    """After a grant that counts `your_capabilities` is another list than before: what the new welcome gave, if any."""
    owner, guest = await stage.enter("owner"), await somebody(stage, CHAT, {"kind": "mcp/proposal"})
    before, given = guest.capabilities, Say("chat/cancel", {}, {"correlation_id": ["c-1"]})
    await granted(stage, owner, guest, given.capability, shown=given)
    error = await _told(guest, await call("x").by(guest))
    listed = part(error, "payload", "your_capabilities")
    demand(
        not same(listed, before),
        f"`your_capabilities` of the system/error is {json.dumps(listed)}, as before a grant of "
        f"{json.dumps(given.capability)}, which counts (§3.8.2)",
    )
    if not same(before, guest.capabilities):  # a new welcome told it
        _check_payload(error, "mcp/request", guest)


@check("violation.announced")
async def a_notice_shows_nothing_of_it(stage: Stage) -> None:
    """Others learn of a violation, if they do, from an envelope of the gateway's own, without what was refused."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    secret = fresh()
    sent = await listener.send(
        "mcp/request", {"method": "tools/call", "params": {"name": secret}}, to=[peer.id]
    )
    error: dict[str, Any] = {}
    with suppress(Violation):  # which is another requirement
        error = await _told(listener, sent)
    await stage.come_through(listener, owner, peer)
    notices = 0
    for other in (owner, peer):
        demand(
            not other.heard(is_id(error.get("id", ...))),
            f"{other.name} received the very system/error that is for {listener.name} (§3.8.2); "
            "a notice for others is an envelope of its own (§5.4)",
        )
        for text, envelope in zip(other.texts, other.received, strict=True):
            demand(secret not in text, f"{other.name} was shown what was refused (§5.4): {text}")
            notices += is_kind("system/error")(envelope) and (sent["id"] in text or listener.id in text)
    if not notices:
        raise NotOffered("violations are not announced to others here")
