"""How a gateway writes expressions and paths is the operator's to say; without a word they are not tried."""

from pathlib import Path

import pytest

from mew.conform.outcome import NotOffered
from mew.conform.roles import MEW_NOTATION, PatternNotation, read_config
from mew.protocol.capability import Capability

KIT = """
url = "ws://127.0.0.1:8080"
space = "conform"
[roles.owner]
token = "t"
[notation]
regex = {"$regex" = "{expression}", flags = ""}
jsonpath = {kind = "{kind}", where = [{path = "$.payload{steps}", is = "{pattern}"}]}
"""


def test_our_own_way_is_a_capability_of_ours() -> None:
    notation = MEW_NOTATION
    expression = notation.expression("a|b")
    assert expression == "/^(a|b)$/"
    Capability.parse({"kind": expression})
    looking = notation.looking("chat", "$.to[*].name", "a*")
    assert looking == {"kind": "chat", "payload": {"$.to[*].name": "a*"}}
    Capability.parse(looking)


def test_another_way_is_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    file.write_text(KIT)
    notation = read_config(file, {}).notation
    assert notation.expression("a") == {"$regex": "^(a)$", "flags": ""}
    assert notation.looking("chat", "$.text", "hi") == {
        "kind": "chat",
        "where": [{"path": "$.payload.text", "is": "hi"}],
    }


def test_what_nobody_told_the_kit_is_not_offered() -> None:
    notation = PatternNotation()
    with pytest.raises(NotOffered, match="regular expressions"):
        notation.expression("a")
    with pytest.raises(NotOffered, match="JSONPath"):
        notation.looking("chat", "$.text", "hi")
