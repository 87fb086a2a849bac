"""`mew can`: whether somebody may do something, and why, or why not."""

from typing import Annotated, Any, Final

import typer

from mew.cli.http import members
from mew.cli.locate.journal import Failed
from mew.cli.render.text import say, say_json
from mew.cli.session import Place, SaidNo, everyday
from mew.client.client import Client
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope
from mew.protocol.errors import InvalidCapability, ProtocolError
from mew.protocol.json import decode_json
from mew.protocol.visible import named

from .can_reasons import Verdict, explained, given_in, verdict_of

__all__ = ["can", "given_and_taken"]

_PAST_MAX: Final = 2_000


@everyday
def can(
    place: Place,
    participant: Annotated[str, typer.Argument(metavar="PARTICIPANT", help="Who.")],
    what: Annotated[
        str,
        typer.Argument(
            metavar="CAPABILITY", help="What: mcp/request:tools/call:write_file, chat, or a JSON object."
        ),
    ],
    to: Annotated[str | None, typer.Option("--to", metavar="NAME", help="To whom it would be sent.")] = None,
) -> None:
    """Say whether somebody may do something, and why: which capability allows it, and who gave that.

    Exit code 1: they may not, or not all of it.

    Example: mew can agent mcp/request:tools/call:write_file --to files
    """
    asked = _asked(what, to)

    async def core(me: Client) -> Verdict:
        everyone = await members(me, place.door)
        if participant not in [one["id"] for one in everyone]:
            raise SaidNo(f"{participant!r} does not belong to this space; 'mew participants' says who does")
        gifts = given_in(await given_and_taken(me), participant)
        return verdict_of(participant, asked, everyone, gifts)

    verdict = place.run(core)
    if place.json:
        say_json(verdict.as_dict())
    else:
        for line in explained(verdict):
            say(line)
    if not verdict.may:
        raise typer.Exit(1)


def _asked(what: str, to: str | None) -> Capability:
    try:
        asked: Any = decode_json(what.encode()) if what.startswith("{") else what
    except (ProtocolError, UnicodeError) as error:
        raise Failed(f"{what[:80]!r} is no JSON: {error}") from error

    try:
        written = Capability.parse(asked).source
        if to is not None:
            written["to"] = to
        return Capability.parse(written)
    except InvalidCapability as error:
        raise Failed(f"{named(what)}: {error}") from error


async def given_and_taken(me: Client) -> list[Envelope]:
    """Invitations, then what was granted and taken, each oldest first, as far as the gateway keeps it."""
    found: list[Envelope] = []
    for kind in ("capability/*", "space/*"):
        found += await me.history(kind=kind, limit=_PAST_MAX, newest_first=True).list()
    return found[::-1]
