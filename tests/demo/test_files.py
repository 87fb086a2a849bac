"""The MCP server of the demo: the files of a folder, and nothing outside of it."""

from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from mew.demo.files import serve


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("outside")
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.txt").write_text("hello")
    (inside / "link").symlink_to(tmp_path / "secret.txt")
    return inside


async def call(folder: Path, tool: str, **arguments: Any) -> tuple[bool | None, Any]:
    async with Client(serve(folder)) as client:
        result = await client.call_tool(tool, arguments)
        content = result.structured_content or {}
        return result.is_error, content.get("result", result.content)


async def test_files_are_listed_read_found_written_and_deleted(folder: Path) -> None:
    assert await call(folder, "list_directory") == (False, ["a.txt", "link", "sub/"])
    assert await call(folder, "read_text_file", path="a.txt") == (False, "hello")
    assert await call(folder, "search_files", text="ell") == (False, ["a.txt"])
    assert await call(folder, "write_file", path="new/b.txt", content="x") == (
        False,
        "wrote 1 characters to new/b.txt",
    )
    assert (folder / "new" / "b.txt").read_text() == "x"
    assert await call(folder, "delete_file", path="a.txt") == (False, "deleted a.txt")
    assert not (folder / "a.txt").exists()


@pytest.mark.parametrize("path", ["../secret.txt", "link", "sub/../../secret.txt"])
@pytest.mark.parametrize("tool", ["read_text_file", "write_file", "delete_file"])
async def test_nothing_outside_of_the_folder_can_be_named(folder: Path, path: str, tool: str) -> None:
    more = {"content": "x"} if tool == "write_file" else {}
    failed, said = await call(folder, tool, path=path, **more)
    assert failed
    assert "outside of the folder" in said[0].text
    assert (folder.parent / "secret.txt").read_text() == "outside"


@pytest.mark.parametrize("path", [".mew/tokens/ann.token", ".env", "sub/.hidden"])
async def test_what_is_hidden_is_not_there(folder: Path, path: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("token")
    failed, said = await call(folder, "read_text_file", path=path)
    assert (failed, "is hidden" in said[0].text) == (True, True)
    assert await call(folder, "search_files", text="token") == (False, [])
    assert await call(folder, "list_directory") == (False, ["a.txt", "link", "sub/"])


async def test_a_file_that_is_not_there_is_told_without_where_the_folder_is(folder: Path) -> None:
    failed, said = await call(folder, "read_text_file", path="gone.txt")
    assert (failed, said[0].text) == (
        True,
        "Error executing tool read_text_file: 'gone.txt': No such file or directory",
    )


async def test_what_only_reads_says_so_and_what_destroys_too(folder: Path) -> None:
    async with Client(serve(folder)) as client:
        tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    reading = {name for name, said in tools.items() if said is not None and said.read_only_hint}
    assert reading == {"list_directory", "read_text_file", "search_files"}
    assert all(
        said is not None and said.destructive_hint for name, said in tools.items() if name not in reading
    )
