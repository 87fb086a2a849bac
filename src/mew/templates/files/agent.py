"""An agent that follows a script, so that it needs no model: it reads on its own, and proposes what it may not do.

It thinks aloud, proposes to write a file, waits for a person, and goes on with what they decided. Change it as you
like; `mew restart agent` starts it again.
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
        await propose(me, "write_file", "to keep a summary of the notes", path="summary.md", content=summary)
        await propose(me, "delete_file", "as the old notes are no longer needed", path="old-notes.txt")
        await me.chat("That is all. Say 'again', and I begin anew.")
    except mew.MewError as error:
        await me.chat(f"I cannot go on: {error}. Say 'again', and I begin anew.")


async def look_around(me: mew.Client) -> str:
    """What one may do without asking: read. Everyone can follow what it makes of it."""
    async with me.reasoning("What can I do in this folder?") as reasoning:
        await reasoning.thought("I may read on my own, so I look first.")
        names = await me.call("files", "list_directory")
        await reasoning.thought(f"There is {', '.join(names)}.")
        notes = await me.call("files", "read_text_file", path="notes.txt")
        lines = [line for line in notes.splitlines() if line.startswith("- ")]
        await reasoning.conclude("A summary would help. I may not write files, so I propose it.")
    return f"# Summary\n\n{len(lines)} things to do:\n\n" + "\n".join(lines) + "\n"


async def propose(me: mew.Client, tool: str, why: str, **arguments: str) -> None:
    """What one may not do: propose it, and wait for somebody who may."""
    proposal = await me.propose_call("files", tool, arguments, timeout_s=DAY_S)
    await me.chat(f"I propose {tool} of {arguments['path']}, {why}.", about=proposal.id)
    match await proposal:
        case mew.Fulfilled(by=by, edited=True):
            await me.chat(f"Thank you, {by}: done, as you changed it.")
        case mew.Fulfilled(by=by):
            await me.chat(f"Thank you, {by}: done.")
        case mew.Rejected(by=by, reason=reason):
            await me.chat(f"I see, {by}: {reason}. I leave it as it is.")
        case mew.TimedOut() | mew.Withdrawn():
            await me.chat("Nobody had the time: I leave it as it is.")


agent.run()
