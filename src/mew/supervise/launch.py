"""PURE. What a space.yaml says is to be started: a gateway, and a program for each participant that names one."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from mew.gateway.settings import Config

from .participant import Circumstances, Reader, Token
from .program import GATEWAY, Program, Restart

__all__ = ["Plan", "plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """In the order of starting. `notes` are what the file says and nothing here does, ready to be shown."""

    programs: tuple[Program, ...]
    notes: tuple[str, ...] = ()


def plan(
    config: Config, given: Circumstances, tokens: Mapping[tuple[str, str], Token], *, ephemeral: bool = False
) -> Plan:
    """The gateway first, then each after what it depends on; `tokens` by space and participant.

    Where there are several spaces, programs are called `SPACE.PARTICIPANT`.

    Raises:
        ConfigError: something cannot be started as the file has it; with its line.
    """
    several = len(config.spaces) > 1
    readers = [
        Reader(
            config, given, space.id, one, tokens[space.id, one.id], prefix=f"{space.id}." if several else ""
        )
        for space in config.spaces.values()
        for one in space.participants.values()
    ]
    programs = [reader.program() for reader in _ordered([reader for reader in readers if reader.starts])]
    notes = chain.from_iterable(reader.notes() for reader in readers)
    return Plan((_gateway(config, given, ephemeral=ephemeral), *programs), tuple(notes))


def _gateway(config: Config, given: Circumstances, *, ephemeral: bool) -> Program:
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


def _ordered(waiting: list[Reader]) -> list[Reader]:
    """Each after those it depends on, otherwise as they stand in the file."""
    names = {reader.name for reader in waiting}
    done: dict[str, Reader] = {}
    while waiting:
        ready = [reader for reader in waiting if done.keys() >= set(reader.depends_on)]
        if not ready:
            raise waiting[0].cannot_wait_for(set(waiting[0].depends_on) - names)
        done |= {reader.name: reader for reader in ready}
        waiting = [reader for reader in waiting if reader.name not in done]
    return list(done.values())
