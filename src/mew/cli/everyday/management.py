"""`mew grant`, `mew revoke`, `mew invite`, `mew kick`: who may be in the space, and do what."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mew.cli.files import whole_file
from mew.cli.where import Failed
from mew.client.client import Client
from mew.client.management import Granted, Invited
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json
from mew.protocol.kinds import Kind
from mew.protocol.visible import named, visible

from .decision import short
from .lasting import Lasting, seconds_of
from .out import note, say, say_json
from .place import Place, SaidNo, everyday
from .words import in_words

__all__ = ["grant", "invite", "kick", "revoke"]

Whom = Annotated[str, typer.Argument(metavar="PARTICIPANT", help="Whom it is about.")]
Capabilities = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CAPABILITY]...",
        help="As mcp/request:tools/call:read_*, chat, or a JSON object.",
        show_default=False,
    ),
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="Why; everyone can read it.")]
_PAST_MAX: Final = 1_000
_TOKEN_CHARS_MAX: Final = 4_096


@everyday
def grant(
    place: Place,
    participant: Whom,
    capabilities: Capabilities = None,
    lasting: Lasting = None,
    message: Message = None,
) -> None:
    """Give somebody capabilities that you hold, for good or for a time.

    Example: mew grant agent mcp/request:tools/call:write_file --for 1h
    """
    if not capabilities:
        raise Failed("nothing to grant: name a capability, like mcp/request:tools/call:read_file")
    given, ttl_s = _written(capabilities), seconds_of(lasting)

    async def core(me: Client) -> Granted:
        return await me.grant(participant, *given, reason=message, ttl_s=ttl_s)

    granted = place.run(core)
    if place.json:
        fields = {"id": granted.id, "recipient": granted.recipient, "capabilities": granted.capabilities}
        say_json({**fields, "acknowledged": granted.acknowledged})
        return
    until = "" if lasting is None else f", for {lasting}"
    say(f"{named(participant)} may now {in_words(granted.capabilities)}{until}: grant {short(granted.id)}")


@everyday
def revoke(
    place: Place,
    participant: Whom,
    capabilities: Capabilities = None,
    grant_id: Annotated[
        str | None,
        typer.Option("--grant", "-g", metavar="ID", help="The grant, or as much of its id as no other has."),
    ] = None,
    message: Message = None,
) -> None:
    """Take back one grant, or everything inside these capabilities.

    Examples:
      mew revoke agent mcp/request:tools/call:write_file
      mew revoke agent --grant 3f2a91c0
    """
    if (grant_id is None) is not bool(capabilities):
        raise Failed("name either capabilities or a grant with --grant")
    taken = _written(capabilities or [])

    async def core(me: Client) -> str:
        meant = None if grant_id is None else await _grant(me, participant, grant_id)
        return (await me.revoke(participant, *taken, grant_id=meant, reason=message)).id

    sent = place.run(core)
    if place.json:
        say_json({"id": sent, "recipient": participant})
    else:
        what = in_words(taken) if taken else f"grant {grant_id}"
        say(f"taken from {named(participant)}: {what}")


@everyday
def invite(
    place: Place,
    participant: Annotated[str, typer.Argument(metavar="PARTICIPANT", help="What they will be called.")],
    capabilities: Capabilities = None,
    save_to: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="Keep the token in this file, and do not show it."
        ),
    ] = None,
    email: Annotated[
        str | None, typer.Option(help="Where the gateway is to mail the invitation, if it sends mail.")
    ] = None,
    message: Message = None,
) -> None:
    """Let somebody into the space; their token is shown once, and never again.

    Example: mew invite cat chat mcp/proposal --output cat.token
    """
    given = _written(capabilities or [])

    async def core(me: Client) -> Invited:
        return await me.invite(participant, *given, email=email, reason=message)

    if save_to is None:
        _show_invited(place, place.run(core))
        return
    with whole_file(save_to) as file:
        invited = place.run(core)
        file.write(f"{invited.token}\n".encode())
    note(f"the token is in {save_to}")
    _show_invited(place, invited, kept=True)


@everyday
def kick(place: Place, participant: Whom, message: Message = None) -> None:
    """Remove somebody from the space; they cannot come back with the token they have.

    Example: mew kick agent -m "misbehaves"
    """

    async def core(me: Client) -> str:
        return (await me.kick(participant, reason=message)).id

    sent = place.run(core)
    if place.json:
        say_json({"id": sent, "participant_id": participant})
    else:
        say(f"{named(participant)} is removed")


def _show_invited(place: Place, invited: Invited, *, kept: bool = False) -> None:
    token = {} if kept else {"token": invited.token}
    if place.json:
        where = {"participant_id": invited.participant_id, "connection_url": invited.connection_url}
        say_json({**where, **token, "email": invited.email})
        return
    say(f"{named(invited.participant_id)} may connect to {visible(invited.connection_url)}")
    if token:
        say(f"token, shown this once: {visible(invited.token, _TOKEN_CHARS_MAX)}")
    if invited.email is not None:
        say(f"mail: {visible(invited.email)}")


def _written(capabilities: Sequence[str]) -> list[Any]:
    return [_capability(one) for one in capabilities]


def _capability(written: str) -> Any:
    if not written.startswith("{"):
        return written
    try:
        return decode_json(written.encode())
    except (ProtocolError, UnicodeError) as error:
        raise Failed(f"{written[:80]!r} is no JSON: {error}") from error


async def _grant(me: Client, recipient: str, written: str) -> str:
    """The whole id of a grant, from a part of it."""
    wanted = written.removeprefix("#")
    given = await me.history(kind="capability/grant", limit=_PAST_MAX, newest_first=True).list()
    invited = await me.history(kind=Kind.INVITE, limit=_PAST_MAX, newest_first=True).list()
    known = [
        one.id
        for one in (*given, *invited)
        if recipient in (one.content.get("recipient"), one.content.get("participant_id"))
    ]
    meant = [one for one in known if one.startswith(wanted) or one.endswith(wanted)]
    if wanted in meant or not meant:
        return wanted  # the gateway may know more than it shows
    if len(meant) > 1:
        raise SaidNo(f"{written!r} could be any of {len(meant)} grants, write more of it: {', '.join(meant)}")
    return meant[0]
