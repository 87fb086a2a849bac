"""A recorded space to look at: a conversation with all sorts of things in it, on a table and as a journal."""

from datetime import timedelta
from typing import Any, Final

from tests.audit.kept import JudgedTable, chat
from tests.space.table import Table, capabilities

from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.space import Configured, Decision, Deliver, Rules, Violated

__all__ = ["RULES", "SPACE", "conversation", "shown_by"]

SPACE: Final = "desk"
RULES: Final = Rules(
    id=SPACE,
    name="Desk",
    profiles={
        ParticipantId("ann"): capabilities(["*"]),
        ParticipantId("bot"): capabilities(["chat", "reasoning/*", "mcp/proposal", "stream/*"]),
        ParticipantId("files"): capabilities(["mcp/response"]),
    },
    announce_violations=True,
)
_WRITE: Final = {
    "method": "tools/call",
    "params": {"name": "write_file", "arguments": {"path": "README.md", "content": "# Desk"}},
}


class _Talk(JudgedTable):
    def say(self, who: str, kind: str, payload: Any, **fields: Any) -> list[Decision]:
        self.now += timedelta(seconds=1)
        return self.send(who, kind, payload, connection=who, **fields)


def conversation(rules: Rules = RULES) -> Table:
    """A minute and a half of work, three hours of nothing, and what happens when the gateway starts again."""
    table = _Talk(rules)
    for who in ("ann", "bot", "files"):
        table.join(who)
    _propose(table)
    _manage(table)
    request = table.space.seq + 1
    table.say("bot", "stream/request", {"direction": "upload", "description": "a log"}, id="stream-1")
    table.wait(3 * 3600)
    table.say("bot", "stream/close", {"stream_id": f"stream-{request}"}, id="close-1")
    table.apply(Configured(rules, "u"))
    for who in ("ann", "bot", "files"):
        table.leave(who)
    table.join("ann", "again")
    return table


def _propose(table: _Talk) -> None:
    table.say("ann", "chat", {"text": 'Please write a readme.\nSay "hi".'}, id="chat-1", to=["bot"])
    table.say("bot", "reasoning/start", {"message": "What is in it now?"}, id="think-1")
    table.say("bot", "reasoning/thought", {"message": "A title will do"}, id="think-2", context="think-1")
    table.say("bot", "mcp/proposal", _WRITE, id="proposal-1", to=["files"])
    table.say("ann", "mcp/reject", {"reason": "unsafe"}, id="reject-1", correlation_id=["proposal-1"])
    table.say("bot", "mcp/proposal", _WRITE, id="proposal-2", to=["files"])
    table.say("ann", "mcp/request", _WRITE, id="request-2", to=["files"], correlation_id=["proposal-2"])
    done = {"result": {"content": [{"type": "text", "text": "6 bytes"}]}}
    table.say("files", "mcp/response", done, id="response-2", to=["ann"], correlation_id=["request-2"])


def _manage(table: _Talk) -> None:
    refused = EnvelopeId("refused-1")
    table.apply(Violated(ParticipantId("bot"), refused, "mcp/request", Refusal.CAPABILITY_VIOLATION))
    granted = {
        "recipient": "bot",
        "capabilities": ["mcp/request:tools/call:read_*"],
        "ttl_seconds": 600,
    }
    table.say("ann", "capability/grant", granted, id="grant-1", to=["bot"])
    table.say("ann", "participant/pause", {"timeout_seconds": 60, "reason": "lunch"}, id="p-1", to=["bot"])
    table.say("bot", "chat", {"text": "paused, and yet I speak"}, id="refused-2")
    table.wait(60)
    table.send_batch(
        chat("batch-1", "ann", "welcome back"),
        chat("batch-2", "bot", "thanks"),
        chat("batch-3", "ann", "now invite dan"),
        origins=("ann", "bot", "ann"),
    )
    invited = {"participant_id": "dan", "initial_capabilities": ["chat"]}
    table.say("ann", "space/invite", invited, id="invite-1")


def shown_by(table: Table, after: int = 0) -> list[bytes]:
    """The envelopes that those in the space received because of entries after this one, as they were sent."""
    happened = zip(table.entries, table.decided, strict=True)
    decided = (one for entry, decisions in happened if entry.seq > after for one in decisions)
    return [raw for one in decided if isinstance(one, Deliver) for raw in one.envelopes.raws]
