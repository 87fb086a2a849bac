"""What a configuration says, as frozen data: each part of the gateway is handed its own part of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from mew.journal.files.database import Durability
from mew.journal.port import RetentionPolicy
from mew.journal.redis.address import RedisAddress
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

from .value import ConfigValue

__all__ = [
    "WARN_BYTES",
    "Config",
    "DeliveryMode",
    "JournalConfig",
    "JwtConfig",
    "Limits",
    "ParticipantConfig",
    "ServerConfig",
    "SmtpConfig",
    "SmtpSecurity",
    "SpaceConfig",
    "TlsConfig",
    "state_dir",
]

_MIB: Final = 1 << 20
WARN_BYTES: Final = 10 << 30


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


class DeliveryMode(StrEnum):
    """Whom an envelope with `to` reaches (§8.1): everyone in the space, or those named and its sender."""

    EVERYONE = "everyone"
    ADDRESSED = "addressed"


class SmtpSecurity(StrEnum):
    """How the connection to the mail server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one space; the rate of envelopes and the outbox are a connection's, bytes a participant's."""

    envelope_bytes: int = _MIB
    frame_bytes: int = 4 * _MIB
    envelopes_per_second: int = 200
    burst: int = 400
    bytes_per_second: int = 8 * _MIB
    bytes_burst: int = 32 * _MIB
    connections_per_space: int = 1024
    connections_per_participant: int = 32
    streams_per_space: int = 256
    streams_per_participant: int = 32
    outbox_bytes: int = 8 * _MIB
    history_envelopes: int = 10_000
    history_bytes: int = 64 * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantConfig:
    """One participant. `capabilities` is None where the space's default ones apply.

    `launch` has what says how to start it, as it stands in the file; it and `tokens` may hold secrets.
    """

    id: ParticipantId
    tokens: tuple[str, ...] = field(default=(), repr=False)
    capabilities: tuple[Capability, ...] | None = None
    launch: Mapping[str, ConfigValue] = field(default_factory=_nothing, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceConfig:
    """One space. `launch` has the keys for tools that start and show it, as written.

    `unattended_approvals`: whether `mew approve --yes` may approve without asking a person. `revision`: with several
    nodes, the rules with the highest one are in force.
    """

    id: str
    name: str
    description: str = ""
    participants: Mapping[ParticipantId, ParticipantConfig] = field(default_factory=_nothing)
    default_capabilities: tuple[Capability, ...] = ()
    baseline: tuple[Capability, ...] = ()
    delivery: DeliveryMode = DeliveryMode.EVERYONE
    announce_violations: bool = False
    unattended_approvals: bool = False
    revision: int = 0
    limits: Limits = field(default_factory=Limits)
    launch: Mapping[str, ConfigValue] = field(default_factory=_nothing, repr=False, compare=False)

    def capabilities_of(self, participant: ParticipantId) -> tuple[Capability, ...]:
        """What the file gives a participant, named in it or not, beside the baseline."""
        named = self.participants.get(participant)
        if named is None or named.capabilities is None:
            return self.default_capabilities
        return named.capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the gateway listens and how it treats connections."""

    host: str = "127.0.0.1"
    port: int = 8080
    public_url: str | None = None
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    keepalive_s: float = 30.0
    join_timeout_s: float = 10.0
    shutdown_grace_s: float = 5.0

    def local_url(self, tls: "TlsConfig | None") -> str:
        """Return the address for programs on this machine, whatever stands in front of the gateway for others.

        With TLS that is `public_url` if there is one: a certificate is for a name.
        """
        if tls is not None and self.public_url is not None:
            return self.public_url.rstrip("/")
        host = _LOOPBACK.get(self.host, self.host).strip("[]")
        return f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def advertised_url(self, tls: "TlsConfig | None") -> str:
        """Return the address for everybody else: invitations and links to the page carry it."""
        return self.local_url(tls) if self.public_url is None else self.public_url.rstrip("/")


_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """The certificate chain and its key, both PEM files."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpConfig:
    """The mail server that sends invitations; `sender` is `from` in the file."""

    host: str
    port: int
    sender: str
    security: SmtpSecurity = SmtpSecurity.STARTTLS
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtConfig:
    """Whose JWTs are taken and what their claims mean. `jwks` is a file or a URL."""

    issuer: str
    audience: tuple[str, ...]
    jwks: Path | str
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    leeway_s: float = 30.0
    participant_claim: str = "sub"
    capabilities_claim: str | None = None
    profile_claim: str | None = None
    profiles: Mapping[str, tuple[Capability, ...]] = field(default_factory=_nothing)
    space_claim: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalConfig:
    """Where what happens is kept, what it survives, for how long, and from which size on a warning is due."""

    folder: Path
    fsync: Durability = Durability.PROCESS
    sign_key: Path | None = None
    keep: RetentionPolicy = field(default_factory=RetentionPolicy)
    warn_bytes: int = WARN_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole `space.yaml`. Without `journal` everything is forgotten with the process.

    `redis`: where the journals are that are shared with other nodes; then there is none in files.

    `notes` are for the log, once: what the file says without effect.
    """

    file: Path
    spaces: Mapping[str, SpaceConfig]
    server: ServerConfig = field(default_factory=ServerConfig)
    tls: TlsConfig | None = None
    smtp: SmtpConfig | None = None
    jwt: JwtConfig | None = None
    journal: JournalConfig | None = None
    redis: RedisAddress | None = field(default=None, repr=False)
    tokens_by_space: bool = False
    notes: tuple[str, ...] = ()

    @property
    def state_dir(self) -> Path:
        """Where the gateway keeps things."""
        return state_dir(self.file)


def state_dir(file: Path) -> Path:
    """Where things are kept for this file: `.mew` beside it, or its own folder if that is `.mew`."""
    folder = file.parent
    return folder if folder.name == ".mew" else folder / ".mew"
