"""Which requirements `mew conform` is to try: all, or those that `--only` names."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from mew.cli.errors import CommandError
from mew.conform import requirements
from mew.conform.ledger import Requirement, Side

__all__ = ["Only", "chosen", "sections_named"]

Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="Only this: a section and those below it, like 3.6, a requirement, like grant.adds, or how several "
        "begin, like grant. May be given more than once.",
    ),
]


def chosen(side: Side, only: Sequence[str] | None) -> list[Requirement]:
    """Those that bind this side, or of them those that are asked for.

    Raises:
        CommandError: one of the words names none.
    """
    ours = [one for one in requirements() if one.side in (side, Side.BOTH)]
    words = [_word(one) for one in only or ()]
    for word in words:
        if not any(_is_meant(one, word) for one in ours):
            raise CommandError(f"--only {word}: no requirement about {side}s is there; {_there_are(ours)}")
    return [one for one in ours if not words or any(_is_meant(one, word) for word in words)]


def _word(only: str) -> str:
    return only.strip().removeprefix("§").strip().rstrip(".")


def _is_meant(requirement: Requirement, word: str) -> bool:
    if not word:
        return False
    sections = (requirement.section, *requirement.also)
    return requirement.id.startswith(word) or any(_is_within(section, word) for section in sections)


def _is_within(section: str, word: str) -> bool:
    return f"{section}.".startswith(f"{word}.")


def _there_are(ours: Iterable[Requirement]) -> str:
    ours = list(ours)
    sections = sorted(
        {each for one in ours for each in (one.section, *one.also)},
        key=lambda one: [int(part) for part in one.split(".")],
    )
    starts = sorted({one.id.partition(".")[0] for one in ours})
    return f"the sections are {', '.join(sections)}, and the ids begin with {', '.join(starts)}"


def sections_named(requirement: Requirement, only: Sequence[str] | None) -> str:
    """Its section, and those for which it was chosen, where they say it again."""
    words = [_word(one) for one in only or ()]
    again = [
        section
        for section in requirement.also
        if any(_is_within(section, word) and not _is_within(requirement.section, word) for word in words)
    ]
    return requirement.section + "".join(f", {section}" for section in again)
