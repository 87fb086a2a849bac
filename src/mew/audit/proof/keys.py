"""Files with Ed25519 keys, as PEM: one to sign checkpoints with, one to check them by."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

__all__ = ["BadKey", "fingerprint", "load_private", "load_public", "make_key", "public_file"]

_KEY_BYTES_MAX: Final = 64 << 10
_OTHERS: Final = 0o077


class BadKey(Exception):
    """A file is no key that can be used; the message says why and what to do, and nothing of what is in it."""


def fingerprint(key: Ed25519PublicKey) -> str:
    """Its name: the SHA-256 of its 32 bytes, in hexadecimal."""
    return sha256(key.public_bytes_raw()).hexdigest()


def make_key(path: Path) -> Ed25519PublicKey:
    """Write a new private key, for the owner's eyes only, and beside it its public key.

    Raises:
        BadKey: one of the files is there already, or cannot be written; nothing is left of the other.
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if public_file(path).exists():
        raise BadKey(f"{public_file(path)}: is there already, and is not overwritten")
    _write(path, private, 0o600)
    try:
        _write(public_file(path), public, 0o644)
    except BadKey:
        path.unlink()  # or it would be in the way of the next attempt
        raise
    return key.public_key()


def public_file(path: Path) -> Path:
    """Where `make_key` writes the public key that belongs to this private one."""
    return path.with_name(f"{path.name}.pub")


def load_private(path: Path) -> Ed25519PrivateKey:
    """The key in a file that nobody but its owner may read.

    Raises:
        BadKey: others may read it, or it is no such key.
    """
    pem = _read(path, secret=True)
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        raise BadKey(
            f"{path}: is encrypted, and nobody is asked for the password;"
            " 'openssl pkey -in FILE -out OTHER' writes it in clear"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadKey(f"{path}: is no private key in PEM; 'mew audit key FILE' makes one") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(f"{path}: is a private key, but not an Ed25519 one; 'mew audit key FILE' makes one")
    return key


def load_public(path: Path) -> Ed25519PublicKey:
    """The public key in a file.

    Raises:
        BadKey: it cannot be read, or is no such key.
    """
    pem = _read(path)
    if b"PRIVATE KEY-----" in pem:
        raise BadKey(
            f"{path}: is a private key, which should not leave the gateway; use '{public_file(path).name}'"
        )
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise BadKey(f"{path}: is no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadKey(f"{path}: is a public key, but not an Ed25519 one")
    return key


def _read(path: Path, *, secret: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            if secret and os.name == "posix" and os.fstat(file.fileno()).st_mode & _OTHERS:
                raise BadKey(f"{path}: others may read this key; 'chmod 600 {path}', or make a new one")
            return file.read(_KEY_BYTES_MAX)
    except OSError as error:
        raise BadKey(f"{path}: {error.strerror}") from error


def _write(path: Path, pem: bytes, mode: int) -> None:
    try:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            try:
                file.write(pem)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                path.unlink()
                raise
    except FileExistsError:
        raise BadKey(f"{path}: is there already, and is not overwritten") from None
    except OSError as error:
        raise BadKey(f"{path}: {error.strerror}") from error
