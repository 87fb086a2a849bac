"""`space.yaml`: what it gives, and the one error for what is wrong in it."""

import dataclasses
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mew.gateway.config.loader import KEYS, Config, ConfigError, load_config
from mew.gateway.config.settings import DeliveryMode, JournalConfig, Limits, ServerConfig, SmtpSecurity
from mew.journal.files.database import Durability
from mew.journal.port import RetentionPolicy
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

TYPE_SCRIPT_SPACE = """
version: mew/v0.4
space:
  id: demo
  name: Demo
  description: A space as the TypeScript implementation writes it
  default_participant: human
  ui_theme: neon-pulse
participants:
  human:
    type: local
    tokens: ["human-token"]
    capabilities: [{kind: "*"}]
  client:
    tokens: ["client-token"]
    capabilities:
      - kind: mcp/request
        payload: {method: "tools/*"}
      - kind: system/*
    fifo: true
    output_log: ./logs/client.log
    auto_connect: true
  files:
    type: mcp-bridge
    auto_start: true
    tokens: [files-token]
    capabilities: [{kind: mcp/response}]
    mcp_server: {command: node, args: [./files.js, ./data], env: {DEBUG: "1"}, cwd: ./data}
    bridge_config: {init_timeout: 30000, reconnect: true, max_reconnects: 3}
  bot:
    type: local
    command: node
    args: ["bot.js", "--gateway", "ws://localhost:${PORT}", "--token", "${TOKEN}"]
    env: {OPENAI_API_KEY: very-secret, SINCE: 12:30, PORT: 8080}
    cwd: ./agents
    auto_start: true
    restart_policy: on-failure
    depends_on: [files]
    default_to: [human]
defaults:
  capabilities: [{kind: chat}]
gateway_logging: {enabled: true}
"""

Load = Callable[..., Config]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.chdir(tmp_path)

    def load(text: str, **environ: str) -> Config:
        Path("space.yaml").write_text(text, encoding="utf-8")
        return load_config(Path("space.yaml"), environ)

    return load


def refusal(load: Load, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as error:
        load(text, **environ)
    return str(error.value)


def capabilities(*written: object) -> tuple[Capability, ...]:
    return tuple(Capability.parse(item) for item in written)


def test_a_space_needs_only_an_id(load: Load, tmp_path: Path) -> None:
    config = load("space: {id: demo}")
    space = config.spaces["demo"]
    assert (space.id, space.name, space.description, dict(space.participants)) == ("demo", "demo", "", {})
    assert space.baseline == capabilities("mcp/response", "capability/grant-ack")
    assert (space.delivery, space.announce_violations) == (DeliveryMode.EVERYONE, False)
    assert space.limits == Limits()
    assert config.server == ServerConfig()
    assert (config.tls, config.smtp, config.jwt, config.notes) == (None, None, None, ())
    assert config.state_dir == tmp_path / ".mew"
    assert config.journal == JournalConfig(folder=tmp_path / ".mew" / "journal", fsync=Durability.PROCESS)


def test_a_file_inside_dot_mew_has_its_state_beside_it(tmp_path: Path) -> None:
    (tmp_path / ".mew").mkdir()
    file = tmp_path / ".mew" / "space.yaml"
    file.write_text("space: {id: demo}")
    assert load_config(file, {}).state_dir == tmp_path / ".mew"


def test_a_file_of_the_type_script_implementation_loads_unchanged(load: Load) -> None:
    config = load(TYPE_SCRIPT_SPACE)
    space = config.spaces["demo"]
    bot = space.participants[ParticipantId("bot")]
    assert bot.capabilities is None
    assert space.capabilities_of(ParticipantId("bot")) == capabilities("chat")
    assert space.capabilities_of(ParticipantId("nobody")) == capabilities("chat")
    assert bot.launch["env"].plain() == {"OPENAI_API_KEY": "very-secret", "SINCE": "12:30", "PORT": 8080}
    assert bot.launch["args"].plain()[0] == "bot.js"
    assert space.participants[ParticipantId("files")].launch["bridge_config"].plain()["max_reconnects"] == 3
    launch = {key: node.plain() for key, node in space.launch.items()}
    assert launch == {"default_participant": "human", "ui_theme": "neon-pulse"}


def test_system_kinds_are_left_out_of_capabilities_with_a_note(load: Load) -> None:
    config = load(TYPE_SCRIPT_SPACE)
    client = config.spaces["demo"].participants[ParticipantId("client")]
    assert client.capabilities == capabilities({"kind": "mcp/request", "payload": {"method": "tools/*"}})
    assert config.notes == (
        "space.yaml:42: gateway_logging: the TypeScript implementation's, has no effect here",
        "space.yaml:19: participants.client.capabilities[1]: 'system/*' has no effect,"
        " only the gateway sends system kinds",
    )


def test_a_list_left_with_no_capability_is_not_replaced_by_the_default_ones(load: Load) -> None:
    config = load(
        "{space: {id: s}, participants: {a: {capabilities: [system/*]}}, defaults: {capabilities: [chat]}}"
    )
    assert config.spaces["s"].capabilities_of(ParticipantId("a")) == ()


def test_no_secret_is_in_a_repr(load: Load) -> None:
    config = load(
        TYPE_SCRIPT_SPACE + "smtp: {host: mail, from: a@b.org, username: mew, password_env: MAIL_PASSWORD}",
        MAIL_PASSWORD="mail-secret",
    )
    assert config.smtp is not None
    assert config.smtp.password == "mail-secret"
    for secret in ("human-token", "very-secret", "mail-secret"):
        assert secret not in repr(config)


def test_what_is_read_cannot_be_changed(load: Load) -> None:
    bot = load(TYPE_SCRIPT_SPACE).spaces["demo"].participants[ParticipantId("bot")]
    with pytest.raises(dataclasses.FrozenInstanceError):
        bot.tokens = ("other",)  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        bot.launch["env"].entries()["PORT"] = bot.launch["env"]  # type: ignore[index]  # that is the point
    with pytest.raises(TypeError):
        bot.launch["command"] = bot.launch["env"]  # type: ignore[index]  # that is the point


def test_what_stands_at_the_top_holds_for_every_space_that_does_not_say_otherwise(load: Load) -> None:
    config = load("""
spaces:
  - id: one
    participants: {ann: {capabilities: [chat]}, bob: {}}
    defaults: {baseline_capabilities: []}
    limits: {burst: 7}
  - id: two
    delivery: everyone
    announce_violations: false
participants: {ann: {capabilities: ["*"]}}
defaults: {capabilities: [chat]}
delivery: addressed
announce_violations: true
limits: {burst: 5, envelope_bytes: 512KiB}
""")
    one, two = config.spaces["one"], config.spaces["two"]
    assert set(one.participants) == {"ann", "bob"}
    assert one.capabilities_of(ParticipantId("ann")) == capabilities("chat")
    assert two.capabilities_of(ParticipantId("ann")) == capabilities("*")
    assert (one.baseline, one.default_capabilities) == ((), capabilities("chat"))
    assert (one.delivery, two.delivery) == (DeliveryMode.ADDRESSED, DeliveryMode.EVERYONE)
    assert (one.announce_violations, two.announce_violations) == (True, False)
    assert one.limits == Limits(burst=7, envelope_bytes=512 * 1024)
    assert two.limits == Limits(burst=5, envelope_bytes=512 * 1024)


def test_sizes_are_numbers_or_have_a_unit(load: Load) -> None:
    limits = (
        load("{space: {id: s}, limits: {frame_bytes: 2048, outbox_bytes: 1GiB, history_bytes: 0}}")
        .spaces["s"]
        .limits
    )
    assert (limits.frame_bytes, limits.outbox_bytes, limits.history_bytes) == (2048, 1 << 30, 0)


def test_the_server_section(load: Load) -> None:
    server = load("""
space: {id: s}
server:
  host: 0.0.0.0
  port: 0
  public_url: https://mew.example.org/
  allowed_origins: ["HTTPS://Example.org:443/", "http://localhost:3000", "http://[::1]:80"]
  trusted_proxies: [10.0.0.0/8, "::1"]
  keepalive_s: 5
""").server
    assert (server.host, server.port, server.public_url) == ("0.0.0.0", 0, "https://mew.example.org")
    assert server.allowed_origins == ("https://example.org", "http://localhost:3000", "http://[::1]")
    assert [str(network) for network in server.trusted_proxies] == ["10.0.0.0/8", "::1/128"]
    assert (server.keepalive_s, server.join_timeout_s) == (5.0, 10.0)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "pem").mkdir()
    for name in ("pem/cert.pem", "pem/key.pem", "jwks.json"):
        (tmp_path / name).write_text("")
    file = tmp_path / "space.yaml"
    file.write_text("""
space: {id: s}
tls: {cert: pem/cert.pem, key: pem/key.pem}
auth: {jwt: {issuer: https://id.example.org, audience: mew, jwks: jwks.json}}
""")
    config = load_config(file, {})
    assert config.tls is not None
    assert config.jwt is not None
    assert config.tls.cert == tmp_path / "pem" / "cert.pem"
    assert config.jwt.jwks == tmp_path / "jwks.json"
    assert (config.jwt.audience, config.jwt.algorithms) == (("mew",), ("RS256", "ES256", "EdDSA"))


def test_profiles_of_jwts_are_compiled(load: Load) -> None:
    config = load("""
space: {id: s}
auth:
  jwt:
    issuer: https://id.example.org
    audience: [mew, other]
    jwks: https://id.example.org/keys
    profile_claim: roles
    profiles: {reader: [chat, "mcp/request:tools/call:read_*"]}
""")
    assert config.jwt is not None
    assert config.jwt.profiles["reader"] == capabilities("chat", "mcp/request:tools/call:read_*")


@pytest.mark.parametrize(
    ("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)], ids=lambda value: str(value)
)
def test_the_port_of_the_mail_server_follows_from_its_security(load: Load, security: str, port: int) -> None:
    smtp = load(f"{{space: {{id: s}}, smtp: {{host: mail, from: a@b.org, security: {security}}}}}").smtp
    assert smtp is not None
    assert (smtp.security, smtp.port) == (SmtpSecurity(security), port)


@pytest.mark.parametrize(
    ("written", "folder", "fsync"),
    [
        ("{}", ".mew/journal", Durability.PROCESS),
        ("{fsync: power}", ".mew/journal", Durability.POWER),
        ("{folder: kept/here, fsync: process}", "kept/here", Durability.PROCESS),
        ("{folder: /var/lib/mew}", "/var/lib/mew", Durability.PROCESS),
    ],
)
def test_a_journal_is_kept_where_the_file_says(
    load: Load, tmp_path: Path, written: str, folder: str, fsync: Durability
) -> None:
    found = load(f"{{space: {{id: s}}, journal: {written}}}").journal
    assert found == JournalConfig(folder=tmp_path / folder, fsync=fsync)


def test_the_key_that_signs_is_a_file_beside_the_configuration(load: Load, tmp_path: Path) -> None:
    (tmp_path / "key.pem").touch()
    journal = load("{space: {id: s}, journal: {sign_key: key.pem}}").journal
    assert journal is not None
    assert journal.sign_key == tmp_path / "key.pem"
    message = refusal(load, "space: {id: s}\njournal: {sign_key: gone.pem}\n")
    assert message == f"space.yaml:2: journal.sign_key: no such file: '{tmp_path / 'gone.pem'}'"


@pytest.mark.parametrize(
    ("written", "keep"),
    [
        ("{}", RetentionPolicy()),
        ("{keep_days: 30}", RetentionPolicy(age=timedelta(days=30))),
        ("{keep_days: 0.5, keep_entries: 1000}", RetentionPolicy(age=timedelta(hours=12), entries=1000)),
        ("{keep_bytes: 10GiB}", RetentionPolicy(bytes=10 << 30)),
        ("{keep_bytes: 10737418240}", RetentionPolicy(bytes=10 << 30)),
    ],
)
def test_a_journal_keeps_what_the_file_says(load: Load, written: str, keep: RetentionPolicy) -> None:
    journal = load(f"{{space: {{id: s}}, journal: {written}}}").journal
    assert journal is not None
    assert journal.keep == keep


def test_a_journal_may_be_turned_off(load: Load) -> None:
    assert load("{space: {id: s}, journal: off}").journal is None


def test_anchors_and_merges_work(load: Load) -> None:
    config = load("""
space: {id: s}
participants:
  ann: &person {capabilities: [chat], type: local}
  bob: {<<: *person, type: remote}
""")
    bob = config.spaces["s"].participants[ParticipantId("bob")]
    assert (bob.capabilities, bob.launch["type"].string()) == (capabilities("chat"), "remote")


WRONG = {
    "an empty file": (
        "# nothing\n",
        "space.yaml:1: the file is empty, expected at least 'space' with an 'id'",
    ),
    "a list": ("- space\n", "space.yaml:1: expected a mapping with 'space' or 'spaces', is another value"),
    "no space": (
        "delivery: everyone\n",
        "space.yaml:1: expected 'space' with an 'id', or a list 'spaces', has neither",
    ),
    "space and spaces": (
        "space: {id: a}\nspaces: [{id: b}]\n",
        "space.yaml:2: spaces: 'space' and 'spaces' in one file, expected one of them",
    ),
    "no spaces": ("spaces: []", "space.yaml:1: spaces: expected at least one space, the list is empty"),
    "space twice": ("spaces:\n- id: a\n- id: a\n", "space.yaml:3: spaces[1]: duplicate space id 'a'"),
    "no id": ("space:\n  name: x\n", "space.yaml:1: space: expected an 'id', has none"),
    "id that is a path": (
        "space:\n  id: ../up\n",
        "space.yaml:2: space.id: expected up to 128 characters without '/' and control characters",
    ),
    "id that is a number": (
        "space:\n  id: 12\n",
        "space.yaml:2: space.id: expected a text, is a number: put it in quotes",
    ),
    "key at the top": (
        "space: {id: s}\nparticipant: {}\n",
        "space.yaml:2: unknown key 'participant', did you mean 'participants'?",
    ),
    "key like no other": (
        "space: {id: s}\ntls:\n  xyz: 1\n",
        "space.yaml:3: tls: unknown key 'xyz', valid keys: cert, key",
    ),
    "key twice": (
        "space: {id: s}\nparticipants:\n  a: {}\n  b: {}\n  a: {}\n",
        "space.yaml:5: duplicate key 'a', first in line 3",
    ),
    "not YAML": (
        "space: {id: s}\nlimits: [1, 2\n",
        "space.yaml:3: not YAML: expected ',' or ']', but got '<stream end>'",
    ),
    "a control character": (
        "space: {id: s}\na: \x07\n",
        "space.yaml:2: not YAML: a character that is not allowed",
    ),
    "two documents": (
        "space: {id: s}\n---\nspace: {id: t}\n",
        "space.yaml:2: not YAML: but found another document",
    ),
    "a tag": (
        "space: {id: s}\nparticipants: !!python/object:os.system {}\nlimits: {burst: !!int many}\n",
        "space.yaml:3: not a value that fits its type, 'int'",
    ),
    "an endless alias": (
        "space: &s {id: s, participants: {a: {env: *s}}}\n",
        "space.yaml:1: nested too deeply",
    ),
    "reserved participant": (
        "space: {id: s}\nparticipants:\n  gateway: {}\n",
        "space.yaml:3: participants.gateway: expected an id of letters, digits and ._@- (up to 128,"
        " a letter or digit first), other than 'system' and 'gateway'",
    ),
    "participants that look alike": (
        "space: {id: s}\nparticipants:\n  bill: {}\n  bi1l: {}\n",
        "space.yaml:4: participants.bi1l: 'bi1l' is easily taken for 'bill': choose another id for one of them",
    ),
    "participants that are a list": (
        "space: {id: s}\nparticipants: [ann]\n",
        "space.yaml:2: participants: expected a mapping, is a list",
    ),
    "a token with a space": (
        "space: {id: s}\nparticipants:\n  ann:\n    tokens:\n    - fine\n    - not fine\n",
        "space.yaml:6: participants.ann.tokens[1]: expected a token of printable ASCII without space"
        " and comma, is another text",
    ),
    "a token of two": (
        "space: {id: s}\nparticipants:\n  ann: {tokens: [x1]}\n  bob: {tokens: [x1]}\n",
        "space.yaml:4: participants.bob: a token of 'bob' is also one of 'ann'",
    ),
    "a delivery there is not": (
        "space: {id: s}\ndelivery: some\n",
        "space.yaml:2: delivery: expected one of everyone, addressed, is 'some'",
    ),
    "yes is no boolean": (
        "space: {id: s}\nannounce_violations: yes\n",
        "space.yaml:2: announce_violations: expected true or false, is a text",
    ),
    "a port out of range": (
        "space: {id: s}\nserver:\n  port: 70000\n",
        "space.yaml:3: server.port: expected 0 to 65535, is 70000",
    ),
    "a number of very many digits": (
        f"space: {{id: s}}\nserver:\n  port: 0x{'f' * 5000}\n",
        "space.yaml:3: not a value that fits its type, 'int'",
    ),
    "a size of no unit we know": (
        "space: {id: s}\nlimits:\n  frame_bytes: 4 MB\n",
        "space.yaml:3: limits.frame_bytes: expected bytes as a number or like '4MiB', is '4 MB'",
    ),
    "an outbox too small": (
        "space: {id: s}\nlimits: {outbox_bytes: 1MiB}\n",
        "space.yaml:2: limits: outbox_bytes is 1048576, less than an envelope or frame may have, 4194304",
    ),
    "an origin with a path": (
        "space: {id: s}\nserver: {allowed_origins: ['https://a.org/x']}\n",
        "space.yaml:2: server.allowed_origins[0]: expected an origin like 'https://example.org',"
        " is another text",
    ),
    "a certificate without key": (
        "space: {id: s}\ntls: {cert: c.pem}\n",
        "space.yaml:2: tls: expected 'key', has none",
    ),
    "a journal that is neither off nor described": (
        "space: {id: s}\njournal: false\n",
        "space.yaml:2: journal: expected a mapping, or 'off' to keep nothing, is another value",
    ),
    "a key of the journal that is none": (
        "space: {id: s}\njournal: {fold: here}\n",
        "space.yaml:2: journal: unknown key 'fold', did you mean 'folder'?",
    ),
    "a journal that forgets at once": (
        "space: {id: s}\njournal: {keep_days: 0}\n",
        "space.yaml:2: journal.keep_days: expected 0.01 to 36500, is 0",
    ),
    "a journal of a few entries": (
        "space: {id: s}\njournal: {keep_entries: 999}\n",
        "space.yaml:2: journal.keep_entries: expected 1000 to 1000000000000, is 999",
    ),
    "a journal of a size that is none": (
        "space: {id: s}\njournal: {keep_bytes: 10GB}\n",
        "space.yaml:2: journal.keep_bytes: expected bytes as a number or like '4MiB', is '10GB'",
    ),
    "a journal that survives something else": (
        "space: {id: s}\njournal: {fsync: always}\n",
        "space.yaml:2: journal.fsync: expected one of process, power, is 'always'",
    ),
    "half of the mail login": (
        "space: {id: s}\nsmtp: {host: h, from: a@b.org, username: me}\n",
        "space.yaml:2: smtp: expected 'username' and 'password_env' together, has one of them",
    ),
    "a mail password in clear": (
        "space: {id: s}\nsmtp: {host: h, from: a@b.org, username: me, password_env: PW, security: none}\n",
        "space.yaml:2: smtp.security: 'none' would send the password in clear, expected 'starttls' or 'tls'",
    ),
    "a mail password that is not set": (
        "space: {id: s}\nsmtp: {host: h, from: a@b.org, username: me, password_env: PW}\n",
        "space.yaml:2: smtp.password_env: the environment has no 'PW'",
    ),
    "a password where its variable is asked for": (
        "space: {id: s}\nsmtp: {host: h, from: a@b.org, username: me, password_env: 'my pass!'}\n",
        "space.yaml:2: smtp.password_env: expected the name of an environment variable, is another text",
    ),
    "a symmetric algorithm": (
        "space: {id: s}\nauth: {jwt: {issuer: i, audience: a, jwks: 'https://x.org', algorithms: [HS256]}}\n",
        "space.yaml:2: auth.jwt.algorithms[0]: expected one of ES256, ES384, ES512, EdDSA, PS256, PS384,"
        " PS512, RS256, RS384, RS512, is 'HS256'",
    ),
    "keys over plain http": (
        "space: {id: s}\nauth: {jwt: {issuer: i, audience: a, jwks: 'http://x.org'}}\n",
        "space.yaml:2: auth.jwt.jwks: expected a file or an https URL, is another URL",
    ),
    "profiles without their claim": (
        "space: {id: s}\nauth: {jwt: {issuer: i, audience: a, jwks: 'https://x.org', profiles: {r: []}}}\n",
        "space.yaml:2: auth.jwt: expected 'profile_claim' beside 'profiles', has none",
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_gets_one_error_that_names_file_line_and_key(
    load: Load, text: str, expected: str
) -> None:
    assert refusal(load, text) == expected


def test_a_capability_that_does_not_compile_is_named_with_its_line(load: Load) -> None:
    text = "space: {id: s}\nparticipants:\n  bot:\n    capabilities:\n    - chat\n    - kind: '/(/'\n"
    assert refusal(load, text).startswith(
        "space.yaml:6: participants.bot.capabilities[1]: not a capability: "
    )


def test_the_nearest_key_is_named(load: Load) -> None:
    text = "space: {id: s}\nparticipants:\n  bot:\n    tokens: [t]\n    capabilites: []\n"
    expected = "space.yaml:5: participants.bot: unknown key 'capabilites', did you mean 'capabilities'?"
    assert refusal(load, text) == expected


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"space\.yaml: there is no such file; name yours with --config FILE$"
    ):
        load_config(tmp_path / "space.yaml", {})


def test_a_missing_certificate_is_named(load: Load, tmp_path: Path) -> None:
    message = refusal(load, "space: {id: s}\ntls: {cert: c.pem, key: k.pem}\n")
    assert message == f"space.yaml:2: tls.cert: no such file: '{tmp_path / 'c.pem'}'"


def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_bytes(b"space:\n  id: \xff\n")
    with pytest.raises(ConfigError, match=r":2: not UTF-8$"):
        load_config(file, {})


def test_an_error_in_the_yaml_does_not_quote_the_line(load: Load) -> None:
    assert "s3cret" not in refusal(load, "participants: {ann: {tokens: ['s3cret]}}\n")
    assert "s3cret" not in refusal(load, "space: {id: s}\nparticipants: {ann: {tokens: s3cret}}\n")


def test_merges_that_multiply_are_stopped(load: Load) -> None:
    levels = "\n".join(f"x{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}]}}" for n in range(1, 40))
    assert "more than 200000 values" in refusal(load, f"space: {{id: s}}\nx0: &x0 {{a: 1}}\n{levels}\n")


KNOWN = sorted({key for keys in KEYS.values() for key in keys})
WORDS = st.one_of(
    st.sampled_from(KNOWN), st.sampled_from(["ann", "*", "chat", "4MiB", "a b"]), st.text(max_size=8)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=20,
)


def _section(keys: frozenset[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(sorted(keys)), VALUES, max_size=4)


FILES = st.fixed_dictionaries(
    {"space": st.one_of(st.just({"id": "s"}), _section(KEYS["space"]), VALUES)},
    optional={
        "participants": st.one_of(
            st.dictionaries(WORDS, _section(KEYS["participants.ID"]), max_size=3), VALUES
        ),
        **{
            name: st.one_of(_section(KEYS[name]), VALUES)
            for name in ("defaults", "limits", "server", "tls", "smtp")
        },
        "auth": st.fixed_dictionaries({"jwt": st.one_of(_section(KEYS["auth.jwt"]), VALUES)}),
        "delivery": VALUES,
    },
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(content=st.one_of(FILES, VALUES))
def test_no_structure_raises_anything_but_a_config_error(tmp_path: Path, content: object) -> None:
    _loads_or_says_why(tmp_path, yaml.safe_dump(content, allow_unicode=True).encode("utf-8", "replace"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=60), st.text(alphabet="{}[]&*<!?:-|>'\"#, \nab", max_size=40).map(str.encode)
    )
)
def test_no_bytes_raise_anything_but_a_config_error(tmp_path: Path, content: bytes) -> None:
    _loads_or_says_why(tmp_path, content)


def _loads_or_says_why(folder: Path, content: bytes) -> None:
    file = folder / "space.yaml"
    file.write_bytes(content)
    try:
        load_config(file, {})
    except ConfigError as error:
        assert str(error).startswith(str(file))  # noqa: PT017  (most files are wrong, not all)


@pytest.mark.parametrize(("section", "keys"), KEYS.items(), ids=[section or "top" for section in KEYS])
def test_every_key_is_documented(section: str, keys: frozenset[str]) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"
    heading = f"## `{section}`" if section else "## The top of the file"
    _, found, rest = page.read_text(encoding="utf-8").partition(heading + "\n")
    assert found, f"configuration.md has no heading {heading}"
    documented = set(re.findall(r"^\| `([a-z_]+)`", rest.partition("\n## ")[0], re.MULTILINE))
    assert documented == keys


def test_the_section_autopilot_adds_a_participant_that_mew_up_starts(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_text("space: {id: desk}\nautopilot: {mode: suggest}\n")
    participant = load_config(file, {}).spaces["desk"].participants[ParticipantId("autopilot")]
    assert participant.launch["command"].value == "mew"
    assert [node.value for node in participant.launch["args"].items()] == [
        "autopilot",
        "--config",
        "space.yaml",
    ]
    assert participant.capabilities is not None
    assert not any(held.fits("autopilot/ratify", (), dict) for held in participant.capabilities)


def test_what_the_file_says_of_the_autopilot_stays(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_text(
        "space: {id: desk}\nautopilot: {mode: act}\n"
        "participants: {autopilot: {capabilities: ['mcp/request:tools/call:read_*']}}\n"
    )
    participant = load_config(file, {}).spaces["desk"].participants[ParticipantId("autopilot")]
    assert participant.capabilities is not None
    assert len(participant.capabilities) == 1
    assert participant.launch["command"].value == "mew"


def test_an_unknown_key_of_the_autopilot_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_text("space: {id: desk}\nautopilot:\n  nevr: []\n")
    with pytest.raises(ConfigError, match=r"space.yaml:3: .*did you mean 'never'"):
        load_config(file, {})
