"""`mew conform`, as it is typed: what it says of a gateway that misbehaves, and of one that is not there."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.conform.hostile import HOSTILE, Behaviour
from tests.conform.wrong import gateway
from typer.testing import CliRunner, Result

from mew.cli.commands.conform.selection import chosen
from mew.cli.main import app
from mew.cli.render.progress import counting
from mew.conform.ledger import Side
from mew.conform.runner import run_checks

TOKEN = "secret-of-the-owner"
MISBEHAVES = "hangs once somebody is connected"


@contextmanager
def elsewhere(place: Callable[[], Any]) -> Iterator[Any]:
    """What an async context gives, which is held open in another thread, as that of the command is its own."""
    loop, ready, given = asyncio.new_event_loop(), threading.Event(), list[Any]()
    over = asyncio.Event()

    async def hold() -> None:
        async with place() as one:
            given.append(one)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(hold()))
    thread.start()
    assert ready.wait(5)
    try:
        yield given[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(5)
        loop.close()


@contextmanager
def served(behaviour: Behaviour) -> Iterator[str]:
    with elsewhere(behaviour) as port:
        yield f"ws://127.0.0.1:{port}"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Nobody listens at its address."""
    file = tmp_path / "conform.toml"
    file.write_text(
        f'url = "ws://127.0.0.1:1"\nspace = "a"\ntimeout_s = 0.1\nroles.owner.token = "{TOKEN}"\n'
    )
    return file


@pytest.fixture
def misbehaving() -> Iterator[str]:
    """Where a gateway is that takes a connection and says nothing."""
    with served(HOSTILE[MISBEHAVES]) as url:
        yield url


def run(*words: str, columns: int = 200) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["conform", *words])


# What is found.


def test_a_failure_has_the_words_of_the_document_and_the_evidence_and_no_token(
    config: Path, misbehaving: str
) -> None:
    told = run(misbehaving, "-c", str(config), "--only", "connect.websocket")
    assert told.exit_code == 1
    lines = [line.strip() for line in told.stdout.splitlines()]
    assert "§5.2 MUST connect.websocket" in lines
    assert "the document:      “WebSocket server at `GET /ws?space=<name>`”" in lines
    assert any(line.startswith("what happened:     expected that owner receives") for line in lines)
    assert f"owner → GET {misbehaving}/ws?space=a as header" in lines
    assert lines[-1] == "MUST        1 fail"
    assert TOKEN not in told.output


def test_how_we_read_the_document_is_told_where_it_leaves_room(config: Path, misbehaving: str) -> None:
    told = run(misbehaving, "-c", str(config), "--only", "delivery.visible-to-all")
    assert told.exit_code == 0, "a SHOULD that fails is no failure of the command"
    assert "our note:          Our reading: `to` says who is to act" in told.stdout
    assert "SHOULD      1 fail" in told.stdout


def test_what_nobody_can_see_is_not_run_and_why(config: Path) -> None:
    told = run("-c", str(config), "--only", "6.5")
    assert told.exit_code == 0
    assert "not run" in told.stdout
    assert "it is said to who deploys" in " ".join(told.stdout.split())


def test_programs_are_told_in_json_and_junit(config: Path, tmp_path: Path, misbehaving: str) -> None:
    report = tmp_path / "report.xml"
    told = run(
        misbehaving, "-c", str(config), "--only", "connect.websocket", "--json", "--junit", str(report)
    )
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert document["gateway"] == misbehaving
    assert [one["id"] for one in document["requirements"]] == ["connect.websocket"]
    assert (document["is_part"], document["only"]) == (True, ["connect.websocket"])
    suite = ElementTree.parse(report).getroot()
    assert suite.get("failures") == "1"
    (failure,) = suite.iter("failure")
    assert "expected that owner receives a system/welcome" in str(failure.get("message"))


def test_why_something_is_not_offered_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    file.write_text("space = 'conform'\ntimeout_s = 0.5\nroles.owner.token = 't-owner'\n")
    with elsewhere(lambda: gateway(tmp_path)) as config:
        told = run(config.url, "-c", str(file), "--only", "withdraw", "--only", "reason-code")
    assert told.exit_code == 0
    assert told.stdout.count("the kit has no token for the role 'proposer'") == 1


def test_on_a_narrow_terminal_each_requirement_has_lines_of_its_own(config: Path, misbehaving: str) -> None:
    told = run(misbehaving, "-c", str(config), "--only", "connect.websocket", columns=40)
    assert "fail §5.2 MUST connect.websocket" in told.stdout


def test_what_was_found_is_told_when_it_is_interrupted(
    config: Path, misbehaving: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(where: Any, checks: Any, begins: Any, results: Any) -> Any:
        await run_checks(where, checks[:1], begins, results)
        raise KeyboardInterrupt

    monkeypatch.setattr("mew.cli.commands.conform.conform.run_checks", interrupted)
    told = run(misbehaving, "-c", str(config), "--only", "5")
    assert "interrupted after 1 of " in told.stderr
    assert "not run" in told.stdout
    assert told.exit_code in (1, 130)


def test_who_sits_at_no_terminal_reads_now_and_then_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = iter(range(0, 1000, 4))
    with counting(7, lambda: float(next(now_s))) as begins:
        for _ in range(7):
            begins(None)
    assert "of 7 checks" in capsys.readouterr().err


# What is chosen.


def test_a_part_is_chosen_by_sections_ids_and_how_they_begin() -> None:
    def ids(*only: str) -> set[str]:
        return {one.id for one in chosen(Side.GATEWAY, only)}

    assert ids("6.5") == ids("§6.5") == ids(" §6.5. ")
    assert ids("grant.adds") == {"grant.adds"}
    assert ids("grant.adds") < ids("grant") < ids("grant", "6.5") == ids("grant") | ids("6.5")
    assert "3.9.10" not in {one.section for one in chosen(Side.GATEWAY, ["3.9.1"])}


def test_what_says_it_again_elsewhere_is_shown_with_that_section(config: Path, misbehaving: str) -> None:
    told = run(misbehaving, "-c", str(config), "--only", "7.1")
    assert "8.1, 7.1" in told.stdout
    assert "only 7.1: " in told.stdout
    assert "a part of all there are" in told.stdout


# What cannot be tried.


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--only", "99"), "--only 99: no requirement about gateways is there; the sections are 1, 2.1, "),
        (("--only", "nothing"), "and the ids begin with "),
        (("http://127.0.0.1:1",), "expected one like ws://127.0.0.1:8080"),
        (("ws://127.0.0.1:99999",), "expected one like ws://127.0.0.1:8080"),
        (("-c", "no-such-file.toml"), "'mew conform example' writes one to start from"),
        ((), "ws://127.0.0.1:1 cannot be reached"),
        (("ws://no-such-host.invalid:1",), "ws://no-such-host.invalid:1 cannot be reached"),
    ],
)
def test_what_cannot_be_used_is_said(words: tuple[str, ...], problem: str, config: Path) -> None:
    told = run("-c", str(config), *words) if "-c" not in words else run(*words)
    assert told.exit_code == 2
    assert problem in " ".join(told.output.split())


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("timeout_s = -1", "timeout_s"),
        ("mail = '127.0.0.1'", "mail = '127.0.0.1': expected host:port"),
        ("mail = '127.0.0.1:mail'", "expected host:port, like 127.0.0.1:2525"),
        ("http = 'ftp://127.0.0.1'", "expected one like http://127.0.0.1:8080"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(more: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    file.write_text(f'url = "ws://127.0.0.1:1"\nspace = "a"\n{more}\nroles.owner.token = "x"\n')
    told = run("-c", str(file))
    assert told.exit_code == 2
    assert problem in told.output
    assert "to start from" not in told.output


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("is a web server", "answers the role 'owner' with HTTP 200 OK and no WebSocket: is a gateway there"),
        ("slams the door", "cannot be reached: "),
        ("says nothing", "cannot be reached: it does not answer"),
        ("speaks another language", "cannot be reached: "),
    ],
)
def test_what_is_no_gateway_is_not_accused_of_anything(name: str, problem: str, config: Path) -> None:
    with served(HOSTILE[name]) as url:
        told = run(url, "-c", str(config))
        secure = run(url.replace("ws:", "wss:"), "-c", str(config))
    assert told.exit_code == secure.exit_code == 2
    assert problem in told.output
    assert "cannot be reached: " in secure.output
    assert len(told.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("space = 'conform'\nroles.owner.token = 'x'", "refuses the token of the role 'owner': HTTP 401"),
        (
            "space = 'conform'\nroles.owner.token = 't-owner'\nroles.reader.token = 'x'\nroles.peer.token = 'y'",
            "the gateway refuses the token of the roles 'reader', 'peer': HTTP 401 Unauthorized",
        ),
        ("space = 'nowhere'\nroles.owner.token = 't-owner'", "'nowhere'"),
        (
            "space = 'conform'\nroles.owner.token = 't-owner'\nsecond_space.space = 'second'\n"
            "second_space.roles.peer.token = 'x'",
            "the role 'peer' in the space 'second': HTTP 401",
        ),
        (
            "space = 'conform'\nroles.owner = {token = 't-peer', id = 'owner'}",
            "the token of the role 'owner' is that of 'peer', not of 'owner'",
        ),
        (
            "space = 'conform'\nroles.owner.token = 't-owner'\nhttp = 'http://127.0.0.1:1'",
            "http = 'http://127.0.0.1:1' cannot be reached: ",
        ),
    ],
)
def test_a_config_that_is_not_of_this_gateway_is_told_in_one_sentence(
    more: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "conform.toml"
    http, is_there, rest = more.partition("http = ")
    file.write_text(
        f"timeout_s = 0.5\n{is_there}{rest}\n{http}\n" if is_there else f"timeout_s = 0.5\n{more}\n"
    )
    with elsewhere(lambda: gateway(tmp_path)) as config:
        told = run(config.url, "-c", str(file))
    assert told.exit_code == 2, told.output
    assert problem in told.output
    assert len(told.output.splitlines()) == 1


def test_who_was_kicked_in_an_earlier_run_is_no_fault_of_the_config(tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    file.write_text("space = 'conform'\nroles.owner.token = 't-owner'\nroles.kicked.token = 'x'\n")
    with elsewhere(lambda: gateway(tmp_path)) as config:
        told = run(config.url, "-c", str(file), "--only", "connect.websocket")
    assert told.exit_code == 0, told.output


def test_the_http_api_is_beside_the_websocket_unless_the_config_says_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    known = "space = 'conform'\nroles.owner.token = 't-owner'\nroles.peer.token = 't-peer'\n"
    with elsewhere(lambda: gateway(tmp_path)) as config, served(HOSTILE["ignores everything"]) as other:
        file.write_text(known)
        found = run(config.url, "-c", str(file), "--only", "http.injection")
        file.write_text(f"http = 'http{other.removeprefix('ws')}'\n{known}")
        foreign = run(config.url, "-c", str(file), "--only", "http.injection")
    assert "not offered" not in found.stdout
    assert "or `http` in the config points at another web server" in foreign.stdout


def test_the_help_shows_that_a_url_is_enough() -> None:
    assert "URL | COMMAND" in run("--help").output
