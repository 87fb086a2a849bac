"""Delegated fulfilment (§9.4 of the specification): orchestrator.py SUPERVISOR

Others propose. SUPERVISOR decides by answering the proposal in chat with "approve" or "reject"; this one carries it
out. What was approved three times in a row, of the same proposer, tool and target, it then approves by itself.
"""

import sys
from collections import Counter

import mew
from mew.protocol.kinds import Chat

APPROVALS_TO_LEARN = 3
orchestrator = mew.Participant("orchestrator")
approved: Counter[object] = Counter()
asked: dict[str, str] = {}  # what was asked about which proposal
supervisor = ""


def sort_of(proposal: mew.Review) -> object:
    return proposal.proposer, proposal.tool or proposal.method, proposal.target


@orchestrator.on_proposal
async def proposed(proposal: mew.Review) -> None:
    if approved[sort_of(proposal)] >= APPROVALS_TO_LEARN and not proposal.changed:
        await carry_out(proposal, "as always")
    else:
        question = await orchestrator.client.chat(proposal.preview(), to=[supervisor], about=proposal.id)
        asked[question.id] = proposal.id


@orchestrator.on("chat")
async def decided(said: mew.Envelope, chat: Chat) -> None:
    verdict = chat.text.strip().lower()
    if said.sender != supervisor or verdict not in ("approve", "reject"):
        return
    for proposal in [orchestrator.client.review(asked.get(about, about)) for about in said.correlation_id]:
        if verdict == "approve":
            approved[sort_of(proposal)] += 1
            await carry_out(proposal, f"as {supervisor} said")
        else:
            approved[sort_of(proposal)] = 0  # one no, and it asks again
            await proposal.reject("disagree", f"{supervisor} said no")


async def carry_out(proposal: mew.Review, why: str) -> None:
    try:
        result = await proposal.approve()
        await orchestrator.client.chat(f"Done, {why}: {result}", about=proposal.id)
    except mew.MewError as error:
        await orchestrator.client.chat(f"Not done: {error}", about=proposal.id)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    supervisor = sys.argv[1]
    orchestrator.run()  # where, and as whom, `mew up` says in the environment
