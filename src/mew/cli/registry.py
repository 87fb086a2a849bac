"""The commands there are: where each is, and what it does in a line, so that a list of them loads none."""

from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Listed"]

_SERVE: Final = "Serve a space"
_TAKE_PART: Final = "Take part"
_DECIDE: Final = "Decide"
_MANAGE: Final = "Say who may do what"
_CONTROL: Final = "Control others"
_LOOK_BACK: Final = "Look back, and check"


class Listed(NamedTuple):
    """`where`: a module of this package and what is in it: a function, or a Typer with commands of its own.

    `does` is the first line of its help; `no`, where it has that, what its exit code 1 says.
    """

    where: str
    panel: str
    does: str
    no: str = ""


COMMANDS: Final[dict[str, Listed]] = {
    "init": Listed("init.init:init", _SERVE, "Write a space.yaml, with comments, and what belongs to it."),
    "up": Listed(
        "up.up:up",
        _SERVE,
        "Start the gateway, the bridges and the participants that a space.yaml names, and keep them running.",
    ),
    "status": Listed(
        "up.status:status",
        _SERVE,
        "Show what 'mew up' runs here, and how it is doing. Exit code 1 where something has failed or none runs.",
        "a program has failed or is between two attempts, or nothing runs",
    ),
    "logs": Listed("up.logs:logs", _SERVE, "Show what the programs of 'mew up' wrote."),
    "restart": Listed("up.status:restart", _SERVE, "End one program of 'mew up', and start it again."),
    "down": Listed(
        "up.status:down",
        _SERVE,
        "Stop everything that 'mew up' runs here; returns when all of it has ended.",
    ),
    "gateway": Listed(
        "gateway:gateway",
        _SERVE,
        "Serve the spaces of a space.yaml until stopped; SIGHUP reads the file again.",
    ),
    "autopilot": Listed(
        "autopilot:app",
        _SERVE,
        "Learn from reviewers which proposals need no person, suggest rules, and fulfil what they cover.",
    ),
    "send": Listed(
        "send:send",
        _TAKE_PART,
        "Send an envelope, and show its id once everyone is shown it.",
        "the gateway refused it, or did not take it in time",
    ),
    "tail": Listed(
        "tail:tail",
        _TAKE_PART,
        "Show what happens in the space, as it happens; the last ones first. Ctrl-C ends it.",
        "the gateway does not tell what was before",
    ),
    "page": Listed(
        "page:page",
        _TAKE_PART,
        "Show a link that signs you in on the page of the space, in a browser; it works once, for ten minutes.",
    ),
    "participants": Listed(
        "participants:participants",
        _TAKE_PART,
        "Who belongs to the space, who of them is here, and what each may do.",
        "the gateway does not tell",
    ),
    "tools": Listed(
        "tools:tools",
        _TAKE_PART,
        "The tools that participants offer, and how to call them.",
        "the one that is named does not say",
    ),
    "call": Listed(
        "tools:call",
        _TAKE_PART,
        "Call a tool and show what it returns: at once where you may, else as a proposal that waits for somebody.",
        "refused, rejected, the tool failed, or nobody answered in time",
    ),
    "propose": Listed(
        "tools:propose",
        _TAKE_PART,
        "Propose that a tool be called, and wait for what becomes of it. Ctrl-C takes it back.",
        "rejected, withdrawn, nobody decided in time, or the tool failed",
    ),
    "bridge": Listed(
        "mcp.bridge:bridge",
        _SERVE,
        "Make an MCP server a participant of a space: its tools, resources and prompts are there for all who may.",
        "the server worked and then ended for good, or the space sent it away",
    ),
    "mcp": Listed(
        "mcp.mcp:mcp",
        _SERVE,
        "Be an MCP server in front of a space: hosts use what its participants offer, with approval where needed.",
    ),
    "wrap": Listed(
        "mcp.wrap:wrap",
        _SERVE,
        "Be another MCP server with an approval layer in front: what is not allowed waits for your word.",
        "the server worked and then ended for good",
    ),
    "proposals": Listed(
        "review.proposals:proposals",
        _DECIDE,
        "What is proposed and waits for a decision, and what was decided last.",
        "there is no such proposal",
    ),
    "approve": Listed(
        "review.proposals:approve",
        _DECIDE,
        "Carry a proposal out, as it is or with other arguments; shows what will run, and asks at the terminal.",
        "there is no such proposal, you may not do it yourself, you said no when asked, or the tool failed",
    ),
    "rules": Listed(
        "review.rules:app",
        _DECIDE,
        "The rules of the autopilot: list, show, accept, pause, revoke, object, export, test.",
        "there is no such rule, it was refused, or a test would fulfil what was rejected",
    ),
    "why": Listed(
        "review.rules:why",
        _DECIDE,
        "Say why the autopilot asked about a proposal, or which rule decided it, with the rule's bound.",
        "the autopilot decided nothing about it",
    ),
    "reject": Listed(
        "review.proposals:reject",
        _DECIDE,
        "Say no to a proposal. Others can still approve it unless the proposer gives up.",
        "there is no such proposal, it is decided, or you may not",
    ),
    "questions": Listed(
        "review.questions:questions",
        _DECIDE,
        "What others ask you while they work for you, and wait for.",
        "the gateway does not tell",
    ),
    "answer": Listed(
        "review.questions:answer",
        _DECIDE,
        "Answer a question, or decline to.",
        "there is no such question, or it is answered",
    ),
    "grant": Listed(
        "grant:grant",
        _MANAGE,
        "Give somebody capabilities that you hold, for good or for a time.",
        "refused: you do not hold that yourself, or may not grant",
    ),
    "revoke": Listed(
        "grant:revoke",
        _MANAGE,
        "Take back one grant, or everything inside these capabilities.",
        "refused, or several grants could be meant",
    ),
    "invite": Listed(
        "grant:invite",
        _MANAGE,
        "Let somebody into the space; their token is shown once, and never again.",
        "refused: they are there already, or you may not",
    ),
    "kick": Listed(
        "grant:kick",
        _MANAGE,
        "Remove somebody from the space; they cannot come back with the token they have.",
        "refused, or there is nobody of that name",
    ),
    "can": Listed(
        "can:can",
        _MANAGE,
        "Say whether somebody may do something, and why: which capability allows it, and who gave that.",
        "they may not, or not all of it",
    ),
    "token": Listed(
        "token:token",
        _MANAGE,
        "Whose tokens there are beside the space.yaml, and where; show one, make a new one, or seal one.",
    ),
    "pause": Listed(
        "participant:pause",
        _CONTROL,
        "Stop somebody from sending, until somebody resumes them or for a time.",
        "refused",
    ),
    "resume": Listed(
        "participant:resume",
        _CONTROL,
        "Let somebody go on who was paused.",
        "refused",
    ),
    "status-of": Listed(
        "participant:status_of",
        _CONTROL,
        "What a participant says of itself.",
        "it does not answer in time, or is not here",
    ),
    "forget": Listed(
        "participant:forget",
        _CONTROL,
        "Have somebody drop some of what they remember.",
        "it is not here, or you may not",
    ),
    "compact": Listed(
        "participant:compact",
        _CONTROL,
        "Have somebody make room in their memory, and wait until it is done.",
        "it is not here, does not answer in time, or you may not",
    ),
    "clear": Listed(
        "participant:clear",
        _CONTROL,
        "Have somebody forget everything.",
        "it is not here, or you may not",
    ),
    "restart-of": Listed(
        "participant:restart_of",
        _CONTROL,
        "Have somebody begin again as it was configured.",
        "it is not here, or you may not",
    ),
    "shutdown": Listed(
        "participant:shutdown",
        _CONTROL,
        "Have somebody cease, and wait until it has acknowledged or left.",
        "it neither acknowledged nor left in time, or you may not",
    ),
    "reasoning": Listed(
        "reasoning:reasoning",
        _CONTROL,
        "Who thinks aloud now, and stopping it.",
        "nobody thinks aloud under that name, or several could be meant",
    ),
    "replay": Listed(
        "replay.replay:replay",
        _LOOK_BACK,
        "Play a recorded space again, at its pace. Keys: space pauses, + and - change the speed, q ends it.",
    ),
    "audit": Listed(
        "audit.app:audit",
        _LOOK_BACK,
        "What happened in a space, from its journal, and the proof of it.",
        "`verify` found something changed or missing; elsewhere, the answer may lack what could not be read",
    ),
    "conform": Listed(
        "conform.conform:conform",
        _LOOK_BACK,
        "Try the specification on a gateway (mew conform URL), or on a participant.",
        "a MUST does not hold",
    ),
    "bench": Listed(
        "bench.bench:bench",
        _LOOK_BACK,
        "Measure what a gateway can do, from outside: deliveries, proposals, streams, joins, HTTP, and their latency.",
        "a workload gave no figure, you said no when asked, or somebody invited could not be removed",
    ),
    "doctor": Listed(
        "doctor.doctor:doctor",
        _LOOK_BACK,
        "Check versions, files, permissions, port, gateway, token, clock and disk, and say how to mend what is wrong.",
        "there is a problem",
    ),
    "completion": Listed(
        "completion:completion",
        _LOOK_BACK,
        "Print what makes a shell complete commands, options, names and ids of mew, or install it.",
    ),
}
