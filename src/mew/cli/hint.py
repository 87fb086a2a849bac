"""What to do next, where somebody typed `mew` and nothing else."""

import os
from pathlib import Path
from typing import Final

__all__ = ["hint"]

_FILES: Final = ("space.yaml", ".mew/space.yaml")


def hint(here: Path | None = None) -> str:
    """A line, from what is in this folder and above; nothing is read that takes long where there is nothing."""
    folder = here or Path.cwd()
    found = next(
        (one / name for one in (folder, *folder.parents) for name in _FILES if (one / name).is_file()), None
    )
    if found is None:
        return "There is no space.yaml here: 'mew init' writes one, and 'mew up' starts it."
    from mew.gateway.address_file import read_address

    shown = os.path.relpath(found, folder) if found.is_relative_to(folder) else found
    running = read_address(found)
    if running is None:
        return f"There is {shown}, and nothing runs for it: 'mew up' starts it."
    return f"The space of {shown} runs at {running}: 'mew tail' shows what happens, 'mew proposals' what waits for you."
