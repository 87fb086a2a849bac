"""The types of `sync.py`: made by `scripts/sync_stub.py` of the classes it stands for."""

# ruff: noqa: E501
import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, final

from mew.client.chat import About, Format
from mew.client.client import Client as _Client
from mew.client.connection.session import Gap, Misconduct
from mew.client.connection.websocket import Via
from mew.client.management import Granted, Invited, Written
from mew.client.mcp.requests import OnProgress
from mew.client.mcp.results import Message
from mew.client.proposals.outcomes import OnStage, Outcome, Stage, Strategy
from mew.client.reasoning import ActiveReasoning
from mew.client.streams.files import Progress, Saved, Uploaded
from mew.proposals.catalogue import Server, Tool
from mew.proposals.record import Explanation, ProposalRecord, Rejection, Target
from mew.protocol.capability import CapabilitySet
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.kinds import CompactDone

from .job import Cancelled
from .portal import Portal

__all__ = [
    "Cancelled",
    "Catalogue",
    "ChatQueue",
    "ChatRoom",
    "Client",
    "Feed",
    "History",
    "Oversight",
    "Proposal",
    "ProposalBook",
    "Question",
    "Reader",
    "Reasoning",
    "Reasonings",
    "Review",
    "Stream",
    "Streams",
    "connect_sync",
    "host",
]
_Item = TypeVar("_Item")

def connect_sync(
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
    """Connect to a space, as `connect` does; `close` it in the end, or have `with` do that."""

def host(portal: Portal, there: _Client) -> Client:
    """Connect a client on the loop of a portal, beside others; with the last of them, the portal is closed."""

@final
class Client:
    """Somebody in a space, until `close`; as a context, closed in the end."""

    catalogue: Catalogue
    "What each participant offers, as far as anyone asked."
    book: ProposalBook
    "All proposals: which are open, who decided what, and whether that is what ran."
    streams: Streams
    "Streams: open, read, find (§3.10)."
    chats: ChatRoom
    "Chat that awaits acknowledgement, and what becomes of one's own (§3.4)."
    reasonings: Reasonings
    "Who is reasoning now, and the way to stop it (§3.5.5)."
    control: Oversight
    "Pause, resume, ask and reset others (§3.9)."

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def id(self) -> ParticipantId:
        """Who I am in the space."""

    @property
    def space(self) -> str: ...
    @property
    def capabilities(self) -> CapabilitySet:
        """What I may send, as the last welcome has it."""

    @property
    def participants(self) -> Mapping[ParticipantId, CapabilitySet]:
        """Who is here, myself included, and what each may send."""

    @property
    def connected(self) -> bool:
        """False while the connection is lost and being made again."""

    @property
    def paused(self) -> bool:
        """Whether somebody paused me: what I send waits (§3.9.1)."""

    @property
    def gaps(self) -> Sequence[Gap]:
        """The times without a connection, and whether what was missed has been replayed."""

    @property
    def recalled(self) -> Sequence[Envelope]:
        """What was shown before I came, oldest first, as far as `connect` was asked for it."""

    @property
    def misconduct(self) -> Mapping[ParticipantId, Misconduct]:
        """Who sent what had to be dropped, how often, and why the last time (§4.3)."""

    def can_send(self, what: str | Envelope, payload: Any = None, *, to: str | Sequence[str] = ()) -> bool:
        """Whether my capabilities allow an envelope, or one of this kind; matched as the gateway does."""

    def send(
        self,
        kind: str,
        payload: Any = None,
        *,
        to: str | Sequence[str] = (),
        correlation_id: str | Sequence[str] = (),
        context: str | None = None,
        id: str | None = None,
    ) -> Envelope:
        """Send an envelope; return it once the gateway has accepted it and everyone is being shown it."""

    def envelopes(
        self,
        kind: str | Iterable[str] | None = None,
        *,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        about: Envelope | str | None = None,
        to_me: bool = False,
    ) -> Feed[Envelope]:
        """The envelopes from now on that fit everything given, one's own included, to iterate over."""

    def history(
        self,
        *,
        limit: int | None = None,
        before: Envelope | str | None = None,
        after: Envelope | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: str | None = None,
        participant: str | None = None,
        correlation: Envelope | str | None = None,
        newest_first: bool = False,
    ) -> History:
        """The envelopes shown so far that fit everything given, to iterate over: fetched as they are asked for."""

    def request(
        self,
        to: str,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float = 60.0,
        on_progress: OnProgress | None = None,
        context: str | None = None,
        correlation_id: Sequence[str] = (),
    ) -> Any:
        """Ask a participant, and return the `result` of its answer."""

    def notify(self, to: str | None, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell a participant, or with None everyone, something that is not answered."""

    def ask(
        self,
        participant: str,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        on_stage: OnStage | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        context: str | None = None,
        correlation_id: Sequence[str] = (),
        why: str | None = None,
        expires_in: float | None = None,
    ) -> dict[str, Any]:
        """Any MCP request, by a request where I may, by a proposal where I may only propose: the result as MCP has it."""

    def tools(self, participant: str | None = None) -> Sequence[Tool]:
        """The tools of one participant as it lists them now, or of everyone here who answers."""

    def call(
        self,
        participant: str,
        tool: str,
        /,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        on_stage: OnStage | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        why: str | None = None,
        expires_in: float | None = None,
    ) -> Any:
        """Call a tool and return its value: by a request where I may, by a proposal where I may only propose."""

    def resources(self, participant: str) -> Sequence[dict[str, Any]]:
        """The resources that a participant offers, as it lists them now; see also `resource_templates`."""

    def resource_templates(self, participant: str) -> Sequence[dict[str, Any]]:
        """The resources whose URI has variables, `notes://{name}`, as a participant lists them now."""

    def read(
        self,
        participant: str,
        uri: str,
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        on_stage: OnStage | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        why: str | None = None,
        expires_in: float | None = None,
    ) -> Any:
        """Read a resource: its text, or its `bytes`, and a list of these where it has not exactly one content."""

    def prompts(self, participant: str) -> Sequence[dict[str, Any]]:
        """The prompts that a participant offers, as it lists them now."""

    def prompt(
        self,
        participant: str,
        name: str,
        /,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout_s: float | None = None,
        on_stage: OnStage | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        why: str | None = None,
        expires_in: float | None = None,
    ) -> list[Message]:
        """Get a prompt's messages, with arguments as in `call`; text messages have plain text."""

    def complete(
        self,
        participant: str,
        argument: str,
        begun: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        given: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Sequence[str]:
        """What an argument of a `prompt`, or a variable of a `resource`, could go on to be: at most 100 values."""

    def propose(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        target: str | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        timeout_s: float | None = None,
        fallback_s: float = 30.0,
        context: str | None = None,
        correlation_id: Sequence[str] = (),
        on_stage: OnStage | None = None,
        on_progress: OnProgress | None = None,
        why: str | None = None,
        expires_in: float | None = None,
    ) -> Proposal:
        """Propose an MCP request that somebody else may make; waiting for the proposal gives its outcome."""

    def propose_call(
        self,
        participant: str,
        tool: str,
        /,
        arguments: Mapping[str, Any] | None = None,
        *,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        timeout_s: float | None = None,
        fallback_s: float = 30.0,
        on_stage: OnStage | None = None,
        on_progress: OnProgress | None = None,
        why: str | None = None,
        expires_in: float | None = None,
    ) -> Proposal:
        """Propose that a tool be called, with arguments as in `call` and the other parameters of `propose`."""

    def proposal(
        self, proposal_id: str, *, strategy: Strategy = Strategy.FIRST_REJECT, timeout_s: float = ...
    ) -> Proposal:
        """A proposal of mine that was made before, by this process or an earlier one: to follow it to its end."""

    def proposals(self) -> Feed[Review]:
        """The proposals that I may decide, to iterate over: those already open, and each that comes."""

    def review(self, proposal_id: str) -> Review:
        """One proposal, to decide it; raises `KeyError` where nothing is known of it."""

    def questions(self) -> Feed[Question]:
        """What others ask of me (`elicitation/create`), to iterate over: what is open already, and each that comes."""

    @property
    def takes_questions(self) -> bool:
        """Whether somebody here iterates over `questions`."""

    def chat(
        self,
        text: str,
        *,
        to: Sequence[str] = (),
        format: Literal["plain", "markdown"] = "plain",
        about: About = (),
        context: str | None = None,
    ) -> Envelope:
        """Say something, to everyone or to some; `about` is what it refers to."""

    def reasoning(
        self,
        message: str,
        *,
        about: Envelope | str | None = None,
        context: Reasoning | str | None = None,
        over_stream: bool = False,
    ) -> Reasoning:
        """Reason so that everyone can follow, as a context; a `reasoning/cancel` by anyone ends the block."""

    def upload(
        self,
        path: str | os.PathLike[str],
        *,
        target: str | Sequence[str] | None = None,
        name: str | None = None,
        description: str | None = None,
        correlation_id: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Uploaded:
        """Send a file of any size to `target`, or to everyone; returns when who saves it has it."""

    def save(
        self, stream: Stream, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> Saved:
        """Save what comes over a stream: whole and with the right checksum, or not at all."""

    def grant(
        self,
        recipient: str,
        *capabilities: Written,
        reason: str | None = None,
        ttl_s: float | None = None,
        expires_at: datetime | None = None,
        ack_within_s: float = 5.0,
    ) -> Granted:
        """Give capabilities that I hold; returns when the recipient has acknowledged, or could not in time."""

    def revoke(
        self, recipient: str, *capabilities: Written, grant_id: str | None = None, reason: str | None = None
    ) -> Envelope:
        """Take back one grant, or everything inside these capabilities; in force when this returns."""

    def invite(
        self, participant_id: str, *capabilities: Written, email: str | None = None, reason: str | None = None
    ) -> Invited:
        """Let somebody in with these capabilities; returns the token that the gateway made for them."""

    def kick(self, participant_id: str, *, reason: str | None = None) -> Envelope:
        """Remove somebody; returns when they have left."""

    def close(self) -> None:
        """Leave the space; returns when the thread is gone. What other threads wait for ends, or raises."""

@final
class Feed(Iterator[_Item], Generic[_Item]):
    """An iterator, and a context that closes it. What comes from its making on is in it, until it is closed."""

    def offer(self, item: _Item, size_bytes: int = 0) -> None:
        """Put something in, that takes so much room; nothing happens once it is closed."""

    def close(self, error: BaseException | None = None) -> None:
        """No more comes. What is in it is still yielded; then it ends, with the error if there is one."""

    @property
    def closed(self) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Item: ...
    def next_within(self, timeout_s: float) -> _Item | None:
        """The next, or None where none comes in that time or none comes any more."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

@final
class History(Iterator[Envelope]):
    """An iterator, to be gone through once. After a `ConnectError` it goes on where it was."""

    @property
    def complete(self) -> bool:
        """Whether nothing that may have fitted is gone, as far as this came."""

    def list(self) -> list[Envelope]:
        """All that are left of them."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Envelope: ...
    def next_within(self, timeout_s: float) -> Envelope | None:
        """The next, or None where none comes in that time or none comes any more."""

@final
class Review:
    """One proposal, for a reviewer; all it says is as of now."""

    @property
    def record(self) -> ProposalRecord:
        """All that is known of it."""

    @property
    def id(self) -> str: ...
    @property
    def proposer(self) -> str: ...
    @property
    def target(self) -> Target:
        """Who is to carry it out; None where that is for the reviewer to say."""

    @property
    def method(self) -> str: ...
    @property
    def params(self) -> dict[str, Any]:
        """A copy: to change what runs, give `approve` other arguments."""

    @property
    def tool(self) -> str | None:
        """The tool it would call, if it would call one."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What it would call the tool with; a copy, to change and give to `approve`."""

    @property
    def context(self) -> str | None: ...
    @property
    def why(self) -> str | None:
        """What its proposer says it is for: a claim."""

    @property
    def expires_at(self) -> datetime | None:
        """When it can no longer be approved; None: there is no such moment."""

    @property
    def description(self) -> str | None:
        """What the tool says of itself; None where no listing of it was seen, or more than one offers it."""

    @property
    def schema(self) -> Any:
        """The JSON Schema of the tool's arguments, as last seen; None where it was not."""

    @property
    def annotations(self) -> dict[str, Any]:
        """What the tool claims to be: `readOnlyHint`, `destructiveHint`."""

    @property
    def digest(self) -> str | None:
        """What identifies exactly this operation; None where it has no canonical form."""

    @property
    def changed(self) -> bool:
        """Whether a tool that it may call is not what it was when first seen, or when this was proposed."""

    @property
    def changes(self) -> tuple[str, ...]:
        """What of the tools that it may call is not what it was when first seen: `description`, `inputSchema`, …"""

    @property
    def open(self) -> bool:
        """Whether it still waits for a decision; rejections by others do not close it."""

    def preview(self) -> str:
        """A few lines that say what it would do."""

    def approve(
        self, arguments: dict[str, Any] | None = None, *, target: str | None = None, timeout_s: float = ...
    ) -> Any:
        """Carry it out and return the value, as `call` does: exactly as proposed, or with other `arguments`."""

    def reject(self, reason: str = ..., message: str | None = None) -> None:
        """Say no, with a code of §3.3.3 or any other, and in words; returns once that was accepted."""

@final
class Proposal:
    """What was proposed, and what becomes of it. `wait()` for the outcome, or `value()` for what it was proposed for."""

    def wait(self, timeout_s: float | None = None) -> Outcome:
        """What comes of it, once it does; `TimeoutError` where it does not in that time, and it goes on by itself."""

    @property
    def id(self) -> EnvelopeId:
        """Of its envelope; it becomes another where everyone is asked after the preferred."""

    @property
    def digest(self) -> str | None:
        """What identifies exactly this operation (design §5); None where it has no canonical form."""

    @property
    def record(self) -> ProposalRecord:
        """What was proposed, and all that is known to have become of it."""

    @property
    def stage(self) -> Stage:
        """Where it stands, as far as we know: open, approved and running, or at its end."""

    @property
    def outcome(self) -> Outcome | None:
        """What became of it; None while it is open or running."""

    def stages(self) -> Feed[Stage]:
        """Each stage, to iterate over: the one it is at now, and those that follow; it ends with the proposal."""

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Those that came so far, also after the end."""

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """What those who rejected it said about it in chats (§3.3.3), so far; they may come late or never."""

    def value(self) -> Any:
        """What was proposed for: the value of the tool that was called, or the result. Cancelled, it withdraws."""

    def result(self) -> Any:
        """The result of the request that was proposed, as MCP has it. Cancelled, it withdraws."""

    def withdraw(self, reason: str = ...) -> None:
        """Take it back (§3.3.1); returns once that was accepted."""

@final
class ProposalBook:
    """Fed with the envelopes of a space in order; an envelope seen twice changes nothing."""

    catalogue: Catalogue

    def apply(self, envelope: Envelope, at: datetime) -> ProposalRecord | None:
        """Take the next envelope; return the record it changed, the first if it names several (see `apply_all`)."""

    def apply_all(self, envelope: Envelope, at: datetime) -> tuple[ProposalRecord, ...]:
        """Take the next envelope; return every record it changed, also those whose tool is now known or another."""

    def adopt(self, record: ProposalRecord) -> None:
        """Know what another book knows of a proposal, and go on from there."""

    def hold(self, id: str) -> None:
        """Never forget this proposal, be it known yet or not: somebody waits for its end."""

    def release(self, id: str) -> None:
        """Treat a proposal that was held like any other."""

    def open(self, now: datetime) -> tuple[ProposalRecord, ...]:
        """The proposals a reviewer can still decide, oldest first."""

    def for_reviewer(
        self, me: str, now: datetime, may_fulfil: Callable[[ProposalRecord], bool]
    ) -> tuple[ProposalRecord, ...]:
        """What waits for this reviewer's decision: not its own, nor meant for others alone, nor rejected by it."""

    def get(self, id: str) -> ProposalRecord | None: ...
    def __getitem__(self, id: str) -> ProposalRecord: ...
    def __contains__(self, id: object) -> bool: ...
    def __iter__(self) -> Iterator[ProposalRecord]: ...
    def __len__(self) -> int: ...

@final
class Question:
    """What somebody wants to know, who works on something for us; all it says is the asker's word."""

    @property
    def id(self) -> str:
        """Of its envelope."""

    @property
    def envelope(self) -> Envelope: ...
    @property
    def asker(self) -> str: ...
    @property
    def about(self) -> tuple[str, ...]:
        """The ids of what it is asked for: the request that the asker works on, as far as it says."""

    @property
    def context(self) -> str | None: ...
    @property
    def params(self) -> dict[str, Any]:
        """All of it as MCP has it; a copy."""

    @property
    def message(self) -> str: ...
    @property
    def mode(self) -> Literal["form", "url"]:
        """`form`: fields to fill in. `url`: a page to go to, and nothing secret is said here."""

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the fields of a form; a copy."""

    @property
    def url(self) -> str | None:
        """The page to go to. Look where it leads before anybody opens it."""

    @property
    def open(self) -> bool:
        """Whether it still waits for an answer: nobody gave one, and the asker has not taken it back."""

    def is_known_as(self, request_id: Any) -> bool:
        """Whether its asker knows it by this: its JSON-RPC id, or that of its envelope."""

    def preview(self) -> str:
        """A few lines, safe for a terminal, that say who asks what."""

    def answer(self, content: dict[str, Any] | None = None, /, **more: Any) -> None:
        """Accept, with the fields by name or in `content`; returns once that was accepted by the gateway."""

    def decline(self) -> None:
        """Say no: somebody decided against it."""

    def cancel(self) -> None:
        """Leave it without a decision."""

    def close(self, why: str) -> None:
        """It is over; an answer of ours that has not left yet does not."""

@final
class Catalogue:
    """Fed with the envelopes of a space in order; an envelope seen twice changes nothing."""

    def apply(self, envelope: Envelope, at: datetime) -> tuple[Tool, ...]:
        """Take the next envelope; return the tools that are new, changed or no longer listed."""

    @property
    def participants(self) -> tuple[str, ...]:
        """Those of whom anything is known."""

    def tools(self, participant: str) -> tuple[Tool, ...]:
        """What the participant offers, as last listed."""

    def tool(self, participant: str, name: str) -> Tool | None:
        """The tool as last seen, be it listed still or not."""

    def offering(self, name: str) -> tuple[Tool, ...]:
        """The tools of that name, whoever lists them."""

    def server(self, participant: str) -> Server | None:
        """What the participant calls itself, if anybody asked it to `initialize`."""

    def is_complete(self, participant: str) -> bool:
        """Whether its tools were listed to the end, and it has not said since that they changed."""

    def outdate(self, participant: str) -> None:
        """Its tools may be others now: it left or joined."""

@final
class ChatRoom:
    """What one says, and the queue of what others said that awaits one's acknowledgement."""

    queue: ChatQueue

    def recall(self, shown: Iterable[Envelope]) -> None:
        """Know of what was said before we came."""

    @property
    def waiting(self) -> tuple[Envelope, ...]:
        """What others said to me or to all, neither acknowledged by me nor cancelled; oldest first."""

    @property
    def unacknowledged(self) -> tuple[Envelope, ...]:
        """What I said and nobody cancelled, until all it was addressed to, or anyone if it was to all, acknowledge."""

    def chat(
        self,
        text: str,
        *,
        to: Sequence[str] = (),
        format: Format = "plain",
        about: About = (),
        context: str | None = None,
    ) -> Envelope:
        """Say something, to all or, with `to`, for somebody to act on; everyone sees it either way."""

    def acknowledge(self, chat: Envelope | str, status: str = "received") -> Envelope:
        """Tell its author that one has seen a chat and has nothing to add (§3.4.1)."""

    def acknowledge_all(self, status: str = "read") -> tuple[Envelope, ...]:
        """Clear the queue, with one acknowledgement for each chat in it (§3.4.1)."""

    def cancel_chat(self, chat: Envelope | str, reason: str = "no_longer_needed") -> Envelope:
        """Tell those to whom it was said that a chat needs no attention any more (§3.4.2)."""

    def cancel_all(self, reason: str = "no_longer_needed") -> tuple[Envelope, ...]:
        """Cancel everything I said that is not acknowledged, with one cancellation each (§3.4.2)."""

@final
class ChatQueue:
    """Fed with the envelopes of a space in order; an envelope seen twice changes nothing."""

    me: str

    def apply(self, envelope: Envelope) -> bool:
        """Take the next envelope; return whether the queue or an acknowledgement changed."""

    @property
    def waiting(self) -> tuple[Envelope, ...]:
        """The chats that I have not acknowledged and nobody has cancelled, oldest first."""

    def acknowledgements(self, chat: str) -> Mapping[str, str | None]:
        """Who acknowledged a chat of mine, with the status last given (None if none); empty for any other chat."""

@final
class Reasoning:
    """A sequence of thoughts, as a context: `reasoning/start` when entered."""

    id: EnvelopeId
    "Of the `reasoning/start`; empty until then."
    context: str
    "What the envelopes of this sequence carry as `context`: a path, where it is part of another."
    message: str
    conclusion: str | None
    "What was concluded; set it to conclude when the block ends."
    cancelled_by: ParticipantId | None
    cancel_reason: str | None

    @property
    def cancelled(self) -> bool:
        """Whether somebody stopped it."""

    def thought(self, message: str) -> None:
        """Share a step (§3.5.3)."""

    def chat(
        self, text: str, *, to: Sequence[str] = (), format: Literal["plain", "markdown"] = "plain"
    ) -> Envelope:
        """Say something within this sequence, for a dialogue with others (§3.5.1); raises as `thought` does."""

    def conclude(self, message: str) -> Envelope:
        """End the sequence with what was found (§3.5.4); raises as `thought` does. The block may go on."""

    def __enter__(self) -> Self:
        """Show that it begins."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool: ...

@final
class Reasonings:
    """The sequences that are active: started, and neither concluded nor cancelled."""

    @property
    def active(self) -> tuple[ActiveReasoning, ...]:
        """Everyone's, oldest first."""

    @property
    def of_others(self) -> tuple[ActiveReasoning, ...]: ...
    def cancel(self, start_id: str, reason: str = "cancelled") -> Envelope:
        """Stop a sequence; its author is told, whether or not it is known to be active here."""

@final
class Streams:
    """Made before its connection is entered, it knows every stream that is open."""

    @property
    def active(self) -> tuple[Stream, ...]:
        """Those that are open now, oldest first; none of them is read by that."""

    def stream(self, stream_id: str) -> Stream:
        """One that is open; `read` it for what is written from then on."""

    def incoming(self) -> Feed[Stream]:
        """The streams that others open from now on, where I get their data or am to write it."""

    def open(
        self,
        *,
        direction: Literal["upload", "download"] = "upload",
        to: Sequence[str] = (),
        target: str | Sequence[str] | None = None,
        description: str | None = None,
        expected_size_bytes: int | None = None,
        encoding: str | None = None,
        correlation_id: Sequence[str] = (),
        context: str | None = None,
        within_s: float = 30.0,
        **fields: Any,
    ) -> Stream:
        """Ask the gateway for a stream (§3.10.1) that is ours: return once it is open."""

@final
class Stream:
    """A stream, kept current: iterate over it for what others write, `write` to it, and `close` it where it is yours."""

    @property
    def id(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def writers(self) -> tuple[str, ...]:
        """Who may write to it now."""

    @property
    def direction(self) -> Literal["upload", "download"]:
        """As its owner sees it: in an upload the owner writes, in a download those it asked to."""

    @property
    def target(self) -> tuple[str, ...] | None:
        """Who gets the data; None: everyone."""

    @property
    def description(self) -> str | None: ...
    @property
    def fields(self) -> Mapping[str, Any]:
        """Everything its request said; whatever is in there is the owner's word."""

    @property
    def created(self) -> datetime | None: ...
    @property
    def open_id(self) -> EnvelopeId | None:
        """The `stream/open` that opened it, where that was seen."""

    @property
    def closed(self) -> bool: ...
    @property
    def close_reason(self) -> str | None:
        """Why it was closed, once it is: `complete`, or what went wrong; `owner_left` when the gateway did it."""

    @property
    def close_fields(self) -> Mapping[str, Any]:
        """What else its close said."""

    @property
    def broken(self) -> bool:
        """Whether the connection was lost since this `Stream` was written to: some of that may not have arrived."""

    def read(self) -> Reader:
        """A reader of one's own, that gets what is written from now on."""

    def __iter__(self) -> Reader:
        """The reader that this `Stream` came with, or one made now; always the same."""

    def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """Send data, text as a text frame; return when there is room for more, not when somebody has read it."""

    def close(self, reason: str = "complete", **fields: Any) -> None:
        """End it (§3.10.4); on return everyone is being shown it, and the gateway took all that was written before."""

    def grant_write(self, who: str) -> None:
        """Let `who` write too."""

    def revoke_write(self, who: str) -> None:
        """Let `who` no longer write."""

    def transfer(self, new_owner: str) -> None:
        """Give it away: `new_owner` takes our place, also as a writer."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def give_up(self, reason: str = "cancelled") -> None:
        """Close it without waiting."""

@final
class Reader(Iterator[bytes]):
    """An iterator over the frames of one stream, and a context that closes it."""

    def offer(self, data: bytes) -> None:
        """Put a frame's data in; nothing happens once it is closed."""

    def close(self, broken: str | None = None) -> None:
        """No more comes. What is in it is still yielded; then it ends, with `StreamBroken` if it says why."""

    @property
    def waiting_bytes(self) -> int:
        """What came and was not taken yet."""

    def gather(self, bytes_max: int) -> list[bytes]:
        """The next frame, and those behind it that are there already, up to about this much; none: it has ended."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def next_within(self, timeout_s: float) -> bytes | None:
        """The next, or None where none comes in that time or none comes any more."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

@final
class Oversight:
    """All of these raise `Refused` where the gateway says no, which it does where one's capabilities do not reach."""

    def pause(self, who: str, *, timeout_s: float | None = None, reason: str | None = None) -> Envelope:
        """Stop `who` from sending (§3.9.1): until somebody resumes it, or for `timeout_s`."""

    def resume(self, who: str, *, reason: str | None = None) -> Envelope:
        """Lift the pause of `who`, naming those that it lifts where we saw them (§3.9.2)."""

    def request_status(
        self, who: str, *, fields: Sequence[str] | None = None, timeout_s: float = 5.0
    ) -> dict[str, Any]:
        """What `who` says of itself (§3.9.4): `messages_in_context`, and whatever else it measures."""

    def forget(
        self, who: str, direction: Literal["oldest", "newest"], entries: int | None = None
    ) -> Envelope:
        """Have `who` drop the oldest or newest of what it remembers (§3.9.5)."""

    def compact(
        self,
        who: str,
        *,
        target_tokens: int | None = None,
        reason: str | None = None,
        timeout_s: float = 60.0,
    ) -> CompactDone:
        """Have `who` make room in its memory (§3.9.6); returns once it is done, or was skipped."""

    def clear(self, who: str) -> Envelope:
        """Have `who` forget everything (§3.9.8)."""

    def restart(self, who: str) -> Envelope:
        """Have `who` begin again as it was configured (§3.9.9)."""

    def shutdown(self, who: str, *, timeout_s: float = 10.0) -> Envelope:
        """Have `who` cease (§3.9.10); returns once it acknowledged or left, at once where it is not here now."""
