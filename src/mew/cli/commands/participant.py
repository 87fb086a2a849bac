"""`mew participant`: control one participant of the space."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from mew.cli import completion
from mew.cli.render.escape import escape_lines
from mew.cli.render.ids import short
from mew.cli.render.text import say, say_json
from mew.cli.render.times import Lasting, seconds_of
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.client.errors import Absent
from mew.client.management import ParticipantControl
from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_json, encode_json
from mew.protocol.visible import literal, named

__all__ = ["participant"]

participant = typer.Typer(
    name="participant",
    help="Control one participant: pause, resume, status, forget, compact, clear, restart, shutdown.",
    no_args_is_help=True,
)

Whom = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The participant.", autocompletion=completion.participants),
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="The reason; everyone can read it.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for an answer.")
]


class Direction(StrEnum):
    """Which end of the context."""

    OLDEST = "oldest"
    NEWEST = "newest"


@participant.command("pause")
@session_command
def pause(session: SpaceSession, name: Whom, lasting: Lasting = None, message: Message = None) -> None:
    """Pause a participant: it can send nothing until it is resumed, or for a time.

    Example: mew participant pause agent --for 15m -m "let us look at this first"
    """
    timeout_s = seconds_of(lasting)
    until = "until it is resumed" if lasting is None else f"for {lasting}"
    _tell(
        session,
        name,
        lambda control: control.pause(name, timeout_s=timeout_s, reason=message),
        f"is paused {until}",
    )


@participant.command("resume")
@session_command
def resume(session: SpaceSession, name: Whom, message: Message = None) -> None:
    """Resume a participant that was paused.

    Example: mew participant resume agent
    """
    _tell(session, name, lambda control: control.resume(name, reason=message), "is resumed")


@participant.command("status")
@session_command
def status(
    session: SpaceSession,
    name: Whom,
    fields: Annotated[
        list[str] | None, typer.Option("--field", metavar="FIELD", help="Only this field. May be repeated.")
    ] = None,
    timeout_s: Timeout = 5.0,
) -> None:
    """Ask a participant for its status.

    Example: mew participant status agent
    """

    async def core(me: Client) -> dict[str, Any]:
        return await me.control.request_status(name, fields=fields, timeout_s=timeout_s)

    said = session.run(core)
    if session.json:
        say_json(said)
        return
    for name, value in said.items():
        say(f"{named(name)}: {escape_lines(value) if isinstance(value, str) else literal(value)}")


@participant.command("forget")
@session_command
def forget(
    session: SpaceSession,
    name: Whom,
    direction: Annotated[Direction, typer.Argument(help="Which entries.")] = Direction.OLDEST,
    entries: Annotated[
        int | None,
        typer.Option("--entries", "-n", min=1, help="How many; by default the participant decides."),
    ] = None,
) -> None:
    """Ask a participant to forget part of its context.

    Example: mew participant forget agent oldest -n 50
    """
    _tell(
        session,
        name,
        lambda control: control.forget(name, direction.value, entries),
        f"was asked to forget the {direction.value} entries",
        must_be_here=True,
    )


@participant.command("compact")
@session_command
def compact(
    session: SpaceSession,
    name: Whom,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="Target size in tokens.")] = None,
    message: Message = None,
    timeout_s: Timeout = 60.0,
) -> None:
    """Ask a participant to compact its context, and wait until it has done so.

    Example: mew participant compact agent --tokens 8000
    """

    async def core(me: Client) -> dict[str, Any]:
        done = await me.control.compact(name, target_tokens=tokens, reason=message, timeout_s=timeout_s)
        said: dict[str, Any] = decode_json(encode_json(done))
        return said

    said = session.run(core)
    if session.json:
        say_json(said)
    else:
        say(f"{named(name)} has compacted: {literal(said)}")


@participant.command("clear")
@session_command
def clear(session: SpaceSession, name: Whom) -> None:
    """Ask a participant to clear its context.

    Example: mew participant clear agent
    """
    said = "was asked to clear its context"
    _tell(session, name, lambda control: control.clear(name), said, must_be_here=True)


@participant.command("restart")
@session_command
def restart(session: SpaceSession, name: Whom) -> None:
    """Ask a participant to restart with its configuration.

    Example: mew participant restart agent
    """
    said = "was asked to restart"
    _tell(session, name, lambda control: control.restart(name), said, must_be_here=True)


@participant.command("shutdown")
@session_command
def shutdown(session: SpaceSession, name: Whom, timeout_s: Timeout = 10.0) -> None:
    """Shut a participant down and wait for it to leave.

    Example: mew participant shutdown agent
    """
    _tell(
        session,
        name,
        lambda control: control.shutdown(name, timeout_s=timeout_s),
        "is shut down",
    )


def _tell(
    session: SpaceSession,
    who: str,
    do: Callable[[ParticipantControl], Awaitable[Envelope]],
    said: str,
    *,
    must_be_here: bool = False,
) -> None:
    async def core(me: Client) -> Envelope:
        if must_be_here and who not in me.participants:
            raise Absent(f"{who!r} is not connected; 'mew participants' lists who is")
        return await do(me.control)

    sent = session.run(core)
    if session.json:
        say_json({"id": sent.id, "kind": sent.kind, "participant": who})
    else:
        say(f"{named(who)} {said} ({short(sent.id)})")
