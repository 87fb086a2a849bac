"""C files of this folder, compiled on first use into a folder that is not in the repository."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["CannotCompile", "compiled"]

FOLDER = Path(__file__).parent / "results"


class CannotCompile(Exception):
    """There is no compiler, or it does not like the file; which, is the text."""


def compiled(source: Path, *flags: str) -> Path:
    """The program or library that a C file gives, compiled if it has changed.

    Raises:
        CannotCompile: it cannot be made here.
    """
    words = ["-O2", *flags]
    content = hashlib.sha256(source.read_bytes() + repr(words).encode()).hexdigest()[:12]
    made = FOLDER / f"{source.stem}-{content}"
    if made.exists():
        return made
    compiler = shutil.which("cc")
    if compiler is None:
        raise CannotCompile("there is no C compiler (cc)")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        fresh = Path(scratch) / source.stem
        done = subprocess.run(
            [compiler, *words, "-o", str(fresh), str(source)], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise CannotCompile(f"{source.name} does not compile here: {done.stderr.strip()[-300:]}")
        fresh.rename(made)  # at once: another run may be looking for it
    return made
