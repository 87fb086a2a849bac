"""An agent that follows a script, so that it needs no model: it does what it may, and proposes the rest.

It thinks aloud, proposes to write a file, waits for a person, and goes on with what they decided. After
`mew grant agent write_file` it writes at once. Change it as you like; `mew restart agent` starts it again.
"""

import asyncio

import mew

DAY_S = 24 * 60 * 60.0

agent = mew.Participant("agent")
job: asyncio.Future[None] | None = None  # what it does now, beside listening to others


@agent.on_start
async def start() -> None:
    begin()


@agent.on("chat")
async def asked(said: mew.Envelope) -> None:
    if "again" in str(said.content.get("text", "")).lower():
        begin()


def begin() -> None:
    global job
    if job is None or job.done():
        job = asyncio.ensure_future(work(agent.client))


async def work(me: mew.Client) -> None:
    try:
        summary = await look_around(me)
        await act(me, "write_file", "to keep a summary of the notes", path="summary.md", content=summary)
        await act(me, "delete_file", "the old notes are no longer needed", path="old-notes.txt")
        await me.chat("That is all. Say 'again', and I begin anew.")
    except mew.MewError as error:
        await me.chat(f"I cannot go on: {error}. Say 'again', and I begin anew.")


async def look_around(me: mew.Client) -> str:
    """What one may do without asking: read. Everyone can follow what it makes of it."""
    async with me.reasoning("What can I do in this folder?") as reasoning:
        await reasoning.thought("I may read on my own, so I look first.")
        names = await me.call("files", "list_directory")
        await reasoning.thought(f"There is {', '.join(names)}.")
        notes = await me.call("files", "read_text_file", {"path": "notes.txt"})
        lines = [line for line in notes.splitlines() if line.startswith("- ")]
        await reasoning.conclude("A summary would help: I write it, or propose it if I may not.")
    return f"# Summary\n\n{len(lines)} things to do:\n\n" + "\n".join(lines) + "\n"


async def act(me: mew.Client, tool: str, why: str, **arguments: str) -> None:
    """Call a tool: at once if the agent may, else by a proposal, and wait for whoever decides."""
    path = arguments["path"]
    stages: list[mew.ProposalUpdate] = []  # of the proposal; empty if none was needed
    try:
        await me.call("files", tool, arguments, why=why, timeout_s=DAY_S, on_update=stages.append)
    except mew.NotFulfilled as missed:
        await me.chat(f"I leave {path} as it is: {missed}.")
    except (mew.ToolError, mew.RpcError) as failed:
        await me.chat(f"{tool} of {path} failed: {failed}.")
    else:
        await me.chat(f"{tool} of {path} is done, {how(stages)}.")


def how(stages: list[mew.ProposalUpdate]) -> str:
    if not stages:
        return "as I may do that myself"
    return f"{'as changed' if stages[-1].edited else 'as approved'} by {stages[-1].by}"


agent.run()
