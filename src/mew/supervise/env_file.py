"""`.mew/env`: what `${NAME}` stands for in a space.yaml and should not be written in it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mew.gateway.config.loader import ConfigError

__all__ = ["ENV_FILE", "read_env"]

ENV_FILE: Final = "env"
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_BYTES_MAX: Final = 256 << 10


def read_env(folder: Path) -> Mapping[str, str]:
    """The variables in a state folder's file, lines like `NAME=value`; none where there is no file.

    Raises:
        ConfigError: a line is none, or the file cannot be read; with its line, and without its value.
    """
    path = folder / ENV_FILE
    try:
        with path.open(encoding="utf-8") as file:
            written = file.read(_BYTES_MAX)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from None
    found: dict[str, str] = {}
    for number, line in enumerate(written.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ConfigError(f"{path}:{number}: expected NAME=value, is another text")
        found[match[1]] = _unquoted(match[2].strip())
    return found


def _unquoted(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
