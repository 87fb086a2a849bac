"""What the options of `mew bridge` and `mew wrap` say about a server: how to start it, or where it is."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mew.cli.errors import CommandError
from mew.cli.locate.space_file import nearest_path
from mew.gateway.config.settings import state_dir
from mew.mcp_bridge.server.settings import Command, Endpoint, is_ours
from mew.mcp_bridge.server.transport.confinement import ConfinementMethod, find_method
from mew.mcp_bridge.wrap.state_folder import user_state_folder
from mew.protocol.visible import visible
from mew.supervise.control import sockets_folder
from mew.supervise.program import MARK

__all__ = ["UNPROTECTED", "confine", "read_root", "read_server"]

UNPROTECTED: Final = (
    "this server runs as you and can read your tokens, so it could approve its own calls"
    " (docs/explanation/security.md)"
)

_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Where a space.yaml lies in .mew itself, only this is hidden there: the rest is the user's.
_SECRETS: Final = ("tokens", "mcp", "bridge", "journal", "logs", "sessions.json", "env", "space.yaml")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:.+")


def read_server(
    words: Sequence[str],
    *,
    env: Sequence[str],
    cwd: Path | None,
    headers: Sequence[str],
    environ: Mapping[str, str],
) -> Command | Endpoint:
    """
    Raises:
        CommandError: there is no server in it, or an option that it cannot have; no value is shown.
    """
    if not words:
        raise CommandError(
            "which server? give a URL, or a command after --, as in: mew bridge -- mcp-server-time"
        )
    if len(words) == 1 and words[0].startswith(("http://", "https://")):
        if env or cwd is not None:
            raise CommandError("--env and --cwd are for a server that is started here, not for one at a URL")
        return Endpoint(url=_url(words[0]), headers=dict(_header(written, environ) for written in headers))
    if headers:
        raise CommandError(
            "--header is for a server at a URL, and not for one that is started here; use --env"
        )
    if cwd is not None and not cwd.is_dir():
        raise CommandError(f"--cwd: there is no folder {cwd}")
    environment = dict(_variable(written, environ) for written in env)
    _find(words[0], environment.get("PATH", environ.get("PATH")), cwd)
    return Command(program=words[0], arguments=words[1:], environment=environment, directory=cwd)


def confine(
    server: Command | Endpoint, *, token: str | Path | None, environ: Mapping[str, str], here: Path
) -> Command | Endpoint:
    """Return the server as one that cannot see our state; unchanged where this system offers no way to do that."""
    if isinstance(server, Endpoint) or find_method() is ConfinementMethod.NONE:
        return server
    return replace(server, hidden=[*_state(environ, here), *([token] if isinstance(token, Path) else [])])


def _state(environ: Mapping[str, str], here: Path) -> Iterator[Path]:
    """The user's own state, that of the nearest space.yaml, and that of the `mew up` we run under."""
    with suppress(ValueError):  # no home: nothing is kept there
        yield user_state_folder(environ)
    if os.name == "posix":
        yield sockets_folder()
    file = nearest_path(here)
    if file is not None:
        yield file
    for folder in {environ.get(MARK), None if file is None else str(state_dir(file))} - {None, ""}:
        state = Path(str(folder))
        if (state / "space.yaml").exists():
            yield from (state / name for name in _SECRETS)
        else:
            yield state


def read_root(written: str) -> str:
    """A URI; that of a folder where it is a path."""
    return written if _URI.fullmatch(written) else Path(written).absolute().as_uri()


def _url(written: str) -> str:
    try:
        parts = urlsplit(written)
        is_good = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    else:
        if parts.username or parts.password:
            raise CommandError(
                "a user or password in the URL of the server: give it with --header, from a variable"
            )
    if not is_good:
        raise CommandError("that is not the URL of a server; it looks like https://example.org/mcp")
    return written


def _variable(written: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, mark, value = written.partition("=")
    if not name:
        raise CommandError("--env: expected NAME=VALUE, or NAME")
    if is_ours(name):
        raise CommandError(f"--env {visible(name)}: variables of ours are not passed on to a server")
    if not mark and name not in environ:
        raise CommandError(f"--env {visible(name)}: there is no such variable here; give it a value with =")
    return name, value if mark else environ[name]


def _header(written: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, mark, value = written.partition(":")
    name = name.strip()
    if not mark or not _HEADER.fullmatch(name):
        raise CommandError("--header: expected 'NAME: VALUE'")

    def known(match: re.Match[str]) -> str:
        if match[1] not in environ:
            raise CommandError(f"--header {name}: there is no variable {visible(match[1])} here")
        return environ[match[1]]

    filled = _VARIABLE.sub(known, value).strip()
    if not filled.isascii() or not filled.isprintable():
        raise CommandError(f"--header {name}: its value has characters that a header cannot have")
    return name, filled


def _find(program: str, path: str | None, cwd: Path | None) -> None:
    """Complain early: what a system says of a program that is not there names the wrong thing as often as not."""
    has_folder = "/" in program or "\\" in program
    found = (cwd or Path()) / program if has_folder else None
    if shutil.which(program if found is None else str(found), path=path) is None:
        raise CommandError(f"there is no program {visible(program)} to start; is it installed?")
