"""Load functions compiled from C; each has a Python twin, used without a compiler or with `MEW_PURE=1`."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

__all__ = ["TWINS", "compiled_if_possible"]

Function = TypeVar("Function", bound=Callable[..., Any])

TWINS: Final[dict[str, Callable[..., Any]]] = {}
"""By name, the functions in Python that have a compiled twin."""


def _load() -> object:
    """The compiled module; None if it is not wanted, or there was no compiler when mew was installed."""
    try:
        return None if os.environ.get("MEW_PURE") else import_module("mew._speedups")
    except ImportError:
        return None


_module: Final = _load()


def compiled_if_possible(function: Function) -> Function:
    """The compiled function of the same name and signature, or this one if there is none."""
    TWINS[function.__name__] = function
    return getattr(_module, function.__name__, function)
