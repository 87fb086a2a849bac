"""A confined program: what it cannot see of ours, and that everything else is as it was."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mew.mcp_bridge.server.transport import confinement
from mew.mcp_bridge.server.transport.confinement import ConfinementMethod, confined, find_method

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or find_method() is ConfinementMethod.NONE,
    reason="this system has no Landlock (Linux 5.19 or newer), so nothing can be confined",
)

Run = Callable[[str, Path], Any]


def run_as_found(code: str, state: Path) -> Any:
    """Run Python that prints JSON, with the method that `mew wrap` would use here."""
    return _printed(confined([sys.executable, "-c", dedent(code)], [state]))


def run_with_landlock_alone(code: str, state: Path) -> Any:
    """The same as on a system that allows no mount namespaces."""
    start = f"""
        import os, sys
        sys.path.insert(0, {str(Path(confinement.__file__).parent)!r})
        import confinement
        confinement._permit_the_rest(confinement._Linux(), [os.path.realpath({str(state)!r})])
        os.execv(sys.executable, [sys.executable, "-c", {dedent(code)!r}])
    """
    return _printed([sys.executable, "-I", "-S", "-c", dedent(start)])


def _printed(command: Sequence[str]) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    tokens = tmp_path / "project" / ".mew" / "tokens"
    tokens.mkdir(parents=True)
    (tokens / "user.token").write_text("secret")
    return tokens.parent


TRY = """
    import json, os
    def tried(action):
        try:
            return action()
        except OSError as error:
            return type(error).__name__
"""


@pytest.mark.parametrize("run", [run_as_found, run_with_landlock_alone])
def test_a_confined_program_neither_reads_nor_writes_our_state(run: Run, state: Path) -> None:
    token = state / "tokens" / "user.token"
    code = f"""
{TRY}
    token = {str(token)!r}
    print(json.dumps([
        tried(lambda: open(token).read()),
        tried(lambda: open(token, "w").write("mine")),
        tried(lambda: open(token + ".new", "w").write("mine")),
        tried(lambda: os.symlink("/tmp/mine", token + ".link")),
        tried(lambda: os.unlink(token)),
        tried(lambda: os.rename({str(state)!r}, {str(state) + "-away"!r})),
    ]))
    """
    outcomes = run(code, state)
    assert all(isinstance(outcome, str) and outcome.endswith("Error") for outcome in outcomes), outcomes
    assert token.read_text() == "secret"
    assert [path.name for path in (state / "tokens").iterdir()] == ["user.token"]


@pytest.mark.parametrize("run", [run_as_found, run_with_landlock_alone])
def test_other_processes_are_no_way_around_it(run: Run, state: Path) -> None:
    token = state / "tokens" / "user.token"
    code = f"""
{TRY}
    outside = "/proc/{os.getpid()}"
    print(json.dumps([
        tried(lambda: open(outside + "/root" + {str(token)!r}).read()),
        tried(lambda: open(outside + "/environ").read()),
        tried(lambda: open(outside + "/fd/2").read()),
    ]))
    """
    assert run(code, state) == ["PermissionError"] * 3


@pytest.mark.parametrize("run", [run_as_found, run_with_landlock_alone])
def test_everything_else_is_as_it_was(run: Run, state: Path, tmp_path: Path) -> None:
    folder, other = state.parent / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (state.parent / "kept.txt").write_text("old")
    code = f"""
{TRY}
    import subprocess, sys
    folder, other = {str(folder)!r}, {str(other)!r}
    open(folder + "/new.txt", "w").write("new")
    os.rename(folder + "/new.txt", other + "/moved.txt")
    open({str(state.parent / "kept.txt")!r}, "a").write(" and new")
    child = subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True)
    print(json.dumps([child.stdout, os.getuid(), os.getcwd()]))
    """
    assert run(code, state) == ["child\n", os.getuid(), os.getcwd()]
    assert (other / "moved.txt").read_text() == "new"
    assert (state.parent / "kept.txt").read_text() == "old and new"


@pytest.mark.skipif(
    find_method() is not ConfinementMethod.NAMESPACE, reason="this system allows no mount namespaces"
)
def test_files_may_be_created_beside_our_state_later(state: Path) -> None:
    later = state.parent / "later.txt"
    code = f"""
    import json, os
    open({str(later) + ".draft"!r}, "w").write("text")
    os.rename({str(later) + ".draft"!r}, {str(later)!r})
    print(json.dumps(open({str(later)!r}).read()))
    """
    assert run_as_found(code, state) == "text"


def test_a_single_file_can_be_hidden(tmp_path: Path) -> None:
    secret = tmp_path / "my.token"
    secret.write_text("secret")
    code = f"""
{TRY}
    print(json.dumps(tried(lambda: open({str(secret)!r}).read())))
    """
    assert run_as_found(code, secret) != "secret"
    assert secret.read_text() == "secret"


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        confined(["no-such-program"], [tmp_path]), capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, "no-such-program: No such file" in done.stderr) == (127, True)
