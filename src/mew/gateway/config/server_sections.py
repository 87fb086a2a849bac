"""The gateway's own sections of a `space.yaml`: `server`, `journal`, `tls`, `smtp` and `auth`."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from mew.journal.files.database import Durability
from mew.journal.port import RetentionPolicy
from mew.journal.redis.address import RedisAddress
from mew.protocol.capability import Capability

from .settings import WARN_BYTES, JournalConfig, JwtConfig, ServerConfig, SmtpConfig, SmtpSecurity, TlsConfig
from .spaces import read_capabilities
from .value import ConfigValue

__all__ = ["AUTH", "JOURNAL", "JWT", "REDIS", "SERVER", "SMTP", "TLS", "Sections", "is_loopback"]

# Only signatures whose verifier cannot forge them: with HS* whoever checks could also sign.
_ALGORITHMS: Final = frozenset(
    f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)
) | {"EdDSA"}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SMTP_PORTS: Final = {SmtpSecurity.STARTTLS: 587, SmtpSecurity.TLS: 465, SmtpSecurity.NONE: 25}
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")

AUTH: Final = frozenset({"jwt"})
REDIS: Final = frozenset({"url"})
_size: Final = partial(ConfigValue.size, least=1 << 20, most=1 << 50)
_KEEP: Final[Mapping[str, tuple[str, Callable[[ConfigValue], Any]]]] = MappingProxyType(
    {
        "keep_days": ("age", lambda node: timedelta(days=node.number(least=0.01, most=36_500))),
        "keep_entries": ("entries", partial(ConfigValue.integer, least=1_000, most=10**12)),
        "keep_bytes": ("bytes", _size),
    }
)
JOURNAL: Final = frozenset({"folder", "fsync", "sign_key", "warn_bytes"}) | frozenset(_KEEP)
TLS: Final = frozenset({"cert", "key"})
SMTP: Final = frozenset({"host", "port", "from", "security", "username", "password_env"})


def _origin(node: ConfigValue) -> str:
    """An origin as browsers write it: lower case, without the port its scheme has anyway."""
    parts = _split(node)
    if not _SCHEME.fullmatch(parts.scheme) or parts.path.strip("/") or parts.query or parts.fragment:
        raise node.error("expected an origin like 'https://example.org', is another text")
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def _web_url(node: ConfigValue) -> str:
    parts = _split(node)
    if parts.scheme not in _DEFAULT_PORTS or parts.query or parts.fragment:
        raise node.error("expected a URL like 'https://example.org', is another text")
    return node.string().rstrip("/")


def _split(node: ConfigValue) -> SplitResult:
    try:
        parts = urlsplit(node.string())
        if parts.hostname and parts.port != 0 and parts.username is None:
            return parts
    except ValueError:
        pass  # a port or an address that is none
    raise node.error("expected a URL with a host and no user, is another text")


def _network(node: ConfigValue) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(node.string())
    except ValueError:
        raise node.error("expected an address or network like '10.0.0.0/8', is another text") from None


def _audience(node: ConfigValue) -> tuple[str, ...]:
    audience = node.list_of(ConfigValue.string) if isinstance(node.value, tuple) else (node.string(),)
    if not audience:
        raise node.error("expected at least one audience, the list is empty")
    return audience


def _algorithms(node: ConfigValue) -> tuple[str, ...]:
    names = node.list_of(ConfigValue.string)
    for name, item in zip(names, node.items(), strict=True):
        if name not in _ALGORITHMS:
            raise item.error(f"expected one of {', '.join(sorted(_ALGORITHMS))}, is {name!r}")
    if not names:
        raise node.error("expected at least one algorithm, the list is empty")
    return names


SERVER: Final[Mapping[str, Callable[[ConfigValue], Any]]] = MappingProxyType(
    {
        "host": ConfigValue.string,
        "port": partial(ConfigValue.integer, least=0, most=65_535),
        "public_url": _web_url,
        "allowed_origins": lambda node: node.list_of(_origin),
        "trusted_proxies": lambda node: node.list_of(_network),
        "keepalive_s": partial(ConfigValue.number, least=1, most=3600),
        "join_timeout_s": partial(ConfigValue.number, least=0.1, most=300),
        "shutdown_grace_s": partial(ConfigValue.number, least=0, most=300),
    }
)
_JWT_READERS: Final[Mapping[str, Callable[[ConfigValue], Any]]] = MappingProxyType(
    {
        "issuer": ConfigValue.string,
        "audience": _audience,
        "algorithms": _algorithms,
        "leeway_s": partial(ConfigValue.number, least=0, most=600),
        "participant_claim": ConfigValue.string,
        "capabilities_claim": ConfigValue.string,
        "profile_claim": ConfigValue.string,
        "space_claim": ConfigValue.string,
    }
)
JWT: Final = frozenset(_JWT_READERS) | {"jwks", "profiles"}


@dataclass(frozen=True, slots=True)
class Sections:
    """Reads the sections of one file: paths in it are relative to `folder`, secrets come from `environ`."""

    folder: Path
    environ: Mapping[str, str]
    notes: list[str]

    def server(self, node: ConfigValue) -> ServerConfig:
        return ServerConfig(**node.read(SERVER))

    def journal(self, node: ConfigValue | None, usual: Path) -> JournalConfig | None:
        """Kept in the usual folder where the file says nothing; None where it says `off`."""
        if node is None:
            return JournalConfig(folder=usual)
        if node.value == "off":
            return None
        if not isinstance(node.value, Mapping):
            raise node.error("expected a mapping, or 'off' to keep nothing, is another value")
        fields = node.fields(JOURNAL)
        return JournalConfig(
            folder=self.folder / fields["folder"].string() if "folder" in fields else usual,
            fsync=fields["fsync"].choice(Durability) if "fsync" in fields else Durability.PROCESS,
            sign_key=self._file(fields["sign_key"]) if "sign_key" in fields else None,
            keep=RetentionPolicy(
                **{name: read(fields[key]) for key, (name, read) in _KEEP.items() if key in fields}
            ),
            warn_bytes=_size(fields["warn_bytes"]) if "warn_bytes" in fields else WARN_BYTES,
        )

    def redis(self, node: ConfigValue) -> RedisAddress:
        url = _required(node, REDIS, REDIS)["url"]
        try:
            return RedisAddress.parse(url.string())
        except ValueError as error:
            raise url.error(str(error)) from None

    def tls(self, node: ConfigValue) -> TlsConfig:
        fields = _required(node, TLS, TLS)
        return TlsConfig(cert=self._file(fields["cert"]), key=self._file(fields["key"]))

    def smtp(self, node: ConfigValue) -> SmtpConfig:
        fields = _required(node, SMTP, {"host", "from"})
        if ("username" in fields) != ("password_env" in fields):
            raise node.error("expected 'username' and 'password_env' together, has one of them")
        security = fields["security"].choice(SmtpSecurity) if "security" in fields else SmtpSecurity.STARTTLS
        if security is SmtpSecurity.NONE and "username" in fields:
            raise fields["security"].error(
                "'none' would send the password in clear, expected 'starttls' or 'tls'"
            )
        port = fields["port"].integer(least=1, most=65_535) if "port" in fields else _SMTP_PORTS[security]
        return SmtpConfig(
            host=fields["host"].string(),
            port=port,
            sender=fields["from"].string(),
            security=security,
            username=fields["username"].string() if "username" in fields else None,
            password=self._secret(fields["password_env"]) if "password_env" in fields else None,
        )

    def jwt(self, node: ConfigValue) -> JwtConfig | None:
        auth = node.fields(AUTH)
        if "jwt" not in auth:
            return None
        _required(auth["jwt"], JWT, {"issuer", "audience", "jwks"})
        readers = {**_JWT_READERS, "jwks": self._jwks, "profiles": self._profiles}
        jwt = JwtConfig(**auth["jwt"].read(readers))
        if jwt.profiles and jwt.profile_claim is None:
            raise auth["jwt"].error("expected 'profile_claim' beside 'profiles', has none")
        return jwt

    def _jwks(self, node: ConfigValue) -> Path | str:
        text = node.string()
        if "://" not in text:
            return self._file(node)
        parts = _split(node)
        if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            return text
        raise node.error("expected a file or an https URL, is another URL")

    def _profiles(self, node: ConfigValue) -> Mapping[str, tuple[Capability, ...]]:
        return MappingProxyType(
            {name: read_capabilities(child, self.notes) for name, child in node.entries().items()}
        )

    def _file(self, node: ConfigValue) -> Path:
        path = self.folder / node.string()
        try:
            found = path.is_file()
        except OSError as error:  # a name too long, a folder that may not be entered
            raise node.error(f"cannot be read: '{path}': {error.strerror}") from error
        if not found:
            raise node.error(f"no such file: '{path}'")
        return path

    def _secret(self, node: ConfigValue) -> str:
        name = node.string()
        if _ENVIRONMENT_NAME.fullmatch(name) is None:
            raise node.error("expected the name of an environment variable, is another text")  # the password?
        if not (secret := self.environ.get(name)):
            raise node.error(f"the environment has no '{name}'")
        return secret


def _required(
    node: ConfigValue, keys: frozenset[str], required: frozenset[str] | set[str]
) -> dict[str, ConfigValue]:
    fields = node.fields(keys)
    for key in sorted(required):
        if key not in fields:
            raise node.error(f"expected '{key}', has none")
    return fields


def is_loopback(host: str) -> bool:
    """Whether only this machine is there; of names only `localhost`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
