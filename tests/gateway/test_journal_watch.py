"""A journal that goes away or a disk that fills up while the gateway runs: it stops accepting, and says what to do."""

import asyncio
import logging
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.served import SPACE_YAML, Serve, Served

from mew.gateway.config.loader import ConfigError
from mew.journal.files.database import FILE
from mew.journal.files.high_water import MARKS_FILE
from mew.protocol.errors import CloseCode

ADVICE = (
    "free some space, or limit retention with 'journal.keep_days', 'journal.keep_entries' or"
    " 'journal.keep_bytes': every space stops when the disk is full"
)
TWO_SPACES = SPACE_YAML.replace(
    "space: {id: demo, name: Demo, description: A space to try}", "spaces: [{id: demo}, {id: other}]"
)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("mew.gateway.storage._WATCH_S", 0.01)
    monkeypatch.setattr("mew.gateway.storage._USAGE_S", 0.01)
    caplog.set_level(logging.WARNING, "mew")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / ".mew" / "journal"


async def stopped(served: Served) -> str:
    """Return what `/ready` says once it is not ready any more."""
    async with asyncio.timeout(10):
        while (answer := await served.nobody.get("/ready")).status == 200:  # noqa: ASYNC110  # nobody is told
            await asyncio.sleep(0.01)
    return str(answer.json["detail"])


async def shown(served: Served) -> tuple[list[str], bool]:
    answer = await served.ann.get("/spaces/demo/envelopes", kind="chat", limit=1000)
    return [one["id"] for one in answer.json["envelopes"]], answer.json["complete"]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def rename(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def replace(file: Path) -> None:
    other = file.with_name("another")
    other.write_bytes(file.read_bytes())
    other.replace(file)


GONE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "deleted": (FILE, Path.unlink),
    "renamed": (FILE, rename),
    "replaced": (FILE, replace),
    "without its write-ahead log": (f"{FILE}-wal", Path.unlink),
    "without its high-water marks": (MARKS_FILE, Path.unlink),
}


@pytest.mark.parametrize("what", GONE)
async def test_a_journal_that_goes_away_stops_every_space_with_one_line_that_says_what_to_do(
    serve: Serve, journal: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve(TWO_SPACES)
    socket = await served.ann.connect()
    await served.ann.send({"kind": "chat"}, space="demo")
    name, remove = GONE[what]
    remove(journal / name)
    detail = await stopped(served)
    assert detail.startswith(
        "spaces that have failed: demo, other (a file of the journal was deleted, renamed"
    )
    assert str(journal) not in detail
    async for _ in socket:
        pass
    assert socket.close_code == CloseCode.UNAVAILABLE
    for space in ("demo", "other"):
        assert (await served.ann.send({"kind": "chat"}, space=space)).status == 503
    (told,) = errors(caplog)
    assert f"journal {journal / name} was" in told
    assert "stop the gateway, put the file back (or a backup of it), and start the gateway again" in told


@pytest.mark.parametrize("what", ["renamed", "without its write-ahead log"])
async def test_what_was_accepted_before_the_journal_was_missed_is_there_after_it_was_put_back(
    serve: Serve, journal: Path, what: str
) -> None:
    before = await serve()
    said = [await before.ann.say() for _ in range(5)]
    name, remove = GONE[what]
    remove(journal / name)
    await stopped(before)
    await before.stop()
    if what == "renamed":
        (journal / "elsewhere.db").rename(journal / FILE)
    assert await shown(await serve()) == (said, True)


async def test_what_was_lost_with_a_deleted_journal_is_told_at_the_next_start(
    serve: Serve, journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = await serve()
    for _ in range(5):
        await before.ann.say()
    (journal / FILE).unlink()
    await stopped(before)
    await before.stop()
    caplog.clear()
    assert await shown(await serve()) == ([], False)
    assert "of space 'demo', entries 1 to " in caplog.text


async def test_a_reload_does_not_open_a_journal_that_went_away(serve: Serve, journal: Path) -> None:
    served = await serve()
    await served.ann.say()
    (journal / FILE).unlink()
    await stopped(served)
    served.gateway.reload()
    assert (await served.nobody.get("/ready")).status == 503
    assert (await served.ann.send({"kind": "chat"})).status == 503


# A disk that is full.


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many pages a database may have: SQLite then says what it says on a full disk."""
    limit: dict[str, int] = {}
    connect = sqlite3.connect

    class Limited(sqlite3.Connection):
        def execute(self, *args: object) -> sqlite3.Cursor:
            if limit:
                super().execute(f"PRAGMA max_page_count = {limit['max']}")
            return super().execute(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Limited, **options)
    )
    return limit


async def test_a_full_disk_is_one_sentence_and_the_space_goes_on_after_a_restart(
    serve: Serve, journal: Path, pages: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve()
    said = [await served.ann.say() for _ in range(3)]
    pages["max"] = 1
    answer = await served.ann.send({"kind": "chat", "payload": {"text": "x" * 100_000}})
    assert answer.status == 503
    assert await stopped(served) == "spaces that have failed: demo (the disk of the journal is full)"
    (told,) = errors(caplog)
    assert told == (
        f"space stopped: journal {journal / FILE}: the disk is full, so nothing can be accepted; free some space there,"
        " or have old entries dropped with 'journal.keep_days' or 'journal.keep_bytes', then restart the gateway"
    )
    assert all(record.exc_info is None for record in caplog.records)
    await served.stop()
    pages.clear()
    again = await serve()
    assert await shown(again) == (said, True)
    assert (await again.ann.send({"kind": "chat"})).status == 200


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process may get larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_refuses_to_write_is_one_sentence_at_the_start(serve: Serve, journal: Path) -> None:
    with files_up_to(8_000), pytest.raises(ConfigError) as refused:
        await serve()
    assert str(journal) in str(refused.value)
    assert "the disk refuses to read or write it" in str(refused.value)
    assert "\n" not in str(refused.value)
    await (await serve()).ann.say()


async def test_who_is_connected_when_the_disk_is_full_is_told_to_come_back(
    serve: Serve, pages: dict[str, int]
) -> None:
    served = await serve()
    socket = await served.ann.connect()
    pages["max"] = 1
    await served.bot.send({"kind": "chat", "payload": {"text": "x" * 100_000}})
    async for _ in socket:
        pass
    assert socket.close_code == CloseCode.UNAVAILABLE


# A disk that fills up.


async def warned(served: Served, count: int) -> list[str]:
    """Return the warnings of `/ready` once there are this many."""
    async with asyncio.timeout(10):
        while True:
            answer = await served.nobody.get("/ready")
            found: list[str] = answer.json.get("warnings", [])
            if answer.status == 200 and len(found) == count:
                return found
            await asyncio.sleep(0.01)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "mew.gateway.storage"]


async def test_a_journal_that_is_larger_than_configured_is_a_warning_until_it_is_not(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, roomy: None
) -> None:
    served = await serve(more="journal: {warn_bytes: 1MiB}\n")
    assert await warned(served, 0) == []
    for _ in range(3):
        await served.ann.say(payload={"text": "x" * 500_000})
    (told,) = await warned(served, 1)
    assert told.startswith("the journal takes 0.0 GiB, more than 'journal.warn_bytes'")
    metrics = (await served.nobody.get("/metrics")).body.decode()
    assert "mew_journal_warnings 1.0" in metrics
    (line,) = warnings(caplog)
    assert line.startswith(told)
    assert "'journal.keep_bytes'" in line
    (tmp_path / "space.yaml").write_text(SPACE_YAML + "journal: {warn_bytes: 1GiB}\n")
    served.gateway.reload()
    assert await warned(served, 0) == []
    assert "need a restart" not in caplog.text


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's disk may be fuller than most."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(100 << 30, 20 << 30, 80 << 30))


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("free", "count"), [(21 << 30, 0), (20 << 30, 1), (0, 1)])
async def test_a_disk_that_is_80_percent_full_is_a_warning(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    free: int,
    count: int,
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(100 << 30, (100 << 30) - free, free))
    served = await serve()
    told = await warned(served, count)
    assert warnings(caplog) == [f"{one}; {ADVICE}" for one in told]
    if count:
        share = 1 - free / (100 << 30)
        assert told == [f"the disk of the journal is {share:.0%} full ({free / (1 << 30):.1f} GiB are free)"]
    async with asyncio.timeout(10):
        while "mew_journal_bytes" not in (metrics := await scraped(served)):  # noqa: ASYNC110  # nobody is told
            await asyncio.sleep(0.01)
    assert metrics["mew_journal_disk_free_bytes"] == free
    assert metrics["mew_journal_disk_bytes"] == 100 << 30
    assert metrics["mew_journal_bytes"] > 0


async def scraped(served: Served) -> dict[str, float]:
    families = text_string_to_metric_families((await served.nobody.get("/metrics")).body.decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


async def test_a_gateway_without_a_journal_has_no_disk_to_warn_of(serve: Serve) -> None:
    served = await serve(more="journal: off\n")
    assert "mew_journal" not in (await served.nobody.get("/metrics")).body.decode()
