"""The scenarios of this folder: text that a reader of the specification can check. `pytest --rewrite` updates them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .notation import Play

_HERE = Path(__file__).parent
_LINE = "----"


@dataclass
class Scenario:
    """A title and blocks of steps, each with what is expected of it; None where nothing is."""

    file: Path
    title: list[str]
    blocks: list[tuple[list[str], list[str] | None]]

    def played(self) -> "Scenario":
        """The same with what happens now."""
        play = Play(step for steps, _ in self.blocks for step in _spoken(steps))
        happened: list[tuple[list[str], list[str] | None]] = []
        for steps, expected in self.blocks:
            lines = [line for step in _spoken(steps) for line in play.step(step)]
            happened.append((steps, None if expected is None else lines))
        return Scenario(self.file, self.title, happened)

    def text(self) -> str:
        blocks = [
            "\n".join(steps if expected is None else [*steps, _LINE, *expected])
            for steps, expected in self.blocks
        ]
        return "\n".join(self.title) + "\n" + "\n\n".join(blocks) + "\n"


def _spoken(steps: list[str]) -> Iterator[str]:
    return (step for step in steps if not step.startswith("--"))


def _scenarios(file: Path) -> Iterator[Scenario]:
    scenario: Scenario | None = None
    for paragraph in file.read_text().strip().split("\n\n"):
        lines = [line.rstrip() for line in paragraph.splitlines() if line.strip()]
        if lines[0].startswith("#"):
            if scenario is not None:
                yield scenario
            title = [line for line in lines if line.startswith("#")]
            scenario, lines = Scenario(file, title, []), lines[len(title) :]
        assert scenario is not None, f"{file.name} does not start with a title"
        if lines:
            steps, line, expected = _parted(lines)
            scenario.blocks.append((steps, expected if line else None))
    if scenario is not None:
        yield scenario


def _parted(lines: list[str]) -> tuple[list[str], bool, list[str]]:
    if _LINE not in lines:
        return lines, False, []
    at = lines.index(_LINE)
    return lines[:at], True, lines[at + 1 :]


_ALL = [scenario for file in sorted(_HERE.glob("*.txt")) for scenario in _scenarios(file)]


@pytest.mark.parametrize("scenario", _ALL, ids=lambda s: f"{s.file.stem}: {s.title[0].lstrip('# ')}")
def test_it_happens_as_written(scenario: Scenario, request: pytest.FixtureRequest) -> None:
    happened = scenario.played()
    if request.config.getoption("--rewrite"):
        _rewrite(happened)
    else:
        assert happened.text() == scenario.text()


def _rewrite(happened: Scenario) -> None:
    texts = [
        (happened if scenario.title == happened.title else scenario).text()
        for scenario in _scenarios(happened.file)
    ]
    happened.file.write_text("\n".join(texts))


def test_no_two_scenarios_of_a_file_share_a_title() -> None:
    titles = [(scenario.file, tuple(scenario.title)) for scenario in _ALL]
    assert len(set(titles)) == len(titles)
