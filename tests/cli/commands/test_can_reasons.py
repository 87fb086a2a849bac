"""Why somebody may do something, or not."""

from typing import Any

import pytest

from mew.cli.commands.can import given_and_taken
from mew.cli.commands.can_reasons import CapabilityVerdict, explained, given_in, verdict_of
from mew.cli.http import members
from mew.client.client import Client
from mew.protocol.capability import Capability
from mew.testing import Space

READ = "mcp/request:tools/call:read_file"
WRITE = "mcp/request:tools/call:write_file"
WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "bot": ["chat", "mcp/proposal", "mcp/request:tools/list", {"kind": WRITE.partition(":")[0], "to": "fs"}],
    "cat": ["chat", "capability/grant"],
    "fs": [],
}


async def judged(me: Client, who: str, what: Any) -> CapabilityVerdict:
    everyone = await members(me, None)
    return verdict_of(who, Capability.parse(what), everyone, given_in(await given_and_taken(me), who))


def lines(verdict: CapabilityVerdict) -> list[str]:
    return [line.plain for line in explained(verdict)]


async def test_a_yes_says_which_capability_and_that_it_is_configured() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann:
        verdict = await judged(ann, "ann", WRITE)
        assert verdict.may
        assert lines(verdict) == [f"yes, ann may send {WRITE}", "  *  anything; from the configuration"]


async def test_a_yes_by_grant_names_who_gave_it_and_the_grant() -> None:
    async with Space(WHO) as space, space.connect("cat"), space.connect("ann") as ann:
        granted = await ann.grant("cat", READ)
        verdict = await judged(ann, "cat", READ)
        assert [(one.source, one.change_id) for one in verdict.because] == [("granted by ann", granted.id)]


async def test_a_yes_by_invitation_says_who_invited() -> None:
    async with Space(WHO) as space, space.connect("ann") as ann:
        await ann.invite("dog", "chat", READ)
        async with space.connect("dog"), space.connect("ann") as again:
            verdict = await judged(again, "dog", READ)
            assert [one.source for one in verdict.because] == ["invited with it by ann"]


async def test_a_no_says_what_is_nearest_who_could_grant_it_and_what_to_do_instead() -> None:
    who = {**WHO, "bot": ["chat", "mcp/proposal", "mcp/request:tools/list"]}
    async with Space(who) as space, space.connect("bot"), space.connect("cat"), space.connect("ann") as ann:
        verdict = await judged(ann, "bot", WRITE)
        assert not verdict.may
        assert lines(verdict) == [
            f"no, bot may not send {WRITE}",
            "  nearest to it is:",
            "  mcp/request:tools/list  list tools; from the configuration",
            "  but it may propose it, and somebody who may can approve that",
            "  could be granted by ann",
        ]
        assert "  it holds nothing about mcp/request" in lines(await judged(ann, "cat", WRITE))


async def test_a_no_after_a_revocation_says_who_took_it() -> None:
    async with Space(WHO) as space, space.connect("cat"), space.connect("ann") as ann:
        granted = await ann.grant("cat", READ)
        taken = await ann.revoke("cat", grant_id=granted.id)
        verdict = await judged(ann, "cat", READ)
        assert not verdict.may
        assert [(one.by, one.id) for one in verdict.taken] == [("ann", taken.id)]


async def test_some_of_it_is_told_from_all_of_it() -> None:
    async with Space(WHO) as space, space.connect("bot"), space.connect("ann") as ann:
        verdict = await judged(ann, "bot", WRITE)
        assert (verdict.may, len(verdict.partly)) == (False, 1)
        assert lines(verdict)[0] == f"not all of it: bot may send some of {WRITE}"
        to_fs = {**Capability.parse(WRITE).source, "to": "fs"}
        assert (await judged(ann, "bot", to_fs)).may


async def test_what_was_carved_out_is_no_longer_in_it() -> None:
    async with Space(WHO) as space, space.connect("cat"), space.connect("ann") as ann:
        await ann.grant("cat", "mcp/request:tools/*")
        await ann.revoke("cat", WRITE)
        assert not (await judged(ann, "cat", WRITE)).may
        verdict = await judged(ann, "cat", READ)
        assert [one.source for one in verdict.because] == ["granted by ann"]
        assert "but not call write_file" in lines(verdict)[1]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"connected": False}, "it is not here now"),
        (
            {"connected": True, "paused": {"by": "ann"}},
            "it is paused by ann, and may send nothing until that is over",
        ),
        (
            {"connected": True, "shut_down": True},
            "it was shut down, and may send nothing until it has come back",
        ),
    ],
)
def test_what_keeps_somebody_from_sending_anything_is_said_too(state: dict[str, Any], says: str) -> None:
    member = {"id": "bot", "capabilities": ["chat"], **state}
    assert verdict_of("bot", Capability.parse("chat"), [member], []).state == (says,)
