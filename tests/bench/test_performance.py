"""docs/performance.md shows the run that is kept beside it, and nothing else."""

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.plots import plots
from bench.recorded import Recorded

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "performance.py"))
PAGE, IMAGES = ROOT / "docs" / "performance.md", ROOT / "docs" / "images"
RUN = Recorded.load(ROOT / "docs" / "performance.json")
AGAIN = "run scripts/performance.py again"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_says_what_the_run_does() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert SCRIPT["page"](text, RUN) == text, AGAIN


def test_the_pictures_are_those_of_the_run() -> None:
    kept = {file: file.read_text(encoding="utf-8") for file in IMAGES.glob("performance-*.svg")}
    assert kept == SCRIPT["pictures"](RUN), AGAIN


def test_every_picture_is_shown_in_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [plot.name for plot in plots(RUN) if f"![{plot.alt}](images/{plot.name})" not in text] == []


def test_the_page_has_every_block_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in SCRIPT["BLOCKS"] if f"<!-- performance:{name} -->" not in text] == []


def test_a_block_that_nobody_writes_is_noticed() -> None:
    with pytest.raises(KeyError):
        SCRIPT["page"]("<!-- performance:nothing -->\n<!-- /performance -->", RUN)


@pytest.mark.parametrize("plot", plots(RUN), ids=lambda plot: plot.name)
def test_a_picture_can_be_read_by_those_who_do_not_see_it_and_in_the_dark(plot: object) -> None:
    root = ElementTree.fromstring(vars(plot)["svg"])
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    (title, desc) = (root.find(f"{SVG}title"), root.find(f"{SVG}desc"))
    assert title is not None
    assert title.text
    assert desc is not None
    assert desc.text
    assert all(candidate in desc.text for candidate in RUN.candidates) or "receivers" in desc.text
    style = root.find(f"{SVG}style")
    assert style is not None
    assert "prefers-color-scheme:dark" in (style.text or "")
