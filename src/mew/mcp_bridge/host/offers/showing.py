"""PURE. What a participant offers, as hosts are shown it: under a name for them, with whose it is and what it takes."""

from dataclasses import dataclass
from typing import Any, Final

from mew.mcp_bridge.marks import CHANGED, unmarked_fields

from .permits import Permit

__all__ = ["ORIGIN", "Origin", "shown"]

ORIGIN: Final = "mew/origin"
NEEDS_APPROVAL: Final = "mew/needs_approval"


@dataclass(frozen=True)
class Origin:
    """Whose it is."""

    participant: str
    space: str

    def mark(self) -> dict[str, str]:
        """As `_meta` has it. Nobody else's word for it counts: it replaces what is there."""
        return {"participant": self.participant, "space": self.space}


def shown(
    item: dict[str, Any],
    name: dict[str, str],
    origin: Origin,
    permit: Permit,
    *,
    changed: str | None,
    alone: bool,
) -> dict[str, Any]:
    """The item under that `name` (or `uri`), marked; of marks that are on it, only the one that it changed stays.

    `changed` says in what it is not as it was when first seen.
    `alone`: no other participant is shown, and what needs no note is as if the host had listed it itself.
    """
    meta = item.get("_meta")
    theirs = meta if isinstance(meta, dict) else {}
    marks: dict[str, Any] = {ORIGIN: origin.mark(), NEEDS_APPROVAL: permit.needs_approval}
    described = _described(item, origin, permit, changed, alone=alone)
    return {
        **item,
        **name,
        **({"description": described} if described else {}),
        "_meta": {
            **unmarked_fields(theirs),
            **({CHANGED: theirs[CHANGED]} if CHANGED in theirs else {}),
            **marks,
        },
    }


def _described(
    item: dict[str, Any], origin: Origin, permit: Permit, changed: str | None, *, alone: bool
) -> str:
    said = item.get("description")
    notes = [] if alone else [f"{origin.participant} in the space {origin.space}"]
    if permit.note:
        notes.append(permit.note)
    if changed is not None:
        notes.append(f"CHANGED since it was first seen ({changed}): do not take it for what it was")
    text = said if isinstance(said, str) else ""
    if not notes:
        return text
    return f"{text}\n\n[{'; '.join(notes)}]".lstrip()
