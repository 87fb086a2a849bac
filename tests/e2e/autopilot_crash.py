"""Rounds of: proposals, a reviewer who decides and ratifies, `kill -9` of the autopilot at a random moment, a restart.

Whatever moment that is, each proposal gets one decision and at most one fulfilment, and the history gives the same
rules byte for byte as the envelopes gave when they came.
"""

import asyncio
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import mew
from mew.autopilot.settings import AutopilotSettings, Mode
from mew.autopilot.state import AutopilotState
from mew.protocol.envelope import Envelope
from mew.protocol.json import encode_json

from .process import Gateway

__all__ = ["CONFIG", "AutopilotRounds"]

WITHIN_S = 60.0
PROPOSALS_EACH = 15
SETTINGS: dict[str, Any] = {"mode": "act", "min_review_s": 0, "audit": 0.1, "risk": 0.2}
CONFIG: dict[str, Any] = {
    "space": {"id": "desk"},
    "autopilot": SETTINGS,
    "participants": {
        "ann": {"capabilities": ["*"]},
        "coder": {"capabilities": ["mcp/proposal", "mcp/withdraw"]},
        "files": {"capabilities": []},
    },
}


class AutopilotRounds:
    """One space whose autopilot is killed again and again."""

    def __init__(self, gateway: Gateway, seed: int) -> None:
        self._gateway = gateway
        self._random = Random(seed)
        self._count = 0
        self._decided: dict[str, asyncio.Event] = {}
        self._live = self._state()
        self.proposals: list[str] = []

    async def run(self, rounds: int) -> None:
        """Kill it in every round; afterwards compare what it did and knew with the history.

        Raises:
            AssertionError: something was decided twice, or not at all, or the rules differ.
        """
        async with (
            self._connect("ann") as ann,
            self._connect("coder") as coder,
            self._connect("files"),
            asyncio.timeout(WITHIN_S * rounds),
        ):
            reviewer = asyncio.ensure_future(self._review(ann))
            try:
                for _ in range(rounds):
                    await self._round(coder)
                await self._until_decided(await self._start())
            finally:
                reviewer.cancel()
                with suppress(asyncio.CancelledError):
                    await reviewer
            await self._compare(ann)

    async def _round(self, coder: mew.Client) -> None:
        process = await self._start()
        moment = self._random.randrange(PROPOSALS_EACH)
        for number in range(PROPOSALS_EACH):
            self._count += 1
            folder = self._random.choice(("src", "src", "tests", "secrets"))
            call = {"name": "read_file", "arguments": {"path": f"{folder}/m{self._count}.py"}}
            sent = await coder.send("mcp/proposal", {"method": "tools/call", "params": call}, to="files")
            self.proposals.append(sent.id)
            if number == moment:
                for _ in range(self._random.randrange(40)):
                    await asyncio.sleep(0)
                process.kill()
                await process.wait()
                process = await self._start()
            if self._random.random() < 0.5:
                await self._event(sent.id).wait()
        await self._until_decided(process)

    async def _until_decided(self, process: asyncio.subprocess.Process) -> None:
        for proposal in self.proposals:
            await self._event(proposal).wait()
        process.kill()
        await process.wait()

    async def _review(self, ann: mew.Client) -> None:
        """Approve what is in `src` and `tests`, reject the rest, and ratify the first suggestion."""
        ratified = False
        calls: dict[str, Envelope] = {}
        async for envelope in ann.envelopes():
            self._live.apply(envelope, datetime.now(UTC))
            if envelope.kind == "mcp/proposal":
                calls[envelope.id] = envelope
            elif (
                envelope.kind == "autopilot/rule"
                and envelope.content["state"] == "suggested"
                and not ratified
            ):
                ratified = True
                await ann.send("autopilot/ratify", {"rule": envelope.content["rule"]})
            elif envelope.kind == "autopilot/decision":
                [id] = envelope.correlation_id
                proposal = calls[id]
                if envelope.content["verdict"] != "fulfil":
                    if proposal.content["params"]["arguments"]["path"].startswith("secrets"):
                        await ann.send("mcp/reject", {"reason": "unsafe"}, to="coder", correlation_id=id)
                    else:
                        await ann.send("mcp/request", proposal.content, to="files", correlation_id=id)
                    self._event(id).set()
            elif envelope.kind == "mcp/request" and envelope.sender == "autopilot":
                self._event(envelope.correlation_id[0]).set()

    async def _compare(self, ann: mew.Client) -> None:
        replayed = self._state()
        decisions: list[str] = []
        to_fulfil: list[str] = []
        fulfilled: list[str] = []
        async for envelope in ann.history():
            replayed.apply(envelope, datetime.now(UTC))
            if envelope.kind == "autopilot/decision":
                decisions += envelope.correlation_id
                to_fulfil += envelope.correlation_id if envelope.content["verdict"] == "fulfil" else ()
            elif envelope.kind == "mcp/request" and envelope.sender == "autopilot":
                fulfilled += envelope.correlation_id
            elif envelope.kind == "autopilot/rule":
                assert replayed.learner.rule(envelope.content["rule"]) is not None, envelope.content
        assert sorted(decisions) == sorted(self.proposals)
        assert sorted(fulfilled) == sorted(to_fulfil)
        assert fulfilled, "no rule decided anything: the rounds tested nothing"
        assert replayed.decided == self._live.decided
        assert _rules(replayed) == _rules(self._live)

    def _event(self, proposal: str) -> asyncio.Event:
        return self._decided.setdefault(proposal, asyncio.Event())

    def _state(self) -> AutopilotState:
        settings = AutopilotSettings(mode=Mode.ACT, min_review_s=0, audit=0.1, risk=0.2)
        return AutopilotState(settings, "autopilot")

    def _token(self, who: str) -> Path:
        return self._gateway.config.parent / ".mew" / "tokens" / f"{who}.token"

    def _connect(self, who: str) -> mew.Client:
        return mew.connect(self._gateway.ws_url, space="desk", token=self._token(who))

    async def _start(self) -> asyncio.subprocess.Process:
        place = ["--url", self._gateway.ws_url, "--space", "desk", "--config", str(self._gateway.config)]
        command = [sys.executable, "-m", "mew", "autopilot", *place]
        return await asyncio.create_subprocess_exec(
            *command, "--token-file", str(self._token("autopilot")), stderr=asyncio.subprocess.DEVNULL
        )


def _rules(state: AutopilotState) -> bytes:
    return encode_json([rule.as_dict() for rule in state.learner.rules])
