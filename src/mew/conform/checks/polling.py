"""Envelopes fetched over HTTP: whole, from a moment on, and only what one may see (§5.3)."""

import json
from datetime import timedelta, timezone
from typing import Any

from mew.conform.checking import check
from mew.conform.door import open_door
from mew.conform.guests import invited
from mew.conform.matching import alike, is_kind
from mew.conform.sayings import CHAT
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, demand


@check("http.polling-offered")
async def envelopes_can_be_fetched(stage: Stage) -> None:
    """A GET by somebody who is in no connection answers with what was sent since."""
    door = await open_door(stage, polling=True)
    owner, peer = await stage.enter_all("owner", "peer")
    await peer.leave()
    since = await door.now(owner)
    sent = await owner.send("chat", {"text": "to be fetched"}, ts=since.isoformat())
    await stage.settle(owner, await stage.enter("listener"))
    fetched = [one.get("id") for one in await door.fetched(peer, since)]
    demand(sent["id"] in fetched, f"what was sent since {since.isoformat()} is not fetched: {fetched} (§5.3)")


@check("http.since")
async def since_says_from_when_on(stage: Stage) -> None:
    """What was sent after that moment is fetched, what was sent a while before is not, in whatever offset."""
    door = await open_door(stage, polling=True)
    owner, peer = await stage.enter_all("owner", "peer")
    since = await door.now(owner)
    sent = [await owner.send("chat", {"text": f"{n}"}, ts=since.isoformat()) for n in range(3)]
    await stage.settle(owner, peer)
    later = since + timedelta(minutes=1)
    for hours in (0, 5.5, -8):
        zone = timezone(timedelta(hours=hours))
        told = since.astimezone(zone).isoformat()
        fetched = [one.get("id") for one in await door.fetched(peer, since.astimezone(zone))]
        places = [fetched.index(one["id"]) for one in sent if one["id"] in fetched]
        demand(len(places) == len(sent), f"{len(places)} of {len(sent)} sent since {told} are fetched (§5.3)")
        answer = await door.ask("GET", peer.id, peer.role, since=later.astimezone(zone))
        if not answer.is_accepted:
            raise NotOffered(f"a `since` in the future gets {answer.status}")
        early = [one for one in sent if one["id"] in answer.text]
        demand(
            not early,
            f"with since={later.astimezone(zone).isoformat()} what was sent before is fetched (§5.3)",
        )


@check("http.complete-envelopes")
async def fetched_envelopes_are_whole(stage: Stage) -> None:
    """Each fetched envelope equals what was shown on a connection, field by field."""
    door = await open_door(stage, polling=True)
    owner, peer = await stage.enter_all("owner", "peer")
    since = await door.now(owner)
    payload = {
        "text": 'é\u200f🐱\\"',
        "number": 1e-7,
        "large": 12345678901234567,
        "list": [1, {"a": None}, [], ""],
    }
    more = {"context": "a/b", "correlation_id": ["x", "y"], "to": [peer.id], "extra": {"k": [True, 1.5]}}
    ts = since.isoformat()
    sent = [
        await owner.send("chat", payload, ts=ts, **more),
        await owner.send("chat", {"text": "plain"}, ts=ts),
    ]
    sent += [await owner.send("mcp/request", {"method": "tools/list"}, ts=ts, to=[peer.id])]
    await stage.settle(owner, peer)
    fetched = {one.get("id"): one for one in await door.fetched(peer, since)}
    for one in sent:
        demand(one["id"] in fetched, f"the {one['kind']} {one['id']} is not among what peer fetched (§5.3)")
    for shown in peer.received:
        found = fetched.get(shown.get("id"), shown)
        wrong = sorted(key for key in shown.keys() | found.keys() if _differ(shown, found, key))
        demand(
            not wrong,
            f"the {shown.get('kind')} {shown.get('id')} that peer was shown is fetched with another "
            f"{', '.join(wrong)} (§5.3): {json.dumps(found)}",
        )


def _differ(one: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    return key not in one or key not in other or not alike(one[key], other[key])


@check("http.unseen-omitted")
async def what_is_anothers_is_not_fetched(stage: Stage) -> None:
    """Another's welcome, error and token are not fetched, nor what was refused, nor anything one was not shown."""
    door = await open_door(stage, polling=True)
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    since = await door.now(owner)
    reader = await stage.enter("reader")
    refused = await listener.send("mcp/request", {"method": "tools/list"}, to=[peer.id])
    error = await listener.hear(is_kind("system/error"), "a system/error (§3.8.2)")
    private = {
        str(reader.welcome.get("id")): "the welcome of reader",
        str(error.get("id")): "the error for listener",
    }
    private[refused["id"]] = "an envelope that was refused"
    secret = await _invitation(stage)
    await owner.send("chat", {"text": "for reader"}, to=[reader.id])
    await stage.settle(listener, owner, peer)
    await stage.settle(owner, peer, listener)
    for caller in (peer, owner):
        fetched = await door.fetched(caller, since)
        shown = {one.get("id") for one in caller.received}
        for one in fetched:
            what = None if one.get("id") in shown else private.get(str(one.get("id")))
            demand(what is None, f"{caller.name} fetched {what} (§5.3): {json.dumps(one)}")
            unseen = one.get("id") not in shown and one.get("from") != caller.id
            demand(not unseen, f"{caller.name} fetched what it was not shown (§5.3): {json.dumps(one)}")
            leaked = secret is not None and caller is peer and secret in json.dumps(one)
            demand(not leaked, f"{caller.name} fetched the token of somebody else (§5.3)")


async def _invitation(stage: Stage) -> str | None:
    try:
        return (await invited(stage, CHAT)).token
    except NotOffered:
        return None
