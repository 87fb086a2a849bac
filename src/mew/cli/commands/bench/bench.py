"""`mew bench`: what a gateway can do, measured from outside, in a space where one may be."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

import typer

from mew.cli.errors import CommandError, ExitCode
from mew.cli.event_loop import fast_loop
from mew.cli.http import secret
from mew.cli.prompt import ask
from mew.cli.render.progress import steps
from mew.cli.render.text import is_terminal, note, say_json
from mew.cli.session import SpaceSession, session_command
from mew.load.connections import GatewayAddress, JoinRefused, LoadFailed, RateLimited
from mew.load.invitations import Inviter, inviting
from mew.load.measurement import LoadResult, MeasurementPlan, allow_many_connections, listener
from mew.load.workloads import run
from mew.protocol.visible import named, visible

from .plan import DEFAULT, Planned, WorkloadName, plan
from .report import as_json, show

__all__ = ["bench"]

_ROUNDS: Final = 3
_WARM_UP_S: Final = 1.0
_NAMES_MAX: Final = 5
_SETTING_UP_S: Final = 1.5
"""About what a workload takes beside its warm-up and its rounds."""
_YES: Final = "y"
_LEFT_OUT: Final = "left out"


@dataclass(slots=True)
class _Found:
    """What came of it so far; it is shown also where it was interrupted."""

    outcomes: list[LoadResult] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Who was invited and could not be removed."""
    space: str = ""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What was typed."""

    workloads: Sequence[WorkloadName]
    receivers: int
    plan: MeasurementPlan
    is_agreed: bool


@session_command
def bench(
    session: SpaceSession,
    url: Annotated[
        str | None,
        typer.Argument(help="Where the gateway is, like ws://127.0.0.1:8080.", show_default=False),
    ] = None,
    workload: Annotated[
        list[WorkloadName] | None,
        typer.Option("--workload", "-w", help="Only this workload. May be repeated.", show_default=False),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="How long to measure each workload, in three rounds.")
    ] = 3.0,
    receivers: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of receivers; of connections for 'idle'.")
    ] = 16,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=100_000,
            metavar="NUMBER",
            help="At most so many envelopes a second of a sender, one at a time, to see how long each takes at a"
            " gateway that keeps its limits.",
        ),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(
            min=1, help="The gateway's process on this machine: its CPU and memory. Else found by its port."
        ),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Measure throughput and latency of a gateway: deliveries, proposals, streams, joins, HTTP.

    It sends as much as the gateway takes, and everyone in the space sees that: use a space made for it. Who may invite
    others has some invited, who are removed at the end. A figure that the load itself limited is marked.

    Examples:
      mew bench ws://127.0.0.1:8080 --space trial --token-file ann.token
      mew bench --workload fan-out --receivers 200 --json
    """
    if url is not None and session.options.gateway is not None:
        raise CommandError("the gateway is named twice: give the URL, or --gateway")
    here = session if url is None else SpaceSession(replace(session.options, gateway=url), session.json)
    where = GatewayAddress.at(here.login.url, here.login.space)
    plan = MeasurementPlan(
        rounds=_ROUNDS,
        round_s=seconds / _ROUNDS,
        warm_up_s=min(_WARM_UP_S, seconds / _ROUNDS),
        rate=rate,
        server_pid=pid or _local(where),
    )
    allow_many_connections()
    found = _Found()
    code = _measure(here, where, _Wanted(workload or DEFAULT, receivers, plan, yes), found)
    if session.json:
        told = as_json(found.outcomes, found.missing)
        say_json({"gateway": where.authority, "space": found.space, **told, "left_behind": found.left})
    else:
        show(found.outcomes, found.missing)
    if found.left:
        code = code or ExitCode.NO
        note(f"! still in the space, remove them with 'mew kick NAME': {', '.join(map(named, found.left))}")
    if code:
        raise typer.Exit(code)


def _measure(session: SpaceSession, where: GatewayAddress, wanted: _Wanted, found: _Found) -> int:
    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(_inside(where, secret(session.login), wanted, found))
    except JoinRefused as denied:
        raise CommandError(str(denied)) from denied
    except RateLimited as limited:
        found.missing.append(("the rest", str(limited)))
        return ExitCode.NO
    except LoadFailed as failed:
        raise CommandError(str(failed)) from failed
    except (KeyboardInterrupt, asyncio.CancelledError):
        found.missing.append(("the rest", "interrupted"))
        return ExitCode.INTERRUPTED
    asked_for = set(wanted.workloads) if wanted.workloads is not DEFAULT else set()
    is_short = any(name in asked_for or not why.startswith(_LEFT_OUT) for name, why in found.missing)
    return ExitCode.NO if is_short else ExitCode.OK


async def _inside(where: GatewayAddress, token: str, wanted: _Wanted, found: _Found) -> None:
    """Do all of it in the space.

    Raises:
        CommandError: somebody said no when asked.
        LoadFailed: one is not let in, or sends faster than the gateway allows.
    """
    task = asyncio.current_task()
    assert task is not None, "outside a task"
    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with inviting(where, token, found.left) as host:
        found.space = host.address.space or ""
        planned = plan(host, wanted.workloads, wanted.receivers)
        if any(one.made is not None for one in planned) and not wanted.is_agreed:
            await _agree(host, planned, wanted.plan)
        for one in planned:
            await _one(host, one, wanted.plan, found)


async def _one(host: Inviter, planned: Planned, plan: MeasurementPlan, found: _Found) -> None:
    if planned.made is None:
        found.missing.append((planned.name, f"{_LEFT_OUT}: {planned.why_not}"))
        return
    rounds = plan.rounds * (len(planned.guests) if planned.name is WorkloadName.CHECKS else 1)
    with steps(planned.name, rounds) as one_more:
        try:
            guests = [await host.invite(held) for held in planned.guests]
            found.outcomes += await run(planned.made(guests), plan, one_more)
        except RateLimited:
            raise
        except LoadFailed as failed:
            found.missing.append((planned.name, str(failed)))
        found.left += await host.dismiss()


async def _agree(host: Inviter, planned: Sequence[Planned], plan: MeasurementPlan) -> None:
    """Say what will be done to the space, and have somebody agree.

    Raises:
        CommandError: nobody can be asked.
        CommandError: they do not.
    """
    note(_sentence(host, planned, plan))
    if not is_terminal():
        raise CommandError("nobody can be asked here: give --yes, if that is what you want")
    if not (await ask("Go on? [y]es, [n]o: ")).lower().startswith(_YES):
        raise CommandError("nothing was sent", ExitCode.NO)


def _sentence(host: Inviter, planned: Sequence[Planned], plan: MeasurementPlan) -> str:
    runs = [one for one in planned if one.made is not None]
    each_s = plan.rounds * plan.round_s + plan.warm_up_s + _SETTING_UP_S
    guests = max(len(one.guests) for one in runs)
    others = [who for who in host.participants if who != host.credentials.who]
    shown = ", ".join(map(named, others[:_NAMES_MAX])) + (", …" if len(others) > _NAMES_MAX else "")
    there = f"{len(others)} others who are there ({shown})" if others else "nobody else now"
    inviting = (
        f"; at most {guests} at a time are invited (bench-1, bench-2, …) and removed again" if guests else ""
    )
    number = "as many envelopes as the gateway takes, thousands a second,"
    if plan.rate is not None:
        number = f"{plan.rate:g} envelopes a second"
    return (
        f"For about {len(runs) * each_s:.0f} s this sends {number}"
        f" to space {visible(host.address.space or '')!r} as {named(host.credentials.who)}: seen by {there},"
        f" and kept in the space's journal{inviting}."
    )


def _local(where: GatewayAddress) -> int | None:
    """The process of the gateway, if it is one of ours on this machine."""
    from mew.gateway.config.server_sections import is_loopback

    return listener(where.port) if is_loopback(where.host) else None
