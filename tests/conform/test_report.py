"""What a run says about each requirement, and that as a document for programs and as JUnit."""

from xml.etree import ElementTree

from mew.conform import requirements
from mew.conform.ledger import Level, Requirement
from mew.conform.outcome import Outcome, Result
from mew.conform.report import as_document, as_junit, conforms, counts, verdicts

LEDGER = {one.id: one for one in requirements()}
MUST, SHOULD, MAY = (LEDGER[one] for one in ("welcome.sent", "kick.lasting", "violation.announced"))


def result(requirement: Requirement, outcome: Outcome, check: str = "a.b", **more: object) -> Result:
    why = "" if outcome is Outcome.PASS else f"it was {outcome}"
    return Result(check, (requirement.id,), outcome, why, **more)  # type: ignore[arg-type]


def test_a_requirement_comes_to_the_worst_of_its_checks() -> None:
    for worst, *others in (
        (Outcome.FAIL, Outcome.PASS, Outcome.NOT_OFFERED),
        (Outcome.PASS, Outcome.NOT_OFFERED),
        (Outcome.NOT_OFFERED,),
    ):
        found = verdicts([MUST], [result(MUST, one) for one in (*others, worst)])
        assert [one.outcome for one in found] == [worst]


def test_what_no_check_tried_was_not_run() -> None:
    assert verdicts([MUST], [result(SHOULD, Outcome.PASS)])[0].outcome is Outcome.NOT_RUN


def test_only_what_must_hold_decides_whether_it_conforms() -> None:
    assert conforms(verdicts([SHOULD, MAY], [result(SHOULD, Outcome.FAIL), result(MAY, Outcome.FAIL)]))
    assert conforms(verdicts([MUST], [result(MUST, Outcome.NOT_OFFERED)]))
    assert not conforms(verdicts([MUST], [result(MUST, Outcome.FAIL)]))
    assert not conforms(verdicts([MUST], [result(MUST, Outcome.BLOCKED)]))


def test_outcomes_are_counted_by_level() -> None:
    counted = counts(verdicts([MUST, SHOULD, MAY], [result(MUST, Outcome.PASS), result(MAY, Outcome.PASS)]))
    assert counted[Level.MUST, Outcome.PASS] == counted[Level.MAY, Outcome.PASS] == 1
    assert counted[Level.SHOULD, Outcome.NOT_RUN] == 1


def test_the_document_has_what_was_demanded_by_whom_and_what_was_seen() -> None:
    found = verdicts([SHOULD], [result(SHOULD, Outcome.FAIL, evidence=("owner → hi",), took_s=0.12345)])
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
    found = verdicts([MUST], [result(MUST, Outcome.PASS)])
    assert as_document("ws://here", found)["is_part"] is False
    part = as_document("ws://here", found, only=["3.8"])
    assert (part["is_part"], part["only"], part["conforms"]) == (True, ["3.8"], True)
    assert as_document("ws://here", verdicts([MUST], []))["is_part"] is True, "it was interrupted"


def test_junit_has_a_case_for_each_requirement_and_the_evidence_of_what_failed() -> None:
    results = [
        result(MUST, Outcome.FAIL, "welcomes.one", evidence=("owner ← \x00nothing",)),
        result(MUST, Outcome.NOT_OFFERED, "welcomes.two"),
        result(MAY, Outcome.NOT_OFFERED),
    ]
    suite = ElementTree.fromstring(as_junit("ws://here", verdicts([MUST, SHOULD, MAY], results)))
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
