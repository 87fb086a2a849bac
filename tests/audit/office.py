"""A space with something of everything that an auditor asks about, on a table with a clock that is set by hand."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.audit.kept import JudgedTable, keep, record_of
from tests.space.table import EPOCH, capabilities

from mew.audit.record.facts import Fact, facts_of
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.space import Configured, Decision, Rules, Violated

__all__ = ["OFFICE", "Office", "call", "office"]

OFFICE: Final = "office"
_RULES: Final = Rules(
    id=OFFICE,
    profiles={
        ParticipantId("ann"): capabilities(["*"]),
        ParticipantId("bob"): capabilities(["chat", "mcp/*", "capability/*"]),
        ParticipantId("bot"): capabilities(["chat", "mcp/proposal", "mcp/withdraw", "capability/grant"]),
        ParticipantId("aide"): capabilities(["chat", "mcp/proposal"]),
        ParticipantId("files"): capabilities(["chat"]),
    },
    baseline=capabilities(["mcp/response", "capability/grant-ack"]),
)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Office(JudgedTable):
    """A second passes before everything that is said."""

    def say(self, id: str, who: str, kind: str, payload: Any = None, **fields: Any) -> list[Decision]:
        self.now += timedelta(seconds=1)
        named = fields.pop("names", None)
        if named is not None:
            fields["correlation_id"] = [named] if isinstance(named, str) else named
        return self.send(who, kind, payload, id=id, **fields)

    def pass_s(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def violate(
        self, who: str, kind: str, lacked: str = "", refusal: Refusal = Refusal.CAPABILITY_VIOLATION
    ) -> None:
        self.now += timedelta(seconds=1)
        number = EnvelopeId(f"refused-{len(self.entries) + 1}")
        self.apply(Violated(ParticipantId(who), number, kind, refusal, lacked or kind))

    def facts(self) -> list[Fact]:
        """What the record says of the last entry."""
        return facts_of(record_of(self.entries[-1], self.decided[-1]))

    def keep(self, folder: Path) -> Path:
        """The journal of it, in this folder; returns that."""
        return keep(folder, self.entries, OFFICE)


def office() -> Office:
    """What is proposed, granted, taken back and refused in a day."""
    table = Office(_RULES)
    for who in ("ann", "bob", "bot", "aide", "files"):
        table.join(who)
    _propose(table)
    _ask(table)
    _grant(table)
    _manage(table)
    return table


def _propose(table: Office) -> None:
    table.say(
        "edited-proposal",
        "bot",
        "mcp/proposal",
        call("write_file", path="/etc/hosts", text="x"),
        to=["files"],
    )
    table.pass_s(20)
    table.say(
        "edited-request",
        "ann",
        "mcp/request",
        call("write_file", path="/tmp/hosts", text="x"),
        to=["files"],
        names="edited-proposal",
    )
    done = {"result": {"content": [{"type": "text", "text": "wrote 1 byte"}]}}
    table.say("edited-response", "files", "mcp/response", done, to=["ann"], names="edited-request")

    table.say("plain-proposal", "bot", "mcp/proposal", call("read_file", path="/tmp/a"))
    table.pass_s(3)
    table.say(
        "plain-request",
        "bob",
        "mcp/request",
        call("read_file", path="/tmp/a"),
        to=["files"],
        names="plain-proposal",
    )
    failed = {"error": {"code": -32000, "message": "no such file\n\x1b[31mred"}}
    table.say("plain-response", "files", "mcp/response", failed, to=["bob"], names="plain-request")

    table.say("bad-proposal", "aide", "mcp/proposal", call("delete_file", path="/"), to=["files"])
    table.pass_s(100)
    table.say("bad-reject", "bob", "mcp/reject", {"reason": "unsafe"}, to=["aide"], names="bad-proposal")
    table.say(
        "better-proposal", "aide", "mcp/proposal", call("delete_file", path="/tmp/a"), names="bad-proposal"
    )

    table.say("late-proposal", "bot", "mcp/proposal", call("read_file", path="/tmp/b"))
    table.pass_s(60)
    table.say("late-withdraw", "bot", "mcp/withdraw", {"reason": "timeout"}, names="late-proposal")


def _ask(table: Office) -> None:
    table.say("list-request", "ann", "mcp/request", {"method": "tools/list"}, to=["files"])
    table.say("list-response", "files", "mcp/response", {"result": {"tools": []}}, names="list-request")


def _grant(table: Office) -> None:
    read = "mcp/request:tools/call:read_*"
    table.say(
        "grant-bot",
        "ann",
        "capability/grant",
        {"recipient": "bot", "capabilities": [read], "reason": "20 times right"},
        to=["bot"],
    )
    table.say("ack-bot", "bot", "capability/grant-ack", {"status": "accepted"}, names="grant-bot")
    table.say(
        "grant-aide",
        "bot",
        "capability/grant",
        {"recipient": "aide", "capabilities": [f"{read}file"]},
        to=["aide"],
    )
    table.say(
        "grant-short",
        "ann",
        "capability/grant",
        {"recipient": "aide", "capabilities": ["stream/*"], "ttl_seconds": 60},
        to=["aide"],
    )
    table.wait(61)
    table.say(
        "grant-old",
        "bob",
        "capability/grant",
        {"recipient": "bot", "capabilities": ["mcp/reject"]},
        to=["bot"],
    )
    table.say(
        "grant-on",
        "bot",
        "capability/grant",
        {"recipient": "files", "capabilities": ["mcp/reject"]},
        to=["files"],
    )
    table.say(
        "revoke-old",
        "ann",
        "capability/revoke",
        {"recipient": "bot", "grant_id": "grant-old", "reason": "enough"},
        to=["bot"],
    )
    table.say(
        "revoke-chat",
        "ann",
        "capability/revoke",
        {"recipient": "files", "capabilities": ["chat"]},
        to=["files"],
    )


def _manage(table: Office) -> None:
    table.say(
        "invite-dan", "ann", "space/invite", {"participant_id": "dan", "initial_capabilities": ["chat"]}
    )
    table.say("kick-dan", "ann", "space/kick", {"participant_id": "dan", "reason": "it is late"})
    table.say("pause-bot", "ann", "participant/pause", {"timeout_seconds": 60, "reason": "lunch"}, to=["bot"])
    table.say("talk-paused", "bot", "chat", {"text": "but"})
    for _ in range(3):
        table.violate("aide", "mcp/request", "mcp/request:tools/call:delete_file")
    table.violate("files", "space/kick")
    rules = msgspec.structs.replace(table.rules, delivery="addressed")
    table.apply(Configured(rules, EPOCH))
    table.leave("files")
