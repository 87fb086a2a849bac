"""Our own gateway for the kit to try, as it is or with something wrong in it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mew.conform.outcome import CheckResult
from mew.conform.roles import (
    KICKED,
    MEW_NOTATION,
    PEER_SECOND_TOKEN,
    ROLES,
    SECOND_SPACE_ROLES,
    SPARES,
    KitConfig,
    Role,
    SecondSpace,
)
from mew.conform.runner import Check, all_checks, run_checks
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway
from mew.protocol.json import encode_json

__all__ = ["TIMEOUT_S", "gateway", "named", "outcomes"]

TIMEOUT_S: Final = 0.25  # what does not come from this machine within that does not come
SPACE, SECOND = "conform", "second"


@asynccontextmanager
async def gateway(folder: Path, **sections: Any) -> AsyncIterator[KitConfig]:
    """A gateway with all that the kit may try, and where it is; with more sections of a space.yaml, or others."""
    asyncio.get_running_loop().set_debug(
        False
    )  # it makes all this four times as long, and other tests have it on
    port = _free_port()
    config = {
        "spaces": [
            {"id": SPACE, "participants": _participants()},
            {
                "id": SECOND,
                "participants": {
                    name: _participant(name, held) for name, (held, _) in SECOND_SPACE_ROLES.items()
                },
            },
        ],
        "server": {"port": 0},
        "journal": "off",
        "smtp": {"host": "127.0.0.1", "port": port, "from": "mew@example.org", "security": "none"},
        **sections,
    }
    file = folder / "space.yaml"
    file.write_text(encode_json(config).decode())  # JSON is YAML
    async with Gateway(load_config(file, {}), {}) as running:
        yield _cast(running.url, f"127.0.0.1:{port}")


def _cast(url: str, mail: str) -> KitConfig:
    roles = {name: Role(name, f"t-{name}", name) for name in (*ROLES, *SPARES, KICKED)}
    roles[PEER_SECOND_TOKEN] = Role(PEER_SECOND_TOKEN, f"t-{PEER_SECOND_TOKEN}", "peer")
    second_space = SecondSpace(SECOND, {name: roles[name] for name in SECOND_SPACE_ROLES})
    return KitConfig(
        "ws" + url.removeprefix("http"),
        SPACE,
        roles,
        url,
        timeout_s=TIMEOUT_S,
        second_space=second_space,
        mail=mail,
        notation=MEW_NOTATION,
    )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _participants() -> dict[str, Any]:
    roles = {name: capabilities for name, (capabilities, _) in ROLES.items()}
    roles |= dict.fromkeys((*SPARES, KICKED), ({"kind": "chat"},))
    return {name: _participant(name, capabilities) for name, capabilities in roles.items()}


def _participant(name: str, capabilities: Iterable[Any]) -> dict[str, Any]:
    tokens = [f"t-{name}", *([f"t-{PEER_SECOND_TOKEN}"] if name == "peer" else [])]
    return {"tokens": tokens, "capabilities": list(capabilities)}


def named(name: str) -> Check:
    """A check by its name, as in `envelopes.another_version_has_no_effect`."""
    (found,) = [check for check in all_checks() if check.name == name]
    return found


async def outcomes(config: KitConfig, *names: str) -> dict[str, CheckResult]:
    """What these checks, or all, come to."""
    results = await run_checks(config, tuple(map(named, names)) or all_checks())
    return {result.check: result for result in results}
