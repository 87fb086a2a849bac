"""`mew doctor`: what may be wrong here, and how to mend it."""

import asyncio
from collections.abc import Iterator
from typing import Final

import typer
from rich.text import Text

from mew.cli.locate.gateway import Door
from mew.cli.locate.journal import Failed
from mew.cli.locate.space_file import Folder
from mew.cli.locate.state_folder import NO_FOLDER, find_folder
from mew.cli.render.text import say, say_json, whole
from mew.cli.session import Place, everyday

from .findings import Finding, Level
from .folder import folder_findings
from .gateway import gateway_findings
from .machine import machine_findings

__all__ = ["doctor"]

_STYLES: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_WIDTH: Final = max(len(level) for level in Level)


@everyday
def doctor(place: Place) -> None:
    """Check versions, files, permissions, port, gateway, token, clock and disk, and say how to mend what is wrong.

    Exit code 1: there is a problem.

    Example: mew doctor
    """
    found: list[Finding] = []
    for finding in findings(place):
        found.append(finding)
        if not place.json:
            say(_shown(finding))
    if place.json:
        say_json([one.as_dict() for one in found])
    problems = sum(one.level is Level.PROBLEM for one in found)
    if problems:
        if not place.json:
            say(f"\n{problems} problem{'s' if problems > 1 else ''}")
        raise typer.Exit(1)


def findings(place: Place) -> Iterator[Finding]:
    """Each as soon as it is known."""
    yield from machine_findings()
    folder: Folder | None = None
    try:
        folder = find_folder(place.flags.config, place.flags.wrapped)
    except Failed as error:
        yield Finding(Level.PROBLEM, "space.yaml", str(error))
        return
    if folder is not None:
        yield from folder_findings(folder)
    door: Door | None = None
    try:
        door = place.door
    except Failed as error:
        if folder is None and place.flags.gateway is None:
            mend = "'mew init' makes one, if there is to be one; --gateway names a gateway elsewhere"
            yield Finding(Level.WARNING, "space.yaml", NO_FOLDER, mend)
            return
        yield Finding(Level.PROBLEM, "who you are", str(error))
    yield from asyncio.run(gateway_findings(folder, door))


def _shown(finding: Finding) -> Text:
    style = _STYLES[finding.level]
    line = Text.assemble((finding.level.ljust(_WIDTH), style), f"  {finding.about}: {whole(finding.says)}")
    if finding.mend:
        line.append(f"\n{' ' * _WIDTH}  → {whole(finding.mend)}")
    return line
