"""`mew grant`, `mew revoke`, `mew invite`, `mew kick`: who may be in the space, and do what."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mew.cli import completion
from mew.cli.errors import CommandError
from mew.cli.files import new_file
from mew.cli.render.capability import in_words
from mew.cli.render.ids import matching, pick_id, short
from mew.cli.render.text import note, say, say_json
from mew.cli.render.times import Lasting, seconds_of
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.client.management import IssuedGrant, IssuedInvitation
from mew.protocol.kinds import Kind
from mew.protocol.visible import named, visible

from .capability_argument import read_capabilities

__all__ = ["grant", "invite", "kick", "revoke"]

Whom = Annotated[
    str,
    typer.Argument(metavar="PARTICIPANT", help="The participant.", autocompletion=completion.participants),
]
Capabilities = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CAPABILITY]...",
        help="A tool such as read_file, a capability such as mcp/request:tools/call:read_*, or a JSON object.",
        show_default=False,
    ),
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="The reason; everyone can read it.")]
_PAST_MAX: Final = 1_000
_TOKEN_CHARS_MAX: Final = 4_096


@session_command
def grant(
    session: SpaceSession,
    participant: Whom,
    capabilities: Capabilities = None,
    lasting: Lasting = None,
    message: Message = None,
) -> None:
    """Grant a participant capabilities that you hold, permanently or for a time.

    Examples:
      mew grant agent write_file --for 1h
      mew grant agent mcp/request:tools/call:write_file
    """
    if not capabilities:
        raise CommandError(
            "nothing to grant: name a tool, such as read_file, or a capability, such as mcp/proposal"
        )
    ttl_s = seconds_of(lasting)

    async def core(me: Client) -> IssuedGrant:
        given = await read_capabilities(me, capabilities)
        return await me.grant(participant, *given, reason=message, ttl_s=ttl_s)

    granted = session.run(core)
    if session.json:
        fields = {"id": granted.id, "recipient": granted.recipient, "capabilities": granted.capabilities}
        say_json({**fields, "acknowledged": granted.acknowledged})
        return
    until = "" if lasting is None else f", for {lasting}"
    say(f"{named(participant)} may now {in_words(granted.capabilities)}{until}: grant {short(granted.id)}")


@session_command
def revoke(
    session: SpaceSession,
    participant: Whom,
    capabilities: Capabilities = None,
    grant_id: Annotated[
        str | None,
        typer.Option(
            "--grant",
            "-g",
            metavar="ID",
            help="Id of the grant; its first or last 3 characters or more are enough.",
        ),
    ] = None,
    message: Message = None,
) -> None:
    """Revoke one grant, or every capability that fits a pattern.

    Examples:
      mew revoke agent write_file
      mew revoke agent --grant 3f2a91c0
    """
    if (grant_id is None) is not bool(capabilities):
        raise CommandError("name either capabilities or a grant with --grant")

    async def core(me: Client) -> tuple[str, list[Any]]:
        taken = await read_capabilities(me, capabilities or [])
        meant = None if grant_id is None else await _grant(me, participant, grant_id)
        return (await me.revoke(participant, *taken, grant_id=meant, reason=message)).id, taken

    sent, taken = session.run(core)
    if session.json:
        say_json({"id": sent, "recipient": participant})
    else:
        what = in_words(taken) if taken else f"grant {grant_id}"
        say(f"taken from {named(participant)}: {what}")


@session_command
def invite(
    session: SpaceSession,
    participant: Annotated[str, typer.Argument(metavar="PARTICIPANT", help="Name of the new participant.")],
    capabilities: Capabilities = None,
    save_to: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="Write the token to this file instead of showing it."
        ),
    ] = None,
    email: Annotated[
        str | None, typer.Option(help="Send the invitation to this address, if the gateway sends e-mail.")
    ] = None,
    message: Message = None,
) -> None:
    """Invite a participant to the space. Its token is shown only once.

    Example: mew invite cat chat mcp/proposal --output cat.token
    """

    async def core(me: Client) -> IssuedInvitation:
        given = await read_capabilities(me, capabilities or [])
        return await me.invite(participant, *given, email=email, reason=message)

    if save_to is None:
        _show_invited(session, session.run(core))
        return
    with new_file(save_to) as file:
        invited = session.run(core)
        file.write(f"{invited.token}\n".encode())
    note(f"the token is in {save_to}")
    _show_invited(session, invited, kept=True)


@session_command
def kick(session: SpaceSession, participant: Whom, message: Message = None) -> None:
    """Remove a participant from the space. Its token is no longer valid.

    Example: mew kick agent -m "misbehaves"
    """

    async def core(me: Client) -> str:
        return (await me.kick(participant, reason=message)).id

    sent = session.run(core)
    if session.json:
        say_json({"id": sent, "participant_id": participant})
    else:
        say(f"{named(participant)} is removed")


def _show_invited(session: SpaceSession, invited: IssuedInvitation, *, kept: bool = False) -> None:
    token = {} if kept else {"token": invited.token}
    if session.json:
        where = {"participant_id": invited.participant_id, "connection_url": invited.connection_url}
        say_json({**where, **token, "email": invited.email})
        return
    say(f"{named(invited.participant_id)} may connect to {visible(invited.connection_url)}")
    if token:
        say(f"token, shown this once: {visible(invited.token, _TOKEN_CHARS_MAX)}")
    if invited.email is not None:
        say(f"mail: {visible(invited.email)}")


async def _grant(me: Client, recipient: str, written: str) -> str:
    """The whole id of a grant, from a part of it."""
    given = await me.history(kind="capability/grant", limit=_PAST_MAX, newest_first=True).list()
    invited = await me.history(kind=Kind.INVITE, limit=_PAST_MAX, newest_first=True).list()
    known = [
        one.id
        for one in (*given, *invited)
        if recipient in (one.content.get("recipient"), one.content.get("participant_id"))
    ]
    if not matching(written, known):
        return written.removeprefix("#")  # the gateway may know more than it shows
    return pick_id(written, known, what="grant", unknown="")
