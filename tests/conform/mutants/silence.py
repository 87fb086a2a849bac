"""Gateways that silence participants wrongly."""

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.codec import envelope_id_in
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind
from mew.space import RefusalDetails, Space, grants, pauses, presence
from mew.space.state import ActivePause

from .breaks import Break, Mutant, of, replaced, ruled, shown, wrapping
from .deciding import allowing, changed, disturb, dropped, judging, refusing
from .doors import arriving, leaking, silent

__all__ = ["MUTANTS"]


PAUSE, RESUME, SHUTDOWN, RESTART = Kind.PAUSE, Kind.RESUME, Kind.SHUTDOWN, Kind.RESTART


def acting(kind: str, act: Any) -> Break:
    """Let the gateway do this when such an envelope has been accepted."""
    return ruled(kind, act=act)


def passing(*kinds: str) -> Break:
    """Let a pause be for all but these."""

    def silenced(right: Any, state: Any, at: Any, who: Any, kind: str) -> Any:
        if who in state.shut_down:
            return right(state, at, who, kind)
        return None if kind in kinds else right(state, at, who, "")

    return wrapping(pauses, "silenced", silenced)


def silencing(silenced: Any) -> Break:
    return replaced(pauses, "silenced", silenced)


def timed(change: Any) -> Break:
    """Take another timeout for the one that was given."""
    right = pauses.pause

    def pause(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        return right(state, entry, sent, replace(asked, timeout_seconds=change(asked.timeout_seconds)))

    return acting(PAUSE, pause)


def nothing(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    return []


def pause_everyone(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    state.paused |= {who: ActivePause(sent.envelope.id, sent.who) for who in state.members if who != "owner"}
    return []


def resume_everyone(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    state.paused.clear()
    return []


def resume_what_is_named(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    named = sent.envelope.correlation_id
    state.paused = {who: one for who, one in state.paused.items() if one.envelope_id not in named}
    return []


def shut_everyone_down(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    state.shut_down |= {who: sent.envelope.id for who in state.members if who != "owner"}
    return []


def only_chat_is_paused(state: Any, at: Any, who: Any, kind: str) -> Any:
    return pauses_silenced(state, at, who, kind) if kind == "chat" or who in state.shut_down else None


def only_requests_survive_a_shutdown(state: Any, at: Any, who: Any, kind: str) -> Any:
    return None if kind == "mcp/request" else pauses_silenced(state, at, who, kind)


pauses_silenced = pauses.silenced


def obeying(kind: str, act: Any) -> Break:
    """Do it though it is refused, for whoever asks."""

    def judge(space: Space, envelope: Envelope, refused: RefusalDetails | None) -> RefusalDetails | None:
        if refused is not None and envelope.kind == kind:
            act(space.state, envelope)
            disturb(space)
        return refused

    return judging(judge)


def on_one_socket(refusal: Refusal) -> Break:
    """What was asked of a participant holds for its first connection only."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        second_space: set[str | None] = set()

        def take(room: Room, connection: RoomConnection, text: bytes) -> bytes:
            if connection.id in room.space.connections_of((connection.who,))[1:]:
                second_space.add(envelope_id_in(text))
            return text

        def judge(space: Space, envelope: Envelope, refused: RefusalDetails | None) -> RefusalDetails | None:
            silenced = refused is not None and refused.refusal is refusal
            return None if silenced and envelope.id in second_space else refused

        arriving(take)(monkeypatch)
        judging(judge)(monkeypatch)

    return broken


async def evaded_over_http(right: Any, room: Room, who: ParticipantId, received: bytes) -> Any:
    room.space.state.paused.pop(who, None)
    return await right(room, who, received)


def never_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    right = presence.join

    def join(state: Any, entry: Any, who: Any, connection: Any, *, resumed: Any) -> Any:
        before = dict(state.shut_down)
        decisions = right(state, entry, who, connection, resumed=resumed)
        state.shut_down = before
        return decisions

    monkeypatch.setattr(presence, "join", join)


def forgetting_all(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    """What it was invited with is a grant too."""
    gone = [one.id for one in state.grants.values() if one.recipient in sent.envelope.to]
    for grant_id in gone:
        del state.grants[grant_id]
    return grants.settle(state, entry, list(sent.envelope.to))


def irrevocable(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its restart nobody takes anything from a participant."""
    restarted: set[str] = set()
    right = grants.revoke

    def restart(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        restarted.update(sent.envelope.to)
        return []

    def revoke(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        return [] if asked.recipient in restarted else right(state, entry, sent, asked)

    acting(RESTART, restart)(monkeypatch)
    acting(Kind.REVOKE, revoke)(monkeypatch)


def to_pause(state: Any, envelope: Any) -> None:
    state.paused |= {who: ActivePause(envelope.id, envelope.sender) for who in envelope.to}


def to_resume(state: Any, envelope: Any) -> None:
    for who in envelope.to:
        state.paused.pop(who, None)


def to_shut_down(state: Any, envelope: Any) -> None:
    state.shut_down |= dict.fromkeys(envelope.to, envelope.id)


ENFORCED = "control.a_pause_holds_back_work_and_nothing_else"
TIMEOUT = "control.a_pause_may_end_by_itself"
LIFTS = "control.a_resumed_participant_speaks_again"
DOWN = "control.who_was_shut_down_is_refused_until_it_rejoins"
REMAIN = "control.grants_outlive_a_restart"
HELD: tuple[str, ...] = (
    "chat/acknowledge",
    "chat/cancel",
    "reasoning/cancel",
    "mcp/withdraw",
    "capability/grant-ack",
    "participant/compact-done",
    "participant/status",
)

MUTANTS = (
    *(
        Mutant(
            "pause.enforced",
            ENFORCED,
            passing(*(other for other in HELD if other != kind)),
            f"{kind} acknowledges or cancels",
        )
        for kind in HELD[:-1]
    ),
    Mutant("pause.enforced", ENFORCED, silencing(only_chat_is_paused), "the mcp/request of guest"),
    Mutant("pause.enforced", ENFORCED, passing(*HELD, "mcp/proposal"), "the mcp/proposal of guest"),
    Mutant("pause.enforced", ENFORCED, passing(*HELD, RESUME), "it sent a participant/resume for itself"),
    Mutant("pause.enforced", ENFORCED, acting(PAUSE, pause_everyone), "another is held back"),
    Mutant("pause.enforced", ENFORCED, acting(RESUME, nothing), "was resumed and is still held back"),
    Mutant("pause.enforced", ENFORCED, obeying(PAUSE, to_pause), "whose sender may not send it"),
    Mutant("pause.enforced", ENFORCED, on_one_socket(Refusal.PAUSED), "on each connection"),
    Mutant(
        "pause.enforced",
        ENFORCED,
        wrapping(Room, "post", evaded_over_http),
        "over HTTP its chat was accepted",
    ),
    Mutant("pause.enforced", ENFORCED, silent(Refusal.PAUSED), "receives a system/error about"),
    Mutant(
        "pause.enforced",
        ENFORCED,
        leaking(of("mcp/request", sender="guest")),
        "its mcp/request is refused, and listener received it",
    ),
    Mutant("pause.timeout", TIMEOUT, timed(lambda given: UNSET), "still enforced"),
    Mutant("pause.timeout", TIMEOUT, timed(lambda given: given and given / 10), "ended after 0."),
    Mutant("pause.timeout", TIMEOUT, timed(lambda given: given or 0.8), "before anyone resumed"),
    Mutant("pause.timeout", TIMEOUT, timed(lambda given: given and 0), "one without a timeout had not"),
    Mutant(
        "pause.timeout",
        TIMEOUT,
        changed(shown(PAUSE), lambda said: said["payload"].pop("timeout_seconds", None)),
        "with another payload",
    ),
    Mutant(
        "pause.timeout",
        TIMEOUT,
        refusing(lambda e: e.kind == PAUSE and "timeout_seconds" not in e.content),
        "the gateway refused it",
    ),
    Mutant("resume.lifts", LIFTS, acting(RESUME, nothing), "with a correlation_id, and is still held back"),
    Mutant("resume.lifts", LIFTS, acting(RESUME, resume_everyone), "though only"),
    Mutant("resume.lifts", LIFTS, acting(RESUME, resume_what_is_named), "though only"),
    Mutant(
        "resume.lifts",
        LIFTS,
        refusing(lambda e: e.kind == RESUME and e.sender == "owner" and not e.correlation_id),
        "the gateway refused it",
    ),
    Mutant("resume.lifts", LIFTS, obeying(RESUME, to_resume), "whose sender may not send it"),
    Mutant("resume.lifts", LIFTS, allowing(of(RESUME)), "refuses the participant/resume"),
    Mutant("resume.lifts", LIFTS, dropped(shown(RESUME)), "expected that guest"),
    Mutant("shutdown.enforced", DOWN, acting(SHUTDOWN, nothing), "was accepted"),
    Mutant(
        "shutdown.enforced", DOWN, silencing(only_requests_survive_a_shutdown), "the mcp/request of guest"
    ),
    Mutant("shutdown.enforced", DOWN, acting(SHUTDOWN, shut_everyone_down), "another is refused"),
    Mutant("shutdown.enforced", DOWN, never_forgiven, "left and joined again, and is still refused"),
    Mutant("shutdown.enforced", DOWN, obeying(SHUTDOWN, to_shut_down), "whose sender may not send it"),
    Mutant("shutdown.enforced", DOWN, on_one_socket(Refusal.SHUT_DOWN), "was accepted"),
    Mutant(
        "shutdown.enforced",
        DOWN,
        leaking(of("reasoning/start", sender="guest")),
        "listener received",
    ),
    Mutant("restart.grants-remain", REMAIN, acting(RESTART, forgetting_all), "what it had before"),
    Mutant("restart.grants-remain", REMAIN, irrevocable, "refuses the mcp/proposal"),
    Mutant("restart.grants-remain", REMAIN, allowing(of("reasoning/start")), "refuses the reasoning/start"),
)
