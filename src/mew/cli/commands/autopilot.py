"""`mew autopilot`: learn from reviewers which proposals need no person; `mew autopilot bench` measures it."""

import logging
import re
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mew.cli.errors import CommandError
from mew.cli.event_loop import fast_loop
from mew.cli.locate.login import (
    AsOption,
    Login,
    LoginOptions,
    SpaceOption,
    TokenFileOption,
    TokenOption,
    find_login,
)
from mew.protocol.visible import visible

if TYPE_CHECKING:
    from mew.autopilot.settings import AutopilotSettings

__all__ = ["app", "read_config"]

_DIED = 1
_SETTING = re.compile(r"(?:autopilot|\$)\.(\w+)(?:\[(\d+)\])?")

app = typer.Typer(invoke_without_command=True, no_args_is_help=False)


@app.callback(invoke_without_command=True)
def autopilot(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            "--gateway",
            metavar="URL",
            help="URL of the gateway, such as ws://127.0.0.1:8080. Else MEW_GATEWAY, else that of the space.yaml.",
        ),
    ] = None,
    space: SpaceOption = None,
    who: AsOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", metavar="MODE", help="off, shadow, suggest or act; else what the file says."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="PATH",
            help="A file with the settings, or a space.yaml with 'autopilot:'.",
        ),
    ] = None,
) -> None:
    """Learn from reviewers which proposals need no person, suggest rules, and fulfil what they cover.

    Example: mew autopilot --as autopilot --mode suggest
    """
    if context.invoked_subcommand is not None:
        return
    settings = read_config(config, mode)
    login = find_login(LoginOptions(gateway=url, space=space, who=who, token=token, token_file=token_file))
    _run(login, settings)


@app.command()
def bench(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many runs of each.")] = 3,
    count: Annotated[int, typer.Option("--count", min=100, help="Proposals in a run.")] = 3000,
    risk: Annotated[float, typer.Option("--risk", min=0.01, max=0.5, help="The risk level.")] = 0.20,
    *,
    drift: Annotated[
        bool, typer.Option("--drift", help="Let the hidden policies change at two thirds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure the autopilot and simpler policies against simulated reviewers with hidden policies.

    Example: mew autopilot bench --seeds 10
    """
    from mew.autopilot.bench.benchmark import FAMILIES, compare, decision_costs_us
    from mew.protocol.json import encode_json

    rows = compare(list(FAMILIES), seeds, risk=risk, count=count, drift=drift)
    costs = decision_costs_us()
    if as_json:
        shown: dict[str, Any] = {
            "runs": [
                {
                    "family": family,
                    "policy": policy,
                    "alone": outcome.share_alone,
                    "wrong": outcome.share_wrong,
                    "late": outcome.share_late,
                    "attacks": outcome.attacks,
                    "attacks_through": outcome.attacks_through,
                }
                for family, policy, outcome in rows
            ],
            "decision_us": {str(rules): cost for rules, cost in costs.items()},
        }
        typer.echo(encode_json(shown).decode())
        return
    typer.echo(f"{'decided alone':>14} {'wrong':>8} {'late':>6} {'attacks':>9}  policy")
    last = ""
    for family, policy, outcome in rows:
        if family != last:
            typer.echo(f"\n{family}")
            last = family
        attacks = f"{outcome.attacks_through}/{outcome.attacks}"
        shares = f"{outcome.share_alone:>14.1%} {outcome.share_wrong:>8.2%} {outcome.share_late:>6.0%}"
        typer.echo(f"{shares} {attacks:>9}  {policy}")
    listed = ", ".join(f"{cost:.0f} µs with {rules} rules" for rules, cost in costs.items())
    typer.echo(f"\nA decision takes {listed}.")


def read_config(path: Path | None, mode: str | None = None) -> "AutopilotSettings":
    """The settings of a file, or the defaults; `mode` overrides what the file says.

    Raises:
        CommandError: the file cannot be read, or a setting is wrong.
    """
    import yaml

    from mew.autopilot.settings import InvalidSettings, read_settings

    written: Any = {}
    try:
        if path is not None:
            written = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if isinstance(written, dict) and isinstance(written.get("space"), dict):
            written = {**written, **written["space"]}.get("autopilot") or {}
        elif isinstance(written, dict) and isinstance(written.get("autopilot"), dict):
            written = written["autopilot"]
        if not isinstance(written, dict):
            raise CommandError(f"{path}: expected a mapping of settings")
        return read_settings({**written, "mode": mode} if mode is not None else written)
    except InvalidSettings as error:
        line = None if path is None else _line_of(path.read_text(encoding="utf-8"), str(error))
        where = path or "--mode" if line is None else f"{path}, line {line}"
        raise CommandError(f"{where}: {error}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{path}: {error}") from error


def _line_of(text: str, problem: str) -> int | None:
    """The line of the setting that a problem names, like `autopilot.allow[1]` or `$.allow[1].tool`."""
    import yaml

    named = _SETTING.search(problem)
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if named is None or node is None:
        return None
    for key in ("space", "autopilot"):
        if (inner := _value_of(node, key)) is not None and (
            key == "autopilot" or _value_of(inner, "autopilot") is not None
        ):
            node = inner
    found = _value_of(node, named[1])
    if found is not None and named[2] is not None and isinstance(found, yaml.SequenceNode):
        found = found.value[int(named[2])] if int(named[2]) < len(found.value) else found
    return None if found is None else found.start_mark.line + 1


def _value_of(node: Any, key: str) -> Any:
    pairs = node.value if isinstance(node.value, list) else ()
    return next((pair[1] for pair in pairs if isinstance(pair, tuple) and pair[0].value == key), None)


def _run(login: Login, settings: "AutopilotSettings") -> None:
    from mew.client.errors import ConnectError, Disconnected
    from mew.client.participant.participant import run_program
    from mew.gateway.logs import LogFormat, LogLevel, set_up

    set_up(LogFormat.TEXT, LogLevel.INFO)
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    try:
        run_program(lambda: _serve(login, settings), loop_factory=fast_loop())
    except Disconnected as error:
        typer.echo(f"mew autopilot: {visible(str(error))}", err=True)
        raise typer.Exit(_DIED) from None
    except (ConnectError, OSError, ValueError) as error:
        raise CommandError(str(error)) from error


async def _serve(login: Login, settings: "AutopilotSettings") -> None:
    from mew.autopilot.participant import AutopilotParticipant
    from mew.client.client import connect

    secret = login.token.read_text(encoding="utf-8") if isinstance(login.token, Path) else login.token
    seed = sha256(f"autopilot audits\n{secret.strip()}".encode()).hexdigest()
    async with connect(login.url, space=login.space, token=login.token, first_within_s=inf) as client:
        running = AutopilotParticipant(client, settings, seed=seed)
        typer.echo(f"mew autopilot: {client.id} in space {client.space}, mode {settings.mode}", err=True)
        await running.run()
