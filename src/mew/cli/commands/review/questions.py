"""`mew questions`, `mew answer`: what those who work for you want to know."""

from typing import Annotated, Any

import typer

from mew.cli.arguments import ArgumentsOption, Pairs, read_pairs
from mew.cli.locate.journal import Failed
from mew.cli.render.ids import short
from mew.cli.render.text import note, say, say_json
from mew.cli.session import Place, everyday
from mew.client.client import Client
from mew.client.mcp.questions import Question
from mew.protocol.json import decode_json, encode_json

from .inbox import Inbox

__all__ = ["answer", "questions"]


@everyday
def questions(
    place: Place,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on, and show each that comes.")] = False,
) -> None:
    """What others ask you while they work for you, and wait for.

    Examples:
      mew questions
      mew questions --watch
    """
    place.run(lambda me: _listed(me, as_json=place.json, watch=watch))


@everyday
def answer(
    place: Place,
    question: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The question: its id, or at least 3 characters of either end of it."
        ),
    ],
    pairs: Pairs = None,
    arguments: ArgumentsOption = None,
    *,
    decline: Annotated[bool, typer.Option("--decline", help="Say no to it.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Leave it without a decision.")] = False,
) -> None:
    """Answer a question, or decline to.

    Examples (the id is one that 'mew questions' shows):
      mew answer 3f2a91c0 branch=main
      mew answer 3f2a91c0 --decline
    """
    if decline and cancel:
        raise Failed("--decline and --cancel: give one of them")
    if (decline or cancel) and (pairs or arguments):
        raise Failed("who says no gives no fields: leave them out, or --decline and --cancel")

    async def core(me: Client) -> Question:
        meant = (await Inbox.open(me)).find(question)
        if decline:
            await meant.decline()
        elif cancel:
            await meant.cancel()
        else:
            await answered(meant, pairs or [], arguments)
        return meant

    meant = place.run(core)
    action = "declined" if decline else "cancelled" if cancel else "answered"
    if place.json:
        say_json({"id": meant.id, "action": action})
    else:
        say(f"{action} {short(meant.id)}")


async def answered(question: Question, pairs: list[str], whole: str | None) -> None:
    """Accept it with what was typed.

    Raises:
        Failed: what was typed are no fields of it.
        MewError: as `Question.answer`.
    """
    fields: dict[str, Any] = read_pairs(pairs, whole, question.schema)
    try:
        await question.answer(fields)
    except ValueError as error:
        raise Failed(str(error)) from error


async def _listed(me: Client, *, as_json: bool, watch: bool) -> None:
    inbox = await Inbox.open(me)
    if not inbox.waiting and not as_json:
        say("nobody asks you anything")
    if as_json and not watch:
        say_json([_told(one) for one in inbox.waiting])
        return
    for one in inbox.waiting:
        _show(one, as_json=as_json)
    if watch:
        note("waiting for questions, Ctrl-C ends it")
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
