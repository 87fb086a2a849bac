"""The ladder of `mew approve --always`: rules from this exact call to its widest sensible generalisation."""

from dataclasses import dataclass
from datetime import UTC, datetime

from mew.autopilot.rule import Pattern, sentence
from mew.autopilot.settings import AutopilotSettings
from mew.autopilot.state import RATIFY, AutopilotState
from mew.cli.session import SaidNo
from mew.client.client import Client
from mew.protocol.visible import visible

__all__ = ["Rung", "ladder_of", "ratify"]


@dataclass(frozen=True)
class Rung:
    """One rule that a reviewer can choose, and what it would have covered in the past."""

    pattern: Pattern
    text: str


async def ladder_of(me: Client, proposal: str) -> list[Rung]:
    """The rules for a proposal, narrowest first, as its history teaches them.

    Raises:
        SaidNo: nothing is known of the proposal.
    """
    state = AutopilotState(AutopilotSettings(min_review_s=0), me="")
    async for envelope in me.history():
        state.apply(envelope, datetime.now(UTC))
    record = state.book.get(proposal)
    if record is None:
        raise SaidNo(f"the history no longer has proposal {proposal!r}")
    group = state.case(record).group
    rungs: list[Rung] = []
    for pattern in state.ladder(record):
        approved, rejected = state.learner.past(group, pattern)
        counted = f"covers {approved} past approvals and {rejected} rejections"
        rungs.append(Rung(pattern, f"{visible(sentence(group, pattern))} ({counted})"))
    return rungs


async def ratify(me: Client, proposal: str, rung: Rung) -> None:
    """Put the chosen rule into force until somebody revokes it."""
    await me.send(RATIFY, {"proposal": proposal, "scope": rung.pattern}, correlation_id=proposal)
