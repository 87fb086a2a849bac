"""PURE. The name under which models and MCP hosts see what a participant offers: `files__read_file` (0010 §6).

Hosts and the APIs of models take `[A-Za-z0-9_-]{1,64}`; participants and tools may be called anything. A name depends
only on what it stands for, so it is the same tomorrow, and no two pairs have the same: a name that could be read in two
ways, is too long or has other characters ends in a hash of both.
"""

import re
from base64 import b32encode
from hashlib import sha256
from typing import Final

__all__ = ["exposed_name", "split_exposed_name"]

_BETWEEN: Final = "__"
_CHARS_MAX: Final = 64
_HASH_CHARS: Final = 16  # 80 bits: nobody finds a tool of their own that is called like another's
_PARTICIPANT_CHARS_MAX: Final = 16
_TAKEN: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{_CHARS_MAX}}}", re.ASCII)
_NOT_TAKEN: Final = re.compile(r"[^A-Za-z0-9-]+", re.ASCII)
_HASHED: Final = re.compile(rf".+{_BETWEEN}.*_[a-z2-7]{{{_HASH_CHARS}}}", re.ASCII)


def exposed_name(participant: str, name: str) -> str:
    """The name of a participant's tool or prompt for hosts and models. No other pair has the same."""
    plain = f"{participant}{_BETWEEN}{name}"
    is_clear = _TAKEN.fullmatch(plain) and plain.index(_BETWEEN) == len(participant)
    if name and is_clear and not _HASHED.fullmatch(plain):
        return plain
    return _hashed(participant, name)


def split_exposed_name(name: str) -> tuple[str, str] | None:
    """The participant and the name that an exposed name stands for; None if it ends in a hash, or is no such name."""
    participant, between, inner = name.partition(_BETWEEN)
    if not between or not participant or exposed_name(participant, inner) != name:
        return None
    return participant, inner


def _hashed(participant: str, name: str) -> str:
    """Some of both, for those who read it, and the hash, for those who compare it."""
    whole = f"{len(participant)}:{participant}{name}".encode(errors="surrogatepass")
    digest = b32encode(sha256(whole).digest()).decode().lower()[:_HASH_CHARS]
    whose = _legible(participant, _PARTICIPANT_CHARS_MAX) or "x"
    room = _CHARS_MAX - len(whose) - len(_BETWEEN) - 1 - _HASH_CHARS
    return f"{whose}{_BETWEEN}{_legible(name, room)}_{digest}"


def _legible(text: str, chars_max: int) -> str:
    return _NOT_TAKEN.sub("_", text[: 2 * chars_max])[:chars_max].strip("_")
