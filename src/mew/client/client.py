"""Client: a participant of a space, as an application uses it, and `connect`, which makes one."""

import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from mew.protocol.envelope import Envelope

from .caller import Caller
from .chat import About, ChatRoom
from .connection.connection import ClientConnection
from .connection.feed import Feed
from .connection.websocket import Via, WebSocketTransport, address
from .management import (
    IssuedGrant,
    IssuedInvitation,
    Management,
    ParticipantControl,
    Written,
    acknowledge_grants,
)
from .mcp.questions import Question, Questions
from .mcp.requests import tool_call
from .proposals.outcomes import Strategy
from .proposals.proposer import Proposal, ProposeOptions
from .proposals.review import Review
from .reasoning import ReasoningBlock, ReasoningMonitor
from .streams.files import Progress, Saved, Uploaded, save, upload
from .streams.stream import Stream

__all__ = ["Client", "connect"]


class Client(Caller):
    """Somebody in a space; inside `async with`, connected.

    It reconnects by itself, is replayed what it missed, and sends again what was never accepted: the application sees
    one unbroken stream. It belongs to one event loop.
    """

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__(connection)
        acknowledge_grants(connection)
        self.chats = ChatRoom(connection)
        """Chat that awaits acknowledgement, and what becomes of one's own (§3.4)."""
        self.reasonings = ReasoningMonitor(connection)
        """Who is reasoning now, and the way to stop it (§3.5.5)."""
        self.control = ParticipantControl(connection)
        """Pause, resume, ask and reset others (§3.9)."""
        self._questions = Questions(connection)
        self._management = Management(connection)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.chats.recall(self.recalled)
        self._reviews.recall(self.recalled)
        self._questions.recall(self.recalled)
        return self

    # Proposals.

    async def propose(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        target: str | None = None,
        **options: Unpack[ProposeOptions],
    ) -> Proposal:
        """Propose an MCP request that somebody else may make; awaiting the proposal gives its outcome.

        `why` is shown to reviewers. After `expires_in` seconds nobody can approve it any more, even if this process has
        ended. What has not come to an end after `timeout_s` is withdrawn: without it after `expires_in`, or else 300
        seconds. It outlives this connection: `proposal` finds it.
        """
        return await self._proposals.propose(
            method,
            params,
            target=target,
            **options,
        )

    async def propose_call(
        self,
        participant: str,
        tool: str,
        /,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[ProposeOptions],
    ) -> Proposal:
        """Propose that a tool be called, with arguments as in `call` and the other parameters of `propose`.

        Raises:
            UnknownTool: the participant lists no such tool; nothing was sent.
            ValueError, Refused, Unanswered, Disconnected: as `propose`.
        """
        params = tool_call(tool, arguments)
        options["why"] = await self._proposals.listings.check(participant, params, options.get("why"))
        return await self.propose(
            "tools/call",
            params,
            target=participant,
            **options,
        )

    async def proposal(
        self,
        proposal_id: str,
        *,
        strategy: Strategy = Strategy.FIRST_REJECT,
        timeout_s: float = inf,
    ) -> Proposal:
        """A proposal of mine that was made before, by this process or an earlier one: to follow it to its end.

        It is looked up in the book, and else at the gateway. Where it is still open, it goes on from there: a rejection
        ends it as `strategy` has it, and after `timeout_s` it is withdrawn. Leaving does not withdraw it.

        Raises:
            KeyError: nothing is known of a proposal of mine with that id.
            ConnectError: the gateway does not tell what was shown before.
            Disconnected: the connection ended for good.
        """
        return await self._proposals.proposal(proposal_id, strategy=strategy, timeout_s=timeout_s)

    def proposals(self) -> Feed[Review]:
        """The proposals that I may decide, for `async for`: those already open, and each that comes."""
        return self._reviews.proposals()

    def review(self, proposal_id: str) -> Review:
        """One proposal, to decide it; raises `KeyError` where nothing is known of it."""
        return self._reviews.review(proposal_id)

    def questions(self) -> Feed[Question]:
        """What others ask of me (`elicitation/create`), for `async for`: what is open already, and each that comes.

            async for question in me.questions():
                await question.answer(branch="main")

        As long as nobody iterates, nothing is answered in my name.
        """
        return self._questions.questions()

    @property
    def takes_questions(self) -> bool:
        """Whether somebody here iterates over `questions`."""
        return self._questions.wanted

    # Chat and reasoning.

    async def chat(
        self,
        text: str,
        *,
        to: Sequence[str] = (),
        format: Literal["plain", "markdown"] = "plain",
        about: About = (),
        context: str | None = None,
    ) -> Envelope:
        """Say something, to everyone or to some; `about` is what it refers to."""
        return await self.chats.chat(text, to=to, format=format, about=about, context=context)

    def reasoning(
        self,
        message: str,
        *,
        about: Envelope | str | None = None,
        context: ReasoningBlock | str | None = None,
        over_stream: bool = False,
    ) -> ReasoningBlock:
        """Reason so that everyone can follow, for `async with`; a `reasoning/cancel` by anyone ends the block.

            async with me.reasoning("Looking at the logs", about=request) as r:
                await r.thought("The disk was full")
                await r.conclude("Make room")

        `over_stream`: the thoughts travel on a stream, and only start and conclusion as envelopes.
        """
        open_stream: Callable[[], Any] | None = self.streams.open if over_stream else None
        return ReasoningBlock(self.connection, message, about=about, context=context, open_stream=open_stream)

    # Files, over streams.

    async def upload(
        self,
        path: str | os.PathLike[str],
        *,
        target: str | Sequence[str] | None = None,
        name: str | None = None,
        description: str | None = None,
        correlation_id: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Uploaded:
        """Send a file of any size to `target`, or to everyone; returns when who saves it has it.

        Raises:
            StreamBroken: the connection was lost on the way.
            OSError: the file cannot be read.
            Refused, Disconnected: as `send`.
        """
        return await upload(
            self.streams,
            path,
            target=target,
            name=name,
            description=description,
            correlation_id=correlation_id,
            progress=progress,
        )

    async def save(
        self, stream: Stream, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> Saved:
        """Save what comes over a stream: whole and with the right checksum, or not at all.

        Raises:
            Corrupt: it is not what was sent.
            StreamBroken: some of it was lost.
            OSError: the file cannot be written.
        """
        return await save(stream, path, progress=progress)

    # Space management (§3.6).

    async def grant(
        self,
        recipient: str,
        *capabilities: Written,
        reason: str | None = None,
        ttl_s: float | None = None,
        expires_at: datetime | None = None,
        ack_within_s: float = 5.0,
    ) -> IssuedGrant:
        """Give capabilities that I hold; returns when the recipient has acknowledged, or could not in time."""
        return await self._management.grant(
            recipient,
            *capabilities,
            reason=reason,
            ttl_s=ttl_s,
            expires_at=expires_at,
            ack_within_s=ack_within_s,
        )

    async def revoke(
        self, recipient: str, *capabilities: Written, grant_id: str | None = None, reason: str | None = None
    ) -> Envelope:
        """Take back one grant, or everything inside these capabilities; in force when this returns."""
        return await self._management.revoke(recipient, *capabilities, grant_id=grant_id, reason=reason)

    async def invite(
        self,
        participant_id: str,
        *capabilities: Written,
        email: str | None = None,
        reason: str | None = None,
    ) -> IssuedInvitation:
        """Let somebody in with these capabilities; returns the token that the gateway made for them."""
        return await self._management.invite(participant_id, *capabilities, email=email, reason=reason)

    async def kick(self, participant_id: str, *, reason: str | None = None) -> Envelope:
        """Remove somebody; returns when they have left."""
        return await self._management.kick(participant_id, reason=reason)


def connect(
    url: str | None = None,
    *,
    space: str | None = None,
    token: str | Path | None = None,
    participant: str | None = None,
    via: Via = Via.HEADER,
    tls: ssl.SSLContext | None = None,
    first_within_s: float = 0.0,
    recall: int = 0,
) -> Client:
    """Somebody in a space, for `async with`: who that is, the token says.

        async with mew.connect("ws://localhost:8080", space="demo", token=Path("ann.token")) as me:
            await me.chat("hello")

    Without a URL it is where the environment says, as under `mew up`: `MEW_GATEWAY`, `MEW_SPACE`, `MEW_TOKEN_FILE`,
    `MEW_AS`.

    `token` may be a file. `space` may be left out where the gateway serves one. `via` is how the token travels.
    `participant` is the id to join under, which other gateways than ours may need to be told.
    `first_within_s`: how long to go on trying where nobody is there yet; once connected, it reconnects by itself.
    `recall`: how many of the last envelopes of the space to look at first, so that proposals and chats that wait
    since before are known (`me.recalled` has them).

    Raises:
        ValueError: the URL is not one of a gateway, or has a token in it; there is none; `recall` without a space.
    """
    found = address(url, space, token, participant)
    transport = WebSocketTransport(
        found.url, space=found.space, token=found.token, participant=found.participant, via=via, tls=tls
    )
    if recall and transport.space is None:
        raise ValueError("recall= needs space=, or ?space= in the URL")
    return Client(ClientConnection(transport, first_within_s=first_within_s, recall=recall))
