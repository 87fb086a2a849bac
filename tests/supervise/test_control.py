"""How other commands ask a supervisor."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mew.supervise import control
from mew.supervise.control import ask, listening, socket_path


async def answer(question: dict[str, Any]) -> dict[str, Any]:
    if question["ask"] == "no":
        raise ValueError("because")
    return {"heard": question}


async def test_a_question_is_answered_by_who_listens_in_that_folder(tmp_path: Path) -> None:
    assert await ask(tmp_path, {"ask": "this"}) is None
    async with listening(tmp_path, answer):
        assert await ask(tmp_path, {"ask": "this"}) == {"heard": {"ask": "this"}}
        assert socket_path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert await ask(tmp_path, {"ask": "this"}) is None


async def test_a_no_is_told_with_its_reason(tmp_path: Path) -> None:
    async with listening(tmp_path, answer):
        with pytest.raises(ValueError, match="because"):
            await ask(tmp_path, {"ask": "no"})
        with pytest.raises(ValueError, match="ask"):
            await ask(tmp_path, {"other": 1})


async def test_garbage_harms_nobody(tmp_path: Path) -> None:
    async with listening(tmp_path, answer):
        for sent in (b"{\n", b"[]\n", b"\xff\n", b""):
            _, writer = await asyncio.open_unix_connection(socket_path(tmp_path))
            writer.write(sent)
            writer.close()
        assert await ask(tmp_path, {"ask": "this"}) == {"heard": {"ask": "this"}}


async def test_what_a_killed_one_left_is_no_hindrance(tmp_path: Path) -> None:
    path = socket_path(tmp_path)
    server = await asyncio.start_unix_server(lambda *_: None, path)
    server.close()
    await server.wait_closed()
    path.touch()  # as after a kill -9, where nobody listens
    async with listening(tmp_path, answer):
        assert await ask(tmp_path, {"ask": "this"}) is not None


async def test_who_connects_and_asks_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_QUESTION_S", 0.05)
    async with listening(tmp_path, answer):
        reader, writer = await asyncio.open_unix_connection(socket_path(tmp_path))
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


def test_a_folder_with_a_long_name_has_its_socket_elsewhere(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    assert len(str(socket_path(long))) < 108
    assert socket_path(long) == socket_path(long)
    assert socket_path(long) != socket_path(tmp_path / ("y" * 120))
