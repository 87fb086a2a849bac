"""`space.yaml`, read once into frozen data: what is wrong in it is named with file, line and key."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from .server_sections import AUTH, JOURNAL, JWT, REDIS, SERVER, SMTP, TLS, Sections
from .settings import Config, ServerConfig, state_dir
from .spaces import APPROVALS, AUTOPILOT, DEFAULTS, LIMITS, PARTICIPANT, SHARED, SPACE, read_spaces
from .value import ConfigError, ConfigValue
from .yaml_tree import read_tree

__all__ = ["KEYS", "Config", "ConfigError", "load_config"]

# The TypeScript implementation's, at the top of a file; its logging is our `--trace`.
_FOREIGN: Final = frozenset({"version", "gateway", "gateway_logging", "logging"})
_TOP: Final = (
    frozenset({"space", "spaces", "server", "journal", "redis", "tls", "smtp", "auth"}) | SHARED | _FOREIGN
)

KEYS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "": _TOP,
        "space": SPACE,
        "participants.ID": PARTICIPANT,
        "defaults": DEFAULTS,
        "approvals": APPROVALS,
        "autopilot": AUTOPILOT,
        "limits": frozenset(LIMITS),
        "server": frozenset(SERVER),
        "journal": JOURNAL,
        "redis": REDIS,
        "tls": TLS,
        "smtp": SMTP,
        "auth": AUTH,
        "auth.jwt": JWT,
    }
)
"""Every key a file may have, by section."""


def load_config(path: Path, environ: Mapping[str, str]) -> Config:
    """Read a `space.yaml`; the passwords it names come from the environment.

    Raises:
        ConfigError: it cannot be used; one error, the first, ready to be shown.
    """
    root = read_tree(path)
    if not isinstance(root.value, Mapping):
        raise root.error("expected a mapping with 'space' or 'spaces', is another value")
    top = root.fields(_TOP)
    notes = [_foreign(top[key]) for key in sorted(_FOREIGN & top.keys()) if key != "version"]
    file = path.absolute()
    sections = Sections(file.parent, environ, notes)
    return Config(
        file=file,
        spaces=read_spaces(top, root, notes),
        server=sections.server(top["server"]) if "server" in top else ServerConfig(),
        journal=sections.journal(top.get("journal"), state_dir(file) / "journal"),
        redis=sections.redis(top["redis"]) if "redis" in top else None,
        tls=sections.tls(top["tls"]) if "tls" in top else None,
        smtp=sections.smtp(top["smtp"]) if "smtp" in top else None,
        jwt=sections.jwt(top["auth"]) if "auth" in top else None,
        tokens_by_space="spaces" in top,
        notes=tuple(notes),
    )


def _foreign(node: ConfigValue) -> str:
    return str(node.error("the TypeScript implementation's, has no effect here"))
