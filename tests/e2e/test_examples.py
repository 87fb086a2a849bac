"""What the README, the demo and `examples/` show is run here as it stands there: programs, with tokens from files."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

import mew
from mew.gateway.auth.tokens import load_tokens
from mew.gateway.config.loader import load_config

from .process import Gateway, run_gateway

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DEMO = EXAMPLES / "demo"
WITHIN_S = 60.0  # a program has to start, too
CAPABILITIES = {
    "ann": ["*"],
    "bot": ["chat", "mcp/proposal", "mcp/withdraw"],
    "calculator": [],
    "reviewer": ["chat", "mcp/request", "mcp/reject"],
    "reasoner": ["chat", "reasoning/*"],
    "worker": [],
    "sender": ["stream/*"],
    "receiver": ["stream/*"],
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("demo")
    with run_gateway(folder, (DEMO / "space.yaml").read_text()) as running:
        yield running


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    yield from desk_in(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def own_desk(tmp_path: Path) -> Iterator[Gateway]:
    """One on which nothing was proposed yet."""
    yield from desk_in(tmp_path)


def desk_in(folder: Path) -> Iterator[Gateway]:
    participants = {who: {"capabilities": held} for who, held in CAPABILITIES.items()}
    config = {"space": {"id": "desk"}, "participants": participants}
    with run_gateway(folder, config) as running:
        yield running


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tokens(gateway: Gateway) -> Path:
    return gateway.config.parent / ".mew" / "tokens"


def connect(desk: Gateway, who: str) -> mew.Client:
    return mew.connect(desk.ws_url, space="desk", token=tokens(desk) / f"{who}.token")


class Program:
    """An example that runs, and its terminal."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""

    async def says(self, pattern: str) -> re.Match[str]:
        """Read on until it has said something like this."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while (found := re.search(pattern, self.said)) is None:
                more = await self.process.stdout.read(4096)
                assert more, f"it ended, and said only: {self.said}"
                self.said += more.decode()
        self.said = self.said[found.end() :]
        return found

    async def is_told(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()


@asynccontextmanager
async def running(desk: Gateway, example: str, who: str, *args: str | Path) -> AsyncIterator[Program]:
    """As a newcomer starts it, and ends it with Ctrl-C."""
    script, token = EXAMPLES / f"{example}.py", tokens(desk) / f"{who}.token"
    where = () if script.is_symlink() else (desk.ws_url, "desk", token)
    started = {
        "MEW_GATEWAY": desk.ws_url,
        "MEW_SPACE": "desk",
        "MEW_TOKEN_FILE": str(token),
    }  # as by `mew up`
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *map(str, (script, *where, *args)),
        env=os.environ | started,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    program = Program(process)
    try:
        yield program
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(WITHIN_S):
            await process.wait()  # its input is still open: a prompt must not hold it up
            _, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode in (0, -signal.SIGINT), complaints.decode()
    assert b"Traceback" not in complaints, complaints.decode()


# As they come with the demo.


def test_hello_says_who_one_is_and_what_one_may(demo: Gateway) -> None:
    said = run(sys.executable, EXAMPLES / "hello.py", demo.url, "demo", tokens(demo) / "ann.token")
    assert re.fullmatch(r"I am ann in demo; I may send \*, .*\nhere are ann\nsaid \S+\n", said), said


def test_the_demo_is_refused_proposes_and_is_approved(demo: Gateway) -> None:
    said = run(DEMO / "propose_and_approve.sh", demo.url, tokens(demo))
    answers = [line for line in said.splitlines() if line.startswith("{")]
    assert [("capability_violation" in line, '"status":"accepted"' in line) for line in answers] == [
        (True, False),
        (False, True),
        (False, True),
        (False, True),
    ]
    assert not [token for token in tokens(demo).glob("*.token") if token.read_text().strip() in said]


def test_every_example_configuration_is_valid(tmp_path: Path) -> None:
    for file in ROOT.glob("examples/**/space.yaml"):
        copy = tmp_path / "space.yaml"
        copy.write_text(file.read_text())
        assert load_tokens(load_config(copy, os.environ), {}).tables


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_an_example_is_short_and_says_how_it_is_run(file: Path) -> None:
    assert len(file.read_text().splitlines()) < 60
    told = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=20, check=False)
    assert told.returncode == 1
    assert f"python examples/{file.name} URL SPACE TOKEN_FILE" in told.stderr
    assert "Traceback" not in told.stderr


# Those that run until they are stopped.


async def test_the_calculator_adds_and_says_what_it_cannot(desk: Gateway) -> None:
    async with running(desk, "calculator", "calculator"), connect(desk, "ann") as ann:
        assert await ann.call("calculator", "add", {"a": 2, "b": 3.5}) == 5.5
        assert await ann.call("calculator", "fold", {"numbers": [2, 3, 7], "operation": "product"}) == 42
        with pytest.raises(mew.ToolError, match=r"^division by zero$"):
            await ann.call("calculator", "divide", {"a": 1, "b": 0})
        with pytest.raises(mew.RpcError, match="a") as wrong:
            await ann.call("calculator", "add", {"a": "two", "b": 3})
        assert wrong.value.code == -32602
        tools = {tool.name: tool for tool in await ann.tools("calculator")}
        assert tools.keys() == {"add", "fold", "divide"}
        assert tools["add"].description == "Add two numbers."
        assert tools["add"].input_schema["properties"]["a"]["description"] == "The first number."


async def test_the_reviewer_approves_one_and_rejects_one(desk: Gateway) -> None:
    async with (
        running(desk, "calculator", "calculator"),
        running(desk, "reviewer", "reviewer") as reviewer,
        connect(desk, "bot") as bot,
        asyncio.TaskGroup() as tasks,
    ):
        await reviewer.says("reviewer reviews what is proposed in desk")
        call = tasks.create_task(bot.call("calculator", "add", {"a": 2, "b": 3}))
        await reviewer.says(r"bot proposes add of calculator\n  a: 2\n  b: 3\n")
        await reviewer.says(r"digest \S+\napprove\? ")
        await reviewer.is_told("y")
        assert await call == 5
        await reviewer.says("done: 5")
        params = {"name": "divide", "arguments": {"a": 1, "b": 0}}
        proposal = await bot.propose("tools/call", params, target="calculator")
        await reviewer.says(r"approve\? ")
        await reviewer.is_told("never by zero")
        outcome = await proposal
        assert isinstance(outcome, mew.Rejected)
        assert (outcome.by, outcome.reason, outcome.message) == ("reviewer", "disagree", "never by zero")
        await reviewer.says("rejected")
        await bot.propose("tools/call", params, target="calculator")
        await reviewer.says(r"approve\? ")  # and nobody answers: Ctrl-C must end it all the same


@pytest.mark.parametrize("size", [5_000_000, 3])
async def test_a_file_is_sent_by_one_and_saved_by_the_other(desk: Gateway, tmp_path: Path, size: int) -> None:
    content, inbox = Random(size).randbytes(size), tmp_path / "inbox"
    await asyncio.to_thread(inbox.mkdir)
    file = tmp_path / "data.bin"
    await asyncio.to_thread(file.write_bytes, content)
    checksum = sha256(content).hexdigest()
    async with running(desk, "upload", "receiver", "save", inbox) as receiver:
        await receiver.says("receiver waits for files")
        token = tokens(desk) / "sender.token"
        said = await asyncio.to_thread(
            run,
            sys.executable,
            EXAMPLES / "upload.py",
            desk.url,
            "desk",
            token,
            "send",
            file,
            "receiver",
        )
        assert f"sent {size:,} bytes, SHA-256 {checksum}, saved by " in said
        await receiver.says(f"data.bin from sender: {size:,} bytes, SHA-256 {checksum}")
    assert await asyncio.to_thread((inbox / "data.bin").read_bytes) == content


async def test_the_reasoner_thinks_aloud_and_answers(desk: Gateway) -> None:
    async with running(desk, "reasoner", "reasoner"), connect(desk, "ann") as ann:
        await joins(ann, "reasoner")
        envelopes = ann.envelopes(sender="reasoner")
        asked = await ann.chat("What about 91 and 97?")
        async with asyncio.timeout(WITHIN_S):
            start, *thoughts, conclusion, answer = [await anext(envelopes) for _ in range(5)]
        assert (start.kind, start.correlation_id) == ("reasoning/start", (asked.id,))
        assert {thought.kind for thought in thoughts} == {"reasoning/thought"}
        assert {said.context for said in (*thoughts, conclusion)} == {start.id}
        assert conclusion.content == {"message": "91 is divisible by 7; 97 is prime"}
        assert (answer.kind, answer.correlation_id) == ("chat", (asked.id,))
        assert answer.content["text"] == "91 is divisible by 7. 97 is prime"


async def test_the_reasoner_is_stopped_by_anyone(desk: Gateway) -> None:
    async with running(desk, "reasoner", "reasoner"), connect(desk, "ann") as ann:
        await joins(ann, "reasoner")
        envelopes = ann.envelopes(sender="reasoner")
        asked = await ann.chat("999999999989 " * 2_000)  # primes: minutes of work
        async with asyncio.timeout(WITHIN_S):
            start, _ = await anext(envelopes), await anext(envelopes)
            await ann.reasonings.cancel(start.id, "enough")
            async for said in envelopes:
                if said.kind == "chat":
                    break
        assert (said.content["text"], said.correlation_id) == ("Stopped by ann.", (asked.id,))
        assert (await ann.reasonings.cancel(start.id)).context == start.id  # too late, and no harm


async def joins(client: mew.Client, who: str) -> None:
    """Wait until somebody is there."""
    presence = client.envelopes("system/presence")
    async with asyncio.timeout(WITHIN_S):
        while who not in list(client.participants):
            await anext(presence)
