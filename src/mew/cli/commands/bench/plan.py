"""What `mew bench` will do in a space: which workloads one token allows, and whom it must invite for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mew.load.churn import IdleLoad, JoinLoad, StormLoad
from mew.load.connections import Credentials
from mew.load.exchanges import InjectionLoad, ProposalLoad, StreamLoad
from mew.load.invitations import Inviter
from mew.load.workloads import AddressedLoad, CapabilityLoad, FanOutLoad, Workload, capabilities
from mew.protocol.kinds import Kind

__all__ = ["DEFAULT", "Planned", "WorkloadName", "plan"]

_PATTERNS: Final = (1, 10, 100)
_CONNECTIONS_EACH: Final = 24
"""Of one participant, below the 32 that a gateway allows unless it says otherwise."""
_CANNOT_INVITE: Final = "it needs others, and you may not invite and remove them (space/invite, space/kick)"


class WorkloadName(StrEnum):
    """The workloads that one can ask for, in the order in which they run: those that send little go first."""

    JOINS = "joins"
    STORM = "storm"
    IDLE = "idle"
    STREAMS = "streams"
    FAN_OUT = "fan-out"
    ADDRESSED = "addressed"
    PROPOSALS = "proposals"
    CHECKS = "checks"
    INJECTION = "injection"


DEFAULT: Final = tuple(one for one in WorkloadName if one is not WorkloadName.IDLE)


@dataclass(frozen=True, slots=True)
class Planned:
    """One workload: what those hold whom it invites, and what is done with their seats; or why it is not done."""

    name: WorkloadName
    guests: Sequence[Sequence[Any]] = ()
    made: Callable[[Sequence[Credentials]], Workload] | None = None
    why_not: str = ""


def plan(host: Inviter, asked: Sequence[WorkloadName], receivers: int) -> list[Planned]:
    """Each of these, in order."""
    return [_PLANS[name](host, receivers) for name in WorkloadName if name in asked]


def _joins(host: Inviter, _receivers: int) -> Planned:
    if host.may_invite():
        return Planned(
            WorkloadName.JOINS, [[]], lambda guests: JoinLoad(address=host.address, newcomer=guests[0])
        )
    return Planned(
        WorkloadName.JOINS, made=lambda _: JoinLoad(address=host.address, newcomer=host.credentials)
    )


def _storm(host: Inviter, _receivers: int) -> Planned:
    return Planned(
        WorkloadName.STORM, made=lambda _: StormLoad(address=host.address, seats=(host.credentials,))
    )


def _idle(host: Inviter, receivers: int) -> Planned:
    guests = _crowd(host, receivers)
    return Planned(
        WorkloadName.IDLE,
        guests,
        lambda those: IdleLoad(address=host.address, seats=_spread(host, those, receivers)),
    )


def _streams(host: Inviter, _receivers: int) -> Planned:
    if not host.may(Kind.STREAM_REQUEST, Kind.STREAM_CLOSE):
        return Planned(WorkloadName.STREAMS, why_not="you may open no stream (stream/request, stream/close)")
    if not host.may_invite():
        return Planned(WorkloadName.STREAMS, why_not=_CANNOT_INVITE)
    return Planned(
        WorkloadName.STREAMS,
        [[]],
        lambda guests: StreamLoad(address=host.address, writer=host.credentials, readers=tuple(guests)),
    )


def _fan_out(host: Inviter, receivers: int) -> Planned:
    if not host.may(Kind.CHAT):
        return Planned(WorkloadName.FAN_OUT, why_not="you may not chat")
    guests = _crowd(host, receivers)
    return Planned(
        WorkloadName.FAN_OUT,
        guests,
        lambda those: FanOutLoad(
            address=host.address, sender=host.credentials, receivers=_spread(host, those, receivers - 1)
        ),
    )


def _addressed(host: Inviter, _receivers: int) -> Planned:
    if not host.may(Kind.CHAT):
        return Planned(WorkloadName.ADDRESSED, why_not="you may not chat")
    guests: list[list[Any]] = [[]] if host.may_invite() else []
    return Planned(
        WorkloadName.ADDRESSED,
        guests,
        lambda those: AddressedLoad(
            address=host.address,
            pairs=((host.credentials, those[0] if those else host.credentials),),
            window=32,
        ),
    )


def _proposals(host: Inviter, _receivers: int) -> Planned:
    parts = (Kind.MCP_PROPOSAL, Kind.MCP_REQUEST, Kind.MCP_RESPONSE)
    if host.may_invite(*parts):
        return Planned(
            WorkloadName.PROPOSALS,
            [[part] for part in parts],
            lambda guests: ProposalLoad(
                address=host.address, proposer=guests[0], approver=guests[1], executor=guests[2]
            ),
        )
    if host.may(*parts):
        return Planned(
            WorkloadName.PROPOSALS,
            made=lambda _: ProposalLoad(
                address=host.address,
                proposer=host.credentials,
                approver=host.credentials,
                executor=host.credentials,
            ),
        )
    return Planned(
        WorkloadName.PROPOSALS, why_not=f"you may not do all of {', '.join(parts)}, nor invite who may"
    )


def _checks(host: Inviter, _receivers: int) -> Planned:
    if not host.may_invite(Kind.GRANT, *capabilities(max(_PATTERNS))):
        return Planned(
            WorkloadName.CHECKS, why_not=f"{_CANNOT_INVITE} with mcp/request; capability/grant is needed, too"
        )
    return Planned(
        WorkloadName.CHECKS,
        [capabilities(patterns) for patterns in _PATTERNS],
        lambda guests: CapabilityLoad(
            address=host.address, callers=dict(zip(_PATTERNS, guests, strict=True)), asked=host.credentials
        ),
    )


def _injection(host: Inviter, _receivers: int) -> Planned:
    if not host.may(Kind.CHAT):
        return Planned(WorkloadName.INJECTION, why_not="you may not chat")
    return Planned(
        WorkloadName.INJECTION,
        made=lambda _: InjectionLoad(address=host.address, sender=host.credentials, witness=host.credentials),
    )


_PLANS: Final[Mapping[WorkloadName, Callable[[Inviter, int], Planned]]] = {
    WorkloadName.JOINS: _joins,
    WorkloadName.STORM: _storm,
    WorkloadName.IDLE: _idle,
    WorkloadName.STREAMS: _streams,
    WorkloadName.FAN_OUT: _fan_out,
    WorkloadName.ADDRESSED: _addressed,
    WorkloadName.PROPOSALS: _proposals,
    WorkloadName.CHECKS: _checks,
    WorkloadName.INJECTION: _injection,
}


def _crowd(host: Inviter, connections: int) -> list[list[Any]]:
    """Whom to invite for so many connections: nobody where one's own are enough, or one may not."""
    if connections <= _CONNECTIONS_EACH or not host.may_invite():
        return []
    return [[] for _ in range(-(-connections // _CONNECTIONS_EACH))]


def _spread(host: Inviter, guests: Sequence[Credentials], connections: int) -> tuple[Credentials, ...]:
    """So many connections among the guests, or one's own."""
    those = guests or (host.credentials,)
    return tuple(those[number % len(those)] for number in range(connections))
