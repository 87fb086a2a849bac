"""The book of proposals: what is open, who decided what, and whether that is what ran (§3.2, §3.3, §10.2)."""

import unicodedata
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from tests.client.envelopes import AT, after, envelope

from mew.proposals.book import ProposalBook
from mew.proposals.differences import Difference, differences
from mew.proposals.digest import digest
from mew.proposals.preview import preview
from mew.proposals.record import ProposalRecord, ProposalStatus
from mew.protocol.envelope import Envelope
from mew.protocol.json import decode_json, encode_json

CALL: dict[str, Any] = {"name": "write", "arguments": {"path": "/a", "text": "hi"}}
SCHEMA = {"type": "object"}


def proposed(
    id: str = "p",
    by: str = "bot",
    params: Any = CALL,
    *,
    to: Any = "files",
    method: str = "tools/call",
    **more: Any,
) -> Envelope:
    return envelope("mcp/proposal", by, {"method": method, "params": params} | more, id=id, to=to)


def requested(
    id: str = "f",
    *about: str,
    by: str = "ann",
    params: Any = CALL,
    to: Any = "files",
    method: str = "tools/call",
) -> Envelope:
    payload = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return envelope("mcp/request", by, payload, id=id, to=to, correlation_id=about or ("p",))


def answered(id: str = "a", *about: str, by: str = "files", **outcome: Any) -> Envelope:
    payload = {"jsonrpc": "2.0", "id": 7} | (outcome or {"result": {"content": []}})
    return envelope("mcp/response", by, payload, id=id, correlation_id=about or ("f",))


def rejected(id: str = "r", *about: str, by: str = "eve", **said: Any) -> Envelope:
    return envelope("mcp/reject", by, said, id=id, correlation_id=about or ("p",))


def withdrawn(id: str = "w", *about: str, by: str = "bot", **said: Any) -> Envelope:
    return envelope("mcp/withdraw", by, said, id=id, correlation_id=about or ("p",))


def said(id: str, about: str, text: str = "because", by: str = "eve") -> Envelope:
    return envelope("chat", by, {"text": text}, id=id, correlation_id=about)


def listing(number: int, *, of: str = "files", **tool: Any) -> list[Envelope]:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    found = {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": [{"name": "write", "inputSchema": SCHEMA} | tool]},
    }
    return [
        envelope("mcp/request", "ann", asked, id=f"q{number}", to=of),
        envelope("mcp/response", of, found, id=f"l{number}", correlation_id=f"q{number}"),
    ]


def book(*envelopes: Envelope, at: datetime = AT, **bounds: int) -> ProposalBook:
    fed = ProposalBook(None, **bounds)
    for one in envelopes:
        fed.apply(one, at)
    return fed


def the_one(*after: Envelope, first: Envelope | None = None) -> ProposalRecord:
    (record,) = book(first or proposed(), *after)
    return record


# What a proposal says.


def test_a_proposal_is_open_and_holds_what_it_asks_for() -> None:
    """§3.2."""
    record = the_one()
    assert (record.id, record.proposer, record.target, record.created) == ("p", "bot", "files", AT)
    assert (record.method, record.params, record.tool_name) == ("tools/call", CALL, "write")
    assert record.arguments == {"path": "/a", "text": "hi"}
    assert (record.status(AT), record.is_open(AT), record.is_settled) == (ProposalStatus.OPEN, True, False)
    assert (record.context, record.expires_at, record.preferred, record.exclusive) == (None, None, (), False)


def test_its_target_is_who_is_addressed_and_nobody_for_a_broadcast() -> None:
    assert the_one(first=proposed(to=())).target is None
    assert the_one(first=proposed(to=["files", "files"])).target == "files"
    assert the_one(first=proposed(to=["files", "disk"])).target == ("files", "disk")


def test_its_context_is_kept() -> None:
    first = envelope("mcp/proposal", "bot", {"method": "ping"}, id="p", context="reason-1")
    record = the_one(first=first)
    assert (record.context, record.params, record.tool_name) == ("reason-1", {}, None)


def test_it_can_say_when_it_ends() -> None:
    assert the_one(first=proposed(expires_at="2026-01-01T00:05:00Z")).expires_at == after(300)
    assert the_one(first=proposed(expires_at="soon")).expires_at is None


def test_it_can_say_whom_it_prefers() -> None:
    """Decision 004."""
    record = the_one(
        first=proposed(targeting={"preferred": ["ann", "bob"], "exclusive": True, "quick_reject": True})
    )
    assert (record.preferred, record.exclusive) == (("ann", "bob"), True)
    assert not the_one(first=proposed(targeting={"exclusive": True})).exclusive
    assert the_one(first=proposed(targeting="ann")).preferred == ()


@pytest.mark.parametrize(
    "payload", [{}, {"method": 5}, {"method": "m", "params": []}, b'{"method":"a","method":"b"}']
)
def test_a_payload_that_does_not_decode_is_ignored(payload: Any) -> None:
    """§4.3."""
    assert not len(book(envelope("mcp/proposal", "bot", payload, id="p")))


def test_a_second_proposal_never_replaces_one_that_waits() -> None:
    record = the_one(replace(proposed(params={"name": "delete"}), ts=AT))
    assert record.params == CALL


def test_an_id_that_its_proposer_uses_again_is_a_new_proposal_once_the_old_one_is_settled() -> None:
    """Design §3.7: TypeScript clients count from the start again when they restart."""
    again = replace(proposed(method="ping"), ts=AT)
    fed = book(proposed(), withdrawn(), again)
    assert fed["p"].is_open(AT)
    for replayed in (proposed(), withdrawn(), again):
        assert fed.apply(replayed, AT) is None
    assert (fed["p"].is_open(AT), fed["p"].method) == (True, "ping")


# How it ends.


def test_a_request_that_names_it_approves_it_and_the_answer_fulfils_it() -> None:
    """§3.2.1, decision 001."""
    fed = book(proposed())
    approved = fed.apply(requested(), after(1))
    assert approved is not None
    assert (approved.status(AT), approved.is_open(AT), approved.is_settled) == (
        ProposalStatus.APPROVED,
        False,
        False,
    )
    assert approved.fulfilment is not None
    assert (approved.fulfilment.id, approved.fulfilment.by, approved.fulfilment.at) == ("f", "ann", after(1))
    assert approved.fulfilment.is_as_proposed
    fulfilled = fed.apply(answered(result={"content": [1]}), after(2))
    assert fulfilled is not None
    assert (fulfilled.status(AT), fulfilled.is_settled) == (ProposalStatus.FULFILLED, True)
    assert fulfilled.response is not None
    assert (fulfilled.response.by, fulfilled.response.result, fulfilled.response.at) == (
        "files",
        {"content": [1]},
        after(2),
    )


@pytest.mark.parametrize(
    "outcome",
    [{"error": {"code": -32000, "message": "disk full"}}, {"result": {"isError": True, "content": []}}],
)
def test_an_error_means_failed(outcome: dict[str, Any]) -> None:
    assert the_one(requested(), answered(**outcome)).status(AT) is ProposalStatus.FAILED


def test_an_empty_result_is_a_result_and_no_result_is_none() -> None:
    assert the_one(requested(), answered(result=None)).status(AT) is ProposalStatus.FULFILLED
    assert the_one(requested(), answered(id="a", jsonrpc="2.0")).status(AT) is ProposalStatus.APPROVED


def test_only_one_whom_the_request_was_addressed_to_answers_it() -> None:
    """§3.1.2, design §3.18."""
    record = the_one(requested(), answered("a1", by="eve"), answered("a2", "p"))
    assert record.status(AT) is ProposalStatus.APPROVED
    anyone = the_one(requested(to=()), answered(by="disk"), first=proposed(to=()))
    assert anyone.status(AT) is ProposalStatus.FULFILLED


def test_the_first_answer_counts() -> None:
    record = the_one(
        requested(), answered("a1", result=1), answered("a2", error={"code": 1, "message": "no"})
    )
    assert record.status(AT) is ProposalStatus.FULFILLED


def test_the_proposer_itself_may_carry_it_out() -> None:
    """It was granted the capability since."""
    assert the_one(requested(by="bot"), answered()).status(AT) is ProposalStatus.FULFILLED


def test_a_notification_about_it_carries_nothing_out() -> None:
    assert the_one(requested(method="notifications/progress")).is_open(AT)
    notified = proposed(method="notifications/x")
    assert not the_one(requested(method="notifications/x"), first=notified).is_open(AT)


def test_the_first_fulfilment_decides_and_others_are_listed() -> None:
    record = the_one(
        requested("f1"), requested("f2", by="bob"), answered("a", "f2", error={"code": 1, "message": "no"})
    )
    assert record.status(AT) is ProposalStatus.APPROVED
    assert record.fulfilment is not None
    assert record.fulfilment.id == "f1"
    assert [one.id for one in record.fulfilments] == ["f1", "f2"]


def test_its_proposer_withdraws_it_and_nobody_else() -> None:
    """§3.3.1."""
    assert the_one(withdrawn(by="ann", reason="other")).is_open(AT)
    record = the_one(withdrawn(reason="no_longer_needed"))
    assert (record.status(AT), record.is_open(AT), record.is_settled) == (
        ProposalStatus.WITHDRAWN,
        False,
        True,
    )
    assert record.withdrawn is not None
    assert (record.withdrawn.reason, record.withdrawn.at) == ("no_longer_needed", AT)
    assert the_one(withdrawn()).status(AT) is ProposalStatus.WITHDRAWN


def test_a_rejection_closes_it_for_nobody() -> None:
    """§3.3.2: others may still fulfil it."""
    record = the_one(rejected(reason="unsafe"), rejected("r2", by="bob"))
    assert (record.status(AT), record.is_open(AT)) == (ProposalStatus.OPEN, True)
    assert [(no.by, no.reason, no.at) for no in record.rejections] == [
        ("eve", "unsafe", AT),
        ("bob", None, AT),
    ]
    assert the_one(rejected(), requested(), answered()).status(AT) is ProposalStatus.FULFILLED


def test_its_proposer_gives_up_after_a_rejection() -> None:
    """§3.3.2: fail fast."""
    assert the_one(rejected(), withdrawn()).status(AT) is ProposalStatus.WITHDRAWN
    assert the_one(withdrawn(), rejected()).status(AT) is ProposalStatus.WITHDRAWN


def test_timed_out_is_nobodys_no() -> None:
    """Design §5."""
    assert the_one(withdrawn(reason="timeout")).status(AT) is ProposalStatus.WITHDRAWN
    assert (
        the_one(rejected(reason="unsafe"), withdrawn(reason="timeout")).status(AT) is ProposalStatus.WITHDRAWN
    )
    assert the_one(rejected(reason="timeout"), withdrawn()).status(AT) is ProposalStatus.WITHDRAWN


def test_a_reason_nobody_standardized_is_kept_as_it_is() -> None:
    """§3.3.3: unknown codes are handled gracefully."""
    (no,) = the_one(rejected(reason="mercury is retrograde ☿")).rejections
    assert no.reason == "mercury is retrograde ☿"
    (long,) = the_one(rejected(reason="x" * 9999)).rejections
    assert long.reason is not None
    assert len(long.reason) == 1024


def test_who_rejected_explains_it_whenever_it_wants() -> None:
    """§3.3.3: the record does not wait for it, and it is nobody else's to give."""
    record = the_one(
        rejected("r1"),
        rejected("r2", by="bob"),
        said("c1", "r1"),
        said("c2", "r1", by="bob"),
        said("c3", "r1", "so"),
    )
    assert [(one.id, one.text) for one in record.rejections[0].explanations] == [
        ("c1", "because"),
        ("c3", "so"),
    ]
    assert record.rejections[1].explanations == ()


def test_what_was_approved_runs_be_it_withdrawn_or_not() -> None:
    record = the_one(requested(), withdrawn(reason="timeout"))
    assert (record.status(AT), record.is_settled) == (ProposalStatus.APPROVED, True)
    assert the_one(requested(), withdrawn(), answered()).status(AT) is ProposalStatus.FULFILLED
    assert the_one(requested(), answered(), withdrawn()).withdrawn is None


def test_a_fulfilment_after_its_withdrawal_is_late_and_told_once_it_ran() -> None:
    record = the_one(withdrawn(), requested())
    assert (record.status(AT), record.fulfilment) == (ProposalStatus.WITHDRAWN, None)
    assert [sent.late for sent in record.fulfilments] == [True]
    assert the_one(withdrawn(), requested(), answered()).status(AT) is ProposalStatus.FULFILLED
    assert not the_one(requested(), answered(), requested("f2")).fulfilments[1].late


def test_one_envelope_may_name_several() -> None:
    fed = book(proposed("p1"), proposed("p2"), proposed("p3", by="bob"))
    changed = fed.apply_all(withdrawn("w", "p1", "p2", "p3", "p1"), AT)
    assert [record.id for record in changed] == ["p1", "p2"]
    fed.apply(requested("f", "p3", "p1"), AT)
    assert [record.id for record in fed.apply_all(answered(), AT)] == ["p3", "p1"]


@pytest.mark.parametrize(
    "bad",
    [
        envelope("mcp/request", "ann", {"params": {}}, id="x", correlation_id="p"),
        envelope("mcp/request", "ann", CALL | {"method": "tools/call"}, id="x"),
        envelope("chat", "eve", {"text": "no"}, id="x", correlation_id="p"),
    ],
)
def test_what_does_not_decode_or_names_nothing_changes_nothing(bad: Envelope) -> None:
    fed = book(proposed())
    assert fed.apply(bad, AT) is None
    assert fed["p"].is_open(AT)


# Whether what ran is what was approved.


def test_an_edited_fulfilment_says_where() -> None:
    """Design §5: what you approve is what runs."""
    edited = {"name": "write", "arguments": {"path": "/b", "mode": 7}}
    record = the_one(requested(params=edited))
    assert record.fulfilment is not None
    assert (record.fulfilment.edited, record.fulfilment.is_as_proposed) == (True, False)
    assert record.fulfilment.differences == (
        Difference("$.params.arguments.path", "/a", "/b"),
        Difference("$.params.arguments.text", "hi", UNSET),
        Difference("$.params.arguments.mode", UNSET, 7),
    )
    assert record.fulfilment.params == edited
    assert record.fulfilment.digest == digest("files", "tools/call", edited)
    assert record.fulfilment.digest != record.digest


@pytest.mark.parametrize(
    ("then", "now", "path"),
    [
        ([1, {"a b": 1}], [1, {"a b": True}], "$.params.x[1]['a b']"),
        ([1], [1, 2], "$.params.x[1]"),
        ({"it's": 0}, {"it's": None}, "$.params.x['it\\'s']"),
        ({}, [], "$.params.x"),
        (1, "1", "$.params.x"),
    ],
)
def test_a_difference_is_named_by_its_path(then: Any, now: Any, path: str) -> None:
    record = the_one(requested(method="m", params={"x": now}), first=proposed(method="m", params={"x": then}))
    assert record.fulfilment is not None
    assert [change.path for change in record.fulfilment.differences] == [path]


@pytest.mark.parametrize(
    ("request_", "difference"),
    [
        (requested(method="tools/list", params={}), Difference("$.method", "tools/call", "tools/list")),
        (requested(to="disk"), Difference("$.target", "files", "disk")),
        (requested(to=()), Difference("$.target", "files", None)),
        (requested(params=CALL | {"name": "erase"}), Difference("$.params.name", "write", "erase")),
    ],
)
def test_a_request_for_something_else_is_listed_and_carries_nothing_out(
    request_: Envelope, difference: Difference
) -> None:
    """Else who may call but his own tool could answer in the place of the one that was meant."""
    record = the_one(request_, answered(by="disk"), requested("f2"), answered("a2", "f2", result=7))
    assert [sent.differences[0] for sent in record.unrelated] == [difference]
    assert record.fulfilment is not None
    assert record.fulfilment.id == "f2"
    assert record.response is not None
    assert record.response.result == 7


def test_another_spelling_is_no_edit() -> None:
    spelled = the_one(
        requested(method="m", params={"b": 1.0, "a": 2}), first=proposed(method="m", params={"a": 2, "b": 1})
    )
    assert spelled.fulfilment is not None
    assert (spelled.fulfilment.edited, spelled.fulfilment.digest) == (False, spelled.digest)


def test_a_target_left_open_is_chosen_and_not_changed() -> None:
    record = the_one(*listing(1), requested(), first=proposed(to=()))
    assert record.fulfilment is not None
    assert (record.fulfilment.edited, record.fulfilment.target) == (False, "files")
    assert record.digest == digest(None, "tools/call", CALL)
    assert (
        record.fulfilment.digest == record.digest_for("files") == digest("files", "tools/call", CALL, SCHEMA)
    )
    both = the_one(requested(to=["disk", "files"]), first=proposed(to=["files", "disk"]))
    assert both.fulfilment is not None
    assert (both.fulfilment.edited, both.fulfilment.digest) == (False, both.digest)


def test_the_digest_is_over_the_schema_as_last_seen() -> None:
    (record,) = book(*listing(1), proposed())
    assert record.digest == digest("files", "tools/call", CALL, SCHEMA)
    assert the_one().digest == digest("files", "tools/call", CALL)


def test_a_schema_first_seen_after_the_proposal_is_what_was_proposed() -> None:
    fed = book(proposed(), *listing(1))
    assert fed["p"].digest == digest("files", "tools/call", CALL, SCHEMA)
    fed.apply(requested(), AT)
    fulfilment = fed["p"].fulfilment
    assert fulfilment is not None
    assert (fulfilment.digest, fulfilment.is_as_proposed) == (fed["p"].digest, True)


def test_a_schema_that_changes_after_the_proposal_is_told_to_reviewer_and_auditor() -> None:
    fed = book(*listing(1), proposed(), proposed("other", params={"name": "read"}))
    told = [fed.apply_all(one, after(1)) for one in listing(2, inputSchema={"type": "object", "x": 1})]
    assert [[record.id for record in changed] for changed in told] == [[], ["p"]]
    assert fed["p"].schema_changed
    assert "schema changed after this was proposed" in preview(fed["p"])
    fed.apply(requested(), after(2))
    fulfilment = fed["p"].fulfilment
    assert fulfilment is not None
    assert (fulfilment.edited, fulfilment.schema_changed, fulfilment.is_as_proposed) == (False, True, False)
    assert fulfilment.digest != fed["p"].digest


def test_what_has_no_canonical_form_has_no_digest_and_is_compared_all_the_same() -> None:
    first = proposed(method="m", params={"n": 2**53 + 1})
    same = the_one(requested(method="m", params={"n": 2**53 + 1}), first=first)
    other = the_one(requested(method="m", params={"n": 2**53}), first=first)
    assert same.digest is None
    assert same.fulfilment is not None
    assert other.fulfilment is not None
    assert (same.fulfilment.edited, other.fulfilment.edited) == (False, True)


# Questions.


def test_open_ones_are_told_oldest_first() -> None:
    fed = book(proposed("p1"), proposed("p2"), proposed("p3"), withdrawn("w", "p2"), rejected("r", "p3"))
    assert [record.id for record in fed.open(AT)] == ["p1", "p3"]
    assert [record.id for record in fed] == ["p1", "p2", "p3"]
    assert ("p2" in fed, "p9" in fed, len(fed), fed.get("p9")) == (True, False, 3, None)
    with pytest.raises(KeyError):
        fed["p9"]


def test_a_reviewer_sees_what_is_open_and_not_its_own_and_not_for_others_alone() -> None:
    fed = book(
        proposed("open"),
        proposed("mine", by="ann"),
        proposed("theirs", targeting={"preferred": ["bob"], "exclusive": True}),
        proposed("ours", targeting={"preferred": ["ann"], "exclusive": True}),
        proposed("bob first", targeting={"preferred": ["bob"]}),
        proposed("decided"),
        proposed("rejected"),
        proposed("beyond me", method="resources/read"),
        requested("f", "decided"),
        rejected("r", "rejected", by="ann"),
    )
    shown = fed.for_reviewer("ann", AT, lambda record: record.method == "tools/call")
    assert [record.id for record in shown] == ["open", "ours", "bob first"]


def test_a_record_as_json_has_everything_under_the_names_of_the_api() -> None:
    fed = book(
        *listing(1),
        proposed(expires_at="2026-01-01T00:01:00Z", why="The tests need it."),
        rejected(reason="busy", message="Later."),
        said("c", "r"),
    )
    fed.apply(requested(params=CALL | {"arguments": {"path": "/b", "text": "hi"}}), AT)
    fed.apply(answered(error={"code": 1, "message": "no"}), AT)
    told = fed["p"].as_dict(AT)
    assert {name: told[name] for name in ("id", "proposer", "to", "method", "params", "status", "why")} == {
        "id": "p",
        "proposer": "bot",
        "to": ["files"],
        "method": "tools/call",
        "params": CALL,
        "status": "failed",
        "why": "The tests need it.",
    }
    assert (told["at"], told["expires_at"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    assert told["digest"] == fed["p"].digest
    assert told["rejections"][0]["message"] == "Later."
    assert told["rejections"][0]["explanations"][0]["text"] == "because"
    (sent,) = told["fulfilments"]
    assert (sent["edited"], sent["late"]) == (True, False)
    assert sent["differences"] == [{"path": "$.params.arguments.path", "old": "/a", "new": "/b"}]
    assert sent["response"]["error"] == {"code": 1, "message": "no"}
    assert "result" not in sent["response"]
    assert told["tools"][0]["participant"] == "files"
    assert decode_json(encode_json(told)) == told


def test_why_and_until_when_are_no_part_of_the_digest() -> None:
    plain, told = the_one(), the_one(first=proposed(why="Because.", expires_at="2026-01-01T00:01:00Z"))
    assert told.why == "Because."
    assert told.digest == plain.digest


def test_what_is_held_is_not_pushed_out_until_it_is_released() -> None:
    fed = ProposalBook(open_max=2, closed_max=1)
    fed.hold("mine")
    for id in ("mine", "p1", "p2", "p3"):
        fed.apply(proposed(id), AT)
    assert [record.id for record in fed] == ["mine", "p2", "p3"]
    fed.apply(withdrawn("w1", "mine"), AT)
    for id in ("p2", "p3"):
        fed.apply(withdrawn(f"w{id}", id), AT)
    assert [record.id for record in fed] == ["mine", "p3"]
    fed.release("mine")
    assert [record.id for record in fed] == ["mine"]


# The preview.


def test_a_preview_says_who_would_do_what_with_whose_tool() -> None:
    fed = book(*listing(1, annotations={"destructiveHint": True}), proposed())
    assert preview(fed["p"]).splitlines() == [
        "bot proposes write of files",
        '  path: "/a"',
        '  text: "hi"',
        "  files says it is destructive",
    ]


def test_a_preview_warns_of_a_tool_that_is_not_what_it_was() -> None:
    fed = book(*listing(1), *listing(2, description="new", annotations={"readOnlyHint": True}), proposed())
    assert preview(fed["p"]).splitlines()[3:] == [
        "  files says it is read-only (its own claim)",
        "  ! write of files changed since first seen: description, annotations",
        "    annotations.readOnlyHint was not there, is true",
        '    description was not there, is "new"',
    ]
    assert "no listing of this tool was seen" in preview(the_one())
    assert "does not say whether it is destructive" in preview(book(*listing(1), proposed())["p"])


def test_a_preview_warns_of_what_a_bridge_remembers_of_a_tool() -> None:
    """Decision 0010, 8."""
    mark = {
        "since": "2026-01-01T00:00:00Z",
        "changed_at": "2026-02-01T00:00:00Z",
        "fields": ["inputSchema", "x\x1b"],
    }
    fed = book(*listing(1, _meta={"mew/changed": mark}), proposed())
    (tool,) = fed["p"].tools
    assert tool.changed == ("input_schema", "x\x1b")
    warned = "! write of files changed since first seen (2026-01-01T00:00:00Z): inputSchema, "
    assert f'  {warned}"x\\u001b"' in preview(fed["p"]).splitlines()
    assert fed["p"].as_dict(AT)["tools"][0]["changed"] == ["inputSchema", "x\x1b"]


def test_a_mark_that_cannot_be_read_is_a_mark_and_one_that_is_gone_is_gone() -> None:
    marked = [*listing(1), *listing(2, _meta={"mew/changed": {"fields": 1}})]
    assert book(*marked, proposed())["p"].tools[0].changed == ("unreadable",)
    assert book(*marked, *listing(3), proposed())["p"].tools[0].changed == ()


def test_a_preview_hides_nothing_that_would_be_sent() -> None:
    params = CALL | {"_meta": {"trace": 1}, "arguments": ["odd"]}
    shown = preview(the_one(first=proposed(params=params)))
    assert "params._meta: {trace: 1}" in shown
    assert 'params.arguments: ["odd"]' in shown
    assert "uri: " in preview(the_one(first=proposed(method="resources/read", params={"uri": "file:///a"})))
    many = the_one(
        first=proposed(
            to=[f"t{n}" for n in range(9)],
            params={"name": "x", "arguments": dict.fromkeys(map(str, range(99)))},
        )
    )
    assert "and 87 more" in preview(many)
    assert "and 5 more" in preview(many)


def test_a_preview_is_short() -> None:
    long = {"name": "n" * 10**5, "arguments": {"a" * 10**5: "x" * 10**5, "deep": [["y" * 10**4] * 3] * 3}}
    shown = preview(the_one(first=proposed(params=long)))
    assert len(shown) < 2000
    assert "(100,000 characters)" in shown


HOSTILE = "\x1b]0;owned\x07\r\n\u202e\u2066\u200b\u00ad\u2028\x9b\ufeff\u3164\ufe0f\U000e0041\x7f"


def test_a_preview_makes_visible_what_would_hide() -> None:
    call = {"name": f"read{HOSTILE}", "arguments": {HOSTILE: HOSTILE, "nested": [{HOSTILE: HOSTILE}]}}
    shown = preview(the_one(first=proposed(params=call)))
    assert not set(HOSTILE.replace("\n", "")) & set(shown) - set("]0;owned")
    assert "\\u202e" in shown
    assert len(shown.splitlines()) == 4


def test_a_name_that_reads_like_a_sentence_stands_in_quotes() -> None:
    call = {"name": "read of calculator", "arguments": {}}
    assert preview(the_one(first=proposed(params=call))).startswith(
        'bot proposes "read of calculator" of files'
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_a_preview_is_safe_whatever_it_shows(value: Any) -> None:
    shown = preview(the_one(first=proposed(method="m", params={"x": decode_json(encode_json(value))})))
    assert len(shown.splitlines()) == 2
    assert all(unicodedata.category(char)[0] not in "C" or char == "\n" for char in shown)


# Bounds.


def test_closed_ones_are_forgotten_oldest_first_and_stay_forgotten() -> None:
    some = [proposed(f"p{number}") for number in range(5)]
    ends = [withdrawn(f"w{number}", f"p{number}") for number in (3, 0, 1)]
    fed = book(*some, *ends, closed_max=2)
    assert [record.id for record in fed] == ["p0", "p1", "p2", "p4"]
    assert fed.apply(some[3], AT) is None
    assert "p3" not in fed


def test_whoever_proposes_without_end_pushes_out_nobody_else() -> None:
    fed = book(proposed("bobs", by="bob"), *(proposed(f"{number}") for number in range(9)), open_max=3)
    assert [record.id for record in fed] == ["bobs", "7", "8"]


def test_what_is_kept_is_bounded_in_bytes() -> None:
    large = {"name": "write", "arguments": {"text": "x" * 10_000}}
    some = [proposed("bobs", by="bob"), *(proposed(f"{number}", params=large) for number in range(9))]
    fed = book(*some, bytes_max=40_000)
    assert [record.id for record in fed] == ["bobs", "6", "7", "8"]
    fed = book(*some[:3], withdrawn("w", "bobs", by="bob"), *some[3:], bytes_max=40_000)
    assert [record.id for record in fed] == ["6", "7", "8"]
    assert len(book(proposed(params=large), bytes_max=100)) == 1


def test_what_is_small_on_the_wire_and_large_in_memory_counts_as_large() -> None:
    nested = {"name": "write", "arguments": {"text": [[]] * 10_000}}
    fed = book(*(proposed(f"{number}", params=nested) for number in range(9)), bytes_max=2_000_000)
    assert len(fed) == 2


def test_one_request_decides_no_more_than_four() -> None:
    """Each is compared with all of the request: a thousand would hold up everyone for minutes."""
    fed = book(*(proposed(f"p{number}") for number in range(9)))
    fed.apply(requested("f", *(f"p{number}" for number in range(9))), AT)
    assert len(fed.open(AT)) == 5


def test_the_path_of_a_difference_is_cut_where_it_is_long() -> None:
    (difference,) = differences({"x" * 100_000: 1}, {"x" * 100_000: 2})
    assert (len(difference.path), difference.path[-1]) == (4096, "…")


def test_what_is_said_of_one_proposal_is_bounded_for_each_and_for_all() -> None:
    by_one = [rejected(f"r{number}") for number in range(20)]
    record = the_one(*by_one, rejected("r", by="bob"), *(said(f"c{number}", "r0") for number in range(20)))
    assert [no.by for no in record.rejections] == ["eve"] * 8 + ["bob"]
    assert len(record.rejections[0].explanations) == 8
    assert len(the_one(*(rejected(f"r{n}", by=f"e{n}") for n in range(99))).rejections) == 64
    assert len(the_one(*(requested(f"f{n}", by=f"a{n}") for n in range(99))).fulfilments) == 64


def test_a_further_fulfilment_that_is_long_is_listed_without_its_values() -> None:
    long = {"name": "write", "arguments": {"path": "x" * 70_000}}
    record = the_one(
        requested("f1"),
        requested("f2", params=long),
        answered("a2", "f2", result={"isError": True, "x": "y" * 70_000}),
    )
    _, also = record.fulfilments
    assert (also.edited, also.abridged, also.params) == (True, True, UNSET)
    assert also.differences[0] == Difference("$.params.arguments.path")
    assert also.response is not None
    assert (also.response.failed, also.response.abridged) == (True, True)
    assert record.size < 10_000


# Whatever comes.

IDS = st.integers(0, 3)
WHO = st.sampled_from(["bot", "ann", "files", "eve"])
TO = st.sampled_from(["files", "disk", ("files", "eve"), ()])
PARAMS = st.sampled_from([CALL, CALL | {"arguments": {"path": "/b"}}, {"name": "read"}])
REASON = st.sampled_from([{}, {"reason": "timeout"}, {"reason": "unsafe"}])
MOVES = st.one_of(
    st.builds(lambda n, by, params, to: proposed(f"p{n}", by, params, to=to), IDS, WHO, PARAMS, TO),
    st.builds(
        lambda n, p, by, params, to: requested(f"f{n}", f"p{p}", by=by, params=params, to=to),
        IDS,
        IDS,
        WHO,
        PARAMS,
        TO,
    ),
    st.builds(
        lambda n, f, by, bad: answered(f"a{n}", f"f{f}", by=by, result={"isError": bad}),
        IDS,
        IDS,
        WHO,
        st.booleans(),
    ),
    st.builds(
        lambda n, p, q, by, why: rejected(f"r{n}", f"p{p}", f"p{q}", by=by, **why), IDS, IDS, IDS, WHO, REASON
    ),
    st.builds(
        lambda n, p, q, by, why: withdrawn(f"w{n}", f"p{p}", f"p{q}", by=by, **why),
        IDS,
        IDS,
        IDS,
        WHO,
        REASON,
    ),
    st.builds(lambda n, r, by: said(f"c{n}", f"r{r}", by=by), IDS, IDS, WHO),
    st.builds(
        lambda n, of: listing(n, of=of, description=str(n))[0], IDS, st.sampled_from(["files", "disk"])
    ),
    st.builds(
        lambda n, of, x: listing(n, of=of, inputSchema={"x": x})[1],
        IDS,
        st.sampled_from(["files", "disk"]),
        IDS,
    ),
)


@given(st.lists(MOVES, max_size=40), st.data())
def test_seeing_envelopes_twice_is_seeing_them_once(moves: list[Envelope], data: st.DataObject) -> None:
    once, twice = ProposalBook(), ProposalBook()
    for number, move in enumerate(moves):
        assert once.apply_all(move, after(number)) == twice.apply_all(move, after(number))
        assert twice.apply_all(moves[data.draw(st.integers(0, number))], after(number)) == ()
    for number, move in enumerate(moves):
        assert twice.apply_all(move, after(100 + number)) == ()
    assert list(once) == list(twice)


@given(st.lists(MOVES, max_size=40))
def test_a_closed_record_never_opens_again(moves: list[Envelope]) -> None:
    fed = ProposalBook()
    closed: dict[str, ProposalRecord] = {}
    for number, move in enumerate(moves):
        fed.apply(move, after(number))
        for record in fed:
            before = closed.get(record.id)
            if before is not None:
                assert not record.is_open(AT)
                assert record.is_settled >= before.is_settled
                assert before.fulfilment is None or record.fulfilment is not None
                assert before.params == record.params
            if not record.is_open(AT):
                closed[record.id] = record


@given(st.lists(MOVES, max_size=40))
def test_a_fulfilment_has_the_digest_of_what_was_proposed_unless_it_says_otherwise(
    moves: list[Envelope],
) -> None:
    for record in book(*moves):
        for sent in record.fulfilments:
            unchanged = sent.digest == record.digest_for(sent.target)
            if sent.edited:
                assert not unchanged
            elif sent is record.fulfilment:
                assert unchanged is sent.is_as_proposed


@given(st.lists(MOVES, max_size=60))
def test_a_book_keeps_its_bounds(moves: list[Envelope]) -> None:
    fed = ProposalBook(open_max=2, closed_max=1, bytes_max=4000)
    for number, move in enumerate(moves):
        fed.apply(move, after(number))
        assert sum(record.is_settled for record in fed) <= 1
        assert sum(not record.is_settled for record in fed) <= 2
        assert sum(record.size for record in fed) <= 4000 or len(fed) == 1
        for record in fed:
            assert preview(record)
            assert record.as_dict(AT)["id"] == record.id
