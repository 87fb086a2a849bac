"""The build of the page: only when something changed, and what comes out of it."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatch_build import CannotBuild, build_page, compress, fingerprint, packed_bytes

from mew.page.files import STATIC, read_files

ROOT = Path(__file__).parents[2]
PACKED_BYTES_MAX = 150_000


def source(folder: Path) -> Path:
    web = folder / "web"
    (web / "src").mkdir(parents=True)
    (web / "package.json").write_text("{}")
    (web / "package-lock.json").write_text("{}")
    (web / "src" / "main.tsx").write_text("1")
    return web


def test_the_page_is_small_and_has_nothing_inline() -> None:
    files = read_files()
    assert files, "the page was not built: make web"
    assert packed_bytes(STATIC) < PACKED_BYTES_MAX
    index = files["index.html"].body.decode()
    assert not re.search(r"<style|\son\w+=|\sstyle=|javascript:", index)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", index))
    for link in re.findall(r'(?:src|href)="\./([^"]+)"', index):
        assert re.fullmatch(r"assets/.+-[\w-]{8}\.\w+", link), "a name without a hash is kept for good"
        assert link in files


def test_nothing_of_the_page_is_fetched_from_elsewhere() -> None:
    for path, file in read_files().items():
        found = set(re.findall(rb"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}", file.body))
        allowed = {b"http://www.w3.org"}  # the name of SVG, which nobody fetches
        assert found <= allowed, path


def test_the_fingerprint_is_of_what_the_page_is_made_from_alone(tmp_path: Path) -> None:
    web = source(tmp_path)
    before = fingerprint(web)
    (web / "node_modules").mkdir()
    (web / "node_modules" / "x.js").write_text("x")
    (web / "tests").mkdir()
    (web / "tests" / "x.test.ts").write_text("x")
    (web / "src" / "main.tsx").touch()
    assert fingerprint(web) == before
    (web / "src" / "main.tsx").rename(web / "src" / "other.tsx")
    renamed = fingerprint(web)
    (web / "src" / "other.tsx").write_text("2")
    assert len({before, renamed, fingerprint(web)}) == 3
    elsewhere = shutil.copytree(web, tmp_path / "elsewhere")
    assert fingerprint(elsewhere) == fingerprint(web)


def test_what_is_built_as_the_source_has_it_is_not_built_again(tmp_path: Path) -> None:
    static = tmp_path / "src" / "mew" / "page" / "static"
    static.mkdir(parents=True)
    (static / ".built-from").write_text(fingerprint(source(tmp_path)))
    said: list[str] = []
    assert build_page(tmp_path, said.append) is False
    assert said == ["The page is as web/ has it; nothing to build"]


def test_a_page_without_source_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(CannotBuild, match=r"has no package\.json"):
        build_page(tmp_path, print)


@pytest.mark.slow
def test_a_build_that_fails_is_one_sentence_and_leaves_the_page_before(tmp_path: Path) -> None:
    web = source(tmp_path)
    (web / "package-lock.json").write_text("not JSON")
    static = tmp_path / "src" / "mew" / "page" / "static"
    static.mkdir(parents=True)
    (static / "index.html").write_text("the one before")
    with pytest.raises(
        CannotBuild, match=r"'npm ci' failed with exit code \d+, see above; it needs a package registry"
    ):
        build_page(tmp_path, lambda line: None)
    assert (static / "index.html").read_text() == "the one before"


def test_what_gains_by_it_is_compressed_and_always_alike(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("let a = 1\n" * 100)
    (tmp_path / "b.js").write_text("b")
    compress(tmp_path)
    first = (tmp_path / "a.js.gz").read_bytes()
    compress(tmp_path)
    assert (tmp_path / "a.js.gz").read_bytes() == first
    assert not (tmp_path / "b.js.gz").exists()
    assert packed_bytes(tmp_path) == len(first) + 1


@pytest.mark.e2e
def test_a_source_archive_has_the_page_and_its_source_and_a_wheel_the_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t"]
    for target in ("sdist", "wheel"):
        subprocess.run([*build, target], cwd=ROOT, check=True, capture_output=True, timeout=300)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    assert {"hatch_build.py", "web/package-lock.json", "web/.npmrc", "web/src/main.tsx"} <= sources
    assert {f"src/mew/page/static/{path}" for path in read_files()} <= sources
    assert not [name for name in sources if "node_modules" in name]
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {f"mew/page/static/{path}" for path in read_files()} <= packed
    assert not [name for name in packed if name.startswith("web")]
