"""The kit tries participants: ours does what it must, and one that does nothing is credited with nothing."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from mew.conform import requirements
from mew.conform.ledger import RequirementLevel, Side, Testable
from mew.conform.outcome import CheckOutcome
from mew.conform.participant.prompts import BadPrompts, Prompts, ToolPrompt, read_prompts
from mew.conform.participant.runner import participant_checks, run_participant_checks
from mew.conform.participant.subject import FrameDirection, read_frame, stream_of
from mew.conform.participant.test_gateway import SPACE, TestGateway, open_test_gateway
from mew.conform.report import requirement_verdicts

from .faulty.all import MUTANTS, THEMES
from .faulty.faults import Envelope, Fault, Say, spoken
from .ours import prompts
from .tried import named, outcomes

OURS: Final = [one for one in requirements() if one.side is not Side.GATEWAY]
ON_THE_WIRE: Final = {one.id for one in OURS if one.testable is Testable.WIRE}
BINDING: Final = (
    RequirementLevel.MUST,
    RequirementLevel.MUST_NOT,
    RequirementLevel.SHOULD,
    RequirementLevel.SHOULD_NOT,
)

# Whether the checks, the ledger and the wrong participants cover each other.


def test_every_requirement_about_participants_has_a_check_and_no_check_is_without_one() -> None:
    assert {one for check in participant_checks() for one in check.requirements} == ON_THE_WIRE


def test_for_every_requirement_there_is_a_wrong_participant() -> None:
    assert sum(map(len, THEMES)) == len(MUTANTS)
    assert MUTANTS.keys() == ON_THE_WIRE


def test_the_checks_that_end_a_participant_come_late_and_the_audits_last() -> None:
    modules = [check.name.partition(".")[0] for check in participant_checks()]
    assert list(dict.fromkeys(modules))[-2:] == ["shutdown", "audits"]


# Our own.


async def test_a_participant_is_tried_over_the_wire() -> None:
    found = await outcomes("requests.each_request_gets_one_answer", "audits.each_frame_is_an_envelope")
    assert {result.outcome for result in found.values()} == {CheckOutcome.PASS}


@pytest.mark.slow
async def test_our_participant_does_all_that_it_must_and_should() -> None:
    results = await outcomes(said=prompts(timeout_s=2.0))  # who is slow is not wrong
    failed = {name: result.why for name, result in results.items() if result.outcome is CheckOutcome.FAIL}
    assert not failed
    found = requirement_verdicts(
        [one for one in OURS if one.level in BINDING and one.id in ON_THE_WIRE], results.values()
    )
    assert not [one.requirement.id for one in found if one.outcome is not CheckOutcome.PASS]


@pytest.mark.slow
async def test_what_is_forbidden_once_is_forbidden_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Envelope] = []

    def shown(envelope: Envelope) -> Any:
        if envelope.get("protocol") == "mew/v0.3" and envelope.get("kind") == "mcp/request":
            held.append(envelope)
        if not held or envelope.get("from") != "reviewer" or envelope.get("kind") != "mcp/request":
            return envelope
        late = held.pop()
        answer = {"jsonrpc": "2.0", "id": late["payload"]["id"], "result": {}}
        return [envelope, Say(spoken(late["to"][0], "mcp/response", answer, correlation_id=[late["id"]]))]

    Fault(shown=shown).commit(monkeypatch)
    first, second = "validation.another_version_has_no_effect", "requests.an_answer_goes_to_who_asked"
    found = await outcomes(first, second)
    assert found[first].outcome is CheckOutcome.FAIL
    assert "'mew/v0.3' must have no effect" in found[first].why
    assert found[second].outcome is CheckOutcome.PASS


# Others.


async def bare(
    test_gateway: TestGateway, live: Callable[[aiohttp.ClientWebSocketResponse], Awaitable[None]]
) -> None:
    """A participant without an SDK."""
    headers = {"Authorization": f"Bearer {test_gateway.token}"}
    where = f"{test_gateway.url}/ws?space={SPACE}"
    async with aiohttp.ClientSession() as session, session.ws_connect(where, headers=headers) as socket:
        await live(socket)


async def listen(socket: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in socket:
        pass


@pytest.mark.slow
async def test_who_does_nothing_is_credited_with_nothing() -> None:
    async with open_test_gateway(Prompts(timeout_s=0.05)) as test_gateway, asyncio.TaskGroup() as tasks:
        silent = tasks.create_task(bare(test_gateway, listen))
        await test_gateway.test_run.presence()
        results = await run_participant_checks(test_gateway.test_run, participant_checks())
        silent.cancel()
    passed = {one for result in results if result.outcome is CheckOutcome.PASS for one in result.requirements}
    failed = {one for result in results if result.outcome is CheckOutcome.FAIL for one in result.requirements}
    assert failed == {"grant-ack.sent", "status-request.answered", "shutdown.acknowledged"}
    assert passed <= {
        *("connect.participant-brings-token", "welcome.of-others-ignored", "welcome.capabilities-respected"),
        *(
            "version.matching",
            "validate.structure",
            "validate.dropped-or-reported",
            "validate.unknown-response",
        ),
        *("status.other-metrics", "reasoning.no-reply", "compact.ignored", "shutdown.ceases"),
    }


async def test_a_token_that_is_said_aloud_is_in_no_evidence() -> None:
    async def indiscreet(socket: aiohttp.ClientWebSocketResponse) -> None:
        await socket.send_str(f"my token is {test_gateway.token}")
        await listen(socket)

    async with open_test_gateway(Prompts(timeout_s=0.05)) as test_gateway, asyncio.TaskGroup() as tasks:
        living = tasks.create_task(bare(test_gateway, indiscreet))
        await test_gateway.test_run.presence()
        (found,) = await run_participant_checks(
            test_gateway.test_run, [named("audits.each_frame_is_an_envelope")]
        )
        living.cancel()
    assert "my token is [token]" in found.why
    assert test_gateway.token not in f"{found}{test_gateway}"


@pytest.mark.slow
async def test_who_leaves_because_of_what_is_no_envelope_is_found_out_and_not_tried_on() -> None:
    async def fragile(socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            if not isinstance(json.loads(message.data or "x"), dict):
                return

    async with open_test_gateway(Prompts(timeout_s=0.05)) as test_gateway, asyncio.TaskGroup() as tasks:
        first, second = "validation.what_is_no_envelope_is_not_acted_on", "control.it_tells_its_status"
        tasks.create_task(_survived(bare(test_gateway, fragile)))
        await test_gateway.test_run.presence()
        found = await run_participant_checks(test_gateway.test_run, map(named, (first, second)))
    assert [result.outcome for result in found] == [CheckOutcome.FAIL, CheckOutcome.NOT_OFFERED]
    assert "not connected any more" in found[0].why
    assert test_gateway.test_run.lost


class Gullible:
    """Answers what is for it, and takes every welcome for its own; `lasting`: it is the same when it comes again."""

    def __init__(self, *, lasting: bool) -> None:
        self.me = ""
        self.lasting = lasting
        self.is_taken_in = False

    async def live(self, test_gateway: TestGateway) -> None:
        for _ in range(9):
            if not self.lasting:
                self.me = ""
            await bare(test_gateway, self.talk)

    async def talk(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            envelope = json.loads(message.data)
            if envelope["kind"] == "system/welcome" and not self.is_taken_in:
                told = envelope["payload"]["you"]["id"]
                self.is_taken_in = self.lasting and self.me not in ("", told)
                self.me = told
            if self.me in envelope.get("to", ()):
                await self.answer(socket, envelope)

    async def answer(self, socket: aiohttp.ClientWebSocketResponse, asked: Envelope) -> None:
        said = {"correlation_id": [asked["id"]], "to": [asked["from"]]}
        if asked["kind"] == "participant/request-status":
            await socket.send_json(spoken(self.me, "participant/status", {"status": "active"}, **said))
        if asked["kind"] == "mcp/request":
            answer = {"jsonrpc": "2.0", "id": asked["payload"]["id"], "result": {"tools": []}}
            await socket.send_json(spoken(self.me, "mcp/response", answer, **said))


@pytest.mark.parametrize("lasting", [False, True], ids=["for now", "for good"])
async def test_one_mistake_of_a_participant_is_not_held_against_it_twice(*, lasting: bool) -> None:
    first, second = "connection.anothers_welcome_is_not_its_own", "requests.an_answer_goes_to_who_asked"
    async with open_test_gateway(Prompts(timeout_s=0.1)) as test_gateway, asyncio.TaskGroup() as tasks:
        living = tasks.create_task(Gullible(lasting=lasting).live(test_gateway))
        await test_gateway.test_run.presence()
        found = await run_participant_checks(test_gateway.test_run, map(named, (first, second)))
        living.cancel()
    assert found[0].outcome is CheckOutcome.FAIL
    if lasting:
        assert found[1].outcome is CheckOutcome.NOT_OFFERED
        assert found[1].why == f"not tried: the participant answers nothing since the check {first}"
    else:
        assert found[1].outcome is CheckOutcome.PASS, found[1].why


async def test_a_participant_finds_its_way_by_the_variables_that_mew_up_gives() -> None:
    async with open_test_gateway(Prompts(timeout_s=0.1)) as test_gateway:
        given = test_gateway.environment
        with open(given["MEW_TOKEN_FILE"], encoding="utf-8") as file:  # noqa: ASYNC230
            assert file.read() == given["MEW_TOKEN"]
    assert given["MEW_GATEWAY"] == given["MEW_URL"] == test_gateway.url
    assert given["MEW_SPACE"] == SPACE


async def _survived(living: Awaitable[None]) -> None:
    with suppress(ValueError):  # what it could not read
        await living


# Frames.


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON"),
        ("[]", "no JSON object, but an array"),
        ("7", "no JSON object, but a number"),
        ("null", "no JSON object, but null"),
        ('{"a": 1} {"b": 2}', "no JSON: Extra data"),
        ('{"a": NaN}', "NaN is not in JSON"),
        ('{"id": "1", "id": "2"}', "the field 'id' occurs twice"),
        ("[" * 100_000, "no JSON"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested deeper than 64 levels"),
        ("#", "no JSON"),
        (b"\x00", "a binary frame that is no stream frame"),
    ],
)
def test_what_is_no_envelope_is_named(text: str | bytes, fault: str) -> None:
    assert fault in read_frame(0, FrameDirection.SENT, 0.0, text).fault


def test_an_envelope_and_a_stream_frame_have_no_fault() -> None:
    assert read_frame(0, FrameDirection.SENT, 0.0, '{"kind": "chat"}').envelope == {"kind": "chat"}
    for frame in ("#s-1#a#b", b"#s-1#\xff"):
        assert not read_frame(0, FrameDirection.SENT, 0.0, frame).fault
    assert stream_of("#s-1#a#b") == ("s-1", b"a#b")
    assert stream_of(b"#s-1#") == ("s-1", b"")
    assert stream_of("#s-1") is None


# Prompts.


def test_prompts_are_read_and_filled(tmp_path: Path) -> None:
    file = tmp_path / "conform-participant.toml"
    file.write_text(
        'timeout_s = 2\n[prompts]\nreason = "think"\npropose = {tool = "write", arguments = {to = ["{worker}"]}}\n'
    )
    prompts = read_prompts(file)
    assert prompts.timeout_s == 2
    assert prompts.filled("reason") == "think"
    assert prompts.filled("propose", worker="w") == ToolPrompt("write", {"to": ["w"]})
    assert prompts.filled("stream") is None
    assert isinstance(prompts.filled("chat"), str)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("= 1", "line 1"),
        ("[prompts]\nthink = 'x'", "there is no prompt 'think'"),
        ("[prompts]\ntool = 'x'", "has to be a call"),
        ("[prompts]\nreason = 7", "expected"),
        ("timeout_s = 0", "timeout_s must be above 0"),
        ("patience = 1", "unknown field `patience`"),
    ],
)
def test_a_file_that_holds_no_prompts_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "conform-participant.toml"
    file.write_text(text)
    with pytest.raises(BadPrompts) as raised:
        read_prompts(file)
    assert problem.lower() in str(raised.value).lower()
