"""The commands there are: where each is, and what it does in a line, so that a list of them loads none."""

from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Listed"]

_SERVE: Final = "Run a space"
_TAKE_PART: Final = "Take part in a space"
_DECIDE: Final = "Review proposals"
_MANAGE: Final = "Manage access"
_CONTROL: Final = "Control participants"
_LOOK_BACK: Final = "Audit and diagnose"


class Listed(NamedTuple):
    """`where`: a module of this package and what is in it: a function, or a Typer with commands of its own.

    `does` is the first line of its help; `no`, where it has that, what its exit code 1 says.
    """

    where: str
    panel: str
    does: str
    no: str = ""


COMMANDS: Final[dict[str, Listed]] = {
    "init": Listed("init.init:init", _SERVE, "Write a commented space.yaml and the files it needs."),
    "up": Listed(
        "up.up:up",
        _SERVE,
        "Start the gateway, the bridges and the participants that a space.yaml names, and keep them running.",
    ),
    "status": Listed(
        "up.status:status",
        _SERVE,
        "Show the programs that 'mew up' runs here. Exit code 1 if one has failed, or none runs.",
        "a program has failed or is between two attempts, or nothing runs",
    ),
    "logs": Listed("up.logs:logs", _SERVE, "Show the logs of the programs that 'mew up' runs."),
    "restart": Listed("up.status:restart", _SERVE, "Restart one program of 'mew up'."),
    "down": Listed(
        "up.status:down",
        _SERVE,
        "Stop everything that 'mew up' runs here, and wait until it has ended.",
    ),
    "gateway": Listed(
        "gateway:gateway",
        _SERVE,
        "Serve the spaces of a space.yaml until stopped; SIGHUP reloads the file.",
    ),
    "reload": Listed(
        "reload:reload",
        _SERVE,
        "Have the gateway read its space.yaml again, or show who would gain or lose which right.",
    ),
    "backup": Listed(
        "backup:backup",
        _SERVE,
        "Copy the space.yaml, the tokens and the journal while the gateway runs, and verify the copy.",
        "the copy is not sound",
    ),
    "restore": Listed(
        "backup:restore",
        _SERVE,
        "Put a verified backup in place.",
        "the backup is not sound",
    ),
    "upgrade": Listed(
        "upgrade:upgrade",
        _SERVE,
        "Check whether this version of mew can read a space.yaml and its journal.",
        "it cannot",
    ),
    "autopilot": Listed(
        "autopilot:app",
        _SERVE,
        "Learn from reviewers which proposals need no person, suggest rules, and fulfil what they cover.",
    ),
    "send": Listed(
        "send:send",
        _TAKE_PART,
        "Send an envelope, and print its id once it is delivered.",
        "the gateway refused it, or did not take it in time",
    ),
    "tail": Listed(
        "tail:tail",
        _TAKE_PART,
        "Show the last envelopes of the space, then new ones as they arrive. Stop with Ctrl-C.",
        "the gateway does not tell what was before",
    ),
    "page": Listed(
        "page:page",
        _TAKE_PART,
        "Print a link that signs you in on the web page of the space. It works once, within ten minutes.",
    ),
    "participants": Listed(
        "participants:participants",
        _TAKE_PART,
        "List the participants of the space: who is connected, and what each may do.",
        "the gateway does not tell",
    ),
    "tools": Listed(
        "tools:tools",
        _TAKE_PART,
        "List the tools that participants offer, and how to call them.",
        "the one that is named does not say",
    ),
    "call": Listed(
        "tools:call",
        _TAKE_PART,
        "Call a tool and print its result. If you may not call it, propose the call and wait for approval.",
        "refused, rejected, the tool failed, or nobody answered in time",
    ),
    "propose": Listed(
        "tools:propose",
        _TAKE_PART,
        "Propose a tool call and wait for the outcome. Ctrl-C withdraws the proposal.",
        "rejected, withdrawn, nobody decided in time, or the tool failed",
    ),
    "bridge": Listed(
        "mcp.bridge:bridge",
        _SERVE,
        "Make an MCP server a participant of a space, with its tools, resources and prompts.",
        "the server worked and then ended for good, or the space sent it away",
    ),
    "mcp": Listed(
        "mcp.mcp:mcp",
        _SERVE,
        "Serve a space to MCP hosts: they use the tools of its participants, with approval if it is needed.",
    ),
    "wrap": Listed(
        "mcp.wrap:wrap",
        _SERVE,
        "Put an approval layer in front of an MCP server: calls you did not allow wait for your approval.",
        "the server worked and then ended for good",
    ),
    "proposals": Listed(
        "review.proposals:proposals",
        _DECIDE,
        "List the proposals that wait for a decision, and the last ones that were decided.",
        "there is no such proposal",
    ),
    "approve": Listed(
        "review.proposals:approve",
        _DECIDE,
        "Approve a proposal, as it is or with other arguments. Shows what will run, and asks for confirmation.",
        "there is no such proposal, you may not do it yourself, you said no when asked, or the tool failed",
    ),
    "rules": Listed(
        "review.rules:app",
        _DECIDE,
        "The rules of the autopilot: list, show, accept, write, pause, revoke, object, export, test.",
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
        "Reject a proposal. Others can still approve it unless the proposer gives up.",
        "there is no such proposal, it is decided, or you may not",
    ),
    "questions": Listed(
        "review.questions:questions",
        _DECIDE,
        "List the questions that participants ask you while they work for you.",
        "the gateway does not tell",
    ),
    "answer": Listed(
        "review.questions:answer",
        _DECIDE,
        "Answer a question, or decline it.",
        "there is no such question, or it is answered",
    ),
    "grant": Listed(
        "grant:grant",
        _MANAGE,
        "Grant a participant capabilities that you hold, permanently or for a time.",
        "refused: you do not hold that yourself, or may not grant",
    ),
    "revoke": Listed(
        "grant:revoke",
        _MANAGE,
        "Revoke one grant, or every capability that fits a pattern.",
        "refused, or several grants could be meant",
    ),
    "invite": Listed(
        "grant:invite",
        _MANAGE,
        "Invite a participant to the space. Its token is shown only once.",
        "refused: they are there already, or you may not",
    ),
    "kick": Listed(
        "grant:kick",
        _MANAGE,
        "Remove a participant from the space. Its token is no longer valid.",
        "refused, or there is nobody of that name",
    ),
    "can": Listed(
        "can:can",
        _MANAGE,
        "Check whether a participant may do something, and why: which capability allows it, and who granted it.",
        "they may not, or not all of it",
    ),
    "token": Listed(
        "token:token",
        _MANAGE,
        "List the tokens beside the space.yaml, show one, make a new one, or seal one.",
    ),
    "participant": Listed(
        "participant:participant",
        _CONTROL,
        "Control one participant: pause, resume, status, forget, compact, clear, restart, shutdown.",
        "refused, not connected, or no answer in time",
    ),
    "reasoning": Listed(
        "reasoning:reasoning",
        _CONTROL,
        "List reasoning in progress, or cancel it.",
        "nobody thinks aloud under that name, or several could be meant",
    ),
    "replay": Listed(
        "replay.replay:replay",
        _LOOK_BACK,
        "Replay a recorded space at its own pace. Keys: space pauses, + and - change the speed, q quits.",
    ),
    "audit": Listed(
        "audit.app:audit",
        _LOOK_BACK,
        "Query the journal of a space, and prove that it is complete.",
        "`verify` found something changed or missing; elsewhere, the answer may lack what could not be read",
    ),
    "conform": Listed(
        "conform.conform:conform",
        _LOOK_BACK,
        "Check a gateway (mew conform URL) or a participant against the specification.",
        "a MUST does not hold",
    ),
    "bench": Listed(
        "bench.bench:bench",
        _LOOK_BACK,
        "Measure throughput and latency of a gateway: deliveries, proposals, streams, joins, HTTP.",
        "a workload gave no figure, you said no when asked, or somebody invited could not be removed",
    ),
    "doctor": Listed(
        "doctor.doctor:doctor",
        _LOOK_BACK,
        "Check versions, files, permissions, port, gateway, token, clock and disk, and say how to fix problems.",
        "there is a problem",
    ),
}
