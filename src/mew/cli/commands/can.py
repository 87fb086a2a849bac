"""`mew can`: whether somebody may do something, and why, or why not."""

from typing import Annotated, Any, Final

import typer

from mew.cli import completion
from mew.cli.errors import CommandError, ExitCode
from mew.cli.http import members
from mew.cli.render.text import say, say_json
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope
from mew.protocol.errors import InvalidCapability, ProtocolError
from mew.protocol.json import decode_json
from mew.protocol.visible import named

from .can_reasons import CapabilityVerdict, explained, given_in, verdict_of

__all__ = ["can", "given_and_taken"]

_PAST_MAX: Final = 2_000


@session_command
def can(
    session: SpaceSession,
    participant: Annotated[
        str,
        typer.Argument(
            metavar="PARTICIPANT", help="The participant.", autocompletion=completion.participants
        ),
    ],
    what: Annotated[
        str,
        typer.Argument(
            metavar="CAPABILITY",
            help="The capability: mcp/request:tools/call:write_file, chat, or a JSON object.",
        ),
    ],
    to: Annotated[str | None, typer.Option("--to", metavar="NAME", help="The addressee.")] = None,
) -> None:
    """Check whether a participant may do something, and why: which capability allows it, and who granted it.

    Exit code 1: they may not, or not all of it.

    Example: mew can agent mcp/request:tools/call:write_file --to files
    """
    asked = _asked(what, to)

    async def core(me: Client) -> CapabilityVerdict:
        everyone = await members(me, session.login)
        if participant not in [one["id"] for one in everyone]:
            raise CommandError(
                f"{participant!r} does not belong to this space; 'mew participants' says who does",
                ExitCode.NO,
            )
        gifts = given_in(await given_and_taken(me), participant)
        return verdict_of(participant, asked, everyone, gifts)

    verdict = session.run(core)
    if session.json:
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
        raise CommandError(f"{what[:80]!r} is no JSON: {error}") from error

    try:
        written = Capability.parse(asked).source
        if to is not None:
            written["to"] = to
        return Capability.parse(written)
    except InvalidCapability as error:
        raise CommandError(f"{named(what)}: {error}") from error


async def given_and_taken(me: Client) -> list[Envelope]:
    """Invitations, then what was granted and taken, each oldest first, as far as the gateway keeps it."""
    found: list[Envelope] = []
    for kind in ("capability/*", "space/*"):
        found += await me.history(kind=kind, limit=_PAST_MAX, newest_first=True).list()
    return found[::-1]
