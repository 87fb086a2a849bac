"""What the documents show is what there is: their code is in files that run here, their names are the SDK's."""

import asyncio
import dataclasses
import inspect
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.e2e.process import Gateway, run_gateway

import mew
from mew.testing import Space

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SDK = DOCS / "reference" / "sdk.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
TUTORIAL = DOCS / "tutorial"
SNIPPETS = DOCS / "howto" / "snippets"
LINE_MAX = 120
WHEN = re.compile(r"^[\d-]+ [\d:,]+ ")  # before each line of the log

PAGES = sorted(
    page
    for folder in (ROOT, ROOT / "bench", DOCS)
    for page in (folder.rglob("*.md") if folder is DOCS else folder.glob("*.md"))
)
GUIDES = [
    ROOT / "README.md",
    CONTRIBUTING,
    SDK,
    *sorted(TUTORIAL.glob("*.md")),
    *sorted((DOCS / "howto").glob("*.md")),
]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# The threat model names tests.


def test_every_test_that_the_threat_model_names_exists() -> None:
    threats = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    files = [page for page in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in page.parts]
    there = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))}
    assert set(re.findall(r"`(test_\w+)`", threats)) <= there
    assert re.findall(r"^\| (T\d+) ", threats, re.MULTILINE) == [f"T{n}" for n in range(1, 25)]


# The guide for contributors names files, commands and lines of them.

FILE_OR_FOLDER = re.compile(r"(?:src|tests|docs|web|scripts)/[\w./-]*\w/?|\b[A-Z]+\.md\b")


def test_every_path_that_the_guide_for_contributors_names_exists() -> None:
    named_there = FILE_OR_FOLDER.findall(CONTRIBUTING.read_text(encoding="utf-8"))
    assert [path for path in named_there if not (ROOT / path).exists()] == []


def test_every_command_that_the_guide_for_contributors_names_exists() -> None:
    guide, makefile = (
        CONTRIBUTING.read_text(encoding="utf-8"),
        (ROOT / "Makefile").read_text(encoding="utf-8"),
    )
    targets = set(re.findall(r"^make (\w+)", guide, re.MULTILINE))
    assert targets <= set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    modules = re.findall(r"python -m ([\w.]+)", guide)
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []


def test_every_line_that_the_guide_for_contributors_quotes_is_in_its_file() -> None:
    quoted = {
        "text": ROOT / "tests" / "scenarios" / "3.1-mcp.txt",
        "toml": ROOT / "src" / "mew" / "conform" / "requirements.toml",
    }
    for language, file in quoted.items():
        for _, block in blocks(CONTRIBUTING, language):
            assert block in file.read_text(encoding="utf-8")


# Code in documents is code in files.

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"\]\(([^)]+)\):\n\n\Z")


def blocks(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    """What stands before a block, and the block."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found[1] in languages:
            yield text[: found.start()], found[2]


def parts(file: str, lines: int) -> set[str]:
    """Every run of so many lines of it, moved to the left."""
    whole = file.splitlines()
    runs = (whole[start : start + lines] for start in range(len(whole) - lines + 1))
    return {textwrap.dedent("\n".join(run)) for run in runs}


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_every_block_of_python_is_a_part_of_the_file_that_is_linked_above_it(page: Path) -> None:
    for before, block in blocks(page, "python"):
        source = SOURCE.search(before)
        assert source is not None, f"no link to a file before:\n{block}"
        file = (page.parent / source[1]).read_text(encoding="utf-8")
        assert block.rstrip("\n") in parts(file, len(block.splitlines())), f"{source[1]} has no:\n{block}"


def test_every_file_of_code_is_shown_in_a_document() -> None:
    shown = {
        (page.parent / source[1]).resolve()
        for page in GUIDES
        for before, _ in blocks(page, "python", "yaml")
        if (source := SOURCE.search(before)) is not None
    }
    files = (*TUTORIAL.rglob("*.py"), *TUTORIAL.rglob("*.yaml"), *SNIPPETS.rglob("*.py"))
    assert {named(file) for file in files} == {named(file) for file in shown if DOCS in file.parents}


def test_the_space_of_the_tutorial_is_shown_as_it_is() -> None:
    ((_, shown),) = blocks(TUTORIAL / "first-participant.md", "yaml")
    assert shown == (TUTORIAL / "space.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", GUIDES[1:], ids=named)
def test_lines_are_short_but_for_those_of_tables(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if len(line) > LINE_MAX and not line.startswith("|")]


# The files run.

PROGRAMS = [file for file in sorted(SNIPPETS.glob("*.py")) if file.name != "without_async.py"]


@pytest.mark.parametrize("file", PROGRAMS, ids=named)
def test_a_snippet_runs_and_what_it_asserts_holds(file: Path) -> None:
    module = runpy.run_path(str(file))
    names = [name for name in module if name.startswith("test_")] or ["main"]
    for name in names:
        asyncio.run(asyncio.wait_for(module[name](), 10))


class Desk:
    """A folder as the reader has it, beside a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.folder = gateway.config.parent
        self._running: list[subprocess.Popen[str]] = []

    def put(self, *files: Path) -> None:
        """Copies of these, for the port that is free here."""
        for file in files:
            text = file.read_text(encoding="utf-8").replace(
                "127.0.0.1:8080", f"127.0.0.1:{self.gateway.port}"
            )
            (self.folder / file.name).write_text(text, encoding="utf-8")

    def start(self, *command: str, until: str | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._running.append(process)
        if until is not None:
            assert process.stdout is not None
            assert WHEN.sub("", process.stdout.readline().strip()) == WHEN.sub("", until.strip())
        return process

    def run(self, *command: str) -> str:
        said, _ = self.start(*command).communicate(timeout=20)
        return said

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate(timeout=5)


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with run_gateway(tmp_path, request.param) as gateway:
        opened = Desk(gateway)
        try:
            yield opened
        finally:
            opened.close()


def printed(page: Path, command: str) -> str:
    """What a page says a command prints."""
    (said,) = [block for _, block in blocks(page, "console") if block.startswith(f"$ {command}\n")]
    return said.partition("\n")[2]


@pytest.mark.e2e
@pytest.mark.parametrize("desk", [(TUTORIAL / "space.yaml").read_text(encoding="utf-8")], indirect=True)
def test_the_tutorial_goes_as_it_says(desk: Desk) -> None:
    page = TUTORIAL / "first-participant.md"
    desk.put(*TUTORIAL.glob("*.py"))
    calculator = desk.start("calculator.py", until=printed(page, "python calculator.py"))
    assert desk.run("ask.py") == printed(page, "python ask.py")

    reviewer = desk.start("review.py", until=printed(page, "python review.py"))
    assert reviewer.stdin is not None
    answers = re.findall(r"^\| `(.+?)` \| `(.+?)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(answers) == 3
    for typed, outcome in answers:
        print(typed, file=reviewer.stdin, flush=True)
        assert desk.run("agent.py") == f"{printed(page, 'python agent.py')}{outcome}\n"
    asked = interrupted(reviewer)
    (preview,) = [block for _, block in blocks(page, "console") if block.startswith("agent proposes")]
    assert asked.startswith(preview.rstrip("\n"))

    calculator.terminate()
    assert calculator.wait(5) == 0


def interrupted(process: subprocess.Popen[str]) -> str:
    """What it said until Ctrl-C, which ended it at once."""
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=5)
    assert process.returncode == -signal.SIGINT
    return said


def said_until(process: subprocess.Popen[str], end: str) -> str:
    """What a process says up to this, which it is waited for."""
    assert process.stdout is not None
    said = ""
    while not said.endswith(end):
        more = process.stdout.read(1)
        assert more, said
        said += more
    return said


@pytest.mark.e2e
@pytest.mark.parametrize("desk", [(TUTORIAL / "space.yaml").read_text(encoding="utf-8")], indirect=True)
def test_the_reviewer_of_the_tutorial_may_come_after_the_agent_and_again(desk: Desk) -> None:
    page = TUTORIAL / "first-participant.md"
    desk.put(*TUTORIAL.glob("*.py"))
    desk.start("calculator.py", until=printed(page, "python calculator.py"))
    agent = desk.start("agent.py", until=printed(page, "python agent.py"))
    for typed, outcome in (('{"value": "many"}', "not done: value: 'many'"), ("y", "done: M = 5\n")):
        reviewer = desk.start("review.py", until=printed(page, "python review.py"))
        assert reviewer.stdin is not None
        assert said_until(reviewer, "? ").startswith("agent proposes store")
        print(typed, file=reviewer.stdin, flush=True)
        said_until(reviewer, outcome)
        interrupted(reviewer)
    assert agent.communicate(timeout=5)[0] == "M = 5\n"


def readme_space() -> str:
    (text,) = [block for _, block in blocks(ROOT / "README.md", "yaml") if "# space.yaml" in block]
    return text


@pytest.mark.e2e
@pytest.mark.parametrize("desk", [readme_space()], indirect=True)
def test_the_participant_and_the_client_of_the_readme_meet(desk: Desk) -> None:
    desk.put(*(TUTORIAL / "snippets").glob("*.py"))
    page, folder = ROOT / "README.md", ".venv/bin/python docs/tutorial/snippets"
    desk.start("participant.py", until=printed(page, f"{folder}/participant.py"))
    assert desk.run("client.py") == printed(page, f"{folder}/client.py")


@pytest.mark.e2e
@pytest.mark.parametrize("desk", [(TUTORIAL / "space.yaml").read_text(encoding="utf-8")], indirect=True)
def test_the_script_without_async_runs(desk: Desk) -> None:
    desk.put(TUTORIAL / "calculator.py", SNIPPETS / "without_async.py")
    desk.start("calculator.py", until="calculator is calculator in space demo")
    said = desk.run("without_async.py", desk.gateway.ws_url, "demo", ".mew/tokens/ann.token")
    assert said.splitlines() == [
        "ann hello",
        "5.0",
        "nobody has decided yet",
        "withdrawn: no_longer_needed",
    ]


# Every public name is in the reference, and none that is gone.

ROW = re.compile(r"^\| `(?:(await) |@)?(?:\w+\.)*(\w+)(?:\((.*?)\))?` \|", re.MULTILINE)


def section(heading: str) -> str:
    """From a heading to the next one."""
    (found,) = re.findall(
        rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)",
        SDK.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert isinstance(found, str)
    return found


def returned(function: Any) -> Any:
    """The class of what a method of ours returns, wherever it lives."""
    made = typing.get_type_hints(function)["return"]
    return typing.get_origin(made) or made


def things() -> dict[str, Any]:
    """One of each class, or the class where its instances have nothing more to show."""
    me = mew.connect("ws://localhost")
    envelope = mew.Envelope(protocol="mew/v0.4", id="1", sender="ann", kind="mcp/request")
    return {
        "Client": me,
        "Feed": returned(mew.Client.envelopes),
        "History": me.history(),
        "Envelope": envelope,
        "Proposal": returned(mew.Client.propose),
        "Review": mew.Review,
        "Question": mew.Question,
        "Reasoning": me.reasoning(""),
        "Reasonings": me.reasonings,
        "ChatRoom": me.chats,
        "Streams": me.streams,
        "Stream": returned(type(me.streams).stream),
        "Oversight": me.control,
        "ProposalBook": me.book,
        "Catalogue": me.catalogue,
        "Participant": mew.Participant("p"),
        "Call": mew.Call(envelope, method="ping", params={}, id=1),
        "EnvelopeMemory": mew.EnvelopeMemory,
        "Space": Space,
    }


# Public because the SDK's own modules need them, or Python does; not for who uses it.
UNDERNEATH = {
    "Client": {"connection", "takes_questions"},
    "Feed": {"offer"},
    "ChatRoom": {"recall"},
    "Streams": {"connection"},
    "Stream": {"connection", "give_up"},
    "Question": {"close", "is_known_as"},
    "ProposalBook": {"apply", "apply_all", "adopt", "hold", "release"},
    "Catalogue": {"apply"},
    "Participant": {"watch", "find_resource"},
    "Call": {"close"},
    "Space": {"connection"},
}
THINGS = things()


def public(name: str) -> set[str]:
    thing = THINGS[name]
    own = set() if isinstance(thing, type) else set(getattr(thing, "__dict__", ()))
    return {member for member in {*dir(thing), *own} if not member.startswith("_")} - UNDERNEATH.get(
        name, set()
    )


def parameters(function: Any) -> list[str]:
    """Without `self`, as one writes them; of a decorator that takes options, those."""
    written = max(
        (*typing.get_overloads(function), function), key=lambda one: len(inspect.signature(one).parameters)
    )
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    listed = list(inspect.signature(written).parameters.values())[1:]
    return [f"{stars.get(one.kind, '')}{one.name}" for one in listed if one.name != "function"]


@pytest.mark.parametrize("name", THINGS)
def test_the_reference_has_all_that_a_thing_can_do_and_no_more(name: str) -> None:
    rows = ROW.findall(section(f"`{name}`"))
    assert sorted(member for _, member, _ in rows) == sorted(public(name))
    thing = THINGS[name] if isinstance(THINGS[name], type) else type(THINGS[name])
    for awaited, member, written in rows:
        found = inspect.getattr_static(thing, member, None)
        if inspect.isfunction(found):
            assert bool(awaited) is inspect.iscoroutinefunction(found), member
            assert [one for one in written.split(", ") if one] == parameters(found), member
        else:
            assert not awaited, member
            assert not written, member


def test_the_reference_has_every_public_name_and_no_other() -> None:
    names = re.findall(r"^\| `mew\.(\w+)` \|", section("Names"), re.MULTILINE)
    assert sorted(names) == sorted(mew.__all__)


def test_the_reference_has_what_one_connects_with() -> None:
    (written,) = re.findall(r"^`connect\((.+?)\)`", section("Names"), re.MULTILINE)
    for connect in (mew.connect, mew.connect_sync):
        assert written.split(", ") == list(inspect.signature(connect).parameters)


def held(thing: type, member: str) -> Any:
    """The classes of what a property of ours holds."""
    getter = inspect.getattr_static(thing, member).fget
    return typing.get_args(typing.get_type_hints(getter)["return"])


def values() -> dict[str, Any]:
    me = mew.connect("ws://localhost")
    kinds = [
        *typing.get_args(mew.Outcome),
        mew.ProposalUpdate,
        *(returned(getattr(mew.Client, method)) for method in ("grant", "invite", "upload", "save")),
        held(mew.Client, "gaps")[0],
        held(mew.Client, "misconduct")[1],
        held(type(me.reasonings), "active")[0],
        mew.Tool,
        mew.ToolCall,
        mew.ToolResult,
        mew.Image,
        mew.Message,
    ]
    return {kind.__name__: kind for kind in kinds}


def fields(kind: Any) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if issubclass(kind, tuple):
        return list(kind._fields)
    return [field.name for field in msgspec.structs.fields(kind)]


def test_the_reference_has_the_fields_of_what_is_returned() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section("Values"), re.MULTILINE)
    documented = {name: re.findall(r"`(\w+)`", listed) for name, listed in rows}
    assert documented == {name: fields(kind) for name, kind in values().items()}


def test_the_reference_has_the_tree_of_errors_and_what_to_do_about_each() -> None:
    errors = [getattr(mew, name) for name in mew.__all__ if name not in ("Via", "Strategy", "Outcome")]
    errors = [error for error in errors if isinstance(error, type) and issubclass(error, mew.MewError)]
    text = section("Errors")
    tree = re.findall(r"^([│ ]*)[├└]── (\w+)$", text, re.MULTILINE)
    parents = {"": mew.MewError, "    ": mew.StreamBroken}
    assert {name: parents[indent] for indent, name in tree} == {
        error.__name__: error.__base__ for error in errors if error is not mew.MewError
    }
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert rows == [name for _, name in tree]


# Links lead somewhere.

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Of its headings, as they are made on the web."""
    headings: Iterable[str] = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_between_documents_leads_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def test_every_document_can_be_found_from_the_readme() -> None:
    found, to_read = set[Path](), [ROOT / "README.md"]
    while to_read:
        page = to_read.pop()
        if page in found or not page.exists():
            continue
        found.add(page)
        linked = ((page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(page)))
        for target in linked:
            to_read += target.glob("*.md") if target.is_dir() else [target] if target.suffix == ".md" else []
    assert {named(page) for page in DOCS.rglob("*.md")} <= {named(page) for page in found}
