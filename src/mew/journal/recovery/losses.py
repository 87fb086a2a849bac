"""What a journal has lost: entries that were committed and were not there any more at a later start.

A line of JSON each, in the folder of the space. The numbers of lost entries are used again by those that follow, so
nothing in the journal itself tells that there were others.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from mew.journal.errors import translated
from mew.journal.files.folder import space_folder
from mew.journal.port import Loss

__all__ = ["LOSSES_FILE", "read_losses", "record_loss"]

LOSSES_FILE: Final = "losses.jsonl"


def read_losses(folder: Path, space: str, begin: int = 0) -> tuple[Loss, ...]:
    """Return the losses of a space in what is kept after entry `begin`, the oldest first.

    Raises:
        JournalUnavailable: the file is there and cannot be read.
    """
    path = space_folder(folder, space) / LOSSES_FILE
    with translated(path):
        lines = path.read_bytes().splitlines() if path.exists() else []
    found: list[Loss] = []
    for line in lines:
        try:
            found.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # a crash cut it off: the loss was noticed and written again
    return tuple(loss for loss in found if loss.after >= begin)


def record_loss(folder: Path, space: str, loss: Loss) -> None:
    """Append a loss to those of a space; it survives a power cut.

    Raises:
        JournalUnavailable: it may or may not have been written.
    """
    path = space_folder(folder, space) / LOSSES_FILE
    with translated(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "ab", buffering=0) as file:
            file.write(b"\n" + msgspec.json.encode(loss) + b"\n")  # also behind a line that was cut off
            os.fsync(file.fileno())


_decoder: Final = msgspec.json.Decoder(Loss)
