"""`mew questions`, `mew answer`: what those who work for you want to know."""

from collections import deque
from typing import Annotated, Any, Final

import typer

from mew.cli.arguments import ArgumentsOption, Pairs, read_pairs
from mew.cli.errors import CommandError
from mew.cli.render.ids import pick_id, short
from mew.cli.render.text import note, say, say_json
from mew.cli.session import SpaceSession, session_command
from mew.client.client import Client
from mew.client.connection.feed import Feed
from mew.client.mcp.questions import Question, Questions
from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_json, encode_json
from mew.protocol.kinds import Kind

__all__ = ["OpenQuestions", "answer", "questions"]


@session_command
def questions(
    session: SpaceSession,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep running, and show new questions.")
    ] = False,
) -> None:
    """List the questions that participants ask you while they work for you.

    Examples:
      mew questions
      mew questions --watch
    """
    session.run(lambda me: _listed(me, as_json=session.json, watch=watch))


@session_command
def answer(
    session: SpaceSession,
    question: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of the question; its first or last 3 characters or more are enough."
        ),
    ],
    pairs: Pairs = None,
    arguments: ArgumentsOption = None,
    *,
    decline: Annotated[bool, typer.Option("--decline", help="Decline to answer.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Dismiss it without a decision.")] = False,
) -> None:
    """Answer a question, or decline it.

    Examples (the id is one that 'mew questions' shows):
      mew answer 3f2a91c0 branch=main
      mew answer 3f2a91c0 --decline
    """
    if decline and cancel:
        raise CommandError("--decline and --cancel: give one of them")
    if (decline or cancel) and (pairs or arguments):
        raise CommandError("who says no gives no fields: leave them out, or --decline and --cancel")

    async def core(me: Client) -> Question:
        meant = (await OpenQuestions.open(me)).find(question)
        if decline:
            await meant.decline()
        elif cancel:
            await meant.cancel()
        else:
            await answered(meant, pairs or [], arguments)
        return meant

    meant = session.run(core)
    action = "declined" if decline else "cancelled" if cancel else "answered"
    if session.json:
        say_json({"id": meant.id, "action": action})
    else:
        say(f"{action} {short(meant.id)}")


async def answered(question: Question, pairs: list[str], whole: str | None) -> None:
    """Accept it with what was typed.

    Raises:
        CommandError: what was typed are no fields of it.
        MewError: as `Question.answer`.
    """
    fields: dict[str, Any] = read_pairs(pairs, whole, question.schema)
    try:
        await question.answer(fields)
    except ValueError as error:
        raise CommandError(str(error)) from error


async def _listed(me: Client, *, as_json: bool, watch: bool) -> None:
    inbox = await OpenQuestions.open(me)
    if not inbox.waiting and not as_json:
        say("no questions are waiting for you")
    if as_json and not watch:
        say_json([_told(one) for one in inbox.waiting])
        return
    for one in inbox.waiting:
        _show(one, as_json=as_json)
    if watch:
        note("waiting for questions; stop with Ctrl-C")
        async for one in inbox.coming:
            _show(one, as_json=as_json)


def _show(question: Question, *, as_json: bool) -> None:
    if as_json:
        say_json(_told(question))
        return
    head, *lines = question.preview().split("\n")
    say(f"{short(question.id)}  {head}")
    for line in lines:
        say(line)
    fields = "" if question.mode == "url" else " key=value…"
    say(f"  mew answer {short(question.id)}{fields}, or --decline")


def _told(question: Question) -> dict[str, Any]:
    told = {"id": question.id, "asker": question.asker, "about": question.about, "mode": question.mode}
    whole: dict[str, Any] = decode_json(encode_json({**told, "params": question.params}))
    return whole


_PAST_MAX: Final = 1_000
_MEANWHILE_MAX: Final = 16_384


class OpenQuestions:
    """Made by `OpenQuestions.open`. `waiting` are those that were open then, `coming` gives those that come."""

    def __init__(self, waiting: list[Question], coming: Feed[Question]) -> None:
        self.waiting = waiting
        self.coming = coming

    @classmethod
    async def open(cls, me: Client) -> "OpenQuestions":
        """With what was asked in the last 1,000 envelopes of MCP.

        Raises:
            ConnectError: the gateway does not tell.
        """
        meanwhile: deque[Envelope] = deque(maxlen=_MEANWHILE_MAX)

        def listen(envelope: Envelope, payload: Any) -> None:
            meanwhile.append(envelope)

        me.connection.listen(listen, (Kind.MCP_REQUEST, Kind.MCP_RESPONSE))
        try:
            newest_first = await me.history(kind="mcp/*", limit=_PAST_MAX, newest_first=True).list()
        finally:
            me.connection.unlisten(listen)
        asked = Questions(me.connection)  # which listens itself: nothing is waited for from here
        past = {envelope.id: envelope for envelope in (*reversed(newest_first), *meanwhile)}
        asked.recall(past.values())
        coming = asked.questions()
        waiting = [await anext(coming) for _ in range(len(coming))]
        here = [one for one in waiting if one.asker in me.participants]
        return cls(here, coming)

    def find(self, written: str) -> Question:
        """The question with this id, or one that begins or ends so.

        Raises:
            CommandError: there is none, or several could be meant.
        """
        waiting = {one.id: one for one in self.waiting}
        unknown = f"no question {written!r} waits for you; 'mew questions' lists those that do"
        return waiting[pick_id(written, waiting, what="question", unknown=unknown)]
