"""What hosts call the tools of others: a name for each, always the same, and never another's."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mew.client.mcp.model_tools import exposed_name, split_exposed_name

TAKEN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)

participants = st.one_of(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}", fullmatch=True),
    st.text("a_", min_size=1, max_size=4),
)
tools = st.one_of(st.text(max_size=80), st.text("ab_-.", max_size=6))


@given(participants, tools)
def test_every_name_is_one_that_hosts_take(participant: str, tool: str) -> None:
    assert TAKEN.fullmatch(exposed_name(participant, tool))


@given(participants, tools, participants, tools)
def test_no_two_things_have_the_same_name(one: str, its: str, other: str, others: str) -> None:
    assert (exposed_name(one, its) == exposed_name(other, others)) == ((one, its) == (other, others))


@given(participants, tools, participants)
def test_nobody_can_call_a_tool_so_that_it_is_taken_for_anothers(
    victim: str, tool: str, attacker: str
) -> None:
    shown = exposed_name(victim, tool)
    for called in (shown, shown.partition("__")[2], tool, f"{victim}__{tool}"):
        assert (exposed_name(attacker, called) == shown) == ((attacker, called) == (victim, tool))


@given(participants, tools)
def test_a_plain_name_says_what_it_stands_for(participant: str, tool: str) -> None:
    assert split_exposed_name(exposed_name(participant, tool)) in (None, (participant, tool))


def test_an_ordinary_name_is_the_participant_and_the_tool() -> None:
    assert exposed_name("files", "read_file") == "files__read_file"
    assert exposed_name("my-files", "read__all") == "my-files__read__all"
    assert split_exposed_name("files__read_file") == ("files", "read_file")


def test_a_name_is_the_same_tomorrow() -> None:
    assert exposed_name("ann@corp.example", "read file") == "ann_corp_example__read_file_jprue4uioczagwoi"


def test_the_names_of_our_own_tools_are_nobodys() -> None:
    assert split_exposed_name("mew_chat") is None
    assert exposed_name("mew", "chat") == "mew__chat"


def test_a_name_that_looks_as_if_it_ended_in_a_hash_gets_one() -> None:
    forged = exposed_name("ann@corp", "x").partition("__")[2]

    assert exposed_name("ann_corp", forged) != exposed_name("ann@corp", "x")
