"""PURE. What a run says about each requirement: for people, for programs, and as JUnit."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from xml.etree import ElementTree

from msgspec import Struct

from mew.protocol.visible import cut

from .ledger import Requirement, RequirementLevel, Side, Testable
from .outcome import CheckOutcome, CheckResult

__all__ = [
    "RequirementVerdict",
    "as_document",
    "as_junit",
    "conforms",
    "counts",
    "folded",
    "requirement_verdicts",
    "where_they_differ",
]


_IDS: Final = re.compile(r"conform-[0-9a-f]{8}[0-9a-f-]{24,28}", re.IGNORECASE)
"""What the kit gives to what it sends; others, as of guests, are in every other line."""
_MARK: Final = re.compile(r'"text": ?"mark"')
_NOISE: Final = {
    re.compile(r'"kind": ?"system/presence"'): ("presence", "is told"),
    re.compile(r'"kind": ?"system/welcome"'): ("welcome", "capabilities"),
}
"""What nobody looks for, unless these words are in what is said of it."""
_ABOUT: Final = "▶"
_LINES_MAX: Final = 40
_SHOWN_CHARS_MAX: Final = 160
_BEFORE_CHARS: Final = 30


def folded(why: str, evidence: Sequence[str]) -> list[str]:
    """The lines, with `▶` before those that have an id of which `why` speaks; what is not to the point is counted."""
    ids = set(_IDS.findall(why))
    noise = [pattern for pattern, words in _NOISE.items() if not any(word in why for word in words)]
    lines = list(_folded(evidence, ids, [_MARK, *noise]))
    first, last = lines[:-_LINES_MAX], lines[-_LINES_MAX:]
    meant = [line for line in first if line.startswith(_ABOUT)]
    left_out = len(first) - len(meant)
    return [*([f"  … {left_out} lines from before"] if left_out else []), *meant, *last]


def _folded(evidence: Iterable[str], ids: set[str], noise: Sequence[re.Pattern[str]]) -> Iterator[str]:
    held: list[str] = []
    for line in evidence:
        is_meant = any(one in line for one in ids)
        if not is_meant and any(pattern.search(line) for pattern in noise):
            held.append(line)
            continue
        yield from _counted(held)
        held = []
        yield f"{_ABOUT if is_meant else ' '} {line}"
    yield from _counted(held)


def _counted(held: Sequence[str]) -> list[str]:
    many = f"{len(held)} line{'s' if len(held) > 1 else ''}"
    return [f"  … {many} only to mark time or tell who is there"] if held else []


def where_they_differ(before: Any, after: Any) -> tuple[str, str]:
    """Two values as one sees them, each from a little before the first place where they are not the same."""
    one, other = ascii(before), ascii(after)
    place = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    start = max(0, place - _BEFORE_CHARS)
    return _from(one, start), _from(other, start)


def _from(text: str, start: int) -> str:
    if len(text) <= _SHOWN_CHARS_MAX:
        return text
    shown = text[start : start + _SHOWN_CHARS_MAX]
    return f"{'…' if start else ''}{shown}{'…' if start + _SHOWN_CHARS_MAX < len(text) else ''}"


_WORST_FIRST: Final = (
    CheckOutcome.FAIL,
    CheckOutcome.PASS,
    CheckOutcome.BLOCKED,
    CheckOutcome.NOT_OFFERED,
    CheckOutcome.NOT_RUN,
)
_BINDING: Final = frozenset({RequirementLevel.MUST, RequirementLevel.MUST_NOT})
_MESSAGE_CHARS_MAX: Final = 500
_CONTROL: Final = {code: f"\\x{code:02x}" for code in range(0x20) if chr(code) not in "\t\n\r"}


class RequirementVerdict(Struct, frozen=True):
    """One requirement and what its checks came to: the worst of them; not offered only where none could be tried."""

    requirement: Requirement
    outcome: CheckOutcome
    results: Sequence[CheckResult]


def requirement_verdicts(
    requirements: Iterable[Requirement], results: Iterable[CheckResult]
) -> list[RequirementVerdict]:
    """In the order of the requirements."""
    found: dict[str, list[CheckResult]] = {}
    for result in results:
        for requirement in result.requirements:
            found.setdefault(requirement, []).append(result)
    return [_requirement_verdict(requirement, found.get(requirement.id, [])) for requirement in requirements]


def _requirement_verdict(requirement: Requirement, results: list[CheckResult]) -> RequirementVerdict:
    outcomes = {result.outcome for result in results} or {CheckOutcome.NOT_RUN}
    return RequirementVerdict(requirement, next(one for one in _WORST_FIRST if one in outcomes), results)


def conforms(found: Iterable[RequirementVerdict]) -> bool:
    """Whether all that is binding holds, as far as the gateway offers it: what is blocked was not shown to."""
    broken = (CheckOutcome.FAIL, CheckOutcome.BLOCKED)
    return not any(one.outcome in broken and one.requirement.level in _BINDING for one in found)


def counts(found: Iterable[RequirementVerdict]) -> Counter[tuple[RequirementLevel, CheckOutcome]]:
    return Counter((one.requirement.level, one.outcome) for one in found)


def as_document(
    name: str,
    found: Sequence[RequirementVerdict],
    side: Side = Side.GATEWAY,
    *,
    only: Sequence[str] | None = None,
) -> dict[str, Any]:
    """All of it, as JSON. `conforms` is said of what was tried: all, or the part that is named, or was played."""
    not_tried = (one.requirement for one in found if one.outcome is CheckOutcome.NOT_RUN)
    is_part = bool(only) or any(one.testable is Testable.WIRE for one in not_tried)
    return {
        str(side): name,
        "specification": "mew/v0.4",
        "is_part": is_part,
        "only": list(only or ()),
        "conforms": conforms(found),
        "requirements": [
            {
                "id": one.requirement.id,
                "section": one.requirement.section,
                "level": str(one.requirement.level),
                "sentence": one.requirement.sentence,
                "quotes": list(one.requirement.quotes),
                "note": one.requirement.note,
                "outcome": str(one.outcome),
                "checks": [
                    {
                        "check": result.check,
                        "outcome": str(result.outcome),
                        "why": result.why,
                        "blocked_by": result.blocked_by,
                        "evidence": list(result.evidence),
                        "took_s": round(result.took_s, 3),
                    }
                    for result in one.results
                ],
            }
            for one in found
        ],
    }


def as_junit(name: str, found: Sequence[RequirementVerdict]) -> bytes:
    """A suite with a case for each requirement; what was not tried is skipped."""
    failed = sum(one.outcome is CheckOutcome.FAIL for one in found)
    skipped = sum(one.outcome not in (CheckOutcome.FAIL, CheckOutcome.PASS) for one in found)
    suite = ElementTree.Element(
        "testsuite",
        name=f"mew/v0.4 {name}",
        tests=str(len(found)),
        failures=str(failed),
        skipped=str(skipped),
    )
    for one in found:
        took_s = sum(result.took_s for result in one.results)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"section {one.requirement.section}",
            name=f"{one.requirement.id} ({one.requirement.level})",
            time=f"{took_s:.3f}",
        )
        if one.outcome is CheckOutcome.FAIL:
            wrong = [result for result in one.results if result.outcome is CheckOutcome.FAIL]
            said = "\n\n".join(_told(one.requirement, result) for result in wrong)
            happened = "; ".join(result.why for result in wrong)
            failure = ElementTree.SubElement(
                case, "failure", message=cut(happened, _MESSAGE_CHARS_MAX).translate(_CONTROL)
            )
            failure.text = said.translate(_CONTROL)
        elif one.outcome is not CheckOutcome.PASS:
            why = one.results[0].why if one.results else one.requirement.why or ""
            ElementTree.SubElement(
                case, "skipped", message=f"{one.outcome}: {why}".rstrip(": ").translate(_CONTROL)
            )
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document


def _told(requirement: Requirement, result: CheckResult) -> str:
    demanded = f"§{requirement.section}: {requirement.sentence}"
    quotes = (f"“{quote}”" for quote in requirement.quotes)
    return "\n".join((demanded, *quotes, f"{result.check}: {result.why}", *result.evidence))
