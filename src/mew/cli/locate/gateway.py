"""How a command finds the gateway, the space and the token: what is typed, then the environment, then the folder."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import parse_qs, urlsplit

import typer

from mew.cli.passphrase import unsealed

from .journal import Failed

if TYPE_CHECKING:
    from mew.gateway.auth.sealed import SealedToken

    from .space_file import Folder

    Unseal = Callable[[SealedToken, str], str]

__all__ = [
    "AsName",
    "Door",
    "Flags",
    "GatewayUrl",
    "JoinBy",
    "JoinHow",
    "NearConfig",
    "TokenFile",
    "TokenText",
    "Wrapped",
    "reach",
    "reach_as_person",
    "reach_as_reviewer",
]

GatewayUrl = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        metavar="URL",
        help="Where the gateway is, like ws://127.0.0.1:8080. Else MEW_GATEWAY, else that of the space.yaml.",
    ),
]
AsName = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="Who to be there, with the token in .mew/tokens. Else MEW_AS."),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        help="The token. Else MEW_TOKEN; others may see what is typed, so better that.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="PATH", help="A file that holds the token. Else MEW_TOKEN_FILE."),
]
NearConfig = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="PATH", help="The space.yaml. Else the nearest, here or above."),
]


class JoinHow(StrEnum):
    """How a command joins: with its token in the handshake, or in a first frame."""

    HEADER = "header"
    FRAME = "frame"


JoinBy = Annotated[
    JoinHow | None,
    typer.Option(
        "--join",
        help="How to bring the token: in the handshake, or in a first frame, as gateways of the TypeScript"
        " implementation want it. One that waits for a frame is noticed after 2 s.",
    ),
]
Wrapped = Annotated[
    str | None,
    typer.Option("--wrapped", metavar="NAME", help="The space of a server that runs under 'mew wrap'."),
]

_SCHEMES: Final = frozenset({"ws", "wss", "http", "https"})
_TOKEN_BYTES_MAX: Final = 16_384
_LOOKS_LIKE: Final = "it looks like ws://127.0.0.1:8080, and has no token in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What was typed: the options of this module, and `SpaceName` of `where`."""

    gateway: str | None = None
    space: str | None = None
    who: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    config: Path | None = None
    wrapped: str | None = None
    join: JoinHow | None = None


@dataclass(frozen=True, slots=True)
class Door:
    """Where to connect and as whom, as `mew.connect` takes it.

    `space` is None where nothing names it: that is good at a gateway with a single one. `who` is None where the
    token alone says it.
    """

    url: str
    space: str | None
    token: str | Path = field(repr=False)
    who: str | None = None


def reach(flags: Flags, *, environ: Mapping[str, str] = os.environ, here: Path | None = None) -> Door:
    """The door of a program: who it is must be said, by a name or a token.

    Raises:
        Failed: something is missing or wrong; the sentence says what to give.
    """
    return _Search(flags, environ, here or Path.cwd()).door()


def reach_as_person(
    flags: Flags,
    *,
    environ: Mapping[str, str] = os.environ,
    here: Path | None = None,
    unseal: "Unseal" = unsealed,
) -> Door:
    """The door of somebody at a terminal: where nobody is named, it is the `default_participant`, or the only one.

    Where no space is named and there is no space.yaml, it is that of the server that is wrapped now, if there is one.
    `unseal` asks for the passphrase of a sealed token.

    Raises:
        Failed: as `reach`.
    """
    return _Search(flags, environ, here or Path.cwd(), person=True, unseal=unseal).door()


def reach_as_reviewer(flags: Flags) -> Door:
    """As `reach_as_person`, but where the space.yaml names a `reviewer`, it is the reviewer.

    Raises:
        Failed: as `reach`.
    """
    return _Search(flags, os.environ, Path.cwd(), person=True, decides=True).door()


@dataclass(frozen=True, slots=True)
class _Search:
    """One search. A token goes to another machine only if it and the gateway were named in one place, or typed."""

    flags: Flags
    environ: Mapping[str, str]
    here: Path
    person: bool = False
    decides: bool = False
    unseal: "Unseal" = unsealed

    def door(self) -> Door:
        self._check()
        named = self._gateway()
        given = self._typed_token() or self._environ_token()
        if named is not None and given is not None and not self._folder_is_typed:
            return Door(named, self._space(named), _readable(given), self._who)
        folder = self._folder(named)
        if folder is None:
            assert named is not None, "no gateway, and nobody complained"
            raise Failed(f"no token for {_host(named)}; give --token-file or set MEW_TOKEN_FILE")
        url = folder.url() if named is None else named
        space = folder.space(self._space(url))
        who, token = self._token(folder, space, url, named)
        return Door(url, space, token, who)

    def _check(self) -> None:
        flags = self.flags
        if flags.token is not None and flags.token_file is not None:
            raise Failed("--token and --token-file: give one of them")
        if flags.token is not None and not flags.token.strip():
            raise Failed("--token: the token is empty")
        if flags.config is not None and flags.wrapped is not None:
            raise Failed("--config and --wrapped: give one of them")

    @property
    def _folder_is_typed(self) -> bool:
        return self.flags.config is not None or self.flags.wrapped is not None

    @property
    def _who(self) -> str | None:
        return self.flags.who or self._said("MEW_AS")

    def _said(self, name: str) -> str | None:
        return self.environ.get(name, "").strip() or None

    def _gateway(self) -> str | None:
        """As named; a space.yaml that was typed goes before a gateway of the environment."""
        source, url = "--gateway", self.flags.gateway
        if url is None and not self._folder_is_typed:
            source, url = "MEW_GATEWAY", self._said("MEW_GATEWAY")
        if url is not None and not _is_gateway(url):
            raise Failed(f"{source}: this is not the URL of a gateway; {_LOOKS_LIKE}")
        return url

    def _space(self, url: str) -> str | None:
        in_url = parse_qs(urlsplit(url).query).get("space", [None])[0]
        return self.flags.space or in_url or (None if self._folder_is_typed else self._said("MEW_SPACE"))

    def _typed_token(self) -> str | Path | None:
        return self.flags.token_file if self.flags.token is None else self.flags.token.strip()

    def _environ_token(self) -> str | Path | None:
        file = self._said("MEW_TOKEN_FILE")
        return self._said("MEW_TOKEN") or (None if file is None else Path(file))

    def _folder(self, named: str | None) -> "Folder | None":
        """Whose tokens may go to the gateway that is named; None: there is none."""
        from .space_file import nearest, typed, wrapped  # they read YAML, which takes its time

        if self._folder_is_typed:
            return typed(self.flags.config, self.flags.wrapped, self.environ)
        if named is not None and not _is_here(named):
            return None
        found = nearest(self.here, self.environ)
        if found is None and self.person and named is None:
            found = wrapped(self.environ)
        if found is None and named is None:
            raise Failed(
                "no gateway is named, and there is no space.yaml here or above; give --gateway or --config"
            )
        return found

    def _token(
        self, folder: "Folder", space: str, url: str, named: str | None
    ) -> tuple[str | None, str | Path]:
        if (token := self._typed_token()) is not None:
            return self._who, _readable(token)
        kept = folder.token(space, self.flags.who) if self.flags.who else None
        if kept is None and (token := self._environ_token()) is not None:
            if named is None and not self._folder_is_typed and not _is_here(url):
                raise Failed(
                    f"the token is of the environment, and the gateway, {_host(url)}, is named by"
                    f" {folder.file}; if they belong together, name it with --gateway"
                )
            return self._who, _readable(token)
        who = self._who or self._somebody(folder, space)
        if who is None:
            raise Failed(f"who to be in space {space!r}? give --as, one of {folder.members(space)}")
        kept = kept or folder.token(space, who)
        if kept is None:
            raise Failed(folder.why_no_token(space, who))
        return who, _readable(kept if isinstance(kept, str | Path) else self.unseal(kept, who))

    def _somebody(self, folder: "Folder", space: str) -> str | None:
        if not self.person:
            return None
        return folder.reviewer(space) if self.decides else folder.person(space)


def _readable(token: str | Path) -> str | Path:
    """The same, and a file that can be read.

    Raises:
        Failed: it cannot be, or holds nothing.
    """
    if isinstance(token, Path):
        try:
            held = token.read_bytes()[:_TOKEN_BYTES_MAX].strip()
        except OSError as error:
            raise Failed(f"{token}: the token cannot be read: {error.strerror}") from error
        if not held:
            raise Failed(f"{token}: expected a file with a token, is empty")
        return token.absolute()
    return token


def _is_gateway(url: str) -> bool:
    try:
        parts = urlsplit(url)
        secret = parts.username or parts.password or {"token", "access_token"} & parse_qs(parts.query).keys()
        return parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0 and not secret
    except ValueError:
        return False


def _is_here(url: str) -> bool:
    """Whether only this machine is there."""
    from mew.gateway.config.server_sections import is_loopback

    return is_loopback(urlsplit(url).hostname or "")


def _host(url: str) -> str:
    return urlsplit(url).netloc
