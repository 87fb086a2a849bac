"""What `make dist` builds, each installed in an environment with nothing but what it says it needs."""

import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that `make dist` builds."""
    made = tmp_path_factory.mktemp("dist")
    hatchling = [sys.executable, "-m", "hatchling", "build", "-d", str(made)]
    for arguments, environ in ((["-t", "sdist", "-t", "wheel"], {}), (["-t", "wheel"], {"MEW_PURE": "1"})):
        subprocess.run(
            [*hatchling, *arguments], cwd=ROOT, env=os.environ | environ, check=True, capture_output=True
        )
    return made


class Environment:
    """A virtual environment without Node, compiler and package index: its programs are all that is on the PATH."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        self.bin = folder / "venv" / "bin"
        self.work = folder / "work"
        self.work.mkdir()
        self._packages = next((folder / "venv" / "lib").glob("python3*/site-packages"))

    def give(self, requirements: list[str]) -> None:
        """Put what these need into it, and nothing else."""
        for package in closure(requirements):
            for file in package.files or ():
                source, target = Path(str(package.locate_file(file))), self._packages / file
                if ".." not in file.parts and file.suffix != ".pyc" and not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)

    def install(self, archive: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "--no-index"]
        self._run([*pip, "--no-deps", "--no-build-isolation", "--no-cache-dir", str(archive)])
        self._run([*pip[:5], "check"])

    def mew(self, *arguments: str) -> str:
        return self._run([str(self.bin / "mew"), *arguments])

    def python(self, code: str) -> str:
        return self._run([str(self.bin / "python"), "-c", code]).strip()

    def _run(self, command: list[str]) -> str:
        environ = {"PATH": str(self.bin), "HOME": str(self.work), "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, cwd=self.work, env=environ, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


def closure(requirements: list[str]) -> Iterator[Distribution]:
    """The installed packages that these requirements lead to."""
    left, seen = [(Requirement(one), "") for one in requirements], set[tuple[str, frozenset[str]]]()
    while left:
        wanted, extra = left.pop()
        key = (wanted.name.lower(), frozenset(wanted.extras))
        if key in seen or (wanted.marker is not None and not wanted.marker.evaluate({"extra": extra})):
            continue
        seen.add(key)
        package = distribution(wanted.name)
        yield package
        for extra in ("", *wanted.extras):
            left += [(Requirement(one), extra) for one in package.requires or ()]


def approve_a_proposal(environment: Environment) -> None:
    """Start a space, approve what its agent proposes, and find it done."""
    environment.mew("init", ".", "--template", "files", "--yes", "--port", "0")
    file = environment.work / "space.yaml"
    file.write_text(f"{file.read_text()}\napprovals: {{unattended: true}}\n")
    environment.mew("up", "-d")
    try:
        deadline_s = time.monotonic() + WAIT_S
        while not (waiting := json.loads(environment.mew("proposals", "--json"))):
            assert time.monotonic() < deadline_s, "nobody proposed anything"
        environment.mew("approve", waiting[0]["id"], "--yes")
        assert (environment.work / "workspace" / "summary.md").exists()
        findings = environment.mew("doctor").splitlines()
        assert [line for line in findings if not line.startswith("ok ")] == []
    finally:
        environment.mew("down")


@pytest.mark.parametrize(
    ("archive", "is_compiled"), [("*-cp311-abi3-*.whl", True), ("*-none-any.whl", False), ("*.tar.gz", False)]
)
def test_an_empty_environment_runs_a_proposal_through(
    dist: Path, tmp_path: Path, archive: str, *, is_compiled: bool
) -> None:
    [built] = dist.glob(archive)
    environment = Environment(tmp_path)
    needed = [one for one in distribution("mew-protocol").requires or () if "extra ==" not in one]
    environment.give([*needed, "hatchling"] if built.suffix == ".gz" else needed)
    environment.install(built)
    assert environment.mew("--version").split()[-1] in built.name
    compiled = "from importlib.util import find_spec; print(find_spec('mew._speedups') is not None)"
    assert environment.python(compiled) == str(is_compiled)
    page = environment.python("import mew.page; print(mew.page.__path__[0])")
    assert Path(page, "static", "index.html").is_file()
    assert str(ROOT) not in page
    approve_a_proposal(environment)
