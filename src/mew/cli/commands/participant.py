"""`mew pause`, `resume`, `status-of`, `forget`, `compact`, `clear`, `restart-of`, `shutdown`: control of others."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from mew.cli.render.duration import Lasting, seconds_of
from mew.cli.render.ids import short
from mew.cli.render.text import say, say_json, whole
from mew.cli.session import Place, everyday
from mew.client.client import Client
from mew.client.errors import Absent
from mew.client.management import Oversight
from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_json, encode_json
from mew.protocol.visible import literal, named

__all__ = ["clear", "compact", "forget", "pause", "restart_of", "resume", "shutdown", "status_of"]

Whom = Annotated[str, typer.Argument(metavar="PARTICIPANT", help="Whom it is about.")]
Message = Annotated[str | None, typer.Option("--message", "-m", help="Why; everyone can read it.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for the answer.")
]


class Direction(StrEnum):
    """Which end of a memory."""

    OLDEST = "oldest"
    NEWEST = "newest"


@everyday
def pause(place: Place, participant: Whom, lasting: Lasting = None, message: Message = None) -> None:
    """Stop somebody from sending, until somebody resumes them or for a time.

    Example: mew pause agent --for 15m -m "let us look at this first"
    """
    timeout_s = seconds_of(lasting)
    until = "until it is resumed" if lasting is None else f"for {lasting}"
    _tell(
        place,
        participant,
        lambda control: control.pause(participant, timeout_s=timeout_s, reason=message),
        f"is paused {until}",
    )


@everyday
def resume(place: Place, participant: Whom, message: Message = None) -> None:
    """Let somebody go on who was paused.

    Example: mew resume agent
    """
    _tell(place, participant, lambda control: control.resume(participant, reason=message), "may go on")


@everyday
def status_of(
    place: Place,
    participant: Whom,
    fields: Annotated[
        list[str] | None, typer.Option("--field", metavar="FIELD", help="Only this of it; may be repeated.")
    ] = None,
    timeout_s: Timeout = 5.0,
) -> None:
    """What a participant says of itself.

    Example: mew status-of agent
    """

    async def core(me: Client) -> dict[str, Any]:
        return await me.control.request_status(participant, fields=fields, timeout_s=timeout_s)

    said = place.run(core)
    if place.json:
        say_json(said)
        return
    for name, value in said.items():
        say(f"{named(name)}: {whole(value) if isinstance(value, str) else literal(value)}")


@everyday
def forget(
    place: Place,
    participant: Whom,
    direction: Annotated[Direction, typer.Argument(help="Which of what it remembers.")] = Direction.OLDEST,
    entries: Annotated[
        int | None, typer.Option("--entries", "-n", min=1, help="How many; else it decides.")
    ] = None,
) -> None:
    """Have somebody drop some of what they remember.

    Example: mew forget agent oldest -n 50
    """
    _tell(
        place,
        participant,
        lambda control: control.forget(participant, direction.value, entries),
        f"is asked to forget the {direction.value}",
        must_be_here=True,
    )


@everyday
def compact(
    place: Place,
    participant: Whom,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="To how many tokens.")] = None,
    message: Message = None,
    timeout_s: Timeout = 60.0,
) -> None:
    """Have somebody make room in their memory, and wait until it is done.

    Example: mew compact agent --tokens 8000
    """

    async def core(me: Client) -> dict[str, Any]:
        done = await me.control.compact(
            participant, target_tokens=tokens, reason=message, timeout_s=timeout_s
        )
        said: dict[str, Any] = decode_json(encode_json(done))
        return said

    said = place.run(core)
    if place.json:
        say_json(said)
    else:
        say(f"{named(participant)} has compacted: {literal(said)}")


@everyday
def clear(place: Place, participant: Whom) -> None:
    """Have somebody forget everything.

    Example: mew clear agent
    """
    said = "is asked to forget everything"
    _tell(place, participant, lambda control: control.clear(participant), said, must_be_here=True)


@everyday
def restart_of(place: Place, participant: Whom) -> None:
    """Have somebody begin again as it was configured.

    Example: mew restart-of agent
    """
    said = "is asked to begin again"
    _tell(place, participant, lambda control: control.restart(participant), said, must_be_here=True)


@everyday
def shutdown(place: Place, participant: Whom, timeout_s: Timeout = 10.0) -> None:
    """Have somebody cease, and wait until it has acknowledged or left.

    Example: mew shutdown agent
    """
    _tell(
        place,
        participant,
        lambda control: control.shutdown(participant, timeout_s=timeout_s),
        "is shut down",
    )


def _tell(
    place: Place,
    who: str,
    do: Callable[[Oversight], Awaitable[Envelope]],
    said: str,
    *,
    must_be_here: bool = False,
) -> None:
    async def core(me: Client) -> Envelope:
        if must_be_here and who not in me.participants:
            raise Absent(f"{who!r} is not here, and nobody else can do it; 'mew participants' says who is")
        return await do(me.control)

    sent = place.run(core)
    if place.json:
        say_json({"id": sent.id, "kind": sent.kind, "participant": who})
    else:
        say(f"{named(who)} {said} ({short(sent.id)})")
