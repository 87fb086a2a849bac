"""While something runs: what is asked of one meanwhile is put to who sits at the terminal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from mew.client.client import Client
from mew.client.errors import AlreadyDecided, MewError
from mew.client.mcp.questions import Question
from mew.client.mcp.validation import InvalidArguments
from mew.protocol.visible import literal, named

from .arguments import read_pairs
from .errors import CommandError
from .prompt import ask
from .render.ids import short
from .render.text import is_terminal, note

__all__ = ["answering"]

_YES: Final = "y"
_FIELDS_MAX: Final = 64


@asynccontextmanager
async def answering(me: Client) -> AsyncIterator[None]:
    """Inside it, questions to oneself are asked at the terminal; where there is none, it is said how to answer them."""
    coming = me.questions()

    async def answer() -> None:
        async for question in coming:
            if is_terminal():
                await _put_to_person(question)
            else:
                note(f"{question.preview()}\n  answer it with: mew answer {short(question.id)}")

    task = me.connection.spawn(answer())
    try:
        yield
    finally:
        coming.close()
        task.cancel()


async def _put_to_person(question: Question) -> None:
    """Show it, and answer or decline it as they say; one that was answered elsewhere is let go."""
    note(question.preview())
    try:
        if (await ask(_first(question)))[:1].lower() != _YES:
            await question.decline()
        elif question.mode == "url":
            await question.answer()
        else:
            await _fill_in(question)
    except AlreadyDecided as error:
        note(f"{error}")
    except CommandError:
        await question.cancel()
    except MewError as error:
        note(f"not answered: {error}")


def _first(question: Question) -> str:
    if question.mode == "url":
        return "Have you been there, and agreed? [y]es, [n]o: "
    return "Answer? [y]es, [n]o: "


async def _fill_in(question: Question) -> None:
    while question.open:
        fields: dict[str, Any] = {}
        for name, field in list(_properties(question.schema).items())[:_FIELDS_MAX]:
            await _field(question.schema or {}, name, field, fields)
        try:
            await question.answer(fields)
            return
        except InvalidArguments as error:
            note(f"  ! {error}")


async def _field(schema: dict[str, Any], name: str, field: dict[str, Any], fields: dict[str, Any]) -> None:
    """Until it is of the right type. Nothing typed leaves it out, or gives the default."""
    while True:
        typed = await ask(f"  {named(name)}{_hint(schema, name, field)}: ")
        if not typed and "default" in field:
            fields[name] = field["default"]
        elif typed:
            try:
                fields.update(read_pairs([f"{name}={typed}"], None, schema))
            except CommandError as error:
                note(f"  ! {error}")
                continue
        return


def _hint(schema: dict[str, Any], name: str, field: dict[str, Any]) -> str:
    choices = field.get("enum")
    parts = [literal(choices)] if isinstance(choices, list) else []
    if "default" in field:
        parts.append(f"else {literal(field['default'])}")
    elif name not in (schema.get("required") or ()):
        parts.append("may be left out")
    return f" ({', '.join(parts)})" if parts else ""


def _properties(schema: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    properties = (schema or {}).get("properties")
    found = properties if isinstance(properties, dict) else {}
    return {name: field if isinstance(field, dict) else {} for name, field in found.items()}
