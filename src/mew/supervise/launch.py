"""PURE. What a space.yaml says is to be started: a gateway, and a program for each participant that names one."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from mew.gateway.config.settings import Config

from .participant import LaunchContext, LaunchEntry, ParticipantNotStarted, Token
from .program import GATEWAY, Program, Restart

__all__ = ["LaunchPlan", "plan"]


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """In the order of starting. `notes` are what the file says and nothing here does, ready to be shown."""

    programs: tuple[Program, ...]
    notes: tuple[str, ...] = ()


def plan(
    config: Config, given: LaunchContext, tokens: Mapping[tuple[str, str], Token], *, ephemeral: bool = False
) -> LaunchPlan:
    """The gateway first, then each after what it depends on; `tokens` by space and participant.

    Where there are several spaces, programs are called `SPACE.PARTICIPANT`. A participant that cannot be started here,
    and those that depend on it, are left out and named in `notes`, with their line.

    Raises:
        ConfigError: the file is wrong; with its line.
    """
    several = len(config.spaces) > 1
    readers = [
        LaunchEntry(
            config, given, space.id, one, tokens[space.id, one.id], prefix=f"{space.id}." if several else ""
        )
        for space in config.spaces.values()
        for one in space.participants.values()
    ]
    programs: dict[str, Program] = {}
    left_out: dict[str, str] = {}
    for reader in _ordered([reader for reader in readers if reader.starts]):
        missing = [one for one in reader.depends_on if one in left_out]
        if missing:
            why = f"{reader.cannot_wait_for(missing)}; {reader.name} is not started"
            left_out[reader.name] = why
            continue
        try:
            programs[reader.name] = reader.program()
        except ParticipantNotStarted as error:
            left_out[reader.name] = str(error)
    notes = chain.from_iterable(reader.notes() for reader in readers)
    gateway = _gateway(config, given, ephemeral=ephemeral)
    return LaunchPlan((gateway, *programs.values()), (*left_out.values(), *notes))


def _gateway(config: Config, given: LaunchContext, *, ephemeral: bool) -> Program:
    argv = (*given.mew, GATEWAY, "--config", str(config.file), "--port", str(given.port))
    return Program(
        name=GATEWAY,
        argv=(*argv, "--ephemeral") if ephemeral else argv,
        env=given.gateway_environ,
        folder=config.file.parent,
        log=given.logs / f"{GATEWAY}.log",
        restart=Restart.ALWAYS,
        what=f"mew gateway at {given.url}",
    )


def _ordered(waiting: list[LaunchEntry]) -> list[LaunchEntry]:
    """Each after those it depends on, otherwise as they stand in the file."""
    names = {reader.name for reader in waiting}
    done: dict[str, LaunchEntry] = {}
    while waiting:
        ready = [reader for reader in waiting if done.keys() >= set(reader.depends_on)]
        if not ready:
            raise waiting[0].cannot_wait_for(set(waiting[0].depends_on) - names)
        done |= {reader.name: reader for reader in ready}
        waiting = [reader for reader in waiting if reader.name not in done]
    return list(done.values())
