"""The compiled functions under the sanitizers of the compiler: nothing is read or written that is not there."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("mew._speedups", reason="no C compiler was found when mew was installed")

ROOT = Path(__file__).parents[2]

# Whoever imports the speedups after this gets those that watch themselves.
RUN = """
import importlib.util, sys, pytest
spec = importlib.util.spec_from_file_location("mew._speedups", sys.argv[1])
sys.modules["mew._speedups"] = part = importlib.util.module_from_spec(spec)
spec.loader.exec_module(part)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[2:]]))
"""


@pytest.mark.slow
def test_all_that_is_tried_with_it_is_within_its_memory(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("the sanitizers are gcc's")
    watched, sources = tmp_path / "_speedups.so", sorted((ROOT / "src" / "mew" / "c").glob("*.c"))
    how = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    subprocess.run(
        [compiler, *how, f"-I{sysconfig.get_path('include')}", *map(str, sources), "-o", str(watched)],
        check=True,
    )
    asked = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    tests = [
        str(path)
        for path in sorted(Path(__file__).parent.glob("test_*.py"))
        if path.name != Path(__file__).name
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(watched), "-m", "not slow", *tests],
        env={
            **os.environ,
            "LD_PRELOAD": asked.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",  # Python's own would be told of too
            "PYTHONMALLOC": "malloc",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
