"""A proposal that the participant makes when it is prompted to do what it may not, and what others make of that."""

from collections.abc import Mapping
from typing import Any, Final

from mew.conform.matching import is_kind
from mew.conform.verdicts import NotOffered

from .matching import about, both, causes, payload_of
from .scenes import fresh_word
from .stage import ParticipantStage

__all__ = ["Proposed", "propose"]

Envelope = dict[str, Any]
_REJECTED: Final = ("mcp/withdraw", "chat", "mcp/response", "mcp/proposal", "reasoning/conclusion")


class Proposed:
    """What it proposed when it was prompted to do what it may not."""

    def __init__(self, stage: ParticipantStage, word: str, prompted: Envelope, proposal: Envelope) -> None:
        self.stage = stage
        self.word = word
        self.prompted = prompted
        self.proposal = proposal

    @property
    def id(self) -> str:
        return str(self.proposal["id"])

    async def reject(self, payload: Any = None, *, by: str = "reviewer") -> Envelope:
        reason = {"reason": "unsafe"} if payload is None else payload
        return await self.stage.ask("mcp/reject", reason, by=by, correlation_id=[self.id])

    async def fulfil(self, names: str | None = None) -> str:
        """Somebody makes the request for it, or for the like of another's; returns the word that its response says."""
        worker = await self.stage.worker()
        word, called = fresh_word(), len(worker.called)
        worker.reply = lambda _: {"result": {"content": [{"type": "text", "text": f"the note: {word}"}]}}
        reviewer = await self.stage.actor("reviewer")
        payload = payload_of(self.proposal)
        await reviewer.send(
            "mcp/request",
            {"jsonrpc": "2.0", "id": 1, "method": payload.get("method"), "params": payload.get("params")},
            to=[worker.id],
            correlation_id=[names or self.id],
        )
        await worker.awaited(self.stage.cast.patience_s, called + 1)
        return word

    async def reaction(self, since: int) -> Envelope | None:
        """What it does about its rejection, waited for; None: nothing that one could see."""
        return await self.stage.heard_if(self.reacts, since=since)

    def reacts(self, envelope: Mapping[str, Any]) -> bool:
        """It takes the proposal back, tells who prompted it, says something, or proposes anew."""
        if envelope.get("kind") not in _REJECTED or envelope.get("id") == self.id:
            return False
        is_about = bool({self.id, self.prompted["id"]}.intersection(causes(envelope)))
        return is_about or envelope["kind"] in ("chat", "mcp/proposal")


async def propose(stage: ParticipantStage) -> Proposed:
    """Prompt it to write a note of the worker, which it may only propose; ended when the check is over.

    Raises:
        NotOffered: it does not.
    """
    await stage.worker()
    word = fresh_word()
    since = stage.subject.place
    prompted = await stage.prompt("propose", word=word)
    proposal = await stage.heard_if(is_kind("mcp/proposal"), since=since)
    if proposal is None:
        raise NotOffered("the prompt 'propose' does not make the participant propose")
    made = Proposed(stage, word, prompted, proposal)

    async def end() -> None:
        if not stage.said(both(is_kind("mcp/withdraw"), about(proposal))):
            await made.reject()

    stage.afterwards(end)
    return made
