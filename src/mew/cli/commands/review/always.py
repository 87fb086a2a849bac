"""`mew approve --always`: rules from this exact call to its widest sensible generalisation."""

import msgspec

from mew.autopilot.rule import Rung
from mew.autopilot.state import DECISION, RATIFY
from mew.cli.errors import CommandError, ExitCode
from mew.client.client import Client
from mew.protocol.visible import visible

__all__ = ["ladder_of", "ratify", "rung_in_words"]


async def ladder_of(me: Client, proposal: str) -> list[Rung]:
    """Return the rules for a proposal, narrowest first, as the autopilot offers them.

    Raises:
        CommandError: no autopilot decided about the proposal.
    """
    async for envelope in me.history(kind=DECISION, newest_first=True):
        if proposal in envelope.correlation_id:
            return msgspec.convert(envelope.content.get("ladder", []), list[Rung])
    raise CommandError(
        "no autopilot offers rules for this proposal; start one with 'mew autopilot'", ExitCode.NO
    )


def rung_in_words(rung: Rung) -> str:
    """Return the rule as a sentence, with its past."""
    past = rung.bound or f"covers {rung.approved} past approvals and {rung.rejected} rejections"
    return visible(f"{rung.sentence} ({past})")


async def ratify(me: Client, proposal: str, rung: Rung) -> None:
    """Put the chosen rule into force until somebody revokes it."""
    await me.send(RATIFY, {"proposal": proposal, "scope": rung.scope}, correlation_id=proposal)
