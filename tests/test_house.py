"""The rules of the house that a machine can check."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

import mew
from mew.gateway.http.problems import STATUS
from mew.protocol.errors import CloseCode, Refusal
from mew.protocol.kinds import PAYLOADS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mew"
REFERENCE = ROOT / "docs" / "reference"

TEMPLATES = SOURCE / "templates"  # programs of others, as they begin
MODULES = sorted(path for path in SOURCE.rglob("*.py") if TEMPLATES not in path.parents)
IMPURE = {"time", "os", "asyncio", "random", "uuid", "logging", "secrets", "socket"}
LINES_MAX = 800  # most have 100 to 400; a larger one must still be one concern
PUBLIC = [
    "Absent",
    "AlreadyDecided",
    "Call",
    "Cancelled",
    "Client",
    "ConnectError",
    "Corrupt",
    "Disconnected",
    "Envelope",
    "EnvelopeMemory",
    "Fulfilled",
    "Image",
    "InvalidArguments",
    "InvalidCapability",
    "Lagged",
    "Message",
    "MewError",
    "NotFulfilled",
    "Outcome",
    "Participant",
    "ProposalUpdate",
    "Question",
    "Refused",
    "Rejected",
    "Review",
    "RpcError",
    "Strategy",
    "StreamBroken",
    "TimedOut",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "Unanswered",
    "Uncertain",
    "UnknownTool",
    "Via",
    "Withdrawn",
    "anthropic_tools",
    "connect",
    "connect_sync",
    "openai_tools",
    "resolve_tool_call",
    "safe_name",
]
MODULES_PER_FOLDER_MAX = 12
# Names and folders from before the two rules below: an entry may go, and none may be added.
SHARED_CLASS_NAMES = {
    "Delivery",
    "Entry",
    "Group",
    "Kept",
    "Outcome",
    "Page",
    "Phase",
    "Place",
    "Proposals",
    "Refused",
    "Space",
    "Streams",
    "Template",
    "Tool",
    "Usage",
}
LARGE_FOLDERS = {"cli", "cli/commands", "conform", "conform/checks", "mcp_bridge/server", "supervise"}
TWINS = SOURCE / "client" / "blocking" / "sync.py"  # blocking classes have the names of their async ones
NOT_OURS = {"__pycache__", "node_modules", "build", "dist", "results"}
LOCAL_PATH = re.compile(rf"(?<![\w.~-])/(?:{'|'.join(['root', 'work'])}|home/\w+|Users/\w+)/")


def named(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


@cache
def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def exported(module: Path) -> set[str] | None:
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            assert len(names) == len(set(names)), names
            return set(names)
    return None


def defined(module: Path) -> set[str]:
    """The names a module binds at its top, by definition, assignment or import."""
    names: set[str] = set()
    for node in tree(module).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names.update(alias.asname or alias.name for alias in imported)
            case ast.If() | ast.Try():
                names.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
                inner = (n for n in ast.walk(node) if isinstance(n, ast.ImportFrom))
                names.update(alias.asname or alias.name for n in inner for alias in n.names)
                names.update(n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.ClassDef))
    return names


def is_pure(module: Path) -> bool:
    package = module.relative_to(SOURCE).parts[0]
    return package in ("protocol", "proposals", "space") or (
        ast.get_docstring(tree(module)) or ""
    ).startswith("PURE.")


PURE = [module for module in MODULES if is_pure(module)]


@pytest.mark.parametrize("module", PURE, ids=named)
def test_a_pure_module_knows_no_clock_no_chance_and_no_world(module: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            imported.add(node.module.partition(".")[0])
    assert not imported & IMPURE


@pytest.mark.parametrize("module", PURE, ids=named)
def test_a_pure_module_does_not_ask_what_time_it_is(module: Path) -> None:
    asked = {node.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute)}
    assert not asked & {"now", "utcnow", "today"}


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_is_short_and_says_what_it_is(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LINES_MAX
    assert ast.get_docstring(tree(module))


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_says_what_it_exports_and_has_it(module: Path) -> None:
    own = [node for node in tree(module).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = exported(module)
    if any(not node.name.startswith("_") for node in own):
        assert names, "it defines public names and has no __all__"
    assert (names or set()) <= defined(module)


def test_no_two_public_classes_have_the_same_name() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and module != TWINS:
                homes.setdefault(node.name, []).append(named(module))
    shared = {name: found for name, found in homes.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED_CLASS_NAMES} == {}


def test_no_folder_has_more_modules_than_one_can_survey() -> None:
    counts = Counter(module.parent for module in MODULES if module.name != "__init__.py")
    large = {
        folder.relative_to(SOURCE).as_posix() for folder, n in counts.items() if n > MODULES_PER_FOLDER_MAX
    }
    assert large <= LARGE_FOLDERS


def imports() -> Iterator[tuple[Path, Path, str]]:
    """Who imports which name from which of our modules."""
    for module in MODULES:
        package = module.relative_to(SOURCE.parent).parent.parts
        for node in ast.walk(tree(module)):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = package[: len(package) - node.level + 1] if node.level else ()
            path = SOURCE.parent.joinpath(*base, *(node.module or "").split("."))
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            for alias in node.names:
                is_module = (path / alias.name).is_dir() or (path / f"{alias.name}.py").exists()
                if source.exists() and not is_module:
                    yield module, source, alias.name


def test_what_a_module_takes_from_another_is_exported_there() -> None:
    taken = {
        f"{named(module)} takes {name} from {named(source)}"
        for module, source, name in imports()
        if name not in (exported(source) or set())
    }
    assert not taken


def test_the_public_api_is_this() -> None:
    assert mew.__doc__
    assert mew.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(mew))
    with pytest.raises(AttributeError, match="Clinet"):
        mew.Clinet  # type: ignore[attr-defined]  # noqa: B018  # that is what is tried


def test_what_is_loaded_when_asked_for_is_what_a_type_checker_is_told() -> None:
    told = {
        (node.module, alias.name)
        for node in ast.walk(tree(SOURCE / "__init__.py"))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("mew.")
        for alias in node.names
    }
    assert told == {(home, name) for home, names in mew._HOMES.items() for name in names}
    assert {name for _, name in told} == set(PUBLIC)
    for home, name in told:
        assert getattr(mew, name) is getattr(importlib.import_module(home), name)


@pytest.mark.e2e
def test_a_command_that_needs_nothing_of_the_sdk_starts_without_it() -> None:
    started = "import sys, mew.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", started], check=True, capture_output=True, text=True
    ).stdout
    assert not {"aiohttp", "mew.client.client", "mew.gateway.server", "jsonschema"} & set(loaded.split())


def ours() -> Iterator[Path]:
    """The files of the project, without what tools, the gateway and `make run` leave behind."""
    for path in sorted(ROOT.iterdir()):
        if path.name == ".git":  # a file in a linked work tree
            continue
        if path.is_file():
            yield path
        elif path.name == "demo":
            continue
        elif not path.name.startswith(".") or path.name in (".ci", ".github"):
            yield from (
                file
                for file in path.rglob("*")
                if file.is_file() and not NOT_OURS & set(file.relative_to(ROOT).parts)
            )


def test_no_file_knows_where_it_was_made() -> None:
    found = []
    for file in ours():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image, a font
        if LOCAL_PATH.search(text) or (
            file.name.endswith(("-lock.json", ".lock")) and f'"{"resolved"}":' in text
        ):
            found.append(file.relative_to(ROOT).as_posix())
    assert not found


def test_the_readme_says_how_to_run_and_to_test() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in readme
    assert "make test" in readme


# What the reference must tell.


def row(page: str, first: str) -> str:
    """The one row of a table that begins with this cell."""
    rows = [
        line
        for line in (REFERENCE / page).read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {first} |")
    ]
    assert len(rows) == 1, f"{page} has {len(rows)} rows for {first}"
    return rows[0]


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_is_documented_with_its_status(refusal: Refusal) -> None:
    assert row("errors.md", f"`{refusal}`").startswith(f"| `{refusal}` | {STATUS[refusal]} |")


@pytest.mark.parametrize("code", CloseCode)
def test_every_close_code_is_documented(code: CloseCode) -> None:
    assert f"`{code.name}`" in row("errors.md", str(code.value))


def test_every_denial_is_documented() -> None:
    denials: dict[str, set[str]] = {}
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        for status, code in re.findall(r'Denied\(\s*(\d{3}),\s*"(\w+)"', text):
            denials.setdefault(code, set()).add(status)
    for code, statuses in denials.items():
        assert row("errors.md", f"`{code}`").startswith(f"| `{code}` | {', '.join(sorted(statuses))} |")


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_every_kind_is_documented_with_its_payload(kind: str) -> None:
    payload = row("kinds.md", f"`{kind}`").split(" | ")[2]
    for field in msgspec.structs.fields(PAYLOADS[kind]):
        assert f"`{field.name}{'' if field.required else '?'}`" in payload
