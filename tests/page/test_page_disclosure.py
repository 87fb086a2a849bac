"""The page shows every byte that it would send, before it sends any of it."""

import json
import time
from typing import Any, Final

import pytest
from playwright.async_api import Locator, expect

import mew
from mew.client.proposals.proposer import Proposal
from mew.protocol.kinds import Kind

from .test_page_for_everyone import assert_for_everyone
from .workplace import Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

MORE: Final = "Part of this proposal is not shown."
MEGABYTE: Final = "0123456789abcde\n" * 60_000
SHOWN_S_MAX: Final = 5


async def propose(place: Workplace, params: dict[str, Any], method: str = "tools/call") -> Proposal:
    proposal = await place.bot.propose(method, params, target="files")
    await expect(card_of(place, proposal)).to_be_visible()
    await place.ready()
    return proposal


async def call(place: Workplace, arguments: Any, **beside: Any) -> Proposal:
    return await propose(place, {"name": "write_file", "arguments": arguments, **beside})


def card_of(place: Workplace, proposal: Proposal) -> Locator:
    return place.page.locator(f".card[data-proposal='{proposal.id}']")


def approve_button(card: Locator) -> Locator:
    return card.locator(".deciding button.approve")


async def sent_after(place: Workplace, key: str) -> Any:
    """The params of the request that the page sends once this key is pressed."""
    async with place.bot.envelopes(Kind.MCP_REQUEST, sender="ann") as requests:
        await place.page.keyboard.press(key)
        async for request in requests:
            if request.content["method"] == "tools/call":
                return request.content["params"]


@pytest.mark.parametrize(
    ("arguments", "kind", "shown"),
    [
        (["rm", "-rf", "/"], "an array", ["“rm”", "“-rf”", "“/”"]),
        ("rm -rf /", "a string", ["rm -rf /"]),
        (7, "a number", ["7"]),
        (None, "null", ["null"]),
        (True, "a boolean", ["true"]),
    ],
)
async def test_arguments_that_are_no_object_are_shown_as_what_they_are(
    place: Workplace, arguments: Any, kind: str, shown: list[str]
) -> None:
    proposal = await call(place, arguments)
    card = card_of(place, proposal)
    await expect(card.locator(".card-inside")).not_to_contain_text("no arguments")
    await expect(card.locator(".warning").last).to_contain_text(
        f"The arguments are {kind}, but should be an object"
    )
    for text in shown:
        await expect(card.locator(".arguments")).to_contain_text(text)
    line = json.dumps(arguments, separators=(",", ":"))
    await expect(place.row("proposes").locator(".arguments-line")).to_have_text(line)
    await card.locator(".card-title").click()
    await expect(card.locator(".card-line")).to_have_text(line)
    await proposal.withdraw()


async def test_arguments_that_are_no_object_are_sent_as_they_are(place: Workplace) -> None:
    await call(place, ["rm", {"-rf": [7]}])
    assert await sent_after(place, "a") == {"name": "write_file", "arguments": ["rm", {"-rf": [7]}]}


async def test_only_what_has_no_arguments_is_said_to_have_none(place: Workplace) -> None:
    proposal = await propose(place, {"name": "write_file"})
    await expect(card_of(place, proposal).locator(".card-inside")).to_contain_text("no arguments")
    await proposal.withdraw()


async def test_what_is_sent_along_with_a_call_is_in_sight(place: Workplace) -> None:
    proposal = await call(place, {"path": "a"}, _meta={"progressToken": "evil-1"}, task={"ttl": 5})
    card = card_of(place, proposal)
    beside = card.locator(".beside")
    await expect(beside.locator("h3")).to_be_visible()
    for text in ("progressToken", "evil-1", "ttl"):
        await expect(beside.get_by_text(text)).to_be_visible()
    await place.page.keyboard.press("e")
    await expect(place.page.locator("dialog .beside").get_by_text("evil-1")).to_be_visible()
    await place.page.keyboard.press("Escape")
    await card.locator(".card-title").click()
    await expect(card.locator(".card-line")).to_contain_text('with _meta: {"progressToken":"evil-1"}')
    await proposal.withdraw()


async def test_a_call_of_what_is_no_name_shows_all_of_its_params(place: Workplace) -> None:
    proposal = await propose(place, {"name": ["run"], "arguments": {"path": "a.txt"}, "_meta": {"x": "y1"}})
    card = card_of(place, proposal)
    for text in ("run", "a.txt", "y1"):
        await expect(card.locator(".arguments").get_by_text(text)).to_be_visible()
    await place.page.keyboard.press("e")
    await expect(place.page.locator(".notice").last).to_contain_text("Only tool calls can be edited")
    await proposal.withdraw()


async def test_a_megabyte_is_approved_only_once_all_of_it_is_shown(place: Workplace) -> None:
    page = place.page
    proposal = await place.propose(path="large.txt", content=MEGABYTE)
    card = card_of(place, proposal)
    await expect(approve_button(card)).to_be_disabled()
    await expect(approve_button(card)).to_have_attribute("title", MORE)
    await expect(card.locator(".folded")).to_contain_text(MORE)
    await page.keyboard.press("a")
    await expect(page.locator(".notice").last).to_contain_text("Not approved")
    await expect(page.locator(".undo-line")).to_have_count(0)
    await assert_for_everyone(page, "a text that is folded")
    began = time.monotonic()
    await card.get_by_role("button", name="Show everything").click()
    await expect(approve_button(card)).to_be_enabled()
    assert time.monotonic() - began < SHOWN_S_MAX
    await expect(card.locator(".folded")).to_have_count(0)
    assert await card.locator(".long-text.block").text_content() == MEGABYTE
    await page.keyboard.press("a")
    assert isinstance(await proposal, mew.Fulfilled)
    assert place.written == {"large.txt": MEGABYTE}


async def test_a_file_of_usual_size_takes_no_click_to_be_shown(place: Workplace) -> None:
    text = "".join(f"line {n} of a file of some length\n" for n in range(500))
    proposal = await place.propose(content=text)
    card = card_of(place, proposal)
    await expect(card.locator(".long-text.block")).to_have_text(text, use_inner_text=False)
    await expect(approve_button(card)).to_be_enabled()
    box = await card.locator(".long-text.block").bounding_box()
    assert box is not None
    assert box["height"] < 400
    await proposal.withdraw()


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        ({f"argument-{n}": n for n in range(150)}, "argument-149"),
        ({"list": [f"item-{n}" for n in range(300)]}, "item-299"),
        ({"list": [[f"item-{n}"] for n in range(3_000)]}, "item-2999"),
        ({"a": {"b": {"c": [{"d": {"e": n, "f": f"deep-{n}"}} for n in range(60)]}}}, "deep-59"),
        ({"old_string": "x\n" * 900 + "last-old", "new_string": "x\n" * 900 + "last-new"}, "last-new"),
        ({"patch": "@@ -1,700 +1,700 @@\n" + "+x\n" * 700 + "+last-line"}, "last-line"),
        ({"name " * 6_000 + "end-of-name": 1}, "end-of-name"),
        ({f"a-{n}": n for n in range(3_000)}, "a-2999"),
    ],
    ids=["arguments", "list", "long list", "deep", "change", "patch", "name", "many arguments"],
)
async def test_whatever_folds_a_part_away_keeps_it_from_being_approved(
    place: Workplace, arguments: Any, last: str
) -> None:
    proposal = await call(place, arguments)
    card = card_of(place, proposal)
    await expect(approve_button(card)).to_be_disabled()
    await expect(card.locator(".card-inside")).not_to_contain_text("raw JSON")
    await place.page.keyboard.press("a")
    await expect(place.page.locator(".undo-line")).to_have_count(0)
    await card.get_by_role("button", name="Show everything").click()
    await expect(approve_button(card)).to_be_enabled()
    await expect(card.locator(".arguments, .long-text").filter(has_text=last).first).to_be_visible()
    await proposal.withdraw()


async def test_what_is_folded_is_unfolded_in_place_and_by_hand_as_well(place: Workplace) -> None:
    proposal = await call(place, {f"argument-{n}": n for n in range(150)})
    card = card_of(place, proposal)
    await card.get_by_role("button", name="Show more arguments").click()
    await expect(card.get_by_text("argument-149")).to_be_visible()
    await expect(approve_button(card)).to_be_enabled()
    await proposal.withdraw()


async def test_a_branch_that_somebody_closes_is_not_shown_until_it_is_open_again(place: Workplace) -> None:
    proposal = await call(place, {"deep": {"a": {"b": {"c": {"d": "bottom"}}}}})
    card = card_of(place, proposal)
    await expect(card.get_by_text("bottom")).to_be_visible()
    await expect(approve_button(card)).to_be_enabled()
    await card.locator(".json summary").first.click()
    await expect(approve_button(card)).to_be_disabled()
    await card.get_by_role("button", name="Show everything").click()
    await expect(card.get_by_text("bottom")).to_be_visible()
    await expect(approve_button(card)).to_be_enabled()
    await expect(card.locator(".card-title")).to_be_focused()  # the button that was pressed is gone
    await proposal.withdraw()


async def test_what_was_shown_once_is_shown_again_when_its_card_is_opened(place: Workplace) -> None:
    proposal = await place.propose(content=MEGABYTE[:100_000])
    card = card_of(place, proposal)
    await card.get_by_role("button", name="Show everything").click()
    await expect(approve_button(card)).to_be_enabled()
    await card.locator(".card-title").click()
    await expect(card.locator(".card-inside")).to_have_count(0)
    await card.locator(".card-title").click()
    await expect(approve_button(card)).to_be_enabled()
    await proposal.withdraw()


async def test_small_proposals_are_approved_at_once_without_opening_them(place: Workplace) -> None:
    proposals = [await place.propose(path=f"{n}.txt") for n in range(4)]
    for proposal in proposals[1:]:
        await card_of(place, proposal).locator("input[type=checkbox]").check()
    await expect(place.page.locator(".card-inside")).to_have_count(1)
    await place.page.keyboard.press("a")
    for proposal in proposals[1:]:
        assert isinstance(await proposal, mew.Fulfilled)
    assert sorted(place.written) == ["1.txt", "2.txt", "3.txt"]
    await proposals[0].withdraw()


async def test_of_several_picked_those_that_were_not_shown_are_left_and_opened(place: Workplace) -> None:
    page = place.page
    proposals = [await place.propose(path=f"{n}.txt") for n in range(3)]
    large = await place.propose(path="large.txt", content="x" * 30_000)
    for proposal in (*proposals[1:], large):
        await card_of(place, proposal).locator("input[type=checkbox]").check()
    await page.get_by_role("button", name="Approve all").click()
    await expect(page.locator(".notice").last).to_contain_text("Not approved: 1 of 3")
    for proposal in proposals[1:]:
        assert isinstance(await proposal, mew.Fulfilled)
    assert "large.txt" not in place.written
    card = card_of(place, large)
    await expect(approve_button(card)).to_be_disabled()
    await card.get_by_role("button", name="Show everything").click()
    await expect(approve_button(card)).to_be_enabled()
    await place.ready()
    await page.keyboard.press("a")
    assert isinstance(await large, mew.Fulfilled)
    assert place.written["large.txt"] == "x" * 30_000
    await proposals[0].withdraw()


async def test_an_edit_makes_no_object_of_what_is_none(place: Workplace) -> None:
    page, dialog = place.page, place.page.locator("dialog")
    await call(place, ["a.txt", "hello"])
    await page.keyboard.press("e")
    field = dialog.get_by_label("arguments")
    assert json.loads(await field.input_value()) == ["a.txt", "hello"]
    await expect(dialog).to_contain_text("must be an object")
    await expect(dialog.locator("button[type=submit]")).to_be_disabled()
    await assert_for_everyone(page, "arguments as JSON")
    await field.fill('{"path": "a.txt", "content": "hello"}')
    await expect(dialog.locator("button[type=submit]")).to_be_enabled()
    assert await sent_after(place, "Control+Enter") == {
        "name": "write_file",
        "arguments": {"path": "a.txt", "content": "hello"},
    }


async def test_an_edit_shows_what_it_has_no_field_for(place: Workplace) -> None:
    page, dialog = place.page, place.page.locator("dialog")
    arguments = {"path": "p", "content": "c\u202ed", **{f"v-{n}": n for n in range(250)}}
    params = {"name": "unlisted", "arguments": arguments, "_meta": {"token": "t" * 30_000}}
    await propose(place, params)
    await page.keyboard.press("e")
    submit = dialog.locator("button[type=submit]")
    await expect(dialog.locator(".field .warning")).to_contain_text("U+202E")
    await expect(submit).to_be_disabled()
    await dialog.get_by_role("button", name="Show everything").click()
    await expect(dialog.locator(".beside").get_by_text("v-249", exact=True)).to_be_visible()
    await expect(submit).to_be_enabled()
    await dialog.get_by_label("path").fill("q")
    assert await sent_after(place, "Control+Enter") == {**params, "arguments": {**arguments, "path": "q"}}
