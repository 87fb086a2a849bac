"""How a command finds the gateway, the space and the token."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mew.cli.errors import CommandError
from mew.cli.locate.login import Login, LoginOptions, find_login, find_person_login
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
    flags = LoginOptions(gateway=REMOTE, space="demo", token="t")
    assert find_login(flags, environ=NOTHING, here=tmp_path) == Login(REMOTE, "demo", "t")


def test_a_space_need_not_be_named_at_a_gateway_that_is(tmp_path: Path) -> None:
    assert find_login(LoginOptions(gateway=REMOTE, token="t"), environ=NOTHING, here=tmp_path).space is None


def test_a_space_may_stand_in_the_url(tmp_path: Path) -> None:
    flags = LoginOptions(gateway=f"{REMOTE}/ws?space=demo", token="t")
    assert find_login(flags, environ={"MEW_SPACE": "other"}, here=tmp_path).space == "demo"


def test_a_broken_space_yaml_is_not_in_the_way_of_what_is_typed(tmp_path: Path) -> None:
    folder(tmp_path, "[")
    assert find_login(LoginOptions(gateway=REMOTE, token="t"), environ=NOTHING, here=tmp_path).url == REMOTE


def test_a_token_file_is_handed_on_as_a_file(tmp_path: Path) -> None:
    file = kept(tmp_path, "ann")
    login = find_login(LoginOptions(gateway=REMOTE, token_file=file), environ=NOTHING, here=tmp_path)
    assert login.token == file


def test_what_is_typed_goes_before_the_environment(tmp_path: Path) -> None:
    environ = {"MEW_GATEWAY": LOCAL, "MEW_SPACE": "other", "MEW_TOKEN": "theirs", "MEW_AS": "bot"}
    flags = LoginOptions(gateway=REMOTE, space="demo", token="mine", who="ann")
    assert find_login(flags, environ=environ, here=tmp_path) == Login(REMOTE, "demo", "mine", "ann")


# The environment.


def test_the_environment_is_enough(tmp_path: Path) -> None:
    environ = {"MEW_GATEWAY": REMOTE, "MEW_SPACE": "demo", "MEW_TOKEN": " t \n", "MEW_AS": "ann"}
    assert find_login(LoginOptions(), environ=environ, here=tmp_path) == Login(REMOTE, "demo", "t", "ann")


def test_the_environment_may_name_a_file(tmp_path: Path) -> None:
    file = kept(tmp_path, "ann")
    environ = {"MEW_GATEWAY": REMOTE, "MEW_TOKEN_FILE": str(file)}
    assert find_login(LoginOptions(), environ=environ, here=tmp_path).token == file


def test_what_is_empty_in_the_environment_counts_for_nothing(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    environ = {"MEW_GATEWAY": "", "MEW_SPACE": " ", "MEW_TOKEN": "", "MEW_TOKEN_FILE": "", "MEW_AS": "ann"}
    assert find_login(LoginOptions(), environ=environ, here=tmp_path).url == HERE


# The folder.


def test_the_nearest_space_yaml_upwards_tells_everything_but_who(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    login = find_login(LoginOptions(who="ann"), environ=NOTHING, here=below)
    assert login == Login(HERE, "demo", kept(tmp_path, "ann"), "ann")


def test_a_space_yaml_may_lie_in_mew(tmp_path: Path) -> None:
    folder(tmp_path / ".mew", YAML)
    token = tmp_path / ".mew" / "tokens" / "ann.token"
    token.parent.mkdir()
    token.write_text("t")
    assert find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path).token == token


def test_a_running_gateway_is_found_where_it_listens(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("7000", "0"), "ann")
    with pytest.raises(CommandError, match="is not running"):
        find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path)
    with published_address(tmp_path / "space.yaml", "http://127.0.0.1:5555"):
        assert (
            find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path).url == "http://127.0.0.1:5555"
        )


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("{host: 0.0.0.0, port: 9000}", "http://127.0.0.1:9000"),
        ("{host: '::1'}", "http://[::1]:8080"),
        ("{public_url: 'https://mew.example.org/'}", "http://127.0.0.1:8080"),
    ],
)
def test_a_gateway_that_does_not_run_is_where_the_file_says(tmp_path: Path, server: str, url: str) -> None:
    folder(tmp_path, YAML.replace("{port: 7000}", server), "ann")
    assert find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path).url == url


def test_a_config_that_is_typed_goes_before_the_environment(tmp_path: Path) -> None:
    elsewhere = folder(tmp_path / "elsewhere", YAML, "ann")
    environ = {"MEW_GATEWAY": REMOTE, "MEW_SPACE": "other"}
    flags = LoginOptions(config=elsewhere / "space.yaml", who="ann")
    assert find_login(flags, environ=environ, here=tmp_path) == Login(
        HERE, "demo", kept(elsewhere, "ann"), "ann"
    )


def test_the_tokens_of_a_space_have_a_folder_of_their_own_where_there_are_several(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("space: {id: demo}", "spaces: [{id: one}, {id: two}]"))
    (tmp_path / ".mew" / "tokens" / "two").mkdir(parents=True)
    token = tmp_path / ".mew" / "tokens" / "two" / "ann.token"
    token.write_text("t")
    with pytest.raises(CommandError, match="choose one with --space: one, two"):
        find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path)
    assert find_login(LoginOptions(who="ann", space="two"), environ=NOTHING, here=tmp_path).token == token


def test_a_token_may_be_where_the_gateway_would_take_it_from(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("bot: {", "my-bot: {tokens: [written], "))
    assert find_login(LoginOptions(who="my-bot"), environ=NOTHING, here=tmp_path).token == "written"
    environ = {"MEW_TOKEN_MY_BOT": "said"}
    assert find_login(LoginOptions(who="my-bot"), environ=environ, here=tmp_path).token == "said"


# Who.


def test_a_program_must_say_who_it_is(tmp_path: Path) -> None:
    folder(tmp_path, f"{YAML}defaults: {{}}\n", "ann", "bot")
    with pytest.raises(CommandError, match="with --as: ann, bot"):
        find_login(LoginOptions(), environ=NOTHING, here=tmp_path)


def test_a_person_is_who_the_file_says(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("{id: demo}", "{id: demo, default_participant: ann}"), "ann", "bot")
    assert find_person_login(LoginOptions(), environ=NOTHING, here=tmp_path).who == "ann"
    assert find_person_login(LoginOptions(who="bot"), environ=NOTHING, here=tmp_path).who == "bot"
    with pytest.raises(CommandError, match="--as"):
        find_login(LoginOptions(), environ=NOTHING, here=tmp_path)


def test_a_person_is_the_only_one_there_is(tmp_path: Path) -> None:
    folder(tmp_path, "space: {id: demo}\nparticipants: {ann: {}}\n", "ann")
    assert find_person_login(LoginOptions(), environ=NOTHING, here=tmp_path).who == "ann"


def test_a_name_that_is_typed_goes_before_a_token_of_the_environment(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    environ = {"MEW_TOKEN": "token-of-bot"}
    assert find_login(LoginOptions(), environ=environ, here=tmp_path).token == "token-of-bot"
    assert find_login(LoginOptions(who="ann"), environ=environ, here=tmp_path).token == kept(tmp_path, "ann")
    assert find_login(LoginOptions(who="cat"), environ=environ, here=tmp_path).token == "token-of-bot"


# A server that is wrapped.


def test_a_person_finds_the_server_that_is_wrapped(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for name in ("files", "time"):
        folder(wrap_file(name, environ).parent, "space: {id: demo}\nparticipants: {you: {}}\n", "you")
    with pytest.raises(CommandError, match=r"no space\.yaml"):
        find_person_login(LoginOptions(), environ=environ, here=tmp_path)
    with published_address(wrap_file("files", environ), LOCAL):
        assert find_person_login(LoginOptions(), environ=environ, here=tmp_path).url == LOCAL
        with pytest.raises(CommandError, match=r"no space\.yaml"):
            find_login(LoginOptions(who="you"), environ=environ, here=tmp_path)
        assert (
            find_login(LoginOptions(who="you", wrapped="files"), environ=environ, here=tmp_path).url == LOCAL
        )
        with pytest.raises(CommandError, match="no wrapped server 'time' is running; running now: files"):
            find_person_login(LoginOptions(wrapped="time"), environ=environ, here=tmp_path)
        with (
            published_address(wrap_file("time", environ), REMOTE),
            pytest.raises(CommandError, match="files, time"),
        ):
            find_person_login(LoginOptions(), environ=environ, here=tmp_path)
        folder(tmp_path, YAML, "ann")
        assert find_person_login(LoginOptions(who="ann"), environ=environ, here=tmp_path).url == HERE


# Where a token does not go.


def test_a_token_of_the_folder_goes_to_no_other_machine(tmp_path: Path) -> None:
    folder(tmp_path, YAML, "ann")
    with pytest.raises(CommandError, match=r"no token for mew\.example\.org; use --token-file"):
        find_login(LoginOptions(gateway=REMOTE, who="ann"), environ=NOTHING, here=tmp_path)
    assert find_login(LoginOptions(gateway=LOCAL, who="ann"), environ=NOTHING, here=tmp_path).url == LOCAL
    both = LoginOptions(gateway=REMOTE, who="ann", config=tmp_path / "space.yaml")
    assert find_login(both, environ=NOTHING, here=tmp_path).url == REMOTE


def test_a_token_of_the_environment_goes_to_no_other_machine_that_a_folder_names(tmp_path: Path) -> None:
    folder(tmp_path, YAML.replace("{port: 7000}", "{host: evil.example.org}"), "ann")
    with pytest.raises(CommandError, match=r"the gateway evil\.example\.org:8080 from .*space\.yaml"):
        find_login(LoginOptions(), environ={"MEW_TOKEN": "t"}, here=tmp_path)
    typed = LoginOptions(config=tmp_path / "space.yaml")
    assert find_login(typed, environ={"MEW_TOKEN": "t"}, here=tmp_path).token == "t"


def test_a_token_is_shown_to_nobody() -> None:
    assert "secret" not in repr(LoginOptions(token="secret"))
    assert "secret" not in repr(Login(LOCAL, None, "secret"))


# One sentence that says what to give.


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        (LoginOptions(), NOTHING, r"no gateway: .* use --gateway or --config"),
        (LoginOptions(gateway=LOCAL), NOTHING, "no token for 127.0.0.1:4711; use --token-file"),
        (
            LoginOptions(gateway=LOCAL, token="a", token_file=Path("b")),
            NOTHING,
            "use either --token or --token-file",
        ),
        (LoginOptions(gateway=LOCAL, token=" "), NOTHING, "--token: the token is empty"),
        (LoginOptions(config=Path("a"), wrapped="b"), NOTHING, "use either --config or --wrapped"),
        (
            LoginOptions(gateway="ftp://host", token="a"),
            NOTHING,
            "--gateway is not the URL of a gateway",
        ),
        (
            LoginOptions(gateway="ws://host:x", token="a"),
            NOTHING,
            "--gateway is not the URL of a gateway",
        ),
        (LoginOptions(token="a"), {"MEW_GATEWAY": "host"}, "MEW_GATEWAY is not the URL of a gateway"),
        (LoginOptions(wrapped="../x"), NOTHING, "--wrapped: '../x' is no name of a wrapped server"),
        (LoginOptions(wrapped="x"), {"HOME": "/nowhere"}, "'x' is running; no server is wrapped now"),
        (
            LoginOptions(gateway=LOCAL, token_file=Path("/nowhere")),
            NOTHING,
            "/nowhere: cannot read the token",
        ),
        (LoginOptions(config=Path("/nowhere.yaml")), NOTHING, "/nowhere.yaml"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    tmp_path: Path, flags: LoginOptions, environ: Mapping[str, str], said: str
) -> None:
    with pytest.raises(CommandError, match=said) as failed:
        find_login(flags, environ=environ, here=tmp_path)
    assert "\n" not in str(failed.value)


def test_a_token_in_a_url_is_not_repeated(tmp_path: Path) -> None:
    for url in ("ws://ann:secret@host", "ws://host/ws?token=secret"):
        with pytest.raises(CommandError) as failed:
            find_login(LoginOptions(gateway=url), environ=NOTHING, here=tmp_path)
        assert "secret" not in str(failed.value)


def test_who_is_not_there_or_has_no_token_yet_is_told(tmp_path: Path) -> None:
    folder(tmp_path, YAML)
    with pytest.raises(CommandError, match="space 'demo' has no participant 'cat'; it has ann, bot"):
        find_login(LoginOptions(who="cat"), environ=NOTHING, here=tmp_path)
    with pytest.raises(CommandError, match=r"ann\.token: there is no token yet; start the gateway once"):
        find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path)
    with pytest.raises(CommandError, match="no space 'other'; it has demo"):
        find_login(LoginOptions(who="ann", space="other"), environ=NOTHING, here=tmp_path)
    kept(tmp_path, "ann").write_text("")
    with pytest.raises(CommandError, match=r"ann\.token: expected a file with a token, but it is empty"):
        find_login(LoginOptions(who="ann"), environ=NOTHING, here=tmp_path)
