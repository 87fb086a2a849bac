"""PURE. Whether a Redis keeps what it is given, by what it says of itself."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["RedisFindings", "parse_info", "review_info"]

_VERSION_MIN: Final = 7


class RedisFindings(NamedTuple):
    """What speaks against a Redis: `errors` would lose data, `warnings` may under conditions."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def parse_info(text: str) -> dict[str, str]:
    """The answer to INFO, by its names."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value.strip() for name, _, value in pairs}


def review_info(info: Mapping[str, str], *, is_ephemeral: bool = False) -> RedisFindings:
    """What is wrong with a Redis; `is_ephemeral`: the spaces may be lost when it restarts."""
    errors: list[str] = []
    warnings: list[str] = []
    version = info.get("redis_version", "0")
    if int(version.partition(".")[0] or 0) < _VERSION_MIN:
        errors.append(f"its version is {version}, at least 7.0 is needed (any Valkey will do)")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        errors.append(
            f"'maxmemory-policy' is {policy}: it would evict spaces when its memory is full; set 'noeviction'"
        )
    if info.get("aof_enabled") != "1" and not is_ephemeral:
        errors.append(
            "'appendonly' is off: a restart would lose the spaces; turn it on, or allow it with --ephemeral"
        )
    if info.get("role") == "slave":
        errors.append("it is a replica, which takes no writes; name the master")
    if int(info.get("connected_slaves", "0")) and info.get("min_slaves_good_slaves") is None:
        warnings.append(
            "replicas are connected and 'min-replicas-to-write' is 0: a failover may lose what was shown"
        )
    return RedisFindings(tuple(errors), tuple(warnings))
