"""PURE. A program to be kept running, and what has become of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

__all__ = ["GATEWAY", "MARK", "Phase", "Program", "ProgramStatus", "Restart"]

GATEWAY = "gateway"
"""The name under which the gateway itself runs; no participant may have it."""

MARK = "UNDER_MEW_UP"
"""A variable of every program, and of what each starts: the state folder. None of ours by its name, so a bridge may
pass it on to its server."""


class Restart(StrEnum):
    """When a program that has ended is started again."""

    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NEVER = "never"


class Phase(StrEnum):
    """Where a program is in its life."""

    WAITING = "waiting"  # for what it depends on
    STARTING = "starting"  # it runs, and has not joined yet
    RUNNING = "running"
    AGAIN = "again soon"  # it has ended, and will be started again
    ENDED = "ended"  # and is left so
    FAILED = "failed"  # it cannot be started
    STOPPED = "stopped"  # by us


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`env` is what is added to ours; it may hold secrets, as may `argv`."""

    name: str
    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    folder: Path
    log: Path
    restart: Restart = Restart.ON_FAILURE
    after: tuple[str, ...] = ()
    what: str = ""  # for people: what it runs, without secrets
    space: str | None = None
    participant: str | None = None  # who it is in that space
    after_first_envelope: bool = False  # started once the participant has sent one, over HTTP


@dataclass(slots=True)
class ProgramStatus:
    """How a program is doing now; as `mew status --json` has it, so without secrets."""

    name: str
    what: str = ""
    phase: Phase = Phase.WAITING
    pid: int | None = None
    since: float = 0.0  # of this phase, in seconds since the epoch
    restarts: int = 0
    said: str = ""  # what is to be known about this phase: what is wrong, what it waits for
    ended: str = ""  # how it ended last
    joined: bool = False  # it is in its space
    log: str = ""
