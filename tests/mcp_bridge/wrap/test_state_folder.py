"""A folder for one run of `mew wrap`."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mew.gateway.address_file import published_address
from mew.mcp_bridge.wrap.state_folder import StateFolderError, running_wraps, taken_place, wrap_file

THIS, OTHER = "a" * 64, "b" * 64
URL = "http://127.0.0.1:4711"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


async def test_the_same_command_has_the_same_place_each_time(environ: dict[str, str]) -> None:
    for _ in range(2):
        async with taken_place("files", THIS, environ) as file:
            assert file == wrap_file("files", environ)
            assert file.parent.stat().st_mode & 0o777 == 0o700


async def test_another_command_of_that_name_has_another_place(environ: dict[str, str]) -> None:
    async with taken_place("files", THIS, environ):
        pass
    async with taken_place("files", OTHER, environ) as file:
        assert file.parent.name == "files-2"
    async with taken_place("files", THIS, environ) as file:
        assert file.parent.name == "files"


async def test_who_says_the_name_has_the_place_whatever_the_command(environ: dict[str, str]) -> None:
    async with taken_place("files", THIS, environ):
        pass
    async with taken_place("files", None, environ) as file:
        assert file.parent.name == "files"


async def test_one_that_runs_keeps_its_place(environ: dict[str, str]) -> None:
    async with AsyncExitStack() as stack:
        for name in ("files", "files-2", "files-3"):
            file = await stack.enter_async_context(taken_place("files", THIS, environ))
            file.touch()
            stack.enter_context(published_address(file, URL))
            assert file.parent.name == name
        assert running_wraps(environ) == ["files", "files-2", "files-3"]
    assert running_wraps(environ) == []


async def test_one_that_is_just_going_is_waited_for(environ: dict[str, str]) -> None:
    going = asyncio.Event()

    async def first() -> None:
        async with taken_place("files", THIS, environ):
            begun.set()
            await going.wait()

    async def second() -> str:
        async with taken_place("files", THIS, environ) as file:
            return file.parent.name

    begun = asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(first())
        await begun.wait()
        waiting = tasks.create_task(second())
        await asyncio.sleep(0)
        going.set()
    assert waiting.result() == "files"


async def test_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "mew").write_text("in the way")
    with pytest.raises(StateFolderError, match="the space cannot be kept here"):
        async with taken_place("files", THIS, {"XDG_STATE_HOME": str(tmp_path)}):
            pass


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/mew/wrap"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/mew/wrap"),
        ({"HOME": "/h"}, "/h/.local/state/mew/wrap"),
        ({"LOCALAPPDATA": "/l"}, "/l/mew/state/wrap"),
    ],
)
def test_the_folder_is_by_custom_of_the_system(environ: dict[str, str], folder: str) -> None:
    assert wrap_file("files", environ) == Path(folder, "files", "space.yaml")


@pytest.mark.parametrize("name", ["", "..", "a/b", "../x", "a\x00"])
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a wrapped server"):
        wrap_file(name, {"HOME": "/h"})
