"""The autopilot as a program beside a gateway: it suggests, is ratified, acts; killed and started again, the same."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mew
from mew.client.connection.feed import Feed
from mew.protocol.envelope import Envelope

from . import autopilot_crash
from .process import Gateway, run_gateway

WITHIN_S = 60.0
CONFIG = {
    "space": {"id": "desk"},
    "autopilot": {"mode": "suggest", "min_review_s": 0, "audit": 0},
    "participants": {
        "ann": {"capabilities": ["*"]},
        "coder": {"capabilities": ["mcp/proposal", "mcp/withdraw"]},
        "files": {"capabilities": []},
    },
}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with run_gateway(tmp_path, CONFIG) as running:
        yield running


def token(gateway: Gateway, who: str) -> Path:
    return gateway.config.parent / ".mew" / "tokens" / f"{who}.token"


def connect(gateway: Gateway, who: str) -> mew.Client:
    return mew.connect(gateway.ws_url, space="desk", token=token(gateway, who))


@contextmanager
def autopilot(gateway: Gateway) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "mew", "autopilot", "--url", gateway.ws_url, "--space", "desk"]
    given = token(gateway, "autopilot").read_text().strip()
    process = subprocess.Popen(
        [*command, "--token", given, "--config", str(gateway.config)],
        env=dict(os.environ),
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def propose(coder: mew.Client, path: str) -> Envelope:
    call = {"method": "tools/call", "params": {"name": "read_file", "arguments": {"path": path}}}
    return await coder.send("mcp/proposal", call, to="files")


async def about(feed: Feed[Envelope], proposal: Envelope) -> Envelope:
    async for envelope in feed:
        if proposal.id in envelope.correlation_id:
            return envelope
    raise AssertionError("the space ended")


async def test_what_it_learned_survives_being_killed(gateway: Gateway) -> None:
    async with (
        connect(gateway, "ann") as ann,
        connect(gateway, "coder") as coder,
        connect(gateway, "files"),
        asyncio.timeout(WITHIN_S),
    ):
        decisions, rules = ann.envelopes("autopilot/decision"), ann.envelopes("autopilot/rule")
        requests = ann.envelopes("mcp/request", sender="autopilot")
        with autopilot(gateway):
            for number in range(11):
                proposal = await propose(coder, f"src/m{number}.py")
                assert (await about(decisions, proposal)).content["verdict"] == "ask"
                await ann.send("mcp/request", proposal.content, to="files", correlation_id=proposal.id)
            suggested = await anext(rules)
            assert suggested.content["state"] == "suggested"
            await ann.send("autopilot/ratify", {"rule": suggested.content["rule"]})
            proposal = await propose(coder, "src/first.py")
            assert (await about(decisions, proposal)).content["verdict"] == "fulfil"
            sent = await anext(requests)
            assert (sent.correlation_id, sent.to) == ((proposal.id,), ("files",))
            assert sent.content["params"] == proposal.content["params"]
        missed = await propose(coder, "src/second.py")
        with autopilot(gateway):
            decision = await about(decisions, missed)
            assert decision.content["rule"] == suggested.content["rule"]
            assert decision.content["verdict"] == "fulfil"
            assert (await anext(requests)).correlation_id == (missed.id,)
            outside = await propose(coder, "secrets/key.pem")
            assert (await about(decisions, outside)).content["verdict"] == "ask"
        fulfilled = [
            envelope.correlation_id[0]
            async for envelope in ann.history(kind="mcp/request", participant="autopilot")
        ]
        assert fulfilled == [proposal.id, missed.id]


async def test_rules_are_accepted_explained_and_revoked_in_the_terminal(gateway: Gateway) -> None:
    async def type_(*words: str) -> str:
        place = ["--config", str(gateway.config), "--gateway", gateway.ws_url, "--as", "ann"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mew", *words, *place),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "200"},
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        return said.decode()

    async with (
        connect(gateway, "ann") as ann,
        connect(gateway, "coder") as coder,
        connect(gateway, "files"),
        asyncio.timeout(WITHIN_S),
    ):
        decisions, rules = ann.envelopes("autopilot/decision"), ann.envelopes("autopilot/rule")
        with autopilot(gateway):
            for number in range(11):
                proposal = await propose(coder, f"src/m{number}.py")
                await about(decisions, proposal)
                await ann.send("mcp/request", proposal.content, to="files", correlation_id=proposal.id)
            rule = (await anext(rules)).content["rule"]
            listed = await type_("rules", "list")
            assert rule in listed
            assert "in `src/**`" in listed
            assert "ratified by ann" in await type_("rules", "accept", rule, "--for", "7d", "--uses", "5")
            decided = await propose(coder, "src/new.py")
            assert (await about(decisions, decided)).content["verdict"] == "fulfil"
            assert rule in await type_("why", decided.id)
            assert "does not cover" in await type_("rules", "show", rule)
            changed = await type_("rules", "test", str(gateway.config))
            assert changed.startswith("12 proposals, 0 would be decided differently")
            assert "revoked" in await type_("rules", "revoke", rule)
            asked = await propose(coder, "src/newer.py")
            assert (await about(decisions, asked)).content["verdict"] == "ask"
            assert (await type_("why", asked.id)).startswith("Asked because")


async def test_killed_at_any_moment_it_decides_once_and_knows_the_same_rules(tmp_path: Path) -> None:
    with run_gateway(tmp_path, autopilot_crash.CONFIG) as running:
        rounds = autopilot_crash.AutopilotRounds(running, seed=5)
        await rounds.run(3)
    assert len(rounds.proposals) == 3 * autopilot_crash.PROPOSALS_EACH
