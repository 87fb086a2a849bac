"""The policy in a file: read it, and follow it as it changes."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from mew.gateway.config.value import ConfigError, ConfigValue
from mew.gateway.config.yaml_tree import parse_tree
from mew.proposals.written_rule import CallRule, WrittenRule
from mew.protocol.errors import InvalidCapability

from .policy import CallLimit, PolicyAction, PolicySettings

__all__ = ["follow_policy", "parse_policy", "read_policy"]

_log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
_FILE_BYTES_MAX: Final = 1 << 20
_RULES: Final = ("hide", "deny", "ask", "allow")


def read_policy(path: Path) -> PolicySettings:
    """
    Raises:
        ConfigError: it cannot be read, or a rule in it is none; the text says where.
    """
    try:
        written = path.read_bytes()
        if len(written) > _FILE_BYTES_MAX:
            raise ConfigError(f"{path}: larger than {_FILE_BYTES_MAX} bytes")
        return parse_policy(written.decode("utf-8-sig"), str(path))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such file; 'mew wrap --scan -- COMMAND > FILE' writes a first one"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8") from error


def parse_policy(text: str, file: str) -> PolicySettings:
    """
    Raises:
        ConfigError: as `read_policy`.
    """
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return PolicySettings()
    fields = parse_tree(text, file).fields((*_RULES, "limits", "default"))
    rules = {name: fields[name].list_of(_rule) for name in _RULES if name in fields}
    for node in fields["hide"].items() if "hide" in fields else ():
        if "arguments" in _keys(node):
            raise node.error("a tool is hidden whatever its arguments are; use 'deny'")
    limits = fields["limits"].list_of(_limit) if "limits" in fields else ()
    default = fields["default"].choice(PolicyAction) if "default" in fields else PolicyAction.ASK
    return PolicySettings(**rules, limits=limits, default=default)


async def follow_policy(path: Path, use: Callable[[PolicySettings], None]) -> None:
    """Have the rules used whenever the file has changed, until cancelled; one that cannot be read changes nothing."""
    seen = await asyncio.to_thread(_stamp, path)
    while True:
        await asyncio.sleep(_LOOK_S)
        found = await asyncio.to_thread(_stamp, path)
        if found == seen:
            continue
        seen = found
        try:
            use(await asyncio.to_thread(read_policy, path))
        except ConfigError as error:
            _log.error("%s. The rules before stay in force.", error)
        else:
            _log.warning("%s was read again; its rules are in force", path)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _keys(node: ConfigValue) -> tuple[str, ...]:
    return tuple(node.entries()) if not isinstance(node.value, str) else ()


def _rule(node: ConfigValue) -> str | WrittenRule:
    written: str | WrittenRule = _converted(node, str | WrittenRule)
    _check(node, written)
    return written


def _limit(node: ConfigValue) -> CallLimit:
    limit: CallLimit = _converted(node, CallLimit)
    if limit.calls < 0:
        raise node.error("calls: less than 0")
    _check(node, limit)
    return limit


def _converted(node: ConfigValue, shape: Any) -> Any:
    try:
        return msgspec.convert(node.plain(), shape)
    except msgspec.ValidationError as error:
        raise node.error(str(error)) from None


def _check(node: ConfigValue, written: str | WrittenRule) -> None:
    try:
        CallRule(written)
    except InvalidCapability as error:
        raise node.error(str(error)) from None
