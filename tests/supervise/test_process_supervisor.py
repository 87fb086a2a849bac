"""One program, kept running: real processes."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.processes import until_gone

from mew.supervise import process_supervisor as keeping
from mew.supervise.cleanup import ChildCleanup
from mew.supervise.process_supervisor import ProcessSupervisor
from mew.supervise.program import Phase, Program, Restart

SOON_S = 10.0


class Kept:
    """A keeper that runs, and the moments at which it changed."""

    def __init__(self, program: Program) -> None:
        self._changed = asyncio.Event()
        self.phases: list[Phase] = []
        self.keeper = ProcessSupervisor(program, os.environ, ChildCleanup(), self._note, first_s=0.01)

    def _note(self) -> None:
        self.phases.append(self.keeper.standing.phase)
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def kept(
    folder: Path, *argv: str, restart: Restart = Restart.ON_FAILURE, **env: str
) -> AsyncIterator[Kept]:
    program = Program(
        name="it", argv=argv, env=env, folder=folder, log=folder / "logs" / "it.log", restart=restart
    )
    running = Kept(program)
    task = asyncio.ensure_future(running.keeper.run())
    try:
        yield running
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def written(folder: Path) -> list[str]:
    return (folder / "logs" / "it.log").read_text().splitlines()


async def test_who_fails_is_started_again_and_its_log_goes_on(tmp_path: Path) -> None:
    async with kept(tmp_path, "sh", "-c", "echo $WORD; exit 3", WORD="hello") as it:
        await it.until(lambda: it.keeper.standing.restarts >= 2 and it.keeper.standing.phase is Phase.AGAIN)
        assert it.keeper.standing.said == "ended with exit code 3: hello"
    assert set(written(tmp_path)) == {"hello"}
    assert len(written(tmp_path)) >= 3
    assert it.phases[-1] is Phase.STOPPED


@pytest.mark.parametrize(
    ("policy", "script"),
    [(Restart.ON_FAILURE, "exit 0"), (Restart.NEVER, "exit 3"), (Restart.NEVER, "exit 0")],
)
async def test_who_is_not_to_be_started_again_is_left(tmp_path: Path, policy: Restart, script: str) -> None:
    async with kept(tmp_path, "sh", "-c", script, restart=policy) as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.ENDED)
        assert it.keeper.up.is_set()
        await it.keeper.restart()  # but if it is asked for
        await it.until(lambda: it.keeper.standing.restarts == 1 and it.keeper.standing.phase is Phase.ENDED)


async def test_how_it_was_killed_is_said(tmp_path: Path) -> None:
    async with kept(tmp_path, "sh", "-c", "kill -9 $$") as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.AGAIN)
        assert it.keeper.standing.said == "was killed by SIGKILL"


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("no-such-thing",), "the command 'no-such-thing' is not there: install it, or give its path"),
        (("./plain",), "'./plain' cannot be run: Permission denied"),
    ],
)
async def test_what_cannot_be_run_is_said_and_not_tried_again(
    tmp_path: Path, argv: tuple[str, ...], why: str
) -> None:
    (tmp_path / "plain").write_text("no program")
    async with kept(tmp_path, *argv) as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.FAILED)
        assert it.keeper.standing.said == why


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    program = Program(name="it", argv=("true",), env={}, folder=tmp_path / "gone", log=tmp_path / "it.log")
    it = Kept(program)
    task = asyncio.ensure_future(it.keeper.run())
    await it.until(lambda: it.keeper.standing.phase is Phase.FAILED)
    assert it.keeper.standing.said == f"the folder {tmp_path / 'gone'} is not there"
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_what_a_program_leaves_behind_is_killed_when_it_ends(tmp_path: Path) -> None:
    async with kept(tmp_path, "sh", "-c", "sleep 1000 & echo $!; exit 0") as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.ENDED)
        await until_gone(int(written(tmp_path)[0]))


async def test_who_does_not_end_when_told_to_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_GRACE_S", 0.1)
    told = tmp_path / "told"
    os.mkfifo(told)
    inner = "trap '' TERM; echo \\$\\$ > told; sleep 1000; sleep 1000"
    async with kept(tmp_path, "sh", "-c", f"trap '' TERM; sh -c \"{inner}\"; sleep 1000") as it:
        await it.until(lambda: it.keeper.standing.pid is not None)
        pid = it.keeper.standing.pid
        assert pid is not None
        child = int(await asyncio.to_thread(told.read_text))
    await until_gone(pid, child)


async def test_it_is_running_once_it_was_seen_in_its_space(tmp_path: Path) -> None:
    async with kept(tmp_path, "sleep", "1000") as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.STARTING)
        pid = it.keeper.standing.pid
        it.keeper.joined(is_there=True)
        assert (it.keeper.standing.phase, it.keeper.standing.pid) == (Phase.RUNNING, pid)
        assert it.keeper.up.is_set()
        it.keeper.joined(is_there=False)
        assert (it.keeper.standing.phase, it.keeper.standing.pid) == (Phase.STARTING, pid)


async def test_what_it_wrote_in_an_earlier_life_is_not_taken_for_its_last_words(tmp_path: Path) -> None:
    once = "test -e been && exit 3; touch been; echo out of paper; exit 3"
    async with kept(tmp_path, "sh", "-c", once) as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.AGAIN)
        assert it.keeper.standing.ended == "ended with exit code 3: out of paper"
        await it.until(lambda: it.keeper.standing.restarts >= 1 and it.keeper.standing.phase is Phase.AGAIN)
        assert it.keeper.standing.ended == "ended with exit code 3"


async def test_who_runs_and_does_not_join_is_late_until_it_does(tmp_path: Path) -> None:
    async with kept(tmp_path, "sleep", "1000") as it:
        await it.until(lambda: it.keeper.standing.phase is Phase.STARTING)
        it.keeper.expect(1000)
        assert not it.keeper.is_late
        it.keeper.expect(0)
        assert it.keeper.is_late
        assert it.keeper.standing.said == "runs, and has not joined after 0 s; see 'mew logs it'"
        it.keeper.joined(is_there=True)
        assert not it.keeper.is_late
        assert it.keeper.standing.said == ""


async def test_a_restart_while_it_is_being_started_is_that_start(tmp_path: Path) -> None:
    async with kept(tmp_path, "sh", "-c", "exit 0") as it:
        await it.keeper.restart()  # nothing has run yet
        await it.until(lambda: it.keeper.standing.phase is Phase.ENDED)
        assert it.keeper.standing.restarts == 0
