"""PURE. How one participant is started: what its entry in a space.yaml says, with the variables in it filled in."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from mew.gateway.config.settings import Config, ParticipantConfig
from mew.gateway.config.value import ConfigError, ConfigValue
from mew.journal.files.folder import file_name

from .program import GATEWAY, MARK, Program, Restart

__all__ = ["LaunchContext", "LaunchEntry", "ParticipantNotStarted", "Token"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_USER = re.compile(r"//[^/@]*@")  # name and password in a URL
_POLICIES: Final = {
    "always": Restart.ALWAYS,
    "on-failure": Restart.ON_FAILURE,
    "on_failure": Restart.ON_FAILURE,
    "never": Restart.NEVER,
    "no": Restart.NEVER,
}
_OURS: Final = ("TOKEN", "TOKEN_FILE")
_BRIDGED: Final = frozenset({"mcp-bridge", "mcp_bridge", "mcp-server", "mcp_server"})
_NOT_AT_A_URL: Final = frozenset({"args", "env", "cwd", "unconfined"})
_SERVER: Final = frozenset(
    {"command", "args", "env", "cwd", "url", "headers", "ask", "roots", "timeout_s", "unconfined"}
)

# The TypeScript implementation's, and what is to be known of them here.
_NO_EFFECT: Final[Mapping[str, str]] = {
    "fifo": "no effect: use 'mew send', or post to the HTTP API",
    "transport": "no effect: participants connect by WebSocket",
    "default_to": "no effect: an envelope without 'to' is for everyone",
    "requests": "no effect",
}
_NO_EFFECT_ON_A_BRIDGE: Final[Mapping[str, str]] = {
    "init_timeout": "no effect: a server has two minutes to start",
    "max_reconnects": "no effect: a server is started again as often as it ends, after longer and longer waits",
}
_AS_HERE: Final = (False, None, "websocket")
# Its own programs, under the name that is ours: what is started in their place, or why nothing is.
_THEIR_AGENT: Final = ("agent", "run")
_THEIR_BRIDGE: Final = ("bridge", "start")
_THEIR_SERVERS: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("mcp", "filesystem"): ("npx", "-y", "@modelcontextprotocol/server-filesystem"),
}


class ParticipantNotStarted(ConfigError):
    """One participant cannot be started here; the others can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """What the file does not say: how things are on this machine."""

    python: str  # that this command runs with, and participants in Python may
    url: str
    port: int
    logs: Path
    environ: Mapping[str, str] = field(repr=False)
    gateway_environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # for the gateway alone

    @property
    def mew(self) -> tuple[str, ...]:
        """How this command itself is started."""
        return self.python, "-m", "mew"


@dataclass(frozen=True, slots=True)
class Token:
    """A participant's token, and the file that holds it, where it is in one."""

    text: str = field(repr=False)
    file: Path | None = None


class LaunchEntry:
    """Reads the entry of one participant. Errors are `ConfigError`s with the line."""

    def __init__(
        self,
        config: Config,
        given: LaunchContext,
        space: str,
        participant: ParticipantConfig,
        token: Token,
        *,
        prefix: str = "",
    ) -> None:
        """`prefix` stands before the names of what is started in this space."""
        self.name = prefix + participant.id
        self._prefix = prefix
        self._config = config
        self._given = given
        self._space = space
        self._id = str(participant.id)
        self._launch = participant.launch
        self._token = token

    @property
    def starts(self) -> bool:
        """Whether there is anything to start. A person comes by itself."""
        launch = self._launch
        if self._server is None and "command" not in launch:
            return self._records
        return launch["auto_start"].boolean() if "auto_start" in launch else True

    @property
    def _records(self) -> bool:
        """Whether it is a client that only writes down what it receives, in `output_log`."""
        return "output_log" in self._launch and self._server is None and "command" not in self._launch

    @property
    def _connects_at_once(self) -> bool:
        launch = self._launch
        return "auto_connect" in launch and launch["auto_connect"].boolean()

    @property
    def depends_on(self) -> tuple[str, ...]:
        node = self._launch.get("depends_on")
        if node is None:
            return ()
        names = (node.string(),) if isinstance(node.value, str) else node.list_of(ConfigValue.string)
        return tuple(self._prefix + name for name in names)

    def cannot_wait_for(self, missing: Collection[str]) -> ConfigError:
        """The error where what it depends on never comes: these are not started, or each waits for the other."""
        node = self._launch["depends_on"]
        if missing:
            return node.error(f"{', '.join(sorted(missing))}: not started by this file")
        return node.error("what it depends on depends on it in turn: none can be the first")

    def notes(self) -> Iterator[str]:
        """What the file asks for and nobody does."""
        bridge = self._launch.get("bridge_config")
        of_the_bridge = {} if bridge is None else bridge.entries()
        for found, why in ((self._launch, _NO_EFFECT), (of_the_bridge, _NO_EFFECT_ON_A_BRIDGE)):
            for key in (key for key in why if key in found):
                if found[key].value not in _AS_HERE:
                    yield str(found[key].error(why[key]))

    def program(self) -> Program:
        """What to run.

        Raises:
            ParticipantNotStarted: this one cannot be started here.
            ConfigError: the file is wrong.
        """
        server, launch = self._server, self._launch
        if server is None and "command" not in launch:
            argv, what = (
                (*self._given.mew, "tail", "--json", "--number", "0", "--kind", "*"),
                "mew tail --json",
            )
        elif server is None:
            argv, what = self._command(), _as_written(launch)
        else:
            argv, what = self._bridge(server), f"mew bridge to {_as_written(server)}"
        log = self._launch.get("output_log")
        return Program(
            name=self.name,
            argv=argv,
            env=self._environment(server),
            folder=self._folder(launch.get("cwd") if server is None else None),
            log=self._given.logs / f"{file_name(self.name)}.log" if log is None else self._folder(log),
            restart=self._restart(),
            after=(GATEWAY, *self.depends_on),
            what=what,
            space=self._space,
            participant=self._id,
            after_first_envelope=self._records and not self._connects_at_once,
        )

    @cached_property
    def _known(self) -> Mapping[str, str]:
        """The variables that are the same for everybody's file, whatever the environment says."""
        file = self._token.file
        known = {
            "PORT": str(self._given.port),
            "URL": self._given.url,
            "SPACE": self._space,
            "TOKEN": self._token.text,
            "PYTHON": self._given.python,
        }
        return known if file is None else known | {"TOKEN_FILE": str(file)}

    @cached_property
    def _server(self) -> Mapping[str, ConfigValue] | None:
        """What is bridged: `mcp_server`, or the command of one whose `type` says that it is a server."""
        launch = self._launch
        written = launch.get("mcp_server")
        if written is not None:
            fields = {"url": written} if isinstance(written.value, str) else written.fields(_SERVER)
            if ("command" in fields) is ("url" in fields):
                raise written.error("expected a 'command' with 'args', or a 'url'")
            for key in _NOT_AT_A_URL & fields.keys() if "url" in fields else {"headers"} & fields.keys():
                raise fields[key].error(
                    "of no use to a server at a 'url'" if "url" in fields else "needs a 'url'"
                )
            return {key: launch[key] for key in ("cwd",) if key in launch and "command" in fields} | fields
        kind = launch.get("type")
        if kind is None or kind.value not in _BRIDGED:
            return None
        if "command" not in launch:
            raise kind.error("expected 'mcp_server: {command: …, args: […]}' or a 'command', has neither")
        return {key: node for key, node in launch.items() if key in _SERVER}

    def _command(self) -> tuple[str, ...]:
        launch = self._launch
        command = self._text(launch["command"])
        arguments = launch["args"].list_of(self._text) if "args" in launch else ()
        if command != "mew":
            return (command, *arguments)
        if arguments[:2] == _THEIR_AGENT:
            raise self._not_started(
                launch["args"],
                "'mew agent run' is an agent of the TypeScript implementation; name a program of yours",
            )
        if arguments[:2] == _THEIR_BRIDGE:
            return self._their_bridge(launch["args"], arguments[2:])
        return (*self._given.mew, *arguments)

    def _their_bridge(self, node: ConfigValue, options: Sequence[str]) -> tuple[str, ...]:
        """Our bridge to the server that the TypeScript implementation's would have bridged."""
        given = dict(zip(options[::2], options[1::2], strict=False))
        command = given.get("--mcp-command")
        if command is None:
            raise node.error("'mew bridge start' without '--mcp-command'")
        arguments = tuple(given["--mcp-args"].split(",")) if given.get("--mcp-args") else ()
        server: tuple[str, ...] = (command, *arguments)
        if command == "mew":
            known = _THEIR_SERVERS.get(arguments[:2])
            if known is None:
                named = " ".join(server[:3])
                raise self._not_started(
                    node,
                    f"'{named}' is a server that comes with the TypeScript implementation;"
                    " name another: mcp_server: {command: …, args: […]}",
                )
            server = (*known, *arguments[2:])
        return (*self._given.mew, "bridge", "--env", MARK, "--", *server)

    def _not_started(self, node: ConfigValue, why: str) -> ParticipantNotStarted:
        return ParticipantNotStarted(f"{node.error(why)}; {self._id} is not started")

    def _bridge(self, server: Mapping[str, ConfigValue]) -> tuple[str, ...]:
        """Variables are passed on by name, so that no list of processes shows their values."""
        argv = [*self._given.mew, "bridge"]
        for name in (*self._variables(server), MARK) if "command" in server else ():
            argv += ["--env", name]
        if "cwd" in server:
            argv += ["--cwd", str(self._folder(server["cwd"]))]
        for key, option in (("ask", "--ask"), ("roots", "--root")):
            for value in server[key].list_of(self._text) if key in server else ():
                argv += [option, value]
        if "timeout_s" in server:
            argv += ["--timeout", f"{server['timeout_s'].number(least=0.1, most=86_400):g}"]
        if "unconfined" in server and server["unconfined"].boolean():
            argv += ["--unconfined"]
        if not self._reconnects():
            argv += ["--restart", Restart.NEVER]
        for header, node in server["headers"].entries().items() if "headers" in server else ():
            argv += ["--header", f"{header}: {node.string()}"]
        if "url" in server:
            return (*argv, self._text(server["url"]))
        arguments = server["args"].list_of(self._text) if "args" in server else ()
        return (*argv, "--", self._text(server["command"]), *arguments)

    def _reconnects(self) -> bool:
        bridge = self._launch.get("bridge_config")
        node = None if bridge is None else bridge.entries().get("reconnect")
        return True if node is None else node.boolean()

    def _environment(self, server: Mapping[str, ConfigValue] | None) -> dict[str, str]:
        own = {"MEW_GATEWAY": self._given.url, "MEW_SPACE": self._space, "MEW_AS": self._id}
        if self._token.file is None:
            own["MEW_TOKEN"] = self._token.text
        else:
            own["MEW_TOKEN_FILE"] = str(self._token.file)
        if server is None:
            return own | self._variables(self._launch)
        return self._in_headers(server) | self._variables(server) | own

    def _in_headers(self, server: Mapping[str, ConfigValue]) -> dict[str, str]:
        """The variables that the bridge fills in itself, so that no list of processes shows their values."""
        nodes = server["headers"].entries().values() if "headers" in server else ()
        return {
            name: self._variable(node, name) for node in nodes for name in _VARIABLE.findall(node.string())
        }

    def _variables(self, fields: Mapping[str, ConfigValue]) -> dict[str, str]:
        """What `env` says: of the participant, and of the server that it bridges."""
        found: dict[str, str] = {}
        for written in (self._launch.get("env"), fields.get("env")):
            for name, node in {} if written is None else written.entries().items():
                found[name] = "" if node.value is None else self._text(node)
        return found

    def _text(self, node: ConfigValue) -> str:
        """A text, a number or a truth value as a text, with the values of the variables in it."""
        match node.value:
            case bool(value):
                return "true" if value else "false"
            case int(value) | float(value):
                return str(value)
        return _VARIABLE.sub(lambda match: self._variable(node, match[1]), node.prose())

    def _variable(self, node: ConfigValue, name: str) -> str:
        if name in _OURS and self._server is not None:
            raise node.error(f"'${{{name}}}': a server behind a bridge is given no token of the space")
        if name in self._known:
            return self._known[name]
        value = self._given.environ.get(name)
        if value is None:
            raise self._not_started(node, f"'${{{name}}}' is not set in the environment, nor in .mew/env")
        return value

    def _folder(self, node: ConfigValue | None) -> Path:
        """Relative to the folder that the file is about: that is the one above, for a file in `.mew`."""
        base = self._config.file.parent
        if base == self._config.state_dir:
            base = base.parent
        return base if node is None else base / self._text(node)

    def _restart(self) -> Restart:
        node = self._launch.get("restart_policy")
        if node is None:
            return Restart.ON_FAILURE
        policy = _POLICIES.get(node.string())
        if policy is None:
            raise node.error(f"expected one of {', '.join(Restart)}, is {node.string()!r}")
        return policy


def _as_written(fields: Mapping[str, ConfigValue]) -> str:
    """For people; variables stay variables, as their values may be secrets."""
    if "url" in fields:
        return _USER.sub("//", str(fields["url"].plain()).partition("?")[0])
    arguments = fields["args"].plain() if "args" in fields else []
    return " ".join(str(word) for word in (fields["command"].plain(), *arguments))
