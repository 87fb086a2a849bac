"""`mew send`: any envelope, and chat in short."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import typer

from mew.cli import completion
from mew.cli.arguments import read_object, read_pairs, read_text
from mew.cli.errors import CommandError
from mew.cli.render.ids import short
from mew.cli.render.text import note, say, say_json
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.client.errors import Unanswered
from mew.protocol.codec import encode
from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_json
from mew.protocol.kinds import PAYLOADS, Kind
from mew.protocol.visible import named

__all__ = ["send"]

_MESSAGES: Final = frozenset({Kind.REASONING_START, Kind.REASONING_THOUGHT, Kind.REASONING_CONCLUSION})
_SEND_S: Final = 30.0


@session_command
def send(
    session: SpaceSession,
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="chat, or any other kind.", autocompletion=completion.kinds)
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT|KEY=VALUE]...",
            help="The text of a chat or a thought, or - for stdin; for other kinds, the fields of the payload.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="NAME",
            help="The addressee. May be repeated.",
            autocompletion=completion.participants,
        ),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="JSON", help="The payload as JSON, @file, or - for stdin."),
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option("--about", metavar="ID", help="An envelope it refers to. May be repeated."),
    ] = None,
    context: Annotated[str | None, typer.Option(metavar="ID", help="The context it belongs to.")] = None,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="The text of a chat is Markdown.")] = False,
) -> None:
    """Send an envelope, and print its id once it is delivered.

    Examples:
      mew send chat "Shall we?" --to agent
      git diff | mew send chat -
    """
    content = contents(kind, words or [], payload, "markdown" if markdown else "plain")

    async def core(me: Client) -> Envelope:
        for who in to or ():
            if who not in me.participants:
                note(f"{named(who)} is not here now")
        return await sent_to(me, kind, content, to or (), about or (), context)

    sent = session.run(core)
    if session.json:
        say_json(decode_json(encode(sent)))
    else:
        say(f"sent {short(sent.id)}")


def contents(
    kind: str, words: Sequence[str], payload: str | None, format: Literal["plain", "markdown"]
) -> dict[str, Any]:
    """The payload that was typed.

    Raises:
        CommandError: nothing was, or both words and a payload, or words that are not fields.
    """
    if payload is not None and words:
        raise CommandError("the payload is given by words and by --payload: give one of them")
    if payload is not None:
        return read_object("--payload", payload)
    if kind == Kind.CHAT:
        return {"text": _text(words, "the text of a chat"), "format": format}
    if kind in _MESSAGES:
        return {"message": _text(words, "what is thought")}
    if kind not in PAYLOADS and "/" not in kind:
        raise CommandError(f"{kind!r} is no kind; to say something, write: mew send chat 'TEXT'")
    return read_pairs(words)


async def sent_to(
    me: Client,
    kind: str,
    content: dict[str, Any],
    to: Sequence[str] = (),
    about: Sequence[str] = (),
    context: str | None = None,
) -> Envelope:
    """The envelope, once it was accepted.

    Raises:
        MewError: as `Client.send`.
        CommandError: the kind or an id is none.
        Unanswered: the gateway does not take it now.
    """
    try:
        async with asyncio.timeout(_SEND_S):
            return await me.send(kind, content, to=to, correlation_id=about, context=context)
    except ValueError as error:
        raise CommandError(str(error)) from error
    except TimeoutError:
        why = "you are paused" if me.paused else "there is no connection"
        raise Unanswered(f"not sent within {_SEND_S:g} s: {why}") from None


def _text(words: Sequence[str], what: str) -> str:
    if not words:
        raise CommandError(f"{what} is missing")
    return read_text("stdin", "-") if list(words) == ["-"] else " ".join(words)
