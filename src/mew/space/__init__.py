"""One space as a deterministic state machine: log entries in, decisions out.

- `entries`    what a log holds
- `decisions`  what may come out
- `state`      the space as data; snapshot and restore
- `space`      `Space.judge` and `Space.apply`: the one way in
- `holdings`   what each participant holds: configuration, invitation, grants, less what was revoked
- `presence`, `grants`, `members`, `pauses`, `streams`, `proposals`   the rules, one concern each

No clock, no socket, no randomness: the same entries give the same space.
"""

from .decisions import (
    Audiences,
    Decision,
    Deliver,
    Disconnect,
    IssueInvitation,
    RefusalDetails,
    Refuse,
    Reply,
    WakeAt,
)
from .entries import (
    NEVER_JUDGED,
    Configured,
    ConnectionId,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    NodeLeft,
    Rules,
    Sent,
    Submission,
    TimePassed,
    Violated,
)
from .space import Judgement, Space

__all__ = [
    "NEVER_JUDGED",
    "Audiences",
    "Configured",
    "ConnectionId",
    "Decision",
    "Deliver",
    "Disconnect",
    "Entry",
    "Event",
    "Identified",
    "IssueInvitation",
    "Joined",
    "Judgement",
    "Left",
    "NodeLeft",
    "RefusalDetails",
    "Refuse",
    "Reply",
    "Rules",
    "Sent",
    "Space",
    "Submission",
    "TimePassed",
    "Violated",
    "WakeAt",
]
