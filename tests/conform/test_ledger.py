"""The ledger and the specification say the same: no normative sentence is missing, and nothing is made up."""

import hashlib
import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from mew.conform import requirements
from mew.conform.ledger import (
    Feature,
    LedgerError,
    Requirement,
    RequirementLevel,
    Side,
    Testable,
    read_ledger,
)

from .coverage import Quote, misplaced, placed, unquoted_keywords, unquoted_units
from .document import SPECIFICATION, Document, Form

RELEASED_SHA256 = "98ae979583764a015bdf44d70cf58db164087bca2f8c05f8770a4c2fd17bedff"
DEMAND = re.compile(r"\b(must|shall|should|may|cannot|required|optional)\b")
TITLE = re.compile(r"\*\*[^*]+\*\*( \(if applicable\))?")
MENTION = re.compile(r"\b[a-z][a-z-]+\.[a-z][a-z-]+\b")


class Informative(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the document says that asks nothing of anyone."""

    section: str
    why: str
    quotes: tuple[str, ...]


LEDGER = requirements()
DOCUMENT = Document.parse(SPECIFICATION.read_text(encoding="utf-8"))
QUOTES = tuple(placed(DOCUMENT, LEDGER))
INFORMATIVE = msgspec.convert(
    tomllib.loads((Path(__file__).parent / "informative.toml").read_text(encoding="utf-8"))["informative"],
    tuple[Informative, ...],
)
ASIDE = tuple(
    Quote(aside.section, start, start + len(quote), aside.why, None)
    for aside in INFORMATIVE
    for quote in aside.quotes
    for start in DOCUMENT.find(aside.section, quote)
)


# The ledger and the document.


def test_the_copy_of_the_specification_is_the_released_one() -> None:
    assert hashlib.sha256(SPECIFICATION.read_bytes()).hexdigest() == RELEASED_SHA256


def test_every_quote_is_in_the_section_it_is_said_to_be_in() -> None:
    wrong = [
        problem
        for requirement in LEDGER
        for problem in misplaced(
            DOCUMENT, requirement.id, (requirement.section, *requirement.also), requirement.quotes
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_every_key_word_is_in_a_requirement_of_its_level() -> None:
    missing = list(unquoted_keywords(DOCUMENT, QUOTES))
    assert not missing, "\n".join(missing)


def test_every_sentence_is_a_requirement_or_is_known_to_be_none() -> None:
    missing = list(unquoted_units(DOCUMENT, QUOTES + ASIDE))
    assert not missing, "\n".join(missing)


def test_every_item_of_the_checklists_is_a_requirement() -> None:
    items = [unit for unit in DOCUMENT.units if unit.form is Form.CHECK and not TITLE.fullmatch(unit.text)]
    assert {unit.section for unit in items} == {"8.1", "8.2"}
    missing = [str(unit) for unit in items if not any(quote.touches(unit) for quote in QUOTES)]
    assert not missing, "\n".join(missing)


def test_what_is_set_aside_is_in_the_document_and_in_no_requirement() -> None:
    wrong = [
        problem
        for aside in INFORMATIVE
        for problem in misplaced(DOCUMENT, "informative.toml", [aside.section], aside.quotes)
    ]
    for unit in DOCUMENT.units:
        owners = [quote.owner for quote in QUOTES if quote.touches(unit)]
        if unit.form is not Form.EXAMPLE and owners and any(aside.touches(unit) for aside in ASIDE):
            wrong.append(f"set aside, and quoted by {', '.join(owners)}: {unit}")
    assert not wrong, "\n".join(wrong)


def test_every_demand_in_small_letters_is_in_a_requirement_too() -> None:
    missing = [
        f"no requirement quotes this {found[0]!r}: {unit}"
        for unit in DOCUMENT.units
        for found in DEMAND.finditer(unit.text)
        if unit.form is not Form.EXAMPLE
        and not any(
            quote.section == unit.section
            and quote.start <= unit.start + found.start()
            and unit.start + found.end() <= quote.end
            for quote in QUOTES
        )
    ]
    assert not missing, "\n".join(missing)


def test_a_note_that_names_a_requirement_names_one_that_is_there() -> None:
    ids = {requirement.id for requirement in LEDGER}
    for requirement in LEDGER:
        for said in (requirement.note, requirement.why):
            assert set(MENTION.findall(said or "")) <= ids, requirement.id


def test_both_sides_and_every_feature_have_requirements() -> None:
    assert {requirement.side for requirement in LEDGER} == set(Side)
    assert {requirement.given for requirement in LEDGER} == {None, *Feature}


# The proof can fail.

PAGE = """
# A protocol

## 3. Envelopes

Every envelope MUST have an id. It is delivered
to all. Receivers SHOULD NOT shout.

- `to` (optional): who is to act
- [ ] Answer with an error

| field | rule |
|---|---|
| `ts` | MAY be left out |

```json
{"id": "1"}  // Optional
```
"""


def quoting(*quotes: str, level: RequirementLevel = RequirementLevel.MUST) -> list[Quote]:
    requirement = Requirement(
        id="a.b", section="3", level=level, side=Side.GATEWAY, sentence="It is so.", quotes=quotes
    )
    return list(placed(Document.parse(PAGE), [requirement]))


def test_a_document_falls_into_sentences_items_rows_and_comments() -> None:
    said = [(unit.form, unit.text) for unit in Document.parse(PAGE).units]
    assert said == [
        (Form.SENTENCE, "Every envelope MUST have an id."),
        (Form.SENTENCE, "It is delivered to all."),
        (Form.SENTENCE, "Receivers SHOULD NOT shout."),
        (Form.ITEM, "`to` (optional): who is to act"),
        (Form.CHECK, "Answer with an error"),
        (Form.CELLS, "| field | rule |"),
        (Form.CELLS, "|---|---|"),
        (Form.CELLS, "| `ts` | MAY be left out |"),
        (Form.EXAMPLE, '{"id": "1"} // Optional'),
        (Form.COMMENT, "// Optional"),
    ]


def test_a_key_word_that_nobody_quotes_is_named_with_its_sentence_and_section() -> None:
    missing = list(unquoted_keywords(Document.parse(PAGE), quoting("MUST have an id")))
    assert [line.partition(": §")[2] for line in missing] == [
        "3 sentence: Receivers SHOULD NOT shout.",
        "3 item: `to` (optional): who is to act",
        "3 row: | `ts` | MAY be left out |",
        "3 comment: // Optional",
    ]


def test_a_key_word_that_is_quoted_at_another_level_is_named() -> None:
    (first, *_) = unquoted_keywords(
        Document.parse(PAGE), quoting("MUST have an id", level=RequirementLevel.MAY)
    )
    assert first == "no requirement quotes this MUST as a MUST: §3 sentence: Every envelope MUST have an id."


def test_a_key_word_beside_the_quote_is_not_in_it() -> None:
    (first, *_) = unquoted_keywords(Document.parse(PAGE), quoting("have an id"))
    assert "Every envelope MUST have an id" in first


def test_a_sentence_without_a_key_word_that_nobody_quotes_is_named() -> None:
    missing = list(
        unquoted_units(Document.parse(PAGE), quoting("MUST have an id", "who is to act", "rule |", "MAY be"))
    )
    assert missing == [
        "nobody quotes §3 sentence: It is delivered to all.",
        "nobody quotes §3 sentence: Receivers SHOULD NOT shout.",
        "nobody quotes §3 checklist item: Answer with an error",
        "nobody quotes §3 comment: // Optional",
    ]


def test_a_quote_that_is_not_there_or_there_twice_is_named() -> None:
    document = Document.parse(PAGE)
    assert list(misplaced(document, "a.b", ["3"], ["has an id"])) == [
        "a.b: not in §3: has an id",
        "a.b: names §3 and quotes nothing of it",
    ]
    assert list(misplaced(document, "a.b", ["3"], ["an "])) == ["a.b: more than once in a section: an "]
    assert list(misplaced(document, "a.b", ["3", "4"], ["an id"])) == [
        "a.b: names §4 and quotes nothing of it"
    ]


# Reading.

ENTRY = """
[[requirement]]
id = "grant.only-what-you-hold"
section = "3.6.6"
level = "MUST NOT"
side = "gateway"
sentence = "A grant wider than one's own is refused."
quotes = ["they don't possess"]
"""


def test_a_requirement_is_read_with_what_it_leaves_out() -> None:
    (requirement,) = read_ledger(ENTRY.encode())
    assert requirement == Requirement(
        id="grant.only-what-you-hold",
        section="3.6.6",
        level=RequirementLevel.MUST_NOT,
        side=Side.GATEWAY,
        sentence="A grant wider than one's own is refused.",
        quotes=("they don't possess",),
    )
    assert requirement.testable is Testable.WIRE
    assert requirement.given is None


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("MUST NOT", "must", "Invalid enum value 'must'"),
        ("gateway", "server", "Invalid enum value 'server'"),
        ("grant.only-what-you-hold", "Grant", "$.id"),
        ("3.6.6", "three", "$.section"),
        ("is refused.", r"is\nrefused.", "$.sentence"),
        ('["they don\'t possess"]', "[]", "$.quotes"),
        ("quotes", "quote", "unknown field `quote`"),
        ("sentence", 'testable = "not-on-the-wire"\nsentence', "`why` belongs to"),
        ("sentence", 'why = "nobody sees it"\nsentence', "`why` belongs to"),
        ("sentence", 'given = "tools"\nsentence', "tools is of a participant, the side is gateway"),
    ],
)
def test_an_entry_that_is_no_requirement_is_named(old: str, new: str, problem: str) -> None:
    with pytest.raises(LedgerError, match="requirement 1, ") as raised:
        read_ledger(ENTRY.replace(old, new).encode())
    assert problem in str(raised.value)


def test_a_second_requirement_of_an_id_is_refused() -> None:
    with pytest.raises(
        LedgerError, match=r"requirement 2, grant\.only-what-you-hold: there is one of this id"
    ):
        read_ledger((ENTRY * 2).encode())


@pytest.mark.parametrize("source", [b"", b"= 1", b"\xff", b"requirement = 1", b"requirement = [1]"])
def test_what_is_no_ledger_is_refused(source: bytes) -> None:
    with pytest.raises(LedgerError):
        read_ledger(source)
