"""How a command finds the gateway, the space and the token."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mew.cli.locate.gateway import Door, Flags, reach, reach_as_person
from mew.cli.locate.journal import Failed
from mew.gateway.address_file import published_address
from mew.mcp_bridge.wrap.state_folder import wrap_file

YAML = """\
space: {id: demo}
server: {port: 7000}
participants: {ann: {capabilities: ["*"]}, bot: {capabilities: [chat]}}
"""
REMOTE = "wss://mew.example.org"
LOCAL = "ws://127.0.0.1:4711"
HERE = "http://127.0.0.1:7000"
NOTHING: Mapping[str, str] = {}


def folder(path: Path, text: str = YAML, *keep: str) -> Path:
    """A space.yaml, and a token for each that is named."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "space.yaml").write_text(text)
    for who in keep:
        kept(path, who)
    return path


def kept(path: Path, who: str) -> Path:
    file = path / ".mew" / "tokens" / f"{who}.token"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"token-of-{who}\n")
    return file


# What is typed.


def test_what_is_typed_needs_no_folder(tmp_path: Path) -> None:
    flags = Flags(gateway=REMOTE, space="demo", token="t")
    assert reach(flags, environ=NOTHING, here=tmp_path) == Door(REMOTE, "demo", "t")


def test_a_space_need_not_be_named_at_a_gateway_that_is(tmp_path: Path) -> None:
    assert reach(Flags(gateway=REMOTE, token="t"), environ=NOTHING, here=tmp_path).space is None


def test_a_space_may_stand_in_the_url(tmp_path: Path) -> None:
    flags = Flags(gateway=f"{REMOTE}/ws?space=demo", token="t")
    assert reach(flags, environ={"MEW_SPACE": "other"}, here=tmp_path).space == "demo"


def test_a_broken_space_yaml_is_not_in_the_way_of_what_is_typed(tmp_path: Path) -> None:
    folder(tmp_path, "[")
    assert reach(Flags(gateway=REMOTE, token="t"), environ=NOTHING, here=tmp_path).url == REMOTE


def test_a_token_file_is_handed_on_as_a_file(tmp_path: Path) -> None:
    file = kept(tmp_path, "ann")
    door = reach(Flags(gateway=REMOTE, token_file=file), environ=NOTHING, here=tmp_path)
    assert door.token == file


def test_what_is_typed_goes_before_the_environment(tmp_path: Path) -> None:
    environ = {"MEW_GATEWAY": LOCAL, "MEW_SPACE": "other", "MEW_TOKEN": "theirs", "MEW_AS": "bot"}
    flags = Flags(gateway=REMOTE, space="demo", token="mine", who="ann")
    assert reach(flags, environ=environ, here=tmp_path) == Door(REMOTE, "demo", "mine", "ann")


# The environment.


def test_the_environment_is_enough(tmp_path: Path) -> None:
    environ = {"MEW_GATEWAY": REMOTE, "MEW_SPACE": "demo", "MEW_TOKEN": " t \n", "MEW_AS": "ann"}
    assert reach(Flags(), environ=environ, here=tmp_path) == Door(REMOTE, "demo", "t", "ann")


def test_the_environment_may_name_a_file(tmp_path: Path) -> None:
    file = kept(tmp_path, "ann")
    environ = {"MEW_GATEWAY": REMOTE, "MEW_TOKEN_FILE": str(file)}
    assert reach(Flags(), environ=environ, here=tmp_path).token == file


def test_what_is_empty_in_the_environment_counts_for_nothing(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    environ = {"MEW_GATEWAY": "", "MEW_SPACE": " ", "MEW_TOKEN": "", "MEW_TOKEN_FILE": "", "MEW_AS": "ann"}
    assert reach(Flags(), environ=environ, here=tmp_path).url == HERE


# The folder.


def test_the_nearest_space_yaml_upwards_tells_everything_but_who(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    door = reach(Flags(who="ann"), environ=NOTHING, here=below)
    assert door == Door(HERE, "demo", kept(tmp_path, "ann"), "ann")


def test_a_space_yaml_may_lie_in_mew(tmp_path: Path) -> None:
    folder(tmp_path / ".mew", YAML)
    token = tmp_path / ".mew" / "tokens" / "ann.token"
    token.parent.mkdir()
    token.write_text("t")
    assert reach(Flags(who="ann"), environ=NOTHING, here=tmp_path).token == token


def test_a_running_gateway_is_found_where_it_listens(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("7000", "0"), "ann")
    with pytest.raises(Failed, match="none runs"):
        reach(Flags(who="ann"), environ=NOTHING, here=tmp_path)
    with published_address(tmp_path / "space.yaml", "http://127.0.0.1:5555"):
        assert reach(Flags(who="ann"), environ=NOTHING, here=tmp_path).url == "http://127.0.0.1:5555"


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("{host: 0.0.0.0, port: 9000}", "http://127.0.0.1:9000"),
        ("{host: '::1'}", "http://[::1]:8080"),
        ("{public_url: 'https://mew.example.org/'}", "https://mew.example.org"),
    ],
)
def test_a_gateway_that_does_not_run_is_where_the_file_says(tmp_path: Path, server: str, url: str) -> None:
    folder(tmp_path, YAML.replace("{port: 7000}", server), "ann")
    assert reach(Flags(who="ann"), environ=NOTHING, here=tmp_path).url == url


def test_a_config_that_is_typed_goes_before_the_environment(tmp_path: Path) -> None:
    elsewhere = folder(tmp_path / "elsewhere", YAML, "ann")
    environ = {"MEW_GATEWAY": REMOTE, "MEW_SPACE": "other"}
    flags = Flags(config=elsewhere / "space.yaml", who="ann")
    assert reach(flags, environ=environ, here=tmp_path) == Door(HERE, "demo", kept(elsewhere, "ann"), "ann")


def test_the_tokens_of_a_space_have_a_folder_of_their_own_where_there_are_several(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("space: {id: demo}", "spaces: [{id: one}, {id: two}]"))
    (tmp_path / ".mew" / "tokens" / "two").mkdir(parents=True)
    token = tmp_path / ".mew" / "tokens" / "two" / "ann.token"
    token.write_text("t")
    with pytest.raises(Failed, match="one, two; choose one with --space"):
        reach(Flags(who="ann"), environ=NOTHING, here=tmp_path)
    assert reach(Flags(who="ann", space="two"), environ=NOTHING, here=tmp_path).token == token


def test_a_token_may_be_where_the_gateway_would_take_it_from(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("bot: {", "my-bot: {tokens: [written], "))
    assert reach(Flags(who="my-bot"), environ=NOTHING, here=tmp_path).token == "written"
    environ = {"MEW_TOKEN_MY_BOT": "said"}
    assert reach(Flags(who="my-bot"), environ=environ, here=tmp_path).token == "said"


# Who.


def test_a_program_must_say_who_it_is(tmp_path: Path) -> None:
    folder(tmp_path, f"{YAML}defaults: {{}}\n", "ann", "bot")
    with pytest.raises(Failed, match="give --as, one of ann, bot"):
        reach(Flags(), environ=NOTHING, here=tmp_path)


def test_a_person_is_who_the_file_says(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("{id: demo}", "{id: demo, default_participant: ann}"), "ann", "bot")
    assert reach_as_person(Flags(), environ=NOTHING, here=tmp_path).who == "ann"
    assert reach_as_person(Flags(who="bot"), environ=NOTHING, here=tmp_path).who == "bot"
    with pytest.raises(Failed, match="--as"):
        reach(Flags(), environ=NOTHING, here=tmp_path)


def test_a_person_is_the_only_one_there_is(tmp_path: Path) -> None:
    folder(tmp_path, "space: {id: demo}\nparticipants: {ann: {}}\n", "ann")
    assert reach_as_person(Flags(), environ=NOTHING, here=tmp_path).who == "ann"


def test_a_name_that_is_typed_goes_before_a_token_of_the_environment(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    environ = {"MEW_TOKEN": "token-of-bot"}
    assert reach(Flags(), environ=environ, here=tmp_path).token == "token-of-bot"
    assert reach(Flags(who="ann"), environ=environ, here=tmp_path).token == kept(tmp_path, "ann")
    assert reach(Flags(who="cat"), environ=environ, here=tmp_path).token == "token-of-bot"


# A server that is wrapped.


def test_a_person_finds_the_server_that_is_wrapped(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for name in ("files", "time"):
        folder(wrap_file(name, environ).parent, "space: {id: demo}\nparticipants: {you: {}}\n", "you")
    with pytest.raises(Failed, match=r"no space\.yaml"):
        reach_as_person(Flags(), environ=environ, here=tmp_path)
    with published_address(wrap_file("files", environ), LOCAL):
        assert reach_as_person(Flags(), environ=environ, here=tmp_path).url == LOCAL
        with pytest.raises(Failed, match=r"no space\.yaml"):
            reach(Flags(who="you"), environ=environ, here=tmp_path)
        assert reach(Flags(who="you", wrapped="files"), environ=environ, here=tmp_path).url == LOCAL
        with pytest.raises(Failed, match="no server runs wrapped as 'time'; there is files"):
            reach_as_person(Flags(wrapped="time"), environ=environ, here=tmp_path)
        with (
            published_address(wrap_file("time", environ), REMOTE),
            pytest.raises(Failed, match="files, time"),
        ):
            reach_as_person(Flags(), environ=environ, here=tmp_path)
        folder(tmp_path, YAML, "ann")
        assert reach_as_person(Flags(who="ann"), environ=environ, here=tmp_path).url == HERE


# Where a token does not go.


def test_a_token_of_the_folder_goes_to_no_other_machine(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    with pytest.raises(Failed, match=r"no token for mew\.example\.org; give --token-file"):
        reach(Flags(gateway=REMOTE, who="ann"), environ=NOTHING, here=tmp_path)
    assert reach(Flags(gateway=LOCAL, who="ann"), environ=NOTHING, here=tmp_path).url == LOCAL
    both = Flags(gateway=REMOTE, who="ann", config=tmp_path / "space.yaml")
    assert reach(both, environ=NOTHING, here=tmp_path).url == REMOTE


def test_a_token_of_the_environment_goes_to_no_other_machine_that_a_folder_names(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("{port: 7000}", "{host: evil.example.org}"), "ann")
    with pytest.raises(Failed, match=r"the gateway, evil\.example\.org:8080, is named by .*space\.yaml"):
        reach(Flags(), environ={"MEW_TOKEN": "t"}, here=tmp_path)
    typed = Flags(config=tmp_path / "space.yaml")
    assert reach(typed, environ={"MEW_TOKEN": "t"}, here=tmp_path).token == "t"


def test_a_token_is_shown_to_nobody() -> None:
    assert "secret" not in repr(Flags(token="secret"))
    assert "secret" not in repr(Door(LOCAL, None, "secret"))


# One sentence that says what to give.


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        (Flags(), NOTHING, r"no gateway is named, .* give --gateway or --config"),
        (Flags(gateway=LOCAL), NOTHING, "no token for 127.0.0.1:4711; give --token-file"),
        (
            Flags(gateway=LOCAL, token="a", token_file=Path("b")),
            NOTHING,
            "--token and --token-file: give one",
        ),
        (Flags(gateway=LOCAL, token=" "), NOTHING, "--token: the token is empty"),
        (Flags(config=Path("a"), wrapped="b"), NOTHING, "--config and --wrapped: give one"),
        (Flags(gateway="ftp://host", token="a"), NOTHING, "--gateway: this is not the URL of a gateway"),
        (Flags(gateway="ws://host:x", token="a"), NOTHING, "--gateway: this is not the URL of a gateway"),
        (Flags(token="a"), {"MEW_GATEWAY": "host"}, "MEW_GATEWAY: this is not the URL of a gateway"),
        (Flags(wrapped="../x"), NOTHING, "--wrapped: '../x' is no name of a wrapped server"),
        (Flags(wrapped="x"), {"HOME": "/nowhere"}, "as 'x'; nothing is wrapped now"),
        (Flags(gateway=LOCAL, token_file=Path("/nowhere")), NOTHING, "/nowhere: the token cannot be read"),
        (Flags(config=Path("/nowhere.yaml")), NOTHING, "/nowhere.yaml"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    tmp_path: Path, flags: Flags, environ: Mapping[str, str], said: str
) -> None:
    with pytest.raises(Failed, match=said) as failed:
        reach(flags, environ=environ, here=tmp_path)
    assert "\n" not in str(failed.value)


def test_a_token_in_a_url_is_not_repeated(tmp_path: Path) -> None:
    for url in ("ws://ann:secret@host", "ws://host/ws?token=secret"):
        with pytest.raises(Failed) as failed:
            reach(Flags(gateway=url), environ=NOTHING, here=tmp_path)
        assert "secret" not in str(failed.value)


def test_who_is_not_there_or_has_no_token_yet_is_told(tmp_path: Path) -> None:
    folder(tmp_path, YAML)
    with pytest.raises(Failed, match="space 'demo' has no 'cat'; there is ann, bot"):
        reach(Flags(who="cat"), environ=NOTHING, here=tmp_path)
    with pytest.raises(Failed, match=r"ann\.token: no token yet; start the gateway once"):
        reach(Flags(who="ann"), environ=NOTHING, here=tmp_path)
    with pytest.raises(Failed, match="no space 'other'; there is demo"):
        reach(Flags(who="ann", space="other"), environ=NOTHING, here=tmp_path)
    kept(tmp_path, "ann").write_text("")
    with pytest.raises(Failed, match=r"ann\.token: expected a file with a token, is empty"):
        reach(Flags(who="ann"), environ=NOTHING, here=tmp_path)
