"""Gateways that silence participants wrongly."""

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from mew.gateway.room import Room
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind, Nothing
from mew.space import Space, grants, pauses, presence, space
from mew.space.state import Paused

from .breaks import Break, Mutant, of, shown
from .deciding import allowing, changed, dropped, leaking, refusing

__all__ = ["MUTANTS"]


PAUSE, RESUME, SHUTDOWN, RESTART = Kind.PAUSE, Kind.RESUME, Kind.SHUTDOWN, Kind.RESTART


def acting(kind: str, act: Any) -> Break:
    """Let the gateway do this when such an envelope has been accepted."""
    rule = space._RULES.get(kind, space._Rule(Nothing, None, None))._replace(act=act)
    return lambda monkeypatch: monkeypatch.setitem(space._RULES, kind, rule)


def passing(*kinds: str) -> Break:
    """Let a pause be for all but these."""
    return lambda monkeypatch: monkeypatch.setattr(pauses, "_PASS_PAUSE", frozenset(kinds))


def silencing(silenced: Any) -> Break:
    return lambda monkeypatch: monkeypatch.setattr(pauses, "silenced", silenced)


def timed(change: Any) -> Break:
    """Take another timeout for the one that was given."""
    right = pauses.pause

    def pause(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        return right(state, entry, sent, replace(asked, timeout_seconds=change(asked.timeout_seconds)))

    return acting(PAUSE, pause)


def nothing(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    return []


def pause_everyone(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    state.paused |= {who: Paused(sent.envelope.id, sent.who) for who in state.members if who != "owner"}
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

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Space.refusal

        def refusal(self: Space, at: Any, envelope: Any, *, lenient: bool = False) -> Any:
            refused = right(self, at, envelope, lenient=lenient)
            if refused is not None and envelope.kind == kind:
                self._free.clear()
                act(self.state, envelope)
            return refused

        monkeypatch.setattr(Space, "refusal", refusal)

    return broken


def on_one_socket(table: str) -> Break:
    """What was asked of a participant holds for its first connection only."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right, receive, sent, speaking = pauses.silenced, Room._take_envelope, Space._sent, list[Any]()

        def silenced(state: Any, at: Any, who: Any, kind: str) -> Any:
            first = next((one for one, by in state.connections.items() if by == who), None)
            other = bool(speaking) and speaking[-1] not in (None, first)
            return None if other and who in getattr(state, table) else right(state, at, who, kind)

        def received(self: Any, guest: Any, data: bytes) -> None:
            speaking.append(guest.id)
            receive(self, guest, data)

        def was_sent(self: Any, entry: Any, event: Any) -> Any:
            speaking.append(event.connection)
            return sent(self, entry, event)

        monkeypatch.setattr(pauses, "silenced", silenced)
        monkeypatch.setattr(Room, "_take_envelope", received)
        monkeypatch.setattr(Space, "_sent", was_sent)

    return broken


def evaded_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Room.inject

    async def inject(self: Room, who: Any, received: bytes) -> Any:
        self.space.state.paused.pop(who, None)
        return await right(self, who, received)

    monkeypatch.setattr(Room, "inject", inject)


def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Room._refuse

    def refuse(self: Room, who: Any, connection: Any, refused: Any, envelope_id: Any, kind: str) -> None:
        if refused.refusal is not Refusal.PAUSED:
            right(self, who, connection, refused, envelope_id, kind)

    monkeypatch.setattr(Room, "_refuse", refuse)


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
    state.paused |= {who: Paused(envelope.id, envelope.sender) for who in envelope.to}


def to_resume(state: Any, envelope: Any) -> None:
    for who in envelope.to:
        state.paused.pop(who, None)


def to_shut_down(state: Any, envelope: Any) -> None:
    state.shut_down |= dict.fromkeys(envelope.to, envelope.id)


ENFORCED = "silence.a_pause_holds_back_work_and_nothing_else"
TIMEOUT = "silence.a_pause_may_end_by_itself"
LIFTS = "silence.a_resumed_participant_speaks_again"
DOWN = "silence.who_was_shut_down_is_refused_until_it_rejoins"
REMAIN = "silence.grants_outlive_a_restart"
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
    Mutant("pause.enforced", ENFORCED, on_one_socket("paused"), "on each connection"),
    Mutant("pause.enforced", ENFORCED, evaded_over_http, "over HTTP its chat was accepted"),
    Mutant("pause.enforced", ENFORCED, untold, "receives a system/error about"),
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
    Mutant("shutdown.enforced", DOWN, on_one_socket("shut_down"), "was accepted"),
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
