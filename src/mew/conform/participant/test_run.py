"""Who takes part in the trial of a participant: it, the roles that the kit plays, and what is known of it so far."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final

from mew.conform.outcome import NotOffered
from mew.conform.participant.prompts import Prompts
from mew.conform.participant.subject import ParticipantUnderTest
from mew.conform.roles import KitConfig

__all__ = ["ROLES", "TestRun", "Traits", "allowance"]


ROLES: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "owner": ({"kind": "*"},),
        "reviewer": ({"kind": "*"},),
        "worker": ({"kind": "mcp/*"}, {"kind": "chat"}),
        "novice": (
            {"kind": "mcp/proposal"},
            {"kind": "mcp/withdraw"},
            {"kind": "chat"},
            {"kind": "reasoning/*"},
        ),
        "stranger": ({"kind": "chat"},),
    }
)
"""Whom the kit plays beside the participant, with what they may send."""

_MCP_METHODS: Final = ("initialize", "ping", "tools/list", "notifications/*")
_KINDS: Final = (
    *("chat", "chat/*", "reasoning/*", "stream/*"),
    *("mcp/proposal", "mcp/withdraw", "mcp/reject", "mcp/response"),
    *("participant/status", "participant/compact-done", "participant/resume", "capability/grant-ack"),
)
READ: Final = {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_*"}}}
_BY_PROMPT: Final = {"grant": "capability/grant", "invite": "space/invite"}


def allowance(prompts: Prompts) -> tuple[Any, ...]:
    """What the participant may send: of the tools of others it may call those that read, and propose the rest."""
    kinds = (*_KINDS, *(kind for name, kind in _BY_PROMPT.items() if name in prompts.said))
    asked = ({"kind": "mcp/request", "payload": {"method": method}} for method in _MCP_METHODS)
    return (*({"kind": kind} for kind in kinds), *asked, READ)


@dataclass(frozen=True, slots=True)
class Traits:
    """What it was seen to do when they got acquainted: what it does not, it owes nothing about."""

    first_status: Mapping[str, Any] | None = None
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers_mcp: bool = False
    remembers: bool = False
    replies: bool = False
    acknowledges: bool = False

    @property
    def answers_status(self) -> bool:
        return self.first_status is not None


@dataclass(slots=True)
class TestRun:
    """`revive` starts the participant again, where the kit can; `lost` is set when it went and did not come back."""

    __test__: ClassVar = False  # its name looks like a test's to pytest
    config: KitConfig
    subject: ParticipantUnderTest
    prompts: Prompts
    traits: Traits = field(default_factory=Traits)
    revive: Callable[[], Awaitable[None]] | None = None
    lost: bool = False
    dismissed: bool = False
    """Whether it was shut down, so that nobody may expect it back."""
    broken_since: str = ""
    """The check after which it answered nothing any more, whatever the kit did about it."""
    findings: dict[str, object] = field(default_factory=dict)
    """What a check found out at some cost, for others that need it."""

    async def presence(self) -> None:
        """Return when the participant is there.

        Raises:
            NotOffered: it is gone, and does not come back, or answers nothing any more.
        """
        subject = self.subject
        if self.broken_since:
            raise NotOffered(
                f"not tried: the participant answers nothing since the check {self.broken_since}"
            )
        if self.dismissed:  # it may be about to leave
            await subject.wait(lambda: None if subject.present else True, subject.timeout_s)
        if subject.present and not self.dismissed:
            return
        if self.revive is not None:
            await self.revive()
        elif self.dismissed:
            raise NotOffered("the participant was shut down, and the kit cannot start it again")
        came = await subject.wait(lambda: subject.present or None, 4 * subject.timeout_s)
        if came is None:
            self.lost = True
            raise NotOffered("the participant is not connected any more, so this cannot be tried")
        self.dismissed = False

    async def begin_anew(self) -> None:
        """Have a participant that answers nothing come again: started anew where the kit can, else by a new connection.

        Raises:
            NotOffered: it does not come.
        """
        subject, before = self.subject, tuple(self.subject.wires)
        if self.revive is not None:
            await self.revive()
        else:
            for wire in before:
                await wire.abort()
        came = await subject.wait(
            lambda: [one for one in subject.wires if one not in before] or None, 4 * subject.timeout_s
        )
        if came is None:
            self.lost = not subject.present
            raise NotOffered("the participant did not come again")
