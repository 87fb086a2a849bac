"""Whether quotes and a document cover each other."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mew.conform.ledger import Requirement, RequirementLevel

from .document import Document, Form, Unit

__all__ = ["Quote", "misplaced", "placed", "unquoted_keywords", "unquoted_units"]

NAMES_THE_KEY_WORDS = "Requirements Language"


class Quote(NamedTuple):
    """A fragment of the document that somebody answers for, where it stands."""

    section: str
    start: int
    end: int
    owner: str
    level: RequirementLevel | None

    def touches(self, unit: Unit) -> bool:
        return self.section == unit.section and self.start < unit.end and unit.start < self.end


def placed(document: Document, ledger: Iterable[Requirement]) -> Iterator[Quote]:
    """The quotes of the ledger, in every section that their requirement names."""
    for requirement in ledger:
        for quote in requirement.quotes:
            for section in (requirement.section, *requirement.also):
                for start in document.find(section, quote):
                    yield Quote(section, start, start + len(quote), requirement.id, requirement.level)


def misplaced(
    document: Document, owner: str, sections: Sequence[str], quotes: Iterable[str]
) -> Iterator[str]:
    """What is wrong with somebody's quotes: not in the document, more than once, or none from a section they name."""
    used: set[str] = set()
    for quote in quotes:
        found = [section for section in sections for _ in document.find(section, quote)]
        used.update(found)
        if not found:
            yield f"{owner}: not in §{' or §'.join(sections)}: {quote}"
        if len(found) > len(set(found)):
            yield f"{owner}: more than once in a section: {quote}"
    for section in sections:
        if section not in used:
            yield f"{owner}: names §{section} and quotes nothing of it"


def unquoted_keywords(document: Document, quotes: Iterable[Quote]) -> Iterator[str]:
    """Each MUST, SHOULD, MAY, (required), (optional) that is in no quote of a requirement of that level."""
    quotes = tuple(quotes)
    for keyword in document.keywords():
        held = (
            quote.section == keyword.section
            and quote.start <= keyword.start
            and keyword.end <= quote.end
            and quote.level is keyword.level
            for quote in quotes
        )
        if keyword.section != NAMES_THE_KEY_WORDS and not any(held):
            yield f"no requirement quotes this {keyword.word} as a {keyword.level}: {document.around(keyword)}"


def unquoted_units(document: Document, quotes: Iterable[Quote]) -> Iterator[str]:
    """Each sentence, item, row and comment of which nothing is quoted. Examples need not be, their comments must."""
    quotes = tuple(quotes)
    for unit in document.units:
        if unit.form is Form.EXAMPLE or not re.search(r"\w", unit.text):
            continue
        if not any(quote.touches(unit) for quote in quotes):
            yield f"nobody quotes {unit}"
