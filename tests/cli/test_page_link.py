"""`mew page`, and the link that it prints."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from typer.testing import CliRunner, Result

from mew.cli.errors import CommandError
from mew.cli.main import app
from mew.cli.page_link import page_link
from mew.client.errors import ConnectError
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway

SPACES = """
spaces:
  - {id: one, participants: {ann: {tokens: [t-both]}, bob: {tokens: [t-bob]}}}
  - {id: two, participants: {ann: {tokens: [t-both]}}}
server: {port: 0}
"""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    file = tmp_path / "space.yaml"
    file.write_text(SPACES)
    async with Gateway(load_config(file, {}), {}, ephemeral=True) as running:
        yield running


async def redeemed(link: str) -> dict[str, str]:
    url, _, code = link.partition("#link=")
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + "sessions", json={"code": code}) as answer,
    ):
        found: dict[str, str] = await answer.json()
        return found


async def typed(gateway: Gateway, token: str, *words: str) -> Result:
    environ = {"MEW_GATEWAY": gateway.url.replace("http", "ws"), "MEW_TOKEN": token}
    return await asyncio.to_thread(CliRunner(env=environ).invoke, app, ["page", *words])


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_link_leads_to_the_page_and_signs_in_there(gateway: Gateway, scheme: str) -> None:
    link = await page_link(gateway.url.replace("http", scheme) + "?space=one", "two", "t-both")
    assert link.startswith(gateway.url + "/#link=")
    session = await redeemed(link)
    assert (session["space"], session["participant"]) == ("two", "ann")


async def test_the_space_need_not_be_named_where_the_token_opens_one(gateway: Gateway) -> None:
    assert (await redeemed(await page_link(gateway.url, None, "t-bob")))["space"] == "one"
    with pytest.raises(CommandError, match="one, two; choose one with --space"):
        await page_link(gateway.url, None, "t-both")


async def test_what_is_wrong_is_said_in_a_sentence(gateway: Gateway) -> None:
    with pytest.raises(ConnectError, match="not one of space"):
        await page_link(gateway.url, "two", "t-bob")
    with pytest.raises(CommandError, match="no space 'three'"):
        await page_link(gateway.url, "three", "t-bob")
    with pytest.raises(ConnectError, match="cannot be reached"):
        await page_link("ws://127.0.0.1:1", "one", "t-bob")
    session = await redeemed(await page_link(gateway.url, "one", "t-bob"))
    with pytest.raises(CommandError, match="not for a JWT or a session"):
        await page_link(gateway.url, "one", session["token"])


async def test_the_command_prints_the_link_and_nothing_else(gateway: Gateway) -> None:
    result = await typed(gateway, "t-bob")
    assert result.exit_code == 0, result.output
    assert (await redeemed(result.stdout.strip()))["participant"] == "bob"
    result = await typed(gateway, "t-both", "--space", "two", "--json")
    assert (await redeemed(json.loads(result.stdout)["url"]))["space"] == "two"


async def test_the_command_opens_a_browser_if_asked(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    monkeypatch.setenv("BROWSER", f"sh -c 'echo $0 > {opened}' %s")
    result = await typed(gateway, "t-bob", "--open")
    assert opened.read_text().strip() == result.stdout.strip()
    monkeypatch.setenv("BROWSER", "false")
    result = await typed(gateway, "t-bob", "--open")
    assert (result.exit_code, "open the link yourself" in result.stderr) == (0, True)


async def test_a_dead_token_is_one_sentence_and_exit_code_2(gateway: Gateway) -> None:
    result = await typed(gateway, "wrong", "--space", "one")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert "wrong" not in result.stderr.replace("wrong token", "")
