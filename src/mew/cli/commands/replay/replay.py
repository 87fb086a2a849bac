"""`mew replay`: play a recorded space to the terminal, or into a space of its own."""

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console

from mew.audit.playback.recording import Recording, recording_from_export, recording_from_journal
from mew.audit.playback.timeline import (
    PlaybackCursor,
    PlaybackRange,
    PlaybackSpeed,
    parse_seconds,
    parse_speed,
    recorded_envelopes,
)
from mew.autopilot.comparison import PolicyComparison
from mew.autopilot.settings import AutopilotSettings
from mew.cli.commands.autopilot import read_config
from mew.cli.errors import CommandError
from mew.cli.locate.journal import ConfigOption, JournalOption, find_journal
from mew.cli.render.policy_changes import show_changes
from mew.cli.render.timeline import EnvelopeOutput, JsonLines, Screen
from mew.cli.render.times import read_time
from mew.gateway.config.value import ConfigError
from mew.gateway.room.playback import OBSERVER, Playback
from mew.journal.files.database import Damaged
from mew.journal.files.locator import open_index
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.protocol.capability import Capability
from mew.protocol.errors import InvalidCapability
from mew.protocol.visible import named, visible

from .keyboard import QUIT, Keyboard
from .player import Ended, Player

__all__ = ["replay"]


def replay(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[FILE|SPACE]", help="An export, or a space that has a journal here."),
    ] = None,
    config: ConfigOption = Path("space.yaml"),
    journal: JournalOption = None,
    speed: Annotated[
        str | None, typer.Option(metavar="SPEED", help="1x, 10x, 0.5x or max; 1x on a terminal, else max.")
    ] = None,
    idle_max: Annotated[
        str,
        typer.Option(metavar="TIME", help="Shorten longer pauses to this: 2s, 500ms, 1min or off."),
    ] = "3s",
    first: Annotated[int, typer.Option("--from", min=0, help="The first entry, by its number.")] = 0,
    last: Annotated[int | None, typer.Option("--to", min=0, help="The last entry, by its number.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Not what was before: 2026-01-31, 2026-01-31T12:30:00Z, or 2h for so long ago.",
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Not what was then or later.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Show only envelopes of this kind; mcp/* is any of MCP."),
    ] = None,
    participant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only what this participant sent.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to serve it on; 0 for any free port.")
    ] = 0,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Play nothing; say which decisions these settings of the autopilot would change, and for whom.",
        ),
    ] = None,
    *,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve the replay as a space on this machine that clients can watch."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document per line for each envelope.")
    ] = False,
) -> None:
    """Replay a recorded space at its own pace. Keys: space pauses, + and - change the speed, q quits.

    Examples:
      mew replay demo --speed 10x
      mew replay january.jsonl --kind "mcp/*" --speed max
      mew replay demo --policy stricter.yaml
    """
    now = datetime.now(UTC)
    part = PlaybackRange(
        first=first,
        last=last,
        since=read_time("--since", since, now),
        until=read_time("--until", until, now),
        kind=_kind(kind),
        participant=participant,
    )
    at_once = not serve and not (sys.stdout and sys.stdout.isatty())
    pace = _pace(speed or ("max" if at_once else "1x"), idle_max)
    output: EnvelopeOutput = JsonLines() if json else Screen(Console(highlight=False))
    with _recording(what, config, journal, part) as recording:
        if policy is not None:
            _compare(recording, read_config(policy), as_json=json)
        elif serve:
            _run(_serve(recording, part, output, pace, port))
        else:
            _play(recording, part, output, pace)


def _compare(recording: Recording, settings: AutopilotSettings, *, as_json: bool) -> None:
    comparison = PolicyComparison(settings)
    for record in recording.records:
        for one in recorded_envelopes(record):
            comparison.apply(one.envelope, one.at)
    show_changes(comparison, as_json=as_json)


def _play(recording: Recording, part: PlaybackRange, output: EnvelopeOutput, pace: PlaybackSpeed) -> None:
    played = PlaybackCursor(recording.records, part)
    for _ in played.past():
        pass

    async def play() -> None:
        with Keyboard(*_signals("SIGTERM", "SIGHUP")) as keys:  # Ctrl-C ends it as it ends any other command
            _explain(keys, output)
            player = Player(part, output, keys, pace)
            if await player.play(played.rest()) is Ended.PLAYED and not player.shown:
                _say("nothing was shown in this part of the recording")

    _run(play())


async def _serve(
    recording: Recording, part: PlaybackRange, output: EnvelopeOutput, pace: PlaybackSpeed, port: int
) -> None:
    state = recording.state
    if state is None:
        raise CommandError(
            f"what happened up to entry {recording.after} is not kept here, and without it the space cannot be as it"
            " was; replay it without --serve, or export it from its first entry"
        )
    played = PlaybackCursor(recording.records, part)
    with (
        TemporaryDirectory(prefix="mew-replay-") as folder,
        Keyboard(*_signals("SIGINT", "SIGTERM", "SIGHUP")) as keys,
    ):
        async with Playback(recording.space, state, played.past(), folder=Path(folder), port=port) as stage:
            _say(f"serves space {named(recording.space)} at {stage.url}, for {OBSERVER} to watch")
            _say(f"the token is in {stage.token_file}")
            _explain(keys, output)
            player = Player(part, output, keys, pace, stage.perform)
            try:
                ended = await player.play(played.rest())
            except (Damaged, JournalUnavailable) as error:
                _say(f"it ends here: {error}")
                ended = Ended.PLAYED
            if ended is Ended.PLAYED:
                _say("the recording is over, and served until you stop it with Ctrl-C")
                while await keys.within(None) != QUIT:
                    pass


def _run(playing: Coroutine[Any, Any, None]) -> None:
    try:
        with asyncio.Runner() as runner:
            runner.run(playing)
    except ConfigError as error:
        raise CommandError(str(error)) from error


@contextmanager
def _recording(
    what: str | None, config: Path, journal: Path | None, part: PlaybackRange
) -> Iterator[Recording]:
    """An export where there is such a file, else the journal of a space of this name."""
    if what is not None and Path(what).is_file():
        with _opened(Path(what)) as file:
            yield recording_from_export(file)
        return
    if what is not None and "/" in what:
        raise CommandError(f"{what}: there is no such file")
    folder, space = find_journal(config, journal, what, choose="by its name")
    with open_index(folder) as locator, JournalReader(locator, space) as reader:
        yield recording_from_journal(reader, part)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _explain(keys: Keyboard, output: EnvelopeOutput) -> None:
    if keys.is_there:
        output.remark("space pauses, + and - change the speed, q ends it")


def _say(text: str) -> None:
    typer.echo(f"mew replay: {visible(text, 2_000)}", err=True)


def _signals(*names: str) -> list[signal.Signals]:
    """Those there are on this system, without what whoever started this wants ignored, as `nohup` does."""
    known = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [one for one in known if signal.getsignal(one) is not signal.SIG_IGN]


def _pace(speed: str, idle_max: str) -> PlaybackSpeed:
    try:
        return PlaybackSpeed(parse_speed(speed), parse_seconds(idle_max))
    except ValueError as error:
        raise CommandError(str(error)) from error


def _kind(written: str | None) -> Capability | None:
    if written is None:
        return None
    try:
        return Capability.parse({"kind": written})
    except InvalidCapability as error:
        raise CommandError(f"--kind {written!r}: {error}") from error
