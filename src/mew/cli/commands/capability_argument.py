"""Capabilities as people type them: their string form, JSON, or just the name of a tool."""

import json
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from mew.cli.errors import CommandError
from mew.cli.render.text import note
from mew.client.client import Client
from mew.protocol.capability import JSON, Capability
from mew.protocol.errors import InvalidCapability, ProtocolError
from mew.protocol.json import decode_json
from mew.protocol.kinds import Kind
from mew.protocol.visible import named, visible

__all__ = ["read_capabilities"]

_CALL: Final = f"{Kind.MCP_REQUEST}:tools/call:"
_KINDS: Final = tuple(value for name, value in vars(Kind).items() if name.isupper())


async def read_capabilities(me: Client, written: Sequence[str]) -> list[Any]:
    """The capabilities that are meant. A word that is no kind is a tool, if one of that name is known here.

    Raises:
        CommandError: a word is neither, or a tool of several participants, or not JSON. The message says what to write.
    """
    return [await _read(me, one) for one in written]


async def _read(me: Client, written: str) -> Any:
    if written.startswith("{"):
        try:
            return decode_json(written.encode())
        except (ProtocolError, UnicodeError) as error:
            raise CommandError(f"{written[:80]!r} is no JSON: {error}") from error
    if _is_kind(written.partition(":")[0]):
        return written
    return await _tool(me, written)


def _is_kind(pattern: str) -> bool:
    try:
        capability = Capability.parse({"kind": pattern})
    except InvalidCapability as error:
        raise CommandError(str(error)) from error
    return any(capability.fits(kind, (), dict) for kind in _KINDS)


async def _tool(me: Client, word: str) -> str:
    tools = await me.tools()
    try:
        meant = Capability.parse({"kind": "tool", "payload": {"name": word}})
    except InvalidCapability as error:
        raise CommandError(str(error)) from error
    fitting = [tool for tool in tools if meant.fits("tool", (), partial(_named, tool.name))]
    offering = sorted({tool.participant for tool in fitting})
    if len(offering) == 1:
        note(f"{visible(word)} is a tool of {named(offering[0])}: this is {visible(_CALL + word)}")
        return _CALL + word
    if offering:
        asks = {"method": "tools/call", "params": {"name": word}}
        one = json.dumps({"kind": Kind.MCP_REQUEST, "to": offering[0], "payload": asks})
        raise CommandError(
            f"{word!r} is a tool of {' and of '.join(map(named, offering))}; write {_CALL + word!r} for all of them,"
            f" or for one: '{one}'"
        )
    near = get_close_matches(word, [tool.name for tool in tools], 1) or get_close_matches(word, _KINDS, 1)
    hint = f"; did you mean {near[0]!r}?" if near else "; 'mew tools' lists the tools"
    raise CommandError(
        f"{word!r} is neither a kind of envelope nor a tool known here{hint}"
        ' A kind of your own is written as JSON: \'{"kind": "…"}\''
    )


def _named(name: str) -> JSON:
    return {"name": name}
