"""Who can approve what waits behind `mew wrap`: the person, and no program that merely runs as them (decision 0021)."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from mcp.client.stdio import StdioServerParameters

import mew
from mew.cli.locate.login import Login, LoginOptions, find_person_login

from .mcp_host import Host, hosting
from .terminal import Terminal

MEW = str(Path(sys.executable).with_name("mew"))
SERVER = Path(__file__).with_name("notes_server.py")
PASSPHRASE = "correct horse battery"
WITHIN_S = 60.0


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    """Where a browser would start, the link is written to this pipe instead."""
    os.mkfifo(tmp_path / "opened")
    reading = os.open(tmp_path / "opened", os.O_RDWR | os.O_NONBLOCK)  # so that whoever writes need not wait
    yield reading
    os.close(reading)


@pytest.fixture
def environ(tmp_path: Path, opened: int) -> dict[str, str]:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o700)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "BROWSER": str(browser),
    }


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a").write_text("first")
    return folder


@asynccontextmanager
async def a_call_waits(environ: dict[str, str], notes: Path) -> AsyncIterator[asyncio.Task[dict[str, Any]]]:
    """A host has called what needs approval; the task ends with the answer."""
    words = ["wrap", "--", sys.executable, str(SERVER), str(notes)]
    server = StdioServerParameters(command=MEW, args=words, env=environ)
    async with hosting(server) as host, asyncio.TaskGroup() as tasks:
        calling = tasks.create_task(_call(host))
        login = viewer(environ)
        async with mew.connect(login.url, space=login.space, token=login.token, recall=100) as me:
            assert me.id == "viewer"
            await anext(me.proposals())
        yield calling
        calling.cancel()


async def _call(host: Host) -> dict[str, Any]:
    return await host.call("write_note", name="a", text="second")


def viewer(environ: dict[str, str]) -> Login:
    return find_person_login(LoginOptions(), environ=environ, here=Path(environ["HOME"]))


async def link_from(opened: int) -> str:
    """The link that the browser was given."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(opened, there.set)
    try:
        async with asyncio.timeout(WITHIN_S):
            await there.wait()
    finally:
        loop.remove_reader(opened)
    return os.read(opened, 4096).decode().strip()


async def signed_in(link: str) -> str:
    """The token that the page gets for a link."""
    url, _, code = link.partition("#link=")
    async with aiohttp.ClientSession() as http, http.post(f"{url}sessions", json={"code": code}) as answer:
        told = await answer.json()
        assert answer.status == 200, told
        assert told["participant"] == "user"
        token: str = told["token"]
        return token


def everything_readable(folder: Path) -> str:
    """What a program of the same user can read."""
    return "\n".join(file.read_bytes().decode("latin-1") for file in folder.rglob("*") if file.is_file())


def read(file: str) -> str:
    return Path(file).read_text().strip()


async def test_a_program_that_can_read_all_our_state_cannot_approve(
    environ: dict[str, str], notes: Path, tmp_path: Path
) -> None:
    async with a_call_waits(environ, notes):
        login = viewer(environ)
        async with mew.connect(login.url, space=login.space, token=login.token, recall=100) as me:
            waiting = (await anext(me.proposals())).id
        found = set(re.findall(r"[A-Za-z0-9_-]{16,}", everything_readable(tmp_path / "state")))
        token = read(str(login.token))
        assert token in found
        payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        params = {"name": "write_note", "arguments": {"name": "a", "text": "second"}}
        envelope = {
            "kind": "mcp/request",
            "to": ["notes"],
            "correlation_id": [waiting],
            "payload": {**payload, "params": params},
        }
        statuses: dict[int, int] = {}
        async with aiohttp.ClientSession() as http:

            async def tried(word: str, who: str) -> None:
                headers = {"Authorization": f"Bearer {word}"}
                url = f"{login.url}/participants/{who}/messages?space={login.space}"
                async with http.post(url, json=envelope, headers=headers) as answer:
                    statuses[answer.status] = statuses.get(answer.status, 0) + 1
                    assert answer.status >= 400, await answer.text()
                link = f"{login.url}/spaces/{login.space}/links"
                async with http.post(link, headers=headers) as answer:
                    assert answer.status != 200 or word == token
                    if answer.status == 200:
                        code = (await answer.json())["code"]
                        async with http.post(f"{login.url}/sessions", json={"code": code}) as session:
                            assert (await session.json())["participant"] == "viewer"

            async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
                for word in found:
                    tasks.create_task(tried(word, "user"))
                tasks.create_task(tried(token, "viewer"))
        assert statuses.get(403)
        assert (notes / "a").read_text() == "first"


async def test_the_page_opens_in_the_browser_when_a_call_waits_and_approves_it(
    environ: dict[str, str], notes: Path, opened: int
) -> None:
    async with a_call_waits(environ, notes) as calling:
        token = await signed_in(await link_from(opened))
        login = viewer(environ)
        async with mew.connect(login.url, space=login.space, token=token, recall=100) as me:
            assert me.id == "user"
            await (await anext(me.proposals())).approve()
            async with asyncio.timeout(WITHIN_S):
                await calling
    assert (notes / "a").read_text() == "second"


async def test_no_other_command_gets_the_right_to_approve_from_the_disk(
    environ: dict[str, str], notes: Path
) -> None:
    async with a_call_waits(environ, notes):
        listed = await typed(environ, "proposals", "--json")
        waiting = json.loads(listed.stdout)[0]["id"]
        for words in (
            ["approve", waiting],
            ["approve", waiting, "--as", "viewer"],
            ["page"],
            ["page", "--as", "user"],
            ["grant", "host", "write_note"],
            ["token", "show", "user", "--config", f"{environ['XDG_STATE_HOME']}/mew/wrap/notes/space.yaml"],
        ):
            done = await typed(environ, *words)
            assert done.returncode != 0, (words, done.stdout)
        with Terminal("approve", waiting, **environ) as terminal:
            terminal.wait_for("opens in your browser")
            assert terminal.ended() != 0
        with Terminal("token", "seal", "--wrapped", **environ) as terminal:  # and it is for the next start
            terminal.wait_for("New passphrase")
            terminal.type(f"{PASSPHRASE}\n")
            terminal.wait_for("again")
            terminal.type(f"{PASSPHRASE}\n")
            assert terminal.ended() == 0
        with Terminal("approve", waiting, **environ) as terminal:
            terminal.wait_for("opens in your browser")
            assert terminal.ended() != 0
        assert (notes / "a").read_text() == "first"


async def test_a_passphrase_approves_at_a_terminal(environ: dict[str, str], notes: Path) -> None:
    seal(environ)
    assert PASSPHRASE not in (await typed(environ, "doctor")).stdout
    async with a_call_waits(environ, notes) as calling:
        waiting = json.loads((await typed(environ, "proposals", "--json")).stdout)[0]["id"]
        piped = await typed(environ, "approve", waiting, given=f"{PASSPHRASE}\ny\n")
        assert piped.returncode != 0
        await asyncio.to_thread(approve, environ, waiting)
        async with asyncio.timeout(WITHIN_S):
            await calling
    assert (notes / "a").read_text() == "second"
    assert PASSPHRASE not in everything_readable(Path(environ["XDG_STATE_HOME"]))


def seal(environ: dict[str, str]) -> None:
    with Terminal("token", "seal", "--wrapped", **environ) as terminal:
        terminal.wait_for("New passphrase")
        terminal.type("short\n")
        assert terminal.ended() != 0
    with Terminal("token", "seal", "--wrapped", **environ) as terminal:
        terminal.wait_for("New passphrase")
        terminal.type(f"{PASSPHRASE}\n")
        terminal.wait_for("again")
        terminal.type(f"{PASSPHRASE}\n")
        assert terminal.ended() == 0
        assert PASSPHRASE not in terminal.seen


def approve(environ: dict[str, str], waiting: str) -> None:
    with Terminal("approve", waiting, **environ) as terminal:
        terminal.wait_for("Passphrase of user")
        terminal.type("something else\n")
        terminal.wait_for("Passphrase of user", times=2)
        terminal.type(f"{PASSPHRASE}\n")
        terminal.wait_for("Run this?")
        terminal.type("y\n")
        terminal.wait_for("written")
        assert terminal.ended() == 0
        assert PASSPHRASE not in terminal.seen


async def typed(environ: dict[str, str], *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """A command without a terminal."""
    return await asyncio.to_thread(
        lambda: subprocess.run(
            [MEW, *words],
            env=environ,
            cwd=environ["HOME"],
            input=given,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
            start_new_session=True,
        )
    )
