"""What a run says about each requirement, and that as a document for programs and as JUnit."""

from xml.etree import ElementTree

from mew.conform import requirements
from mew.conform.ledger import Requirement, RequirementLevel
from mew.conform.outcome import CheckOutcome, CheckResult
from mew.conform.report import as_document, as_junit, conforms, counts, requirement_verdicts

LEDGER = {one.id: one for one in requirements()}
MUST, SHOULD, MAY = (LEDGER[one] for one in ("welcome.sent", "kick.lasting", "violation.announced"))


def result(
    requirement: Requirement, outcome: CheckOutcome, check: str = "a.b", **more: object
) -> CheckResult:
    why = "" if outcome is CheckOutcome.PASS else f"it was {outcome}"
    return CheckResult(check, (requirement.id,), outcome, why, **more)  # type: ignore[arg-type]


def test_a_requirement_comes_to_the_worst_of_its_checks() -> None:
    for worst, *others in (
        (CheckOutcome.FAIL, CheckOutcome.PASS, CheckOutcome.NOT_OFFERED),
        (CheckOutcome.PASS, CheckOutcome.NOT_OFFERED),
        (CheckOutcome.NOT_OFFERED,),
    ):
        found = requirement_verdicts([MUST], [result(MUST, one) for one in (*others, worst)])
        assert [one.outcome for one in found] == [worst]


def test_what_no_check_tried_was_not_run() -> None:
    assert (
        requirement_verdicts([MUST], [result(SHOULD, CheckOutcome.PASS)])[0].outcome is CheckOutcome.NOT_RUN
    )


def test_only_what_must_hold_decides_whether_it_conforms() -> None:
    assert conforms(
        requirement_verdicts(
            [SHOULD, MAY], [result(SHOULD, CheckOutcome.FAIL), result(MAY, CheckOutcome.FAIL)]
        )
    )
    assert conforms(requirement_verdicts([MUST], [result(MUST, CheckOutcome.NOT_OFFERED)]))
    assert not conforms(requirement_verdicts([MUST], [result(MUST, CheckOutcome.FAIL)]))
    assert not conforms(requirement_verdicts([MUST], [result(MUST, CheckOutcome.BLOCKED)]))


def test_outcomes_are_counted_by_level() -> None:
    counted = counts(
        requirement_verdicts(
            [MUST, SHOULD, MAY], [result(MUST, CheckOutcome.PASS), result(MAY, CheckOutcome.PASS)]
        )
    )
    assert (
        counted[RequirementLevel.MUST, CheckOutcome.PASS]
        == counted[RequirementLevel.MAY, CheckOutcome.PASS]
        == 1
    )
    assert counted[RequirementLevel.SHOULD, CheckOutcome.NOT_RUN] == 1


def test_the_document_has_what_was_demanded_by_whom_and_what_was_seen() -> None:
    found = requirement_verdicts(
        [SHOULD], [result(SHOULD, CheckOutcome.FAIL, evidence=("owner → hi",), took_s=0.12345)]
    )
    document = as_document("ws://here", found)
    assert document["gateway"] == "ws://here"
    assert document["conforms"] is True
    (one,) = document["requirements"]
    assert (one["section"], one["level"], one["outcome"]) == ("3.6.5", "SHOULD", "fail")
    assert one["quotes"] == ["Removes participants from the space"]
    assert one["note"] == SHOULD.note
    (check,) = one["checks"]
    assert check == {
        "check": "a.b",
        "outcome": "fail",
        "why": "it was fail",
        "blocked_by": "",
        "evidence": ["owner → hi"],
        "took_s": 0.123,
    }


def test_the_document_says_where_not_all_was_tried() -> None:
    found = requirement_verdicts([MUST], [result(MUST, CheckOutcome.PASS)])
    assert as_document("ws://here", found)["is_part"] is False
    part = as_document("ws://here", found, only=["3.8"])
    assert (part["is_part"], part["only"], part["conforms"]) == (True, ["3.8"], True)
    assert as_document("ws://here", requirement_verdicts([MUST], []))["is_part"] is True, "it was interrupted"


def test_junit_has_a_case_for_each_requirement_and_the_evidence_of_what_failed() -> None:
    results = [
        result(MUST, CheckOutcome.FAIL, "welcomes.one", evidence=("owner ← \x00nothing",)),
        result(MUST, CheckOutcome.NOT_OFFERED, "welcomes.two"),
        result(MAY, CheckOutcome.NOT_OFFERED),
    ]
    suite = ElementTree.fromstring(as_junit("ws://here", requirement_verdicts([MUST, SHOULD, MAY], results)))
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "2"]
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "it was fail"
    assert [one.get("message") for one in suite.iter("skipped")] == [
        "not run",
        "not offered: it was not offered",
    ]
    assert failure.text is not None
    lines = failure.text.splitlines()
    assert lines[0] == f"§3.8.1: {MUST.sentence}"
    assert lines[1] == f"“{MUST.quotes[0]}”"
    assert lines[-2:] == ["welcomes.one: it was fail", r"owner ← \x00nothing"]
    assert "welcomes.two" not in failure.text
