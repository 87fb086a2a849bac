"""Tools, resources and prompts made from functions, and the registry of them."""

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any
from urllib.parse import quote

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.client.mcp.call import Call
from mew.client.mcp.results import Image, ToolResult
from mew.client.tools.functions import FunctionPrompt, FunctionResource, FunctionTool, Toolbox, UriTemplate


def add(a: int, b: int = 0) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b


# Tools.


def test_a_tool_is_listed_with_its_schemas_and_its_annotations() -> None:
    tool = FunctionTool.of(
        add, title="Sum", read_only=True, destructive=False, idempotent=True, open_world=False
    )
    assert tool.listed() == {
        "name": "add",
        "title": "Sum",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first."},
                "b": {"type": "integer", "default": 0},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
        },
        "annotations": {
            "title": "Sum",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def test_what_is_not_said_is_not_listed() -> None:
    def bare(): ...  # type: ignore[no-untyped-def]

    assert FunctionTool.of(bare).listed().keys() == {"name", "inputSchema"}


def test_images_and_whole_results_have_no_output_schema_and_the_call_is_no_argument() -> None:
    def picture(call: Call, name: str) -> list[Image]:
        return []

    def full() -> ToolResult:
        return ToolResult()

    assert "outputSchema" not in FunctionTool.of(picture).listed()
    assert "outputSchema" not in FunctionTool.of(full).listed()
    assert FunctionTool.of(picture).listed()["inputSchema"]["properties"].keys() == {"name"}


@pytest.mark.parametrize("name", ["", "a b", "a" * 129, "näme", "a\n", "<lambda>"])
def test_a_name_that_mcp_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        FunctionTool.of(add, name=name)


def test_functions_that_yield_are_refused_when_they_are_decorated() -> None:
    def some() -> Iterator[int]:
        yield 1

    async def more() -> AsyncIterator[int]:
        yield 1

    for function in (some, more):
        with pytest.raises(TypeError, match="yields: return a list"):
            FunctionTool.of(function)


# The registry.


def test_decorated_functions_stay_what_they_are() -> None:
    box = Toolbox()
    assert box.tool(add) is add
    assert box.tool(name="plus", read_only=True)(add) is add
    assert box.tool()(len_of) is len_of
    assert box.resource("notes://{name}")(note) is note
    assert box.prompt(note) is note
    assert box.prompt(name="other")(note) is note
    assert list(box.tools) == ["add", "plus", "len_of"]
    assert list(box.resources) == ["notes://{}"]
    assert list(box.prompts) == ["note", "other"]


def len_of(text: str) -> int:
    return len(text)


def note(name: Annotated[str, "Which."], page: int = 1) -> str:
    """A note."""
    return f"{name} {page}"


def test_a_name_or_a_uri_taken_twice_is_an_error_at_once() -> None:
    box = Toolbox()
    box.tool(add)
    box.prompt(note)
    box.resource("notes://{name}")(note)
    box.resource("notes://all", name="all")(lambda: "")
    with pytest.raises(ValueError, match="'add' among the tools already"):
        box.tool(name="add")(len_of)
    with pytest.raises(ValueError, match="'note' among the prompts already"):
        box.prompt(note)
    with pytest.raises(ValueError, match="'notes://all' among the resources already"):
        box.resource("notes://all", name="again")(lambda: "")

    def same(title: str) -> str:
        return title

    with pytest.raises(ValueError, match="among the resources already"):
        box.resource("notes://{title}")(same)


def test_whoever_watches_is_told_what_changed_and_only_when_it_did() -> None:
    box = Toolbox()
    told: list[str] = []
    tool, resource, prompt = (
        FunctionTool.of(add),
        FunctionResource.of("notes://{name}", note),
        FunctionPrompt.of(note),
    )
    box.watch(told.append)
    for item in (tool, resource, prompt):
        box.add(item)
    box.remove(tool)
    box.remove(tool)
    box.remove(FunctionPrompt.of(note))  # another one of that name
    box.remove(resource)
    with pytest.raises(ValueError, match="already"):
        box.add(prompt)
    assert told == ["tools", "resources", "prompts", "tools", "resources"]
    assert not box.tools
    assert list(box.prompts) == ["note"]


def test_what_is_offered_cannot_be_changed_behind_the_registry() -> None:
    box = Toolbox()
    with pytest.raises(TypeError):
        box.tools["a"] = FunctionTool.of(add)  # type: ignore[index]


# Resources.


def test_resources_are_listed_as_what_they_are() -> None:
    fixed = FunctionResource.of("notes://all", lambda: "", name="all", title="All", mime_type="text/plain")
    assert fixed.listed() == {"uri": "notes://all", "name": "all", "title": "All", "mimeType": "text/plain"}
    family = FunctionResource.of("notes://{name}", note)
    assert family.listed() == {"uriTemplate": "notes://{name}", "name": "note", "description": "A note."}


def test_a_uri_without_variables_goes_before_a_template() -> None:
    box = Toolbox()
    box.resource("notes://{name}")(note)
    box.resource("notes://all", name="all")(lambda: "")
    for uri, expected in {"notes://all": ("all", {}), "notes://x%20y": ("note", {"name": "x y"})}.items():
        found = box.find_resource(uri)
        assert found is not None
        assert (found[0].name, found[1]) == expected
    assert box.find_resource("notes://{}") is not None  # a name like any other
    assert box.find_resource("notes://a/b") is None


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("notes", "no absolute URI"),
        ("notes://{name*}", "only {name} and {\\+name}"),
        ("notes://{?name}", "only"),
        ("notes://{}", "only"),
        ("notes://{name", "only"),
        ("notes://{name}/{name}", "twice"),
        ("notes://{name}{page}", "nothing between"),
    ],
)
def test_a_template_that_is_not_understood_is_refused(uri: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FunctionResource.of(uri, note)


@pytest.mark.parametrize("uri", ["notes://all", "notes://{page}", "notes://{name}/{other}"])
def test_the_variables_must_be_the_parameters(uri: str) -> None:
    with pytest.raises(TypeError, match=r"has the variables .*, its function the parameters name, page"):
        FunctionResource.of(uri, note)


def test_a_completer_for_what_is_no_argument_is_refused() -> None:
    with pytest.raises(ValueError, match="a completer for nmae"):
        FunctionPrompt.of(note, complete={"nmae": lambda begun: [begun]})
    with pytest.raises(ValueError, match="a completer for page"):
        FunctionResource.of("notes://{name}", note, complete={"page": lambda begun: [begun]})


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("a://{x}/{y}", "a://1/2", {"x": "1", "y": "2"}),
        ("a://{x}.{y}", "a://p.q.r", {"x": "p.q", "y": "r"}),
        ("a://{x}", "a://%C3%A4%2Fb", {"x": "ä/b"}),
        ("a://{+x}", "a://b/c%20d", {"x": "b/c d"}),
        ("file://{+x}", "file:///etc/motd", {"x": "/etc/motd"}),
        ("a://b.c/{x}", "a://bxc/1", None),
        ("a://{x}", "a://", None),
        ("a://{x}", "a://b/c", None),
        ("a://{x}", "a://b?c", None),
        ("a://{x}", "A://b", None),
        ("a://{x}", "a://%ff", None),
        ("a://{x}", "a://b\n", {"x": "b\n"}),
    ],
)
def test_a_template_matches_and_decodes(template: str, uri: str, variables: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == variables


@pytest.mark.parametrize(
    "hostile",
    [
        "..",
        ".",
        "%2e%2e",
        "..%2Fetc",
        "a%2F..%2F..%2Fetc",
        "a%5C..%5Cb",
        "%2Fetc%2Fpasswd",
        "%5C%5Chost",
        "C:%5Ca",
        "a%00",
    ],
)
def test_what_could_climb_out_of_a_directory_is_no_match(hostile: str) -> None:
    assert UriTemplate("files://{name}").match(f"files://{hostile}") is None


@pytest.mark.parametrize("hostile", ["../a", "a/../b", "a/%2e%2e/b", "a/..", "a%00"])
def test_a_path_may_have_slashes_but_does_not_climb(hostile: str) -> None:
    assert UriTemplate("files://{+path}").match(f"files://{hostile}") is None


def test_matching_is_linear_in_the_length_of_the_uri() -> None:
    template = UriTemplate("a://{a}-{b}-{c}-{d}-{e}!")
    assert template.match("a://" + "-" * 500_000) is None


@given(st.text(min_size=1), st.text(st.characters(categories=["L", "N"]), min_size=1))
def test_what_a_variable_stood_for_comes_back(name: str, other: str) -> None:
    found = UriTemplate("notes://{name}/x/{other}").match(f"notes://{quote(name, safe='')}/x/{quote(other)}")
    if found is None:
        assert (
            {"..", "."} & set(name.replace("\\", "/").split("/"))
            or name[0] in "/\\"
            or "\0" in name
            or name[1:2] == ":"
        )
    else:
        assert found == {"name": name, "other": other}


@given(st.text())
def test_no_uri_breaks_the_search(uri: str) -> None:
    box = Toolbox()
    box.resource("notes://{name}")(note)
    box.find_resource(uri)
    box.find_resource(f"notes://{uri}")


# Prompts.


def test_a_prompt_is_listed_with_its_arguments() -> None:
    prompt = FunctionPrompt.of(note, title="Note")
    assert prompt.listed() == {
        "name": "note",
        "title": "Note",
        "description": "A note.",
        "arguments": [
            {"name": "name", "description": "Which.", "required": True},
            {"name": "page", "required": False},
        ],
    }


def test_every_schema_that_is_listed_is_one() -> None:
    for function in (add, len_of, note, inspect.cleandoc):
        listed: dict[str, Any] = FunctionTool.of(function).listed()
        jsonschema.Draft202012Validator.check_schema(listed["inputSchema"])
