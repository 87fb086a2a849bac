"""`mew reasoning`: who thinks aloud now, and stopping it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple

import typer
from msgspec import UNSET
from rich.text import Text

from mew.cli.render.envelope import prose
from mew.cli.render.ids import pick_id, short
from mew.cli.render.table import lasting, name
from mew.cli.render.text import say, say_json
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

__all__ = ["reasoning"]

reasoning = typer.Typer(
    help="List reasoning in progress, or cancel it.", no_args_is_help=True, pretty_exceptions_enable=False
)

_PAST_MAX: Final = 1_000
_ENDS: Final = (Kind.REASONING_CONCLUSION, Kind.REASONING_CANCEL)


class Thinking(NamedTuple):
    """A sequence that has begun and, as far as anyone said, goes on."""

    id: str
    by: str
    message: str
    since: datetime | None

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, "by": self.by, "message": self.message, "since": self.since}


@reasoning.command("list")
@session_command
def reasoning_list(session: SpaceSession) -> None:
    """List reasoning in progress.

    Example: mew reasoning list
    """
    found = session.run(active)
    if session.json:
        say_json([one.as_dict() for one in found])
        return
    for one in found:
        since = (
            "" if one.since is None else f"  {lasting((datetime.now(UTC) - one.since).total_seconds())} ago"
        )
        say(
            Text.assemble(
                (short(one.id), "bold"), "  ", name(one.by), f"  {prose(one.message)}", (since, "dim")
            )
        )
    if not found:
        say("no reasoning is in progress")


@reasoning.command("cancel")
@session_command
def reasoning_cancel(
    session: SpaceSession,
    which: Annotated[
        str,
        typer.Argument(
            metavar="ID|PARTICIPANT", help="Id of the reasoning, or a participant for all of its reasoning."
        ),
    ],
    message: Annotated[
        str, typer.Option("--message", "-m", help="The reason; everyone can read it.")
    ] = "cancelled",
) -> None:
    """Cancel a reasoning sequence.

    Example: mew reasoning cancel agent -m "this leads nowhere"
    """

    async def core(me: Client) -> Sequence[Thinking]:
        meant = picked(await active(me), which)
        for one in meant:
            await me.send(Kind.REASONING_CANCEL, {"reason": message}, to=one.by, context=one.id)
        return meant

    stopped = session.run(core)
    if session.json:
        say_json([one.as_dict() for one in stopped])
    for one in stopped if not session.json else ():
        say(Text.assemble("stopped ", short(one.id), " of ", name(one.by)))


async def active(me: Client) -> list[Thinking]:
    """Those that go on, oldest first; who has left thinks no more.

    Raises:
        ConnectError: the gateway does not tell.
    """
    past = await me.history(kind="reasoning/*", limit=_PAST_MAX, newest_first=True).list()
    going: dict[str, Envelope] = {}
    for envelope in reversed(past):
        if envelope.kind == Kind.REASONING_START:
            going[envelope.id] = envelope
        elif envelope.kind in _ENDS:
            _end(going, envelope)
    return [_thinking(one) for one in going.values() if one.sender in me.participants]


def picked(going: Sequence[Thinking], which: str) -> list[Thinking]:
    """Those of a participant, or the one whose id begins or ends so.

    Raises:
        CommandError: there is none, or several could be meant.
    """
    theirs = [one for one in going if one.by == which]
    if theirs:
        return theirs
    by_id = {one.id: one for one in going}
    unknown = (
        f"no participant and no reasoning is called {which!r}; 'mew reasoning list' lists those there are"
    )
    return [by_id[pick_id(which, by_id, what="reasoning", unknown=unknown)]]


def _end(going: dict[str, Envelope], envelope: Envelope) -> None:
    """Anyone may cancel; only its author concludes it. What is in it ends with it."""
    ended = [] if envelope.context is UNSET else [envelope.context.rpartition("/")[2]]
    for id in (*ended, *(envelope.correlation_id if envelope.context is UNSET else ())):
        start = going.get(id)
        if start is not None and (envelope.kind == Kind.REASONING_CANCEL or envelope.sender == start.sender):
            del going[id]
            for part in [
                one for one, it in going.items() if it.context is not UNSET and id in it.context.split("/")
            ]:
                del going[part]


def _thinking(start: Envelope) -> Thinking:
    message = start.content.get("message")
    since = None if start.ts is UNSET else start.ts
    return Thinking(start.id, start.sender, message if isinstance(message, str) else "", since)
