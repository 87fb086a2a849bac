"""Pause, resume and shutdown (§3.9.1, §3.9.2, §3.9.10), enforced for the participant, whatever it connects with."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import UNSET

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import EmptyPayload, Kind, Pause, ReasonPayload

from . import holdings
from .decisions import Decision, RefusalDetails, WakeAt
from .entries import Entry, Submission
from .state import ActivePause, SpaceState

__all__ = ["check_addressed", "lift_due", "pause", "resume", "shut_down", "silenced"]

_PASS_PAUSE: Final = frozenset(
    {
        Kind.CHAT_ACKNOWLEDGE,
        Kind.CHAT_CANCEL,
        Kind.REASONING_CANCEL,
        Kind.MCP_WITHDRAW,
        Kind.MCP_REJECT,
        Kind.GRANT_ACK,
        Kind.STATUS,
        Kind.COMPACT_DONE,
    }
)
_PASS_SHUTDOWN: Final = frozenset({Kind.CHAT_ACKNOWLEDGE, Kind.GRANT_ACK, Kind.STATUS})


def silenced(state: SpaceState, at: datetime, who: ParticipantId, kind: str) -> RefusalDetails | None:
    """Why `who` may not send this kind now, whatever it holds. Stream frames have no kind: ''."""
    if who in state.shut_down and kind not in _PASS_SHUTDOWN:
        return RefusalDetails(
            Refusal.SHUT_DOWN, f"{who!r} was shut down and may send again once it has rejoined"
        )
    pause = state.paused.get(who)
    if pause is None or kind in _PASS_PAUSE or (pause.until is not None and pause.until <= at):
        return None
    if pause.until is None:
        return RefusalDetails(Refusal.PAUSED, f"{who!r} is paused by {pause.by!r} until somebody resumes it")
    left_s = (pause.until - at).total_seconds()
    return RefusalDetails(
        Refusal.PAUSED, f"{who!r} is paused by {pause.by!r} for {left_s:.0f} s more", left_s
    )


def check_addressed(
    state: SpaceState, at: datetime, envelope: Envelope, asked: Pause | EmptyPayload
) -> RefusalDetails | None:
    if not envelope.to:
        return RefusalDetails(Refusal.INVALID_PAYLOAD, f"{envelope.kind} must name in 'to' whom it is for")
    if not any(holdings.is_known(state, who) for who in envelope.to):
        return RefusalDetails(
            Refusal.UNKNOWN_PARTICIPANT, f"there is no participant {envelope.to[0][:128]!r}"
        )
    return None


def pause(state: SpaceState, entry: Entry, sent: Submission, asked: Pause) -> list[Decision]:
    until = None
    if asked.timeout_seconds is not UNSET:
        until = entry.at + timedelta(seconds=asked.timeout_seconds)
    made = ActivePause(EnvelopeId(sent.envelope.id), sent.who, until)
    for who in map(ParticipantId, sent.envelope.to):
        if holdings.is_known(state, who) and not _lasts_longer(state.paused.get(who), until):
            state.paused[who] = made
    return [WakeAt(until)] if until is not None and made in state.paused.values() else []


def resume(state: SpaceState, entry: Entry, sent: Submission, asked: ReasonPayload) -> list[Decision]:
    """Lift the pauses of those in `to`, or the pauses that `correlation_id` names."""
    for who in map(ParticipantId, sent.envelope.to):
        state.paused.pop(who, None)
    if not sent.envelope.to:
        named = [
            who for who, pause in state.paused.items() if pause.envelope_id in sent.envelope.correlation_id
        ]
        for who in named:
            del state.paused[who]
    return []


def shut_down(state: SpaceState, entry: Entry, sent: Submission, asked: EmptyPayload) -> list[Decision]:
    for who in map(ParticipantId, sent.envelope.to):
        if holdings.is_known(state, who):
            state.shut_down[who] = EnvelopeId(sent.envelope.id)
    return []


def lift_due(state: SpaceState, at: datetime) -> None:
    due = [who for who, pause in state.paused.items() if pause.until is not None and pause.until <= at]
    for who in due:
        del state.paused[who]


def _lasts_longer(pause: ActivePause | None, until: datetime | None) -> bool:
    """A second pause may prolong the first; to end it takes the right to resume."""
    if pause is None or until is None:
        return False
    return pause.until is None or pause.until > until
