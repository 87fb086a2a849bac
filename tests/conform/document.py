"""The specification taken apart: sections, and in them sentences, items, comments of examples, and key words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from mew.conform.ledger import RequirementLevel

__all__ = ["SPECIFICATION", "Document", "Form", "Keyword", "Unit"]

SPECIFICATION = Path(__file__).parents[2] / "docs" / "spec" / "mew-v0.4.md"

_HEADING = re.compile(r"#{1,6} +(?:(\d+(?:\.\d+)*)\.? )?(.+)")
_FENCE = re.compile(r"\s*```")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) +(\[ \] )?(.*)")
_ROW = re.compile(r"\s*\|.*\|\s*")
_RULE = re.compile(r"-{3,}\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z`*])")
_COMMENT = re.compile(r"//[^\n]+|/\*.*?\*/|(?<=\s)# [^\n]+")
_KEYWORD = re.compile(
    r"\b(?P<word>MUST NOT|MUST|SHALL NOT|SHALL|REQUIRED|SHOULD NOT|SHOULD|NOT RECOMMENDED|RECOMMENDED|MAY|OPTIONAL)\b"
    r"|\((?P<mark>required|optional)\b[^)]*\)|(?://|#) (?P<comment>[Rr]equired|[Oo]ptional)\b"
)
_LEVELS = {
    "MUST": RequirementLevel.MUST,
    "SHALL": RequirementLevel.MUST,
    "REQUIRED": RequirementLevel.MUST,
    "MUST NOT": RequirementLevel.MUST_NOT,
    "SHALL NOT": RequirementLevel.MUST_NOT,
    "SHOULD": RequirementLevel.SHOULD,
    "RECOMMENDED": RequirementLevel.SHOULD,
    "SHOULD NOT": RequirementLevel.SHOULD_NOT,
    "NOT RECOMMENDED": RequirementLevel.SHOULD_NOT,
    "MAY": RequirementLevel.MAY,
    "OPTIONAL": RequirementLevel.MAY,
}


class Form(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    CHECK = "checklist item"
    CELLS = "row"
    COMMENT = "comment"
    EXAMPLE = "example"


@dataclass(frozen=True)
class Unit:
    """One thing the document says; `start` and `end` are places in the text of its section."""

    section: str
    form: Form
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"§{self.section} {self.form}: {self.text}"


@dataclass(frozen=True)
class Keyword:
    """A word of RFC 2119 in capitals, or a mark such as `(required)`, where it stands."""

    section: str
    word: str
    start: int
    end: int

    @property
    def level(self) -> RequirementLevel:
        return _LEVELS[self.word]


@dataclass
class _Block:
    """Lines that belong together, before they are cut into sentences."""

    form: Form
    lines: list[str]


@dataclass
class Document:
    """The text of each section, its white space made single, and what it says, without the sections below it."""

    sections: dict[str, str] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)

    @classmethod
    def parse(cls, source: str) -> "Document":
        document = cls()
        for section, lines in _sections(source.splitlines()):
            assert section not in document.sections, f"two sections {section}"
            text = " ".join(" ".join(lines).split())
            document.sections[section] = text
            document.units += _placed(section, text, _blocks(lines))
        return document

    def keywords(self) -> Iterator[Keyword]:
        for section, text in self.sections.items():
            for found in _KEYWORD.finditer(text):
                word = found["word"] or (found["mark"] or found["comment"]).upper()
                yield Keyword(section, word, found.start(), found.end())

    def around(self, keyword: Keyword) -> Unit:
        """The sentence, item or comment that a key word stands in."""
        inside = [u for u in self.units if u.section == keyword.section and u.start <= keyword.start < u.end]
        return min(inside, key=lambda unit: len(unit.text))

    def find(self, section: str, quote: str) -> list[int]:
        """Where a quote stands in a section."""
        return [found.start() for found in re.finditer(re.escape(quote), self.sections.get(section, ""))]


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each section by its number, or its title where it has none, with the lines of its own."""
    name, own, fenced = "", list[str](), False
    for line in lines:
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading is None:
            own.append(line)
            continue
        yield name, own
        name, own = heading[1] or heading[2], []
    yield name, own


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Paragraphs, items with the lines that continue them, rows of tables, and examples."""
    block = _Block(Form.SENTENCE, [])
    for line in lines:
        if block.form is Form.EXAMPLE and not _FENCE.match(line):
            block.lines.append(line)
            continue
        begun = _begun(line, within=block)
        if begun is None:
            block.lines.append(line)
        else:
            yield block
            block = begun
    yield block


def _begun(line: str, within: _Block) -> _Block | None:
    """The block that begins with this line, or none where it continues the one before."""
    if _FENCE.match(line):
        return _Block(Form.SENTENCE if within.form is Form.EXAMPLE else Form.EXAMPLE, [])
    if not line.strip() or _RULE.fullmatch(line):
        return _Block(Form.SENTENCE, [])
    if item := _ITEM.fullmatch(line):
        return _Block(Form.CHECK if item[1] else Form.ITEM, [item[2]])
    if _ROW.fullmatch(line):
        return _Block(Form.CELLS, [line])
    return None


def _placed(section: str, text: str, blocks: Iterator[_Block]) -> Iterator[Unit]:
    """What the blocks say, in the order of the text."""
    place = 0
    for block in blocks:
        whole = " ".join(" ".join(block.lines).split())
        start = text.index(whole, place)
        place = start + len(whole)
        for said in _said(block, whole):
            start = text.index(said, start)
            yield Unit(section, block.form, said, start, start + len(said))
        if block.form is Form.EXAMPLE:
            start = place - len(whole)
            for comment in _COMMENT.findall("\n".join(block.lines)):
                start = text.index(comment, start)
                yield Unit(section, Form.COMMENT, comment, start, start + len(comment))


def _said(block: _Block, whole: str) -> list[str]:
    if not whole:
        return []
    return [whole] if block.form is Form.EXAMPLE else _SENTENCE_END.split(whole)
