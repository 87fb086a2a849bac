"""Ask for a passphrase at the controlling terminal: what is typed is not shown, and comes from nowhere else."""

import getpass
import os
import sys
from typing import TYPE_CHECKING, Final

from .errors import CommandError

if TYPE_CHECKING:
    from mew.gateway.auth.sealed import SealedToken

__all__ = ["new_passphrase", "unsealed"]

_TRIES: Final = 3


def unsealed(sealed: "SealedToken", who: str) -> str:
    """Ask for the passphrase of a sealed token; return the token.

    Raises:
        CommandError: there is no terminal, or no try was right.
    """
    for _ in range(_TRIES):
        token = sealed.unseal(_typed(f"Passphrase of {who}: "))
        if token is not None:
            return token
    raise CommandError(f"that is not the passphrase of {who}; nothing was done")


def new_passphrase(who: str) -> str:
    """Ask for a new passphrase, twice.

    Raises:
        CommandError: there is no terminal, it is too short, or the two differ.
    """
    from mew.gateway.auth.sealed import PASSPHRASE_CHARS_MIN  # loads what not every command needs

    chosen = _typed(f"New passphrase of {who}, at least {PASSPHRASE_CHARS_MIN} characters: ")
    if len(chosen) < PASSPHRASE_CHARS_MIN:
        raise CommandError(
            f"a passphrase has at least {PASSPHRASE_CHARS_MIN} characters; nothing was changed"
        )
    if _typed("The same again: ") != chosen:
        raise CommandError("the two differ; nothing was changed")
    return chosen


def _typed(question: str) -> str:
    if sys.platform != "win32":
        try:
            os.close(os.open("/dev/tty", os.O_RDWR))  # without one, getpass would read standard input
        except OSError:
            raise CommandError("cannot ask for the passphrase: there is no terminal") from None
    try:
        return getpass.getpass(question)
    except EOFError:
        raise CommandError("no passphrase was typed; nothing was done") from None
