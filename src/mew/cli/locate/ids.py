"""Which of several things somebody means who typed a part of its id."""

from collections.abc import Iterable
from typing import Final

from mew.cli.render.ids import PART_CHARS_MIN, matching
from mew.cli.session import SaidNo
from mew.protocol.visible import visible

__all__ = ["pick_id"]

_SHOWN_MAX: Final = 6


def pick_id(written: str, ids: Iterable[str], *, what: str, unknown: str) -> str:
    """The one id that begins or ends with what was typed. `what` is what the ids name: "proposal".

    Raises:
        SaidNo: there is none, which `unknown` says, or several: then they are listed.
    """
    meant = matching(written, ids)
    if len(meant) == 1:
        return meant[0]
    if meant:
        some = ", ".join(visible(id) for id in meant[:_SHOWN_MAX])
        more = ", …" if len(meant) > _SHOWN_MAX else ""
        raise SaidNo(f"{written!r} may be any of {len(meant)} {what}s; write more of the id: {some}{more}")
    if len(written.removeprefix("#")) < PART_CHARS_MIN:
        raise SaidNo(
            f"{written!r} is too short: write at least {PART_CHARS_MIN} characters of the {what}'s id"
        )
    raise SaidNo(unknown)
