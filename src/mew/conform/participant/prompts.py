"""What makes the participant under test do things: that is its own affair, so its author says it in a file."""

import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

__all__ = ["PROMPTS", "BadPrompts", "Prompts", "ToolPrompt", "example", "read_prompts"]

PROMPTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chat": "has it answer or acknowledge; without one, a greeting is tried",
        "acknowledge": "has it acknowledge, and say no more",
        "tool": "is harmless, and may be called often; has to be a call",
        "effect": "tells, in its answer, how often `tool` was carried out; has to be a call",
        "recall": "has it say all that it remembers of what was said",
        "request": "has it call the tool read_note of {worker}, and say what that returned",
        "propose": "has it call the tool write_note of {worker} with the text {word}, and say what came of it",
        "withdraw": "has it take back what it proposed and is open",
        "reason": "has it reason aloud, with a thought at least, to a conclusion",
        "ponder": "has it reason aloud without an end, until that is cancelled",
        "abandon": "has it begin to reason aloud, and cancel that itself",
        "stream": "has it send something over a stream, and close it",
        "pour": "has it write to a stream without an end, until that is closed",
        "spill": "has it begin a stream, and end it because something went wrong",
        "cancel_chat": "has it say something, and cancel that",
        "grant": "has it grant {worker} something",
        "invite": "has it invite somebody",
        "acknowledge_all": "has it acknowledge all chats that wait for that, as a person does in its interface",
        "cancel_all": "has it cancel all it said that is not acknowledged, as a person does in its interface",
        "cancel_reasoning": "has it cancel the reasoning {start} of somebody else, as a person does in its interface",
    }
)
"""Each with what it does: a text is said to the participant in a chat, a call made as one of its tools."""

_CALLS: Final = ("tool", "effect")
_GREETING: Final = "Hello! Are you there? Please answer with a word or two."


class BadPrompts(Exception):
    """The file cannot be used; the message says why."""


class ToolPrompt(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the participant's tools, and what to call it with."""

    tool: str
    arguments: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Prompts:
    """`timeout_s` is how long an answer may take, `feed_tokens_max` how much may be said to fill a memory."""

    said: Mapping[str, str | ToolPrompt] = field(
        default_factory=lambda: MappingProxyType({"chat": _GREETING})
    )
    timeout_s: float = 5.0
    feed_tokens_max: int = 20_000

    def filled(self, name: str, **values: str) -> str | ToolPrompt | None:
        """A prompt with what the kit knows in it; None: there is none of this name."""
        prompt = self.said.get(name)
        values = {"word": f"w{uuid.uuid4().hex[:8]}", **values}
        return None if prompt is None else _filled(prompt, values)


class _Read(Struct, frozen=True, forbid_unknown_fields=True):
    prompts: dict[str, str | ToolPrompt] = {}
    timeout_s: float = 5.0
    feed_tokens_max: int = 20_000


def read_prompts(file: Path) -> Prompts:
    """
    Raises:
        BadPrompts: it cannot be read, or names what is no prompt.
    """
    try:
        read = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _Read)
    except OSError as error:
        raise BadPrompts(f"{file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadPrompts(f"{file}: {error}") from error
    for name, prompt in read.prompts.items():
        if name not in PROMPTS:
            raise BadPrompts(f"{file}: there is no prompt {name!r}; the prompts are {', '.join(PROMPTS)}")
        if name in _CALLS and not isinstance(prompt, ToolPrompt):
            raise BadPrompts(f"{file}: the prompt {name!r} has to be a call: {{tool = …, arguments = {{…}}}}")
    if read.timeout_s <= 0:
        raise BadPrompts(f"{file}: timeout_s must be above 0")
    return Prompts({"chat": _GREETING, **read.prompts}, read.timeout_s, read.feed_tokens_max)


def example() -> str:
    """A file to start from, with every prompt that there is, none of them set."""
    lines = [
        "# What makes the participant do things, for `mew conform participant`; what has no prompt is not offered.",
        "# A text is said to it in a chat, a call is made of one of its tools. {worker} is a participant with the",
        "# tools read_note and write_note, {word} a word that the kit makes up.",
        "timeout_s = 5.0  # how long an answer may take",
        "feed_tokens_max = 20000  # how much may be said to fill a memory",
        "",
        "[prompts]",
    ]
    for name, does in PROMPTS.items():
        shown = '{ tool = "…", arguments = { } }' if name in _CALLS else '"…"'
        lines.append(f"# {name} = {shown}  # {does}")
    return "\n".join(lines) + "\n"


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            for name, known in values.items():
                value = value.replace(f"{{{name}}}", known)
            return value
        case ToolPrompt(tool, arguments):
            return ToolPrompt(tool, _filled(arguments, values))
        case dict():
            return {key: _filled(item, values) for key, item in value.items()}
        case list():
            return [_filled(item, values) for item in value]
    return value
