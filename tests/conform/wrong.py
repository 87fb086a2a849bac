"""Our own gateway for the kit to try, as it is or with something wrong in it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mew.conform.outcome import Result
from mew.conform.roles import DOOMED, ELSEWHERE, OURS, ROLES, SPARES, TWIN, Cast, Elsewhere, Role
from mew.conform.runner import Check, all_checks, run_checks
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway
from mew.protocol.json import encode_json

__all__ = ["PATIENCE_S", "gateway", "named", "outcomes"]

PATIENCE_S: Final = 0.25  # what does not come from this machine within that does not come
SPACE, SECOND = "conform", "elsewhere"


@asynccontextmanager
async def gateway(folder: Path, **sections: Any) -> AsyncIterator[Cast]:
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
                "participants": {name: _participant(name, held) for name, (held, _) in ELSEWHERE.items()},
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


def _cast(url: str, mail: str) -> Cast:
    roles = {name: Role(name, f"t-{name}", name) for name in (*ROLES, *SPARES, DOOMED)}
    roles[TWIN] = Role(TWIN, f"t-{TWIN}", "peer")
    elsewhere = Elsewhere(SECOND, {name: roles[name] for name in ELSEWHERE})
    return Cast(
        "ws" + url.removeprefix("http"),
        SPACE,
        roles,
        url,
        patience_s=PATIENCE_S,
        elsewhere=elsewhere,
        mail=mail,
        notation=OURS,
    )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _participants() -> dict[str, Any]:
    roles = {name: capabilities for name, (capabilities, _) in ROLES.items()}
    roles |= dict.fromkeys((*SPARES, DOOMED), ({"kind": "chat"},))
    return {name: _participant(name, capabilities) for name, capabilities in roles.items()}


def _participant(name: str, capabilities: Iterable[Any]) -> dict[str, Any]:
    tokens = [f"t-{name}", *([f"t-{TWIN}"] if name == "peer" else [])]
    return {"tokens": tokens, "capabilities": list(capabilities)}


def named(name: str) -> Check:
    """A check by its name, as in `envelopes.another_version_has_no_effect`."""
    (found,) = [check for check in all_checks() if check.name == name]
    return found


async def outcomes(cast: Cast, *names: str) -> dict[str, Result]:
    """What these checks, or all, come to."""
    results = await run_checks(cast, tuple(map(named, names)) or all_checks())
    return {result.check: result for result in results}
