"""Which past decisions a policy would change, for `mew rules test` and `mew replay --policy`."""

import typer

from mew.autopilot.comparison import Change, PolicyComparison
from mew.cli.errors import ExitCode
from mew.cli.render.text import say, say_json
from mew.protocol.visible import visible

__all__ = ["show_changes"]


def show_changes(comparison: PolicyComparison, *, as_json: bool) -> None:
    """Print the changes; exit with code 1 if a rejected proposal would have been fulfilled."""
    changes = comparison.changes()
    overruled = [one for one in changes if one.change is Change.OVERRULED]
    if as_json:
        say_json(changes)
    else:
        say(f"{comparison.proposals} proposals, {len(changes)} would be decided differently.")
        counts: dict[tuple[Change, str, str, str], int] = {}
        for one in changes:
            key = one.change, one.reviewer or "nobody", one.proposer, one.call
            counts[key] = counts.get(key, 0) + 1
        for (change, reviewer, proposer, call), count in sorted(counts.items(), key=lambda item: -item[1]):
            say(f"{count:6}  {_in_words(change, visible(reviewer))}: {visible(call)}, by {visible(proposer)}")
        for one in overruled:
            say(f"rejected by {visible(one.reviewer or '')}, would be fulfilled: {visible(one.proposal)}")
            say(f"        {visible(one.why)}")
    if overruled:
        raise typer.Exit(ExitCode.NO)


def _in_words(change: Change, reviewer: str) -> str:
    match change:
        case Change.NOT_ASKED:
            return f"{reviewer} would not be asked"
        case Change.OVERRULED:
            return f"fulfilled although {reviewer} rejected or changed it"
        case Change.UNATTENDED:
            return "fulfilled although nobody decided"
        case Change.ASKED:
            return f"a reviewer would be asked, not {reviewer}"
