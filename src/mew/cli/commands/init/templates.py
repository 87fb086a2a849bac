"""What a space can begin as: the files of a template, filled in."""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

__all__ = ["TEMPLATES", "Template", "rendered", "space_id"]

_PLACE = re.compile(r"\{\{(space|port)\}\}")
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._@-]+")
_ID_CHARS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Template:
    """`parts` are its files: where each goes, and where it is among the templates."""

    does: str
    parts: dict[str, str]


_WORKSPACE: Final = {
    "workspace/notes.txt": "files/workspace/notes.txt",
    "workspace/old-notes.txt": "files/workspace/old-notes.txt",
}
_AGENT: Final = {"agent.py": "files/agent.py", **_WORKSPACE}

TEMPLATES: Final = {
    "files": Template(
        "you, a folder of files behind your approval, and a scripted agent that needs no model",
        {"space.yaml": "files/space.yaml", **_AGENT},
    ),
    "reviewers": Template(
        "two people, an agent they do not trust yet, and an autopilot that learns from their decisions",
        {
            "space.yaml": "reviewers/space.yaml",
            **_AGENT,
        },
    ),
    "mixed": Template(
        "four profiles in one space: who administers, who serves, who is new, who watches",
        {"space.yaml": "mixed/space.yaml", **_WORKSPACE},
    ),
    "empty": Template(
        "you, and somebody who may talk and propose; the rest is yours", {"space.yaml": "empty/space.yaml"}
    ),
}


def rendered(template: str, *, space: str, port: int) -> dict[Path, str]:
    """The files of a template by where they go, with the name of the space and its port in them."""
    filled = {"space": space, "port": str(port)}
    folder = files("mew") / "templates"
    return {
        Path(place): _PLACE.sub(lambda match: filled[match[1]], (folder / part).read_text(encoding="utf-8"))
        for place, part in TEMPLATES[template].parts.items()
    }


def space_id(text: str, *, otherwise: str = "space") -> str:
    """A name that a space, or a participant, can have, as near to this one as may be."""
    return _NOT_IN_AN_ID.sub("-", text).strip("-.@")[:_ID_CHARS_MAX] or otherwise
