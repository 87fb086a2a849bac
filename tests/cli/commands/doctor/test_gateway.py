"""What `mew doctor` finds of a gateway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from time import time

import pytest

from mew.cli.commands.doctor.findings import Finding, Level
from mew.cli.commands.doctor.gateway import gateway_findings
from mew.cli.locate.login import Login


@asynccontextmanager
async def answering(body: str, *, status: int = 200, at: float | None = None) -> AsyncIterator[Login]:
    """Something that gives every question the same answer."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
        if head:
            date = formatdate(time() if at is None else at, usegmt=True)
            lines = f"HTTP/1.1 {status} X\r\nDate: {date}\r\nConnection: close\r\nContent-Length: {len(body)}"
            writer.write(f"{lines}\r\n\r\n{body}".encode())
            await writer.drain()
        writer.close()

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except asyncio.IncompleteReadError:  # who only looked whether anybody listens
            writer.close()

    server = await asyncio.start_server(quiet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Login(f"http://127.0.0.1:{port}", None, "secret", "ann")


def levels(found: list[Finding]) -> dict[str, Level]:
    return {one.about: one.level for one in found}


@pytest.mark.parametrize(("body", "status"), [("hello", 200), ("{}", 200), ('{"status": "ok"}', 404)])
async def test_something_else_on_the_port_is_told_from_a_gateway(body: str, status: int) -> None:
    async with answering(body, status=status) as login:
        (found,) = await gateway_findings(None, login)
    assert (found.level, "is no gateway" in found.says) == (Level.PROBLEM, True)


async def test_a_gateway_that_takes_the_token_is_well() -> None:
    async with answering('{"status": "ok", "version": "1", "spaces": [{"id": "desk"}]}') as login:
        found = await gateway_findings(None, login)
    assert levels(found) == dict.fromkeys(("gateway", "clock", "spaces", "token"), Level.OK)
    assert found[-1].says == "that of 'ann' opens desk"


@pytest.mark.parametrize(("apart_s", "level"), [(0, Level.OK), (-20, Level.WARNING), (300, Level.PROBLEM)])
async def test_a_clock_that_is_apart_is_found(apart_s: float, level: Level) -> None:
    async with answering('{"status": "ok", "spaces": []}', at=time() + apart_s) as login:
        found = await gateway_findings(None, login)
    assert levels(found)["clock"] is level


async def test_what_the_gateway_warns_of_is_found() -> None:
    warning = "the disk of the journal is 83% full (2.1 GiB are free)"
    async with answering(f'{{"status": "ok", "spaces": [], "warnings": ["{warning}"]}}') as login:
        found = await gateway_findings(None, login)
    assert Finding(Level.WARNING, "gateway", warning, "see the gateway's log") in found


async def test_nobody_there_is_said_with_what_to_do() -> None:
    async with answering("") as login:
        pass
    (found,) = await gateway_findings(None, login)
    assert (found.level, found.mend) == (Level.PROBLEM, "start it: mew gateway, or mew up")
