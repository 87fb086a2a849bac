"""Sealed tokens: derived from a passphrase, so that the disk holds only what checks them (decision 0021)."""

import base64
import hashlib
import os
import secrets
import unicodedata
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Raw, Struct

from mew.gateway.config.value import ConfigError
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_payload, encode_json

__all__ = ["PASSPHRASE_CHARS_MIN", "SealedToken", "read_sealed", "seal", "sealed_path", "write_sealed"]

PASSPHRASE_CHARS_MIN: Final = 10
"""Whoever reads a sealed file can try passphrases against it, a few per second and core."""
_SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_COST: Final = 1 << 16  # 64 MiB and about 0.2 s for each try
_BLOCK: Final = 8
_MEMORY_BYTES_MAX: Final = 257 << 20  # what the highest cost takes
_FILE_BYTES_MAX: Final = 4096

_Hex = Annotated[str, Meta(pattern="^[0-9a-f]{32,128}$")]


class SealedToken(Struct, frozen=True, forbid_unknown_fields=True):
    """What checks a token that only a passphrase gives: its hash, and how it is derived (scrypt, RFC 7914)."""

    digest: _Hex
    salt: _Hex
    cost: Annotated[int, Meta(ge=1 << 14, le=1 << 18)] = _COST

    def unseal(self, passphrase: str) -> str | None:
        """Return the token; None if the passphrase is wrong. Takes about 0.2 s, and 64 MiB of memory."""
        token = _derive(passphrase, bytes.fromhex(self.salt), self.cost)
        return token if secrets.compare_digest(_digest(token), self.digest) else None


def seal(passphrase: str) -> SealedToken:
    """Make a token that only this passphrase gives."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return SealedToken(_digest(_derive(passphrase, salt, _COST)), salt.hex())


def sealed_path(token_file: Path) -> Path:
    """The file that stands in place of a token file whose token is sealed."""
    return token_file.with_suffix(".sealed")


def read_sealed(path: Path) -> SealedToken | None:
    """Return what the file holds; None if there is none.

    Raises:
        ConfigError: it cannot be read, or holds something else.
    """
    try:
        # a pipe in the file's place must not make the gateway wait
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            return decode_payload(Raw(file.read(_FILE_BYTES_MAX)), SealedToken)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: the sealed token cannot be read: {error.strerror}") from error
    except ProtocolError as error:
        raise ConfigError(
            f"{path}: not a sealed token; set a new passphrase with 'mew token seal'"
        ) from error


def write_sealed(path: Path, sealed: SealedToken) -> None:
    """Keep a sealed token, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(encode_json(sealed))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _derive(passphrase: str, salt: bytes, cost: int) -> str:
    written = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    key = hashlib.scrypt(
        written, salt=salt, n=cost, r=_BLOCK, p=1, dklen=_KEY_BYTES, maxmem=_MEMORY_BYTES_MAX
    )
    return base64.urlsafe_b64encode(key).decode("ascii").rstrip("=")


def _digest(token: str) -> str:
    """As `hash_token` has it."""
    return hashlib.sha256(token.encode("ascii")).hexdigest()
