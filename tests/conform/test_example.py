"""The files of a first run: the gateway and the kit read them, and they speak of the same spaces and roles."""

from pathlib import Path

import pytest

from mew.conform.example import write_example
from mew.conform.roles import (
    KICKED,
    ROLES,
    SECOND_SPACE_ROLES,
    SPARES,
    KitConfig,
    KitConfigError,
    read_config,
)
from mew.gateway.config.loader import load_config

URL = "ws://127.0.0.1:8080"


def read(folder: Path) -> KitConfig:
    """The example as the kit reads it, once the gateway has made the tokens."""
    _, kit = write_example(folder, URL)
    for space, names in (("conform", (*ROLES, *SPARES, KICKED)), ("second", SECOND_SPACE_ROLES)):
        tokens = folder / ".mew" / "tokens" / space
        tokens.mkdir(parents=True)
        for name in names:
            (tokens / f"{name}.token").write_text(f"{space}-{name}\n")
    return read_config(kit, {})


def test_the_gateway_has_the_spaces_and_roles_that_the_kit_plays(tmp_path: Path) -> None:
    kit = read(tmp_path)
    config = load_config(tmp_path / "space.yaml", {})
    assert kit.second_space is not None
    assert list(config.spaces) == [kit.space, kit.second_space.space]
    assert set(config.spaces[kit.space].participants) == set(kit.roles)
    assert set(config.spaces[kit.second_space.space].participants) == set(kit.second_space.roles)
    assert config.smtp is not None
    assert kit.mail == f"{config.smtp.host}:{config.smtp.port}"


def test_each_role_has_its_token_in_each_space(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.second_space is not None
    assert config.roles["peer"].token == "conform-peer"
    assert config.second_space.roles["peer"].token == "second-peer"


def test_a_role_in_the_second_space_has_the_token_of_the_first_where_none_is_given(tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    file.write_text(
        f"""url = "{URL}"
space = "a"
roles.owner.token = "one"
roles.listener.token = "two"
second_space.space = "b"
"""
    )
    second_space = read_config(file, {}).second_space
    assert second_space is not None
    assert {name: role.token for name, role in second_space.roles.items()} == {"owner": "one"}


def test_a_role_that_the_second_space_does_not_have_is_named(tmp_path: Path) -> None:
    file = tmp_path / "conform.toml"
    file.write_text(
        f"""url = "{URL}"
space = "a"
roles.owner.token = "one"
second_space.space = "b"
second_space.roles.listener.token = "two"
"""
    )
    with pytest.raises(KitConfigError, match="there is no role 'listener'; the roles are owner, peer"):
        read_config(file, {})


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write_example(tmp_path, URL)
    with pytest.raises(FileExistsError, match="is there already"):
        write_example(tmp_path, URL)
