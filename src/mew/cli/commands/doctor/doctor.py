"""`mew doctor`: what may be wrong here, and how to mend it."""

import asyncio
from collections.abc import Iterator
from typing import Final

import typer
from rich.text import Text

from mew.cli.errors import CommandError
from mew.cli.locate.login import Login
from mew.cli.locate.space_file import NO_SPACE_FILE, SpaceFile, find_space_file
from mew.cli.render.escape import escape_lines
from mew.cli.render.text import say, say_json
from mew.cli.session import SpaceSession, session_command

from .findings import Finding, Level
from .folder import folder_findings
from .gateway import gateway_findings
from .machine import machine_findings

__all__ = ["doctor"]

_STYLES: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_WIDTH: Final = max(len(level) for level in Level)


@session_command
def doctor(session: SpaceSession) -> None:
    """Check versions, files, permissions, port, gateway, token, clock and disk, and say how to fix problems.

    Exit code 1: there is a problem.

    Example: mew doctor
    """
    found: list[Finding] = []
    for finding in findings(session):
        found.append(finding)
        if not session.json:
            say(_shown(finding))
    if session.json:
        say_json([one.as_dict() for one in found])
    problems = sum(one.level is Level.PROBLEM for one in found)
    if problems:
        if not session.json:
            say(f"\n{problems} problem{'s' if problems > 1 else ''}")
        raise typer.Exit(1)


def findings(session: SpaceSession) -> Iterator[Finding]:
    """Each as soon as it is known."""
    yield from machine_findings()
    folder: SpaceFile | None = None
    try:
        folder = find_space_file(session.options.config, session.options.wrapped)
    except CommandError as error:
        yield Finding(Level.PROBLEM, "space.yaml", str(error))
        return
    if folder is not None:
        yield from folder_findings(folder)
    login: Login | None = None
    try:
        login = session.login
    except CommandError as error:
        if folder is None and session.options.gateway is None:
            mend = "'mew init' makes one, if there is to be one; --gateway names a gateway elsewhere"
            yield Finding(Level.WARNING, "space.yaml", NO_SPACE_FILE, mend)
            return
        yield Finding(Level.PROBLEM, "who you are", str(error))
    yield from asyncio.run(gateway_findings(folder, login))


def _shown(finding: Finding) -> Text:
    style = _STYLES[finding.level]
    line = Text.assemble(
        (finding.level.ljust(_WIDTH), style), f"  {finding.about}: {escape_lines(finding.says)}"
    )
    if finding.mend:
        line.append(f"\n{' ' * _WIDTH}  → {escape_lines(finding.mend)}")
    return line
