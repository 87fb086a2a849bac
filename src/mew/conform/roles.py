"""Who the kit may be at a gateway: a token for each role, and what the gateway must allow each to do."""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from .outcome import NotOffered

__all__ = [
    "KICKED",
    "MEW_NOTATION",
    "PEER_SECOND_TOKEN",
    "ROLES",
    "SECOND_SPACE_ROLES",
    "SPARES",
    "JoinMethod",
    "KitConfig",
    "KitConfigError",
    "PatternNotation",
    "Role",
    "SecondSpace",
    "default_http_url",
    "read_config",
]


class PatternNotation(Struct, frozen=True, forbid_unknown_fields=True):
    """Templates; one that is empty, or not given, says that the gateway has no such patterns, or nobody said how.

    `regex` is a pattern in which `{expression}` stands for the expression. `jsonpath` is a capability with `{kind}`,
    `{pattern}` for what the path must find, and `{path}`, like `$.params.name`, or `{steps}`, the same without `$`.
    """

    regex: Any = ""
    jsonpath: Any = ""

    def expression(self, expression: str) -> Any:
        """A regular expression as a pattern. It has `^` and `$`, so that it does not matter whether it is searched for.

        Raises:
            NotOffered: the gateway has none.
        """
        if not self.regex:
            raise NotOffered(
                "the kit was not told how the gateway writes regular expressions ([notation] regex)"
            )
        return _filled(self.regex, {"expression": f"^({expression})$"})

    def looking(self, kind: str, path: str, pattern: str) -> Any:
        """The capability to send this kind where a JSONPath, from the payload on, finds what fits.

        Raises:
            NotOffered: the gateway has none.
        """
        if not self.jsonpath:
            raise NotOffered("the kit was not told how the gateway writes JSONPath ([notation] jsonpath)")
        words = {"kind": kind, "path": path, "steps": path.removeprefix("$"), "pattern": pattern}
        return _filled(self.jsonpath, words)


MEW_NOTATION: Final = PatternNotation(
    "/{expression}/", {"kind": "{kind}", "payload": {"{path}": "{pattern}"}}
)
"""How a gateway of mew writes them."""


def _filled(template: Any, words: Mapping[str, str]) -> Any:
    match template:
        case str():
            for name, word in words.items():
                template = template.replace(f"{{{name}}}", word)
            return template
        case list():
            return [_filled(item, words) for item in template]
        case dict():
            return {_filled(key, words): _filled(item, words) for key, item in template.items()}
        case _:
            return template


ROLES: Final[Mapping[str, tuple[tuple[Any, ...], str]]] = {
    "owner": (({"kind": "*"},), "may do everything"),
    "peer": (
        (
            {"kind": "mcp/*"},
            {"kind": "chat"},
            {"kind": "chat/*"},
            {"kind": "reasoning/*"},
            {"kind": "participant/status"},
            {"kind": "stream/*"},
        ),
        "works with tools, but manages nobody",
    ),
    "proposer": (
        (
            {"kind": "mcp/proposal"},
            {"kind": "mcp/withdraw"},
            {"kind": "mcp/response"},
            {"kind": "reasoning/*"},
            {"kind": "chat"},
        ),
        "may propose, not request",
    ),
    "reader": (
        (
            {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_*"}}},
            {"kind": "mcp/response"},
            {"kind": "chat"},
        ),
        "may call tools that begin with read_",
    ),
    "granter": (
        (
            {"kind": "capability/grant"},
            {"kind": "capability/revoke"},
            {"kind": "mcp/proposal"},
            {"kind": "chat"},
        ),
        "may give on what it holds, which is little",
    ),
    "listener": (({"kind": "chat"},), "may chat"),
}
"""Each role with the capabilities its token must carry, neither more nor fewer, and what that means."""

SPARES: Final = ("spare-1", "spare-2")
"""Roles that may chat: they stand in for guests where the gateway cannot invite."""

KICKED: Final = "kicked"
"""Who may chat until it is kicked, for good, where the gateway cannot invite anyone to be kicked."""

PEER_SECOND_TOKEN: Final = "peer-second-token"
"""The peer once more: the same participant by another token, where the gateway knows such."""

SECOND_SPACE_ROLES: Final[Mapping[str, tuple[tuple[Any, ...], str]]] = {
    "owner": (({"kind": "*"},), "may do everything"),
    "peer": (({"kind": "chat"},), "may only chat here, though it may more in the first space"),
}
"""The roles in a second space, under the ids they have in the first."""


_PATIENCE_S_MAX: Final = 600.0


class JoinMethod(StrEnum):
    """How a token is brought: in the header (§5.2), as a subprotocol, or in a first message."""

    HEADER = "header"
    SUBPROTOCOL = "subprotocol"
    FRAME = "frame"


class KitConfigError(Exception):
    """The file cannot be used; the message says why. `missing`: it is not there at all."""

    def __init__(self, why: str, *, missing: bool = False) -> None:
        super().__init__(why)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Role:
    """A participant the kit may be. `id` is None where only the welcome tells it."""

    name: str
    token: str = field(repr=False)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class SecondSpace:
    """A second space of the same gateway, and who one may be in it."""

    space: str
    roles: Mapping[str, Role]


@dataclass(frozen=True, slots=True)
class KitConfig:
    """Where the gateway is and who one may be there. `http` is None where it has no HTTP API.

    `mail` is an address like 127.0.0.1:2525, where the kit takes the mail that the gateway sends.
    """

    url: str
    space: str
    roles: Mapping[str, Role]
    http: str | None = None
    join: JoinMethod = JoinMethod.HEADER
    timeout_s: float = 2.0
    second_space: SecondSpace | None = None
    mail: str | None = None
    notation: PatternNotation = field(default_factory=PatternNotation)


class _RoleFile(Struct, frozen=True, forbid_unknown_fields=True):
    token: str = ""
    token_file: str = ""
    token_env: str = ""
    id: str | None = None


class _SecondSpaceFile(Struct, frozen=True, forbid_unknown_fields=True):
    space: str
    roles: dict[str, _RoleFile] = {}


class _Read(Struct, frozen=True, forbid_unknown_fields=True):
    space: str
    roles: dict[str, _RoleFile]
    url: str = ""
    http: str | None = None
    join: JoinMethod = JoinMethod.HEADER
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=_PATIENCE_S_MAX)] = 2.0
    second_space: _SecondSpaceFile | None = None
    mail: str | None = None
    notation: PatternNotation = PatternNotation()


def read_config(file: Path, environ: Mapping[str, str], url: str | None = None) -> KitConfig:
    """The file, with another address if one is given.

    Raises:
        BadCast: it cannot be read, or is not complete.
    """
    try:
        read = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _Read)
    except OSError as error:
        raise KitConfigError(
            f"{file}: {error.strerror}", missing=isinstance(error, FileNotFoundError)
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise KitConfigError(f"{file}: {error}") from error
    _check_names(file, read.roles, (*ROLES, *SPARES, PEER_SECOND_TOKEN, KICKED))
    if "owner" not in read.roles:
        raise KitConfigError(f"{file}: the role 'owner' is needed")
    address = url or read.url
    if not _is_address(address, "ws", "wss"):
        raise KitConfigError(f"{address or 'no address'!r}: expected one like ws://127.0.0.1:8080")
    if read.http and not _is_address(read.http, "http", "https"):
        raise KitConfigError(f"{file}: http = {read.http!r}: expected one like http://127.0.0.1:8080")
    if read.mail is not None and not _is_address(f"smtp://{read.mail}", "smtp", port_needed=True):
        raise KitConfigError(f"{file}: mail = {read.mail!r}: expected host:port, like 127.0.0.1:2525")
    roles = {name: _role(file, name, role, environ) for name, role in read.roles.items()}
    second_space = (
        None if read.second_space is None else _second_space(file, read.second_space, roles, environ)
    )
    return KitConfig(
        address.rstrip("/"),
        read.space,
        roles,
        default_http_url(address) if read.http is None else read.http.rstrip("/") or None,
        read.join,
        read.timeout_s,
        second_space=second_space,
        mail=read.mail,
        notation=read.notation,
    )


def default_http_url(url: str) -> str:
    """Where the HTTP API of a gateway is, unless somebody says otherwise: at the address of its WebSocket."""
    return f"http{url.rstrip('/').removeprefix('ws')}"


def _is_address(url: str, *schemes: str, port_needed: bool = False) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port that is none
        return False
    return (
        parts.scheme in schemes
        and bool(parts.hostname)
        and (port is not None or not port_needed)
        and port != 0
    )


def _second_space(
    file: Path, read: _SecondSpaceFile, roles: Mapping[str, Role], environ: Mapping[str, str]
) -> SecondSpace:
    """Whose token there is not given has the one of the first space."""
    _check_names(file, read.roles, SECOND_SPACE_ROLES)
    own = {name: _role(file, name, role, environ) for name, role in read.roles.items()}
    return SecondSpace(
        read.space, {name: role for name, role in roles.items() if name in SECOND_SPACE_ROLES} | own
    )


def _check_names(file: Path, given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise KitConfigError(f"{file}: there is no role {name!r}; the roles are {', '.join(known)}")


def _role(file: Path, name: str, role: _RoleFile, environ: Mapping[str, str]) -> Role:
    token = role.token
    if role.token_env:
        token = environ.get(role.token_env, "")
    elif role.token_file:
        try:
            token = (file.parent / role.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise KitConfigError(f"{file}: the token of {name!r} cannot be read: {error}") from error
    if not token:
        raise KitConfigError(
            f"{file}: the role {name!r} has no token; give 'token', 'token_file' or 'token_env'"
        )
    return Role(name, token, role.id)
