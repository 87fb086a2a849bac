"""Whether somebody is held to what it holds: all that allows gets through, and nothing else."""

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from mew.protocol.visible import cut

from .cast import SPARES
from .matching import is_id, part
from .passing import heard
from .sayings import Say
from .stage import Stage
from .verdicts import NotOffered, Violation
from .wire import Actor

__all__ = ["held_to"]

_SHOWN_CHARS_MAX: Final = 200


async def held_to(
    stage: Stage,
    speaker: Actor,
    witness: Actor,
    held: Sequence[Any],
    *,
    passing: Sequence[Say],
    refused: Iterable[Say] = (),
) -> None:
    """With what the speaker holds, all of the one reaches the witness, and nothing of the other.

    Whether the speaker is told of it is another question. The first of those that pass marks the end.

    Raises:
        Violation: it is not so.
        NotOffered: it cannot be tried, as the gateway gives everyone more than was asked for.
    """
    under = f"with {cut(json.dumps(list(held)), _SHOWN_CHARS_MAX)}"
    passing = [say.completed for say in passing]
    for say, sent in [(say, await say.by(speaker)) for say in passing]:
        await heard(speaker, sent, witness, f"{say}, which {speaker.name} may send {under} (§4.1)")
    for say in refused:
        sent = await say.by(speaker)
        await stage.come_through(speaker, witness, mark=passing[0])
        if witness.heard(is_id(sent["id"])):
            await _excuse(stage, speaker, held, say)
            raise Violation(
                f"{under}, {speaker.name} may not send {say} (§4.1); {witness.name} received it: {sent['id']}"
            )


async def _excuse(stage: Stage, speaker: Actor, held: Sequence[Any], say: Say) -> None:
    """A guest may have what everyone has, and the listener shows what that is."""
    if speaker.name in stage.cast.roles and speaker.name not in SPARES:
        return
    everyone = (await stage.enter("listener")).capabilities if "listener" in stage.cast.roles else []
    for one in speaker.capabilities:
        if one not in held and one in everyone and fnmatchcase(say.kind, str(part(one, "kind"))):
            raise NotOffered(f"everyone holds {json.dumps(one)} here, so that {say} is allowed to all")
