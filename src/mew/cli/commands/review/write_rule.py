"""`mew rules write`: add a rule to the `allow` or `never` list of a file, and leave the rest of the file as it is."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from mew.autopilot.settings import AutopilotSettings
from mew.cli.commands.autopilot import read_config
from mew.cli.errors import CommandError
from mew.cli.render.text import say
from mew.protocol.json import encode_json

__all__ = ["write"]


def write(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A space.yaml, or a file with settings of the autopilot.")
    ],
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="The tool; wildcards as in capabilities.")
    ],
    argument: Annotated[
        list[str] | None,
        typer.Option(
            "--argument", metavar="NAME=PATTERN", help="What an argument must be; other arguments do not fit."
        ),
    ] = None,
    proposer: Annotated[str | None, typer.Option("--proposer", metavar="NAME", help="Who proposes.")] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="NAME", help="Whose tool it is.")] = None,
    annotation: Annotated[
        list[str] | None,
        typer.Option("--annotation", metavar="NAME", help="What the tool says of itself, as readOnlyHint."),
    ] = None,
    *,
    never: Annotated[
        bool, typer.Option("--never", help="A person must decide about such calls, whatever was learned.")
    ] = False,
) -> None:
    """Write a rule into a file: such calls are decided without asking or, with --never, always asked about.

    Try it with 'mew rules test FILE' before you restart the autopilot.

    Example: mew rules write space.yaml --tool read_file --argument "path=docs/**" --proposer coder
    """
    rule: dict[str, Any] = {"tool": tool}
    if argument:
        rule["arguments"] = dict(_pair(one) for one in argument)
    rule |= {name: value for name, value in (("proposer", proposer), ("target", target)) if value is not None}
    if annotation:
        rule["annotation"] = dict.fromkeys(annotation, True)
    key = "never" if never else "allow"
    before = read_config(file)
    text = file.read_text(encoding="utf-8")
    entry = encode_json(rule).decode()
    file.write_text(_with_rule(text, key, entry), encoding="utf-8")
    try:
        _check(before, read_config(file), key, file, entry)
    except CommandError:
        file.write_text(text, encoding="utf-8")
        raise
    say(f"{file}: added to {key}: {entry}")
    say(f"Try it with 'mew rules test {file}', then restart the autopilot.")


def _check(before: AutopilotSettings, after: AutopilotSettings, key: str, file: Path, entry: str) -> None:
    expected = len(getattr(before, key)) + 1
    if len(getattr(after, key)) != expected:
        raise CommandError(f"{file}: cannot add to {key}; write it by hand: {entry}")


def _pair(written: str) -> tuple[str, str]:
    name, equals, pattern = written.partition("=")
    if not name or not equals:
        raise CommandError(f"--argument {written!r}: expected a name and a pattern, like path=docs/**")
    return name, pattern


def _with_rule(text: str, key: str, entry: str) -> str:
    """The text with one more entry in a list of the settings, which are the file or its `autopilot:`."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or not isinstance(root, yaml.MappingNode) or not root.value:
        return f"{text.rstrip()}\n{key}:\n  - {entry}\n".lstrip()
    settings = _settings(root)
    if settings is None:
        return f"{text.rstrip()}\n\nautopilot:\n  {key}:\n    - {entry}\n"
    listed = _value(settings, key)
    if isinstance(listed, yaml.SequenceNode) and listed.value:
        last = listed.value[-1].end_mark.index
        if listed.flow_style:
            return f"{text[:last]}, {entry}{text[last:]}"
        indent = " " * (listed.start_mark.column)
        return _after_line(text, last, f"{indent}- {entry}")
    if not isinstance(settings, yaml.MappingNode) or settings.flow_style or listed is not None:
        raise CommandError(f"cannot add to {key} of this file; write it by hand: {entry}")
    indent = " " * settings.value[0][0].start_mark.column
    last = settings.value[-1][1].end_mark.index
    return _after_line(text, last, f"{indent}{key}:\n{indent}  - {entry}")


def _settings(root: yaml.MappingNode) -> yaml.Node | None:
    """The mapping that holds the settings; None if a space.yaml has none yet."""
    space = _value(root, "space")
    inner = _value(space, "autopilot") if isinstance(space, yaml.MappingNode) else None
    found = inner or _value(root, "autopilot")
    if found is not None or space is not None or _value(root, "participants") is not None:
        return found
    return root


def _value(node: yaml.Node, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _after_line(text: str, index: int, line: str) -> str:
    """Insert a line after the one that the last character before `index` stands on."""
    end = text.find("\n", len(text[:index].rstrip()))
    if end < 0:
        return f"{text}\n{line}\n"
    return f"{text[: end + 1]}{line}\n{text[end + 1 :]}"
