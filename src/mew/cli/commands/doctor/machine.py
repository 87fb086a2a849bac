"""What `mew doctor` checks of the machine: Python, the packages, and what the environment says."""

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Final

from mew.mcp_bridge.server.transport.confinement import ConfinementMethod, find_method

from .findings import Finding, Level

__all__ = ["machine_findings"]

_PACKAGE: Final = "mew-protocol"
_PYTHON: Final = (3, 11)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_BOUND: Final = re.compile(r"(>=|<)\s*([0-9][0-9.]*)")
_VARIABLES: Final = ("MEW_GATEWAY", "MEW_SPACE", "MEW_AS", "MEW_TOKEN", "MEW_TOKEN_FILE")


def machine_findings(environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """What there is, and what is missing."""
    yield _python()
    yield from _packages()
    yield _confinement()
    said = [name for name in _VARIABLES if environ.get(name, "").strip()]
    if said:
        names = ", ".join(said)
        yield Finding(Level.OK, "environment", f"{names} {'is' if len(said) == 1 else 'are'} set, and heeded")


def _python() -> Finding:
    is_good = sys.version_info >= _PYTHON
    wanted = ".".join(map(str, _PYTHON))
    return Finding(
        Level.OK if is_good else Level.PROBLEM,
        "Python",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "" if is_good else f"mew needs Python {wanted} or newer",
    )


def _confinement() -> Finding:
    match find_method():
        case ConfinementMethod.NAMESPACE:
            says = "MCP servers that mew starts cannot see its state (mount namespace and Landlock)"
            return Finding(Level.OK, "confinement", says)
        case ConfinementMethod.LANDLOCK:
            says = (
                "MCP servers that mew starts cannot see its state (Landlock); nor what is created later directly"
                " in your home folder or beside a space.yaml"
            )
            return Finding(Level.OK, "confinement", says)
    return Finding(
        Level.WARNING,
        "confinement",
        "MCP servers that mew starts run as you and can read your tokens",
        "run them as another user, or on Linux 5.19 or newer with Landlock",
    )


def _packages() -> Iterator[Finding]:
    try:
        mine, needed = version(_PACKAGE), requires(_PACKAGE) or []
        extras = metadata(_PACKAGE).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        yield Finding(
            Level.PROBLEM, "mew", "is not installed as a package", "install it: pip install mew-protocol"
        )
        return
    wrong = [said for one in needed if ";" not in one for said in _lacking(one)]
    wrong += [said for one in needed if _is_for_this(one) for said in _lacking(one)]
    if wrong:
        yield Finding(
            Level.PROBLEM, f"mew {mine}", "; ".join(wrong), f"install it again: pip install -U {_PACKAGE}"
        )
    else:
        yield Finding(Level.OK, f"mew {mine}", "everything it needs is installed")
    for extra in extras:
        lacks = [said for one in needed if extra in _EXTRA.findall(one) for said in _lacking(one)]
        says = f"not installed whole: {'; '.join(lacks[:3])}" if lacks else "installed"
        yield Finding(Level.OK, f"extra {extra!r}", says)


def _is_for_this(requirement: str) -> bool:
    marker = requirement.partition(";")[2]
    return "sys_platform" in marker and "extra" not in marker and sys.platform != "win32"


def _lacking(requirement: str) -> Iterator[str]:
    """What is wrong with one package, if anything."""
    found = _NAME.match(requirement)
    if found is None:
        return
    try:
        there = version(found[0])
    except PackageNotFoundError:
        yield f"{found[0]} is missing"
        return
    for mark, bound in _BOUND.findall(requirement.partition(";")[0]):
        is_less = _parts(there) < _parts(bound)
        if is_less is (mark == ">="):
            yield f"{found[0]} {there} is there, {mark}{bound} is needed"


def _parts(text: str) -> tuple[int, ...]:
    numbers = re.match(r"[0-9.]*", text)
    parts = [int(part) for part in (numbers[0] if numbers else "").split(".") if part]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
