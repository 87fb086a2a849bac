"""Sealed tokens: a passphrase gives the token, and the file that checks it does not."""

from pathlib import Path

import pytest

from mew.gateway.auth.sealed import SealedToken, read_sealed, seal, sealed_path, write_sealed
from mew.gateway.auth.tokens import load_tokens, token_path
from mew.gateway.config.loader import load_config
from mew.gateway.config.value import ConfigError

PASSPHRASE = "correct horse battery"


@pytest.fixture(scope="module")
def sealed() -> SealedToken:
    return seal(PASSPHRASE)


def test_only_the_passphrase_gives_the_token(sealed: SealedToken) -> None:
    token = sealed.unseal(PASSPHRASE)
    assert token is not None
    assert len(token) == 43
    assert sealed.unseal("Correct horse battery") is None
    assert sealed.unseal("") is None


def test_how_an_accent_is_typed_makes_no_difference() -> None:
    assert seal("cafe\u0301 au lait").unseal("caf\u00e9 au lait") is not None


def test_a_gateway_knows_the_holder_of_a_sealed_token_and_makes_no_other(
    sealed: SealedToken, tmp_path: Path
) -> None:
    file = tmp_path / "space.yaml"
    file.write_text("{space: {id: s}, participants: {ann: {}}}")
    config = load_config(file, {})
    path = sealed_path(token_path(config, "s", "ann"))
    write_sealed(path, sealed)
    loaded = load_tokens(config, {})
    assert loaded.made == ()
    assert loaded.tables["s"].find(sealed.unseal(PASSPHRASE) or "") == "ann"
    assert loaded.tables["s"].find(sealed.digest) is None
    assert [one.name for one in path.parent.iterdir()] == ["ann.sealed"]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "not JSON",
        '{"digest":"' + "0" * 64 + '","salt":"00"}',
        '{"digest":"' + "0" * 64 + '","salt":"' + "0" * 32 + '","cost":1}',
        '{"digest":"' + "0" * 64 + '","salt":"' + "0" * 32 + '","cost":1099511627776}',
    ],
)
def test_what_is_no_sealed_token_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ann.sealed"
    path.write_text(text)
    with pytest.raises(ConfigError, match="not a sealed token"):
        read_sealed(path)


def test_no_file_is_no_sealed_token(tmp_path: Path) -> None:
    assert read_sealed(tmp_path / "ann.sealed") is None
