"""`mew participants`: who belongs to the space, who is here, and what each may do."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Column
from rich.text import Text

from mew.cli.http import members
from mew.cli.render.capability import in_words
from mew.cli.render.table import clock, console, name, put, table
from mew.cli.render.text import say_json
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.protocol.visible import named

__all__ = ["participants"]


@session_command
def participants(
    session: SpaceSession,
    *,
    here: Annotated[bool, typer.Option("--here", help="Only connected participants.")] = False,
) -> None:
    """List the participants of the space: who is connected, and what each may do.

    Example: mew participants --here
    """

    async def core(me: Client) -> Sequence[dict[str, Any]]:
        return await members(me, session.login)

    found = [one for one in session.run(core) if one["connected"] or not here]
    if session.json:
        say_json(found)
    else:
        _show(found)


def _show(found: Sequence[dict[str, Any]]) -> None:
    out = console()
    rows = table(
        out, Column("who", no_wrap=True), Column("is", overflow="fold"), Column("may", overflow="fold")
    )
    for one in found:
        rows.add_row(name(one["id"]), _state(one), Text(in_words(one["capabilities"])))
    put(out, rows)


def _state(one: dict[str, Any]) -> Text:
    state = Text("here" if one["connected"] else "away", "green" if one["connected"] else "dim")
    if one.get("paused"):
        until = one["paused"].get("until")
        when = "" if until is None else f" until {clock(datetime.fromisoformat(until).astimezone(UTC))}"
        state.append(f", paused by {named(one['paused']['by'])}{when}", "yellow")
    if one.get("shut_down"):
        state.append(", shut down", "yellow")
    return state
