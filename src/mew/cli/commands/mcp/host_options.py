"""The options that `mew mcp` and `mew wrap` have in common: where hosts are served, and how long they wait."""

import re
from typing import Annotated, Final

import typer

from mew.cli.errors import CommandError
from mew.mcp_bridge.host_profiles import ProfileName

__all__ = ["Expire", "HostKind", "HttpAddress", "Wait", "read_address"]

HttpAddress = Annotated[
    str | None,
    typer.Option(
        "--http", metavar="[HOST:]PORT", help="Serve hosts over HTTP at this address instead of stdio."
    ),
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        min=0,
        max=86_400,
        metavar="SECONDS",
        help="How long one call waits for an approval.",
    ),
]
HostKind = Annotated[
    ProfileName | None,
    typer.Option(
        "--host",
        metavar="HOST",
        help=f"Which host it is for, if it does not say so: {', '.join(ProfileName)}.",
        show_default=False,
    ),
]
Expire = Annotated[
    float,
    typer.Option(
        "--expire",
        min=1,
        max=2_592_000,
        metavar="SECONDS",
        help="A call that was not approved expires after this time.",
    ),
]

_ADDRESS: Final = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+):)?(?P<port>[0-9]{1,5})")
_PORT_MAX: Final = 65_535


def read_address(written: str) -> tuple[str, int]:
    """What `--http` says; without a host, it is this machine alone.

    Raises:
        CommandError: it is no address.
    """
    found = _ADDRESS.fullmatch(written)
    if found is None or int(found["port"]) > _PORT_MAX:
        raise CommandError(f"--http: {written!r} is no address; it looks like 127.0.0.1:8090, or 8090 alone")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])
