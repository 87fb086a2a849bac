"""Tokens of configured participants: where they come from, how they are kept."""

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from mew.gateway.auth.tokens import TokenTable, hash_token, is_token, load_tokens, token_path
from mew.gateway.config.loader import Config, ConfigError, load_config
from mew.protocol.envelope import ParticipantId

Write = Callable[[str], Config]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Config:
        file = tmp_path / "space.yaml"
        file.write_text(text)
        return load_config(file, {})

    return write


def keep(path: Path, text: str, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def test_a_token_is_valid_from_the_file_its_own_file_and_the_environment(
    write: Write, tmp_path: Path
) -> None:
    config = write("{space: {id: s}, participants: {my-bot: {tokens: [one, two]}}}")
    keep(tmp_path / ".mew/tokens/my-bot.token", "  three\n")
    table = load_tokens(config, {"MEW_TOKEN_MY_BOT": "four"}).tables["s"]
    assert [table.find(token) for token in ("one", "two", "three", "four")] == ["my-bot"] * 4
    assert table.find("five") is None
    assert len(table) == 4


def test_who_has_no_token_gets_one_once(write: Write, tmp_path: Path) -> None:
    config = write("{space: {id: s}, participants: {ann: , bob: {tokens: [b]}}}")
    first = load_tokens(config, {})
    file = tmp_path / ".mew/tokens/ann.token"
    token = file.read_text().strip()
    second = load_tokens(config, {})
    assert first.made == (file,)
    assert second.made == ()
    assert first.tables["s"].find(token) == second.tables["s"].find(token) == "ann"
    assert len(token) >= 43
    assert sorted(path.name for path in file.parent.iterdir()) == ["ann.token"]


def test_a_kept_token_is_for_the_owner_alone_and_not_for_git(write: Write, tmp_path: Path) -> None:
    load_tokens(write("{space: {id: s}, participants: {ann: {}}}"), {})
    assert mode(tmp_path / ".mew/tokens/ann.token") == "0600"
    assert mode(tmp_path / ".mew/tokens") == "0700"
    assert (tmp_path / ".mew/.gitignore").read_text() == "*\n"


def test_a_space_yaml_in_dot_mew_is_not_hidden_from_git(tmp_path: Path) -> None:
    folder = tmp_path / ".mew"
    folder.mkdir()
    (folder / "space.yaml").write_text("{space: {id: s}, participants: {ann: {}}}")
    load_tokens(load_config(folder / "space.yaml", {}), {})
    assert (folder / "tokens/ann.token").exists()
    assert (folder / "tokens/.gitignore").exists()
    assert not (folder / ".gitignore").exists()


def test_with_several_spaces_each_keeps_its_own_tokens(write: Write, tmp_path: Path) -> None:
    config = write("{spaces: [{id: one}, {id: two}], participants: {ann: {}}}")
    tables = load_tokens(config, {}).tables
    tokens = {space: token_path(config, space, "ann").read_text().strip() for space in ("one", "two")}
    assert token_path(config, "one", "ann") == tmp_path / ".mew/tokens/one/ann.token"
    assert tables["one"].find(tokens["one"]) == "ann"
    assert tables["one"].find(tokens["two"]) is None
    assert mode(tmp_path / ".mew/tokens/one") == "0700"


def test_a_token_file_others_may_read_is_tightened_with_a_note(write: Write, tmp_path: Path) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    file = tmp_path / ".mew/tokens/ann.token"
    keep(file, "kept", 0o644)
    loaded = load_tokens(config, {})
    assert loaded.notes == (f"{file}: others could read this token, mode 0644, now 0600",)
    assert mode(file) == "0600"
    assert load_tokens(config, {}).notes == ()


def test_of_several_processes_that_make_a_token_all_take_the_same(write: Write, tmp_path: Path) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    together = Barrier(8)

    def start(_: int) -> tuple[TokenTable, int]:
        together.wait(timeout=5)
        loaded = load_tokens(config, {})
        return loaded.tables["s"], len(loaded.made)

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(start, range(8)))
    token = (tmp_path / ".mew/tokens/ann.token").read_text().strip()
    assert {table.find(token) for table, _ in started} == {"ann"}
    assert sum(made for _, made in started) == 1
    assert [path.name for path in (tmp_path / ".mew/tokens").iterdir()] == ["ann.token"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n", "the token file is empty; delete it to have a token made"),
        ("two words", "expected a token of printable ASCII without space and comma, is not one"),
        ("caf\u00e9", "expected a token of printable ASCII without space and comma, is not one"),
    ],
    ids=["empty", "two words", "not ASCII"],
)
def test_a_file_without_a_token_is_named_and_not_quoted(
    write: Write, tmp_path: Path, text: str, reason: str
) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    file = tmp_path / ".mew/tokens/ann.token"
    keep(file, text)
    with pytest.raises(ConfigError) as error:
        load_tokens(config, {})
    assert str(error.value) == f"{file}: {reason}"


def test_a_pipe_in_place_of_a_token_file_is_an_error(write: Write, tmp_path: Path) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    (tmp_path / ".mew/tokens").mkdir(parents=True)
    os.mkfifo(tmp_path / ".mew/tokens/ann.token")
    with pytest.raises(ConfigError, match="expected a file with a token, is no file"):
        load_tokens(config, {})


def test_a_variable_that_is_no_token_is_named_and_not_quoted(write: Write) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    with pytest.raises(ConfigError) as error:
        load_tokens(config, {"MEW_TOKEN_ANN": "s3cret, s3cret"})
    assert str(error.value).startswith("MEW_TOKEN_ANN: expected a token")
    assert "s3cret" not in str(error.value)


def test_an_empty_variable_does_not_count(write: Write) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    assert len(load_tokens(config, {"MEW_TOKEN_ANN": ""}).made) == 1


def test_a_variable_that_two_ids_share_is_an_error(write: Write) -> None:
    config = write("{space: {id: s}, participants: {a-b: {}, a.b: {}}}")
    with pytest.raises(ConfigError) as error:
        load_tokens(config, {"MEW_TOKEN_A_B": "s3cret"})
    assert str(error.value) == (
        "space 's': the token of 'a.b' (MEW_TOKEN_A_B) is also that of 'a-b' (MEW_TOKEN_A_B)"
    )


def test_a_token_that_cannot_be_kept_is_an_error(write: Write, tmp_path: Path) -> None:
    config = write("{space: {id: s}, participants: {ann: {}}}")
    (tmp_path / ".mew").write_text("in the way")
    with pytest.raises(ConfigError, match=r"ann\.token: the token cannot be (read|kept)"):
        load_tokens(config, {})


def test_a_table_knows_hashes_only() -> None:
    table = TokenTable({hash_token("s3cret"): ParticipantId("ann")})
    assert table.find("s3cret") == "ann"
    assert "s3cret" not in repr(vars(table))
    assert hash_token("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("token", ["", "\ud800", "x" * 100_000, "\x00"])
def test_no_text_upsets_a_table(token: str) -> None:
    assert TokenTable({hash_token("other"): ParticipantId("ann")}).find(token) is None


@pytest.mark.parametrize(
    ("text", "fits"), [("a/b+c=", True), ("", False), ("a b", False), ("a,b", False), ("é", False)]
)
def test_what_a_token_may_be(text: str, fits: bool) -> None:  # noqa: FBT001  (a table of cases)
    assert is_token(text) is fits
