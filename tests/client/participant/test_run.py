"""A whole program ends well when it is told to."""

import asyncio
import os
import signal
import socket
import threading

import pytest

from mew.client.participant.participant import Participant, run_program


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_a_program_ends_well_when_it_is_interrupted(told: signal.Signals) -> None:
    ended: list[str] = []

    async def main() -> None:
        try:
            os.kill(os.getpid(), told)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("well")

    run_program(main)
    assert ended == ["well"]


def test_a_program_fails_as_what_it_runs_does() -> None:
    async def main() -> None:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        run_program(main)


def test_a_participant_waits_for_its_gateway_until_it_is_told_to_end() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        Participant("patient").run(f"ws://127.0.0.1:{nobody.getsockname()[1]}", space="demo", token="t")
        timer.join()


def test_a_participant_says_at_once_what_can_never_work() -> None:
    with pytest.raises(ValueError, match="URL"):
        Participant("lost").run("nowhere")
