"""Which space.yaml a command is about."""

import os
from pathlib import Path

from mew.cli.reach_folder import nearest, typed
from mew.cli.where import Failed
from mew.gateway.config import Config

__all__ = ["configured"]


def configured(config: Path | None) -> Config:
    """The one that is named, or the nearest, here or above.

    Raises:
        Failed: there is none, or it is wrong.
    """
    found = nearest(Path.cwd(), os.environ) if config is None else typed(config, None, os.environ)
    if found is None:
        raise Failed(
            "there is no space.yaml here or above; make one with 'mew init', or name it with --config"
        )
    return found.config
