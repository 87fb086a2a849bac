"""PURE. Ids as people see and type them: the first eight characters are shown, either end of an id may be typed."""

from collections.abc import Iterable
from typing import Final

from mew.cli.errors import CommandError, ExitCode
from mew.protocol.visible import visible

__all__ = ["ID_CHARS", "PART_CHARS_MIN", "matching", "pick_id", "short"]

ID_CHARS: Final = 8
"""How much of an id every surface shows."""
PART_CHARS_MIN: Final = 3
"""How much of an id somebody must type."""


def short(id: str) -> str:
    """The name of an envelope for people: the first characters of its id."""
    return visible(id[:ID_CHARS])


def matching(written: str, ids: Iterable[str]) -> list[str]:
    """The ids that somebody may mean: those that begin or end with `written`, with or without a `#` before it.

    The whole id, if it is longer than what is shown of one, means that id alone. A shorter one does not: participants
    choose their ids, and one could be the name under which another's proposal is shown.
    """
    wanted, known = written.removeprefix("#"), list(dict.fromkeys(ids))
    if wanted in known and len(wanted) > ID_CHARS:
        return [wanted]
    if len(wanted) < PART_CHARS_MIN:
        return [id for id in known if id == wanted]
    return [id for id in known if id.startswith(wanted) or id.endswith(wanted)]


_SHOWN_MAX: Final = 6


def pick_id(written: str, ids: Iterable[str], *, what: str, unknown: str) -> str:
    """The one id that begins or ends with what was typed. `what` is what the ids name: "proposal".

    Raises:
        CommandError: there is none, which `unknown` says, or several: then they are listed.
    """
    meant = matching(written, ids)
    if len(meant) == 1:
        return meant[0]
    if meant:
        some = ", ".join(visible(id) for id in meant[:_SHOWN_MAX])
        more = ", …" if len(meant) > _SHOWN_MAX else ""
        raise CommandError(
            f"{written!r} may be any of {len(meant)} {what}s; write more of the id: {some}{more}", ExitCode.NO
        )
    if len(written.removeprefix("#")) < PART_CHARS_MIN:
        raise CommandError(
            f"{written!r} is too short: write at least {PART_CHARS_MIN} characters of the {what}'s id",
            ExitCode.NO,
        )
    raise CommandError(unknown, ExitCode.NO)
