"""Find the gateway, the space and the token: from the command line, then the environment, then the space.yaml."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import parse_qs, urlsplit

import typer

from mew.cli import completion
from mew.cli.errors import CommandError
from mew.cli.passphrase import unsealed

if TYPE_CHECKING:
    from mew.gateway.auth.sealed import SealedToken

    from .space_file import SpaceFile

    Unseal = Callable[[SealedToken, str], str]

__all__ = [
    "AsOption",
    "GatewayOption",
    "JoinMode",
    "JoinOption",
    "Login",
    "LoginOptions",
    "SpaceFileOption",
    "SpaceOption",
    "TokenFileOption",
    "TokenOption",
    "WrappedOption",
    "find_login",
    "find_person_login",
    "find_reviewer_login",
    "read_token",
]


class JoinMode(StrEnum):
    """How a client sends its token: in the handshake, or in a first frame."""

    HEADER = "header"
    FRAME = "frame"


GatewayOption = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        metavar="URL",
        help="URL of the gateway, such as ws://127.0.0.1:8080. Default: MEW_GATEWAY, then the space.yaml.",
    ),
]
SpaceOption = Annotated[
    str | None,
    typer.Option(
        "--space",
        "-s",
        metavar="NAME",
        help="The space; required if there are several. Default: MEW_SPACE.",
        autocompletion=completion.spaces,
    ),
]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="The participant to act as, with the token in .mew/tokens. Default: MEW_AS.",
        autocompletion=completion.participants,
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        help="The token. Other users can see command lines: prefer MEW_TOKEN or --token-file.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="PATH", help="File that holds the token. Default: MEW_TOKEN_FILE."),
]
SpaceFileOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="PATH",
        help="The space.yaml. Default: the nearest one, here or in a folder above.",
    ),
]
WrappedOption = Annotated[
    str | None,
    typer.Option(
        "--wrapped",
        metavar="NAME",
        help="Use the space of a server that runs under 'mew wrap'.",
        autocompletion=completion.wrapped_servers,
    ),
]
JoinOption = Annotated[
    JoinMode | None,
    typer.Option(
        "--join",
        help="Send the token in the handshake, or in a first frame as TypeScript gateways expect. Without this"
        " option, a gateway that waits for a first frame is recognised after 2 s.",
    ),
]

_SCHEMES: Final = frozenset({"ws", "wss", "http", "https"})
_TOKEN_BYTES_MAX: Final = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """The values of the options above."""

    gateway: str | None = None
    space: str | None = None
    who: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    config: Path | None = None
    wrapped: str | None = None
    join: JoinMode | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """Where to connect and as whom, as `mew.connect` takes it.

    `space` is None if nothing names it, which is enough for a gateway with a single space. `who` is None if only the
    token says it.
    """

    url: str
    space: str | None
    token: str | Path = field(repr=False)
    who: str | None = None


def find_login(
    options: LoginOptions, *, environ: Mapping[str, str] = os.environ, here: Path | None = None
) -> Login:
    """Find the login of a program: a name or a token must say who it is.

    Raises:
        CommandError: something is missing or wrong; the message says what to give.
    """
    return _Search(options, environ, here or Path.cwd()).login()


def find_person_login(
    options: LoginOptions,
    *,
    environ: Mapping[str, str] = os.environ,
    here: Path | None = None,
    unseal: "Unseal" = unsealed,
) -> Login:
    """Find the login of a person at a terminal: by default the `default_participant`, or the only participant.

    `unseal` asks for the passphrase of a sealed token.
    If no space is named and there is no space.yaml, use the space of the server that is wrapped now, if there is one.

    Raises:
        CommandError: as `find_login`.
    """
    return _Search(options, environ, here or Path.cwd(), is_person=True, unseal=unseal).login()


def find_reviewer_login(options: LoginOptions) -> Login:
    """Find the login of a person who decides: by default the `reviewer` of the space.yaml, else as for a person.

    Raises:
        CommandError: as `find_login`.
    """
    return _Search(options, os.environ, Path.cwd(), is_person=True, is_reviewer=True).login()


@dataclass(frozen=True, slots=True)
class _Search:
    """One search. A token goes to another machine only if one place names both it and the gateway, or it was typed."""

    options: LoginOptions
    environ: Mapping[str, str]
    here: Path
    is_person: bool = False
    is_reviewer: bool = False
    unseal: "Unseal" = unsealed

    def login(self) -> Login:
        self._check()
        named = self._gateway()
        given = self._typed_token() or self._environ_token()
        if named is not None and given is not None and not self._file_is_typed:
            return Login(named, self._space(named), _readable(given), self._who)
        file = self._space_file(named)
        if file is None:
            assert named is not None, "no gateway, and no error"
            raise CommandError(f"no token for {_host(named)}; use --token-file or set MEW_TOKEN_FILE")
        url = file.url() if named is None else named
        space = file.space(self._space(url))
        who, token = self._token(file, space, url, named)
        return Login(url, space, token, who)

    def _check(self) -> None:
        options = self.options
        if options.token is not None and options.token_file is not None:
            raise CommandError("use either --token or --token-file, not both")
        if options.token is not None and not options.token.strip():
            raise CommandError("--token: the token is empty")
        if options.config is not None and options.wrapped is not None:
            raise CommandError("use either --config or --wrapped, not both")

    @property
    def _file_is_typed(self) -> bool:
        return self.options.config is not None or self.options.wrapped is not None

    @property
    def _who(self) -> str | None:
        return self.options.who or self._variable("MEW_AS")

    def _variable(self, name: str) -> str | None:
        return self.environ.get(name, "").strip() or None

    def _gateway(self) -> str | None:
        """Return the gateway that is named; a space.yaml that was typed goes before MEW_GATEWAY."""
        source, url = "--gateway", self.options.gateway
        if url is None and not self._file_is_typed:
            source, url = "MEW_GATEWAY", self._variable("MEW_GATEWAY")
        if url is not None and not _is_gateway(url):
            raise CommandError(
                f"{source} is not the URL of a gateway; expected something like ws://127.0.0.1:8080, without a token"
            )
        return url

    def _space(self, url: str) -> str | None:
        in_url = parse_qs(urlsplit(url).query).get("space", [None])[0]
        return self.options.space or in_url or (None if self._file_is_typed else self._variable("MEW_SPACE"))

    def _typed_token(self) -> str | Path | None:
        return self.options.token_file if self.options.token is None else self.options.token.strip()

    def _environ_token(self) -> str | Path | None:
        file = self._variable("MEW_TOKEN_FILE")
        return self._variable("MEW_TOKEN") or (None if file is None else Path(file))

    def _space_file(self, named: str | None) -> "SpaceFile | None":
        """Return the space.yaml whose tokens may go to the gateway that is named; None if there is none."""
        from .space_file import (  # imports YAML, slowly
            nearest_space_file,
            read_space_file,
            wrapped_space_file,
        )

        if self._file_is_typed:
            return read_space_file(self.options.config, self.options.wrapped, self.environ)
        if named is not None and not _is_here(named):
            return None
        found = nearest_space_file(self.here, self.environ)
        if found is None and self.is_person and named is None:
            found = wrapped_space_file(self.environ)
        if found is None and named is None:
            raise CommandError(
                "no gateway: there is no space.yaml here or in a folder above; use --gateway or --config"
            )
        return found

    def _token(
        self, file: "SpaceFile", space: str, url: str, named: str | None
    ) -> tuple[str | None, str | Path]:
        if (token := self._typed_token()) is not None:
            return self._who, _readable(token)
        kept = file.token(space, self.options.who) if self.options.who else None
        if kept is None and (token := self._environ_token()) is not None:
            if named is None and not self._file_is_typed and not _is_here(url):
                raise CommandError(
                    f"the token comes from the environment, but the gateway {_host(url)} from {file.path};"
                    " if they belong together, name the gateway with --gateway"
                )
            return self._who, _readable(token)
        who = self._who or self._person(file, space)
        if who is None:
            raise CommandError(f"choose who you are in space {space!r} with --as: {file.members(space)}")
        kept = kept or file.token(space, who)
        if kept is None:
            raise CommandError(file.why_no_token(space, who))
        return who, _readable(kept if isinstance(kept, str | Path) else self.unseal(kept, who))

    def _person(self, file: "SpaceFile", space: str) -> str | None:
        if not self.is_person:
            return None
        return file.reviewer(space) if self.is_reviewer else file.person(space)


def read_token(login: Login) -> str:
    """Return the token of a login.

    Raises:
        CommandError: the file cannot be read.
    """
    if isinstance(login.token, str):
        return login.token.strip()
    try:
        return login.token.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise CommandError(f"no token: {login.token} cannot be read") from None


def _readable(token: str | Path) -> str | Path:
    """Return the token, or its file by its absolute path.

    Raises:
        CommandError: the file cannot be read, or is empty.
    """
    if isinstance(token, str):
        return token
    try:
        held = token.read_bytes()[:_TOKEN_BYTES_MAX].strip()
    except OSError as error:
        raise CommandError(f"{token}: cannot read the token: {error.strerror}") from error
    if not held:
        raise CommandError(f"{token}: expected a file with a token, but it is empty")
    return token.absolute()


def _is_gateway(url: str) -> bool:
    try:
        parts = urlsplit(url)
        secret = parts.username or parts.password or {"token", "access_token"} & parse_qs(parts.query).keys()
        return parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0 and not secret
    except ValueError:
        return False


def _is_here(url: str) -> bool:
    """Whether the URL leads to this machine only."""
    from mew.gateway.config.server_sections import is_loopback

    return is_loopback(urlsplit(url).hostname or "")


def _host(url: str) -> str:
    return urlsplit(url).netloc
