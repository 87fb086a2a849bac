"""`mew page`: a link to the page of the space."""

import asyncio
import os
from dataclasses import replace
from typing import Annotated

import typer

from mew.cli.browser import open_in_browser
from mew.cli.http import secret
from mew.cli.page_link import page_link
from mew.cli.render.text import note, say, say_json
from mew.cli.session import SpaceSession, session_command

__all__ = ["page"]


@session_command
def page(
    session: SpaceSession,
    *,
    open_it: Annotated[bool, typer.Option("--open", help="Also open it in the browser.")] = False,
) -> None:
    """Print a link that signs you in on the web page of the space. It works once, within ten minutes.

    Who opens it is you there, for thirty days or until your token is another: give it to nobody else.

    Example: mew page --open
    """
    login = replace(session, decides=True).login
    link = asyncio.run(page_link(login.url, login.space, secret(login)))
    if session.json:
        say_json({"url": link})
    else:
        say(link)
    if open_it and not asyncio.run(open_in_browser(os.environ, link)):
        note("no browser was found here; open the link yourself")
