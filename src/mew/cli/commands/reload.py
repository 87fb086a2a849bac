"""`mew reload`: apply a changed space.yaml, or show what it would change."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from mew.audit.queries.effective_capabilities import effective_capabilities, state_at
from mew.cli.errors import CommandError
from mew.cli.locate.journal import open_journal
from mew.cli.locate.login import SpaceFileOption
from mew.cli.locate.space_file import SpaceFile, require_space_file, signal_reload
from mew.cli.render.capability import words_of
from mew.cli.render.text import say, say_json
from mew.cli.session import JsonOption
from mew.gateway.config.settings import SpaceConfig
from mew.gateway.node import rules_of
from mew.journal.reader import spaces_in_journal
from mew.protocol.capability import Capability, CapabilitySet
from mew.space import Configured, Entry, Space
from mew.space.state import SpaceState

__all__ = ["RightsChange", "reload", "rights_changes"]


@dataclass(frozen=True, slots=True)
class RightsChange:
    """What one participant would gain and lose, each a capability as it is written."""

    space: str
    participant: str
    gains: tuple[Any, ...]
    loses: tuple[Any, ...]


def reload(
    config: SpaceFileOption = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show who would gain or lose which right.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Have the gateway read its space.yaml again, or show who would gain or lose which right.

    Connections stay open. With --dry-run, the file is compared with what is in force, grants included.

    Examples:
      mew reload --dry-run
      mew reload
    """
    file = require_space_file(config)
    if dry_run:
        _show([change for name in file.config.spaces for change in _changes(file, name)], as_json=json)
    elif signal_reload(file.path):
        say_json({"reloaded": True}) if json else say(
            "The gateway reads the file again; its log says the result."
        )
    else:
        raise CommandError(f"no gateway of {file.path} runs on this machine; 'mew up' starts one")


def rights_changes(state: SpaceState, space: SpaceConfig, at: datetime) -> list[RightsChange]:
    """What reloading the configuration of a space would change for each participant. Changes `state`."""
    before = _held(state)
    Space(state).apply(Entry(state.seq + 1, at, Configured(rules_of(space), "")))
    after = _held(state)
    changes = (
        RightsChange(
            space.id,
            who,
            _beyond(after.get(who, ()), before.get(who, ())),
            _beyond(before.get(who, ()), after.get(who, ())),
        )
        for who in dict.fromkeys([*before, *after])
    )
    return [change for change in changes if change.gains or change.loses]


def _changes(file: SpaceFile, name: str) -> list[RightsChange]:
    journal, now = file.config.journal, datetime.now(UTC)
    if journal is None:
        raise CommandError(f"{file.path} has 'journal: off': what is in force cannot be read from a journal")
    if name not in spaces_in_journal(journal.folder):
        return rights_changes(SpaceState(), file.config.spaces[name], now)
    with open_journal(file.path, None, name) as opened:
        return rights_changes(state_at(opened.reader, opened.index, now), file.config.spaces[name], now)


def _held(state: SpaceState) -> dict[str, tuple[Any, ...]]:
    return {
        one.participant: tuple(each.capability for each in one.held) for one in effective_capabilities(state)
    }


def _beyond(some: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those of the first that the second do not cover."""
    known = CapabilitySet(Capability.parse(one) for one in others)
    return tuple(one for one in some if not known.covers(Capability.parse(one)))


def _show(changes: list[RightsChange], *, as_json: bool) -> None:
    if as_json:
        say_json(
            [
                {"space": one.space, "participant": one.participant, "gains": one.gains, "loses": one.loses}
                for one in changes
            ]
        )
        return
    if not changes:
        say("Nobody would gain or lose a right.")
    for change in changes:
        say(f"{change.participant} in {change.space}")
        for one in change.gains:
            say(f"  + {words_of(one)}")
        for one in change.loses:
            say(f"  - {words_of(one)}")
