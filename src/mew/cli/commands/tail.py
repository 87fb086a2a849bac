"""`mew tail`: what happens in the space, as it happens."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple, Protocol

import typer
from msgspec import UNSET

from mew.cli import completion
from mew.cli.render.table import console
from mew.cli.render.text import note, say, say_json, shown_value
from mew.cli.render.timeline import Screen
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.client.connection.feed import Filter
from mew.protocol.codec import encode
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json
from mew.protocol.kinds import Kind

__all__ = ["Picked", "follow", "last", "tail"]

_LOOK_BACK_MAX: Final = 10_000
_SHOWN_MAX: Final = 4_096


@session_command
def tail(
    session: SpaceSession,
    number: Annotated[
        int, typer.Option("--number", "-n", min=0, max=10_000, help="Show this many past envelopes first.")
    ] = 20,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            "-k",
            metavar="KIND",
            help="Only this kind, such as chat or mcp/*. May be repeated.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    sender: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Only what this participant sent. May be repeated.",
            autocompletion=completion.participants,
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this context and those below it.")
    ] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="ID", help="Only envelopes that refer to this one.")
    ] = None,
    *,
    to_me: Annotated[
        bool, typer.Option("--to-me", help="Only what is addressed to you, or to everyone.")
    ] = False,
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="Show past envelopes, and do not wait for more.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print each envelope in full, as indented JSON.")
    ] = False,
) -> None:
    """Show the last envelopes of the space, then new ones as they arrive. Stop with Ctrl-C.

    Examples:
      mew tail
      mew tail --kind "mcp/*" --from agent
      mew tail -n 100 --no-follow --json
    """
    picked = Picked(tuple(kind or ()), tuple(sender or ()), context, about, to_me)
    shown: _Shown = _lines if session.json else _whole if raw else _Readable()
    session.run(lambda me: follow(me, picked, shown, number, goes_on=not no_follow))


class Picked(NamedTuple):
    """Which envelopes; all that is given must fit."""

    kinds: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    context: str | None = None
    about: str | None = None
    to_me: bool = False

    def filter(self, me: Client) -> Filter:
        """As the live ones are picked."""
        return Filter.of(
            kind=self.kinds,
            sender=self.senders,
            context=self.context,
            to=me.id if self.to_me else None,
            about=self.about,
        )


class _Shown(Protocol):
    def __call__(self, envelope: Envelope) -> None: ...


async def follow(me: Client, picked: Picked, shown: _Shown, number: int, *, goes_on: bool = True) -> None:
    """Show the last ones that fit, then, until the connection ends, each that comes; none of them twice.

    Raises:
        InvalidCapability: a kind is no pattern.
        ConnectError: the gateway does not tell what was before.
        Disconnected: the connection ended for good.
    """
    coming = me.envelopes(
        picked.kinds or None,
        sender=picked.senders or None,
        context=picked.context,
        about=picked.about,
        to_me=picked.to_me,
    )
    async with coming:
        past = await last(me, picked, number) if number else []
        for envelope in past:
            shown(envelope)
        if not goes_on:
            return
        before = {envelope.id for envelope in past[-_SHOWN_MAX:]}
        gaps = 0
        async for envelope in coming:
            if len(me.gaps) > gaps:
                gaps = len(me.gaps)
                lost = me.gaps[-1]
                missing = "" if lost.complete else ", and something may be missing"
                note(f"-- the connection was lost and is back{missing} --")
            if envelope.id not in before and (picked.kinds or envelope.kind != Kind.WELCOME):
                shown(envelope)


async def last(me: Client, picked: Picked, number: int) -> Sequence[Envelope]:
    """The last ones that fit, oldest first; of no more than 10,000.

    Raises:
        ConnectError: the gateway does not tell.
    """
    wanted = picked.filter(me)
    found: list[Envelope] = []
    history = me.history(
        limit=_LOOK_BACK_MAX,
        kind=picked.kinds[0] if len(picked.kinds) == 1 else None,
        participant=picked.senders[0] if len(picked.senders) == 1 else None,
        newest_first=True,
    )
    async for envelope in history:
        if wanted.fits(envelope):
            found.append(envelope)
            if len(found) == number:
                break
    return found[::-1]


class _Readable:
    """A line or a few of each, coloured by participant on a terminal."""

    def __init__(self) -> None:
        self._screen = Screen(console())

    def __call__(self, envelope: Envelope) -> None:
        at = datetime.now(UTC) if envelope.ts is UNSET else envelope.ts
        self._screen.show(0, at, envelope, b"")


def _lines(envelope: Envelope) -> None:
    try:
        say_json(decode_json(encode(envelope)))
    except ProtocolError as error:
        note(f"an envelope cannot be shown: {error}")


def _whole(envelope: Envelope) -> None:
    say(shown_value(decode_json(encode(envelope))))
