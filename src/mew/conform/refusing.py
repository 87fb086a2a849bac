"""What is said must not get through: it reaches nobody, and who said it is told."""

from collections.abc import Mapping
from typing import Any

from .matching import refuses
from .sayings import Say
from .stage import Stage
from .verdicts import demand
from .wire import Actor

__all__ = ["blocked", "refused", "unheard", "unseen"]

Envelope = Mapping[str, Any]


async def refused(
    stage: Stage, speaker: Actor, sent: Envelope, *others: Actor, what: str = ""
) -> dict[str, Any]:
    """The gateway shows this to nobody, and tells the speaker so; return the error.

    Raises:
        Violation: it did something else.
    """
    what = what or f"the {sent['kind']} {sent['id']}"
    await unseen(stage, speaker, sent, *others, what=what)
    return await speaker.hear(refuses(sent), f"a system/error about {what}")


async def blocked(stage: Stage, speaker: Actor, hearer: Actor, say: Say, why: str) -> None:
    """The gateway refuses what the speaker says.

    Raises:
        Violation: it does not.
    """
    what = f"{say}, which {speaker.name} may not send {why}"
    await refused(stage, speaker, await say.by(speaker), hearer, what=what)


async def unseen(stage: Stage, speaker: Actor, sent: Envelope, *others: Actor, what: str = "") -> None:
    """Nobody of these receives what the speaker sent; the gateway may have cut it off for that.

    Raises:
        Violation: somebody did.
    """
    await stage.come_through(speaker, *others)
    what = what or f"the {sent['kind']} {sent['id']}"
    for other in others:
        seen = other.heard(lambda e: e.get("id") == sent.get("id") and e.get("kind") == sent["kind"])
        demand(not seen, f"expected that the gateway refuses {what}; {other.name} received it: {seen[:1]}")


async def unheard(stage: Stage, speaker: Actor, mark: str, what: str, *hearers: Actor) -> None:
    """Nothing with this word in it reaches them, in whatever form; errors may quote it.

    Raises:
        Violation: something does.
    """
    await stage.come_through(speaker, *hearers)
    for hearer in hearers:
        texts = [
            text
            for text, envelope in zip(hearer.texts, hearer.received, strict=True)
            if mark in text and envelope.get("kind") != "system/error"
        ]
        texts += [str(frame) for frame in hearer.frames if mark in str(frame)]
        demand(not texts, f"{what} must reach no one; {hearer.name} received {''.join(texts[:1])}")
