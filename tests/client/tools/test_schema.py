"""JSON Schemas from functions, and arguments read by them: checked against an independent validator."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from mew.client.tools.schema import ArgumentError, arguments_of, output_of, read_docstring

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-9, 9)
    | st.sampled_from(["", "a", "b", "red", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "name", "left", "1"]), inner, max_size=3)
    ),
    max_leaves=6,
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclasses.dataclass
class Point:
    """A place."""

    x: int
    y: int = 0


@dataclasses.dataclass
class Named:
    name: str


@dataclasses.dataclass
class Tree:
    left: Tree | None = None
    right: Tree | None = None


class Box(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    inside: list[Box] = []


class Options(TypedDict, total=False):
    x: int


class Pair(NamedTuple):
    first: int
    second: str = "a"


class Context:
    pass


class Model:
    """What pydantic's models have, of what is used here."""

    def __init__(self, x: int) -> None:
        self.x = x

    @classmethod
    def model_json_schema(cls, *, ref_template: str, mode: str) -> dict[str, Any]:
        part = {"type": "integer"}
        return {
            "title": mode,
            "type": "object",
            "properties": {"x": {"$ref": ref_template.format(model="Part")}},
            "required": ["x"],
            "$defs": {"Part": part},
        }

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not isinstance(value, dict) or type(value.get("x")) is not int:
            raise ValueError("x: should be an integer")
        return cls(value["x"])

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]:
        assert mode == "json"
        assert by_alias
        return {"x": self.x}


def taking(hint: Any) -> Callable[..., Any]:
    """A function of one parameter, `value`, of this type."""

    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": hint}
    return function


def read(function: Callable[..., Any], **given: Any) -> Any:
    bound = arguments_of(function).decode(given)
    return function(*bound.args, **bound.kwargs)


def is_valid(function: Callable[..., Any], **given: Any) -> bool:
    schema = arguments_of(function).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid(given)


# The schema.


def test_a_schema_says_what_is_taken_what_may_be_left_out_and_what_it_means() -> None:
    def search(query: str, limit: Annotated[int, Meta(ge=1, le=50)] = 10, *, exact: bool = False) -> None:
        """Search the notes.

        Args:
            query: What to look for,
                in any language.
            limit (int): How many at most.
        """

    assert arguments_of(search).schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in any language."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "default": 10,
                "description": "How many at most.",
            },
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_a_function_of_nothing_takes_an_empty_object_and_nothing_else() -> None:
    def now() -> None: ...

    assert is_valid(now)
    assert not is_valid(now, zone="utc")


def test_a_description_in_annotated_goes_before_the_docstring() -> None:
    def f(a: Annotated[int, "from the hint"], b: Annotated[int, Meta(description="meta")], c: Point) -> None:
        """Do.

        Args:
            a: from the docstring
            b: from the docstring
            c: where
        """

    properties = arguments_of(f).schema["properties"]
    assert [properties[name]["description"] for name in "abc"] == ["from the hint", "meta", "where"]


def test_types_that_refer_to_each_other_are_defined_in_the_schema_itself() -> None:
    def plant(tree: Tree, box: Box, boxes: list[Box]) -> None: ...

    schema = arguments_of(plant).schema
    assert schema["$defs"].keys() == {"Tree", "Box"}
    tree: dict[str, Any] = {"left": {"left": {}, "right": None}}
    assert is_valid(plant, tree=tree, box={"name": "a"}, boxes=[])
    assert not is_valid(plant, tree={"left": 1}, box={"name": "a"}, boxes=[])


def test_a_default_no_caller_could_give_is_not_shown() -> None:
    nothing = object()

    def f(a: int = None, b: Any = nothing, c: list[int] = [1, 2], d: Point = Point(1)) -> Any:  # type: ignore[assignment] # noqa: B006, B008, RUF013
        return a, b, c, d

    properties = arguments_of(f).schema["properties"]
    assert {name: schema.get("default", "none") for name, schema in properties.items()} == {
        "a": "none",
        "b": "none",
        "c": [1, 2],
        "d": {"x": 1, "y": 0},
    }
    assert read(f) == (None, nothing, [1, 2], Point(1))


def test_parameters_of_the_context_are_filled_in_and_not_asked_for() -> None:
    def f(context: Context, /, a: int, *, other: Context | None = None) -> Any:
        return context, a, other

    arguments = arguments_of(f, context=Context)
    assert arguments.schema["properties"].keys() == {"a"}
    here = Context()
    bound = arguments.decode({"a": 1}, here)
    assert f(*bound.args, **bound.kwargs) == (here, 1, here)
    with pytest.raises(ArgumentError, match="unknown argument 'context'"):
        arguments.decode({"a": 1, "context": 2}, here)


def test_positional_only_and_keyword_only_parameters_are_called_as_they_must_be() -> None:
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int) -> Any:
        return a, b, c, d

    assert read(f, a=1, d=4) == (1, 2, 3, 4)
    assert read(f, d=4, c=9, b=8, a=1) == (1, 8, 9, 4)


def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Adder:
        def __init__(self, to: int) -> None:
            self.to = to

        def add(self, n: int) -> int:
            return self.to + n

        def __call__(self, n: int) -> int:
            return self.to + n

    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    for function in (Adder(1).add, Adder(1), functools.partial(power, exponent=1)):
        assert "n" in arguments_of(function).hints or "base" in arguments_of(function).hints
        assert output_of(function) is not None
    assert read(Adder(1).add, n=2) == read(Adder(1), n=2) == 3
    assert read(functools.partial(power, 3), exponent=2) == 9


@pytest.mark.parametrize("stars", ["*args", "**kwargs"])
def test_a_function_of_anything_is_refused_when_it_is_decorated(stars: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def anything({stars}): ...", scope)
    with pytest.raises(TypeError, match=r"anything\(\) takes .*args: name each parameter"):
        arguments_of(scope["anything"])


def test_a_type_json_has_no_form_for_is_refused_by_the_name_of_its_parameter() -> None:
    def f(a: int, lock: list[complex]) -> None: ...

    with pytest.raises(TypeError, match=r"f\(\): parameter 'lock': complex has no form in JSON"):
        arguments_of(f)


def test_an_annotation_that_cannot_be_resolved_is_explained() -> None:
    def f(a: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(TypeError, match=r"Nowhere.*importable"):
        arguments_of(f)


# Reading arguments.


@pytest.mark.parametrize(
    ("hint", "given", "expected"),
    [
        (float, 1, 1.0),
        (int, 2.0, 2),
        (list[int], [1.0, 2], [1, 2]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 2], {1, 2}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Literal["a", 1, None], None, None),
        (Colour, "red", Colour.RED),
        (Size, 2, Size.LARGE),
        (Point, {"x": 1}, Point(1)),
        (Point | Named, {"name": "a"}, Named("a")),
        (list[Point | Named | None], [{"x": 1}, None], [Point(1), None]),
        (Options, {"x": 1}, {"x": 1}),
        (Pair, [1], Pair(1)),
        (Box, {"name": "a"}, Box("a")),
        (datetime, "2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        (str | datetime, "2026", "2026"),
        (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        (Decimal, "1.10", Decimal("1.10")),
        (PurePosixPath, "a/b", PurePosixPath("a/b")),
        (bytes, "YQ==", b"a"),
        (object, {"any": [1]}, {"any": [1]}),
        (inspect.Parameter.empty, None, None),
    ],
    ids=str,
)
def test_json_is_read_as_the_type_says(hint: Any, given: Any, expected: Any) -> None:
    function = taking(hint) if hint is not inspect.Parameter.empty else (lambda value: value)
    assert is_valid(function, value=given)
    value = read(function, value=given)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("hint", "given", "said"),
    [
        (int, "1", "argument 'value': expected int, got str"),
        (int, True, "argument 'value': expected int, got bool"),
        (int, 1.5, "argument 'value': expected int, got float"),
        (bool, 1, "argument 'value': expected bool, got int"),
        (str, None, "argument 'value': expected str, got null"),
        (Literal["a", "b"], "c", "argument 'value': invalid enum value 'c'"),
        (Annotated[int, Meta(ge=2)], 1, "argument 'value': expected int >= 2"),
        (list[Point], [{"x": 1}, {"x": "a"}], "argument 'value[1].x': expected int, got str"),
        (dict[int, str], {"a": "b"}, "argument 'value': expected int, got str"),
        (Point, {}, "argument 'value': object missing required field x"),
        (Point | Named, {}, "argument 'value': object missing required field x; or .*name"),
        (set[Any], [[1]], "argument 'value': unhashable type"),
        (PurePosixPath, 1, "argument 'value': expected path, got int"),
        (float, 10**400, "argument 'value': number out of range"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_with_what_was_expected(hint: Any, given: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said.replace("[1]", r"\[1\]")):
        read(taking(hint), value=given)


def test_all_that_is_wrong_is_said_at_once_and_the_nearest_name_is_suggested() -> None:
    def write(path: str, text: str, mode: int = 0) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        arguments_of(write).decode({"pth": "a", "colour": 1, "mode": "x"})
    assert str(caught.value) == (
        "unknown argument 'pth', did you mean 'path'?; "
        "unknown argument 'colour', expected: 'path', 'text', 'mode'; "
        "argument 'path' is missing, expected string; "
        "argument 'text' is missing, expected string; "
        "argument 'mode': expected int, got str"
    )


def test_a_flood_of_unknown_arguments_gives_a_short_error() -> None:
    flood = {f"{'x' * 5000}{n}": n for n in range(10_000)}
    with pytest.raises(ArgumentError, match="and 9996 more") as caught:
        arguments_of(taking(int)).decode(flood)
    assert len(str(caught.value)) < 1000


def test_a_wrong_value_however_long_gives_a_short_error() -> None:
    for hostile in ("x" * 1_000_000, " - at `$" * 100_000, "$" * 100_000 + "`"):
        with pytest.raises(ArgumentError) as caught:
            read(taking(Literal["a"]), value=hostile)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("given", [None, [], "a", 1, True])
def test_arguments_that_are_no_object_are_refused(given: object) -> None:
    with pytest.raises(ArgumentError, match="expected an object, got "):
        arguments_of(taking(int)).decode(given)


def test_text_is_read_as_numbers_only_where_asked() -> None:
    arguments = arguments_of(taking(int))
    assert arguments.decode({"value": "7"}, strict=False).args == (7,)
    with pytest.raises(ArgumentError):
        arguments.decode({"value": "seven"}, strict=False)


def test_the_values_an_argument_is_limited_to_are_known() -> None:
    def paint(colour: Colour | None, size: Literal["s", "m"], depth: int) -> None: ...

    arguments = arguments_of(paint)
    assert [arguments.choices(name) for name in ("colour", "size", "depth", "nothing")] == [
        ["blue", "red"],
        ["m", "s"],
        [],
        [],
    ]


EXACT = [
    int,
    float,
    bool,
    str,
    None,
    list[int],
    tuple[int, str],
    dict[str, int],
    Literal["a", 1, None],
    Colour,
    Size,
    Point,
    Options,
    Pair,
    Box,
    int | None,
    Point | Named,
    list[Named | Point | int],
    Annotated[int, Meta(ge=2, description="d")],
    Any,
]


@given(st.sampled_from(EXACT), JSON)
def test_what_the_schema_allows_is_what_is_read(hint: Any, value: Any) -> None:
    function = taking(hint)
    try:
        read(function, value=value)
        accepted = True
    except ArgumentError:
        accepted = False
    assert accepted == is_valid(function, value=value)


@given(
    st.sampled_from([*EXACT, set[int], datetime, UUID, Decimal, bytes, Model]),
    st.dictionaries(st.text(), JSON),
)
def test_no_arguments_raise_anything_but_an_argument_error(hint: Any, given: dict[str, Any]) -> None:
    with contextlib.suppress(ArgumentError):
        arguments_of(taking(hint)).decode(given)


# Pydantic's models, by what they can do.


def test_a_model_brings_its_schema_and_reads_itself() -> None:
    def f(model: Model, models: list[Model | None]) -> Any:
        return model.x, [m and m.x for m in models]

    schema = arguments_of(f).schema
    assert schema["$defs"] == {"Part": {"type": "integer"}}
    assert "$defs" not in schema["properties"]["model"]
    assert is_valid(f, model={"x": 1}, models=[None])
    assert not is_valid(f, model={"x": "1"}, models=[])
    assert read(f, model={"x": 1}, models=[{"x": 2}, None]) == (1, [2, None])
    with pytest.raises(ArgumentError, match=r"argument 'models\[0\]': x: should be an integer"):
        read(f, model={"x": 1}, models=[{}])


def test_real_pydantic_models_work() -> None:
    pydantic = pytest.importorskip("pydantic")
    item = pydantic.create_model("Item", name=(str, ...), tags=(list[str], []))
    items: Any = list.__class_getitem__(item)
    order = pydantic.create_model("Order", items=(items, ...))
    function = taking(order | int)
    function.__annotations__["return"] = order
    assert is_valid(function, value={"items": [{"name": "a"}]})
    assert read(function, value={"items": [{"name": "a"}]}).items[0].name == "a"
    assert read(function, value=3) == 3
    with pytest.raises(ArgumentError, match=r"argument 'value': items.0.name: Field required"):
        read(function, value={"items": [{}]})
    output = output_of(function)
    assert output is not None
    jsonschema.Draft202012Validator(output.schema).validate({"items": [{"name": "a", "tags": []}]})


# What a function returns.


def returning(hint: Any) -> Callable[..., Any]:
    function = taking(int)
    function.__annotations__["return"] = hint
    return function


@pytest.mark.parametrize(
    "hint", [Any, None, str, complex, Context, list[Context], Callable[[], int]], ids=str
)
def test_text_nothing_and_what_json_has_no_form_for_promise_nothing(hint: Any) -> None:
    assert output_of(returning(hint)) is None


def test_a_function_that_says_nothing_of_its_result_promises_nothing() -> None:
    assert output_of(lambda: 1) is None
    assert output_of(returning(list[Context]), besides=(Context,)) is None


@pytest.mark.parametrize(
    ("hint", "is_wrapped"),
    [
        (Point, False),
        (Tree, False),
        (dict[str, int], False),
        (Options, False),
        (Model, False),
        (int, True),
        (list[Point], True),
        (Pair, True),
        (Point | None, True),
        (str | None, True),
    ],
    ids=str,
)
def test_an_output_schema_is_always_an_object(hint: Any, is_wrapped: bool) -> None:  # noqa: FBT001
    output = output_of(returning(hint))
    assert output is not None
    jsonschema.Draft202012Validator.check_schema(output.schema)
    assert output.schema["type"] == "object"
    assert output.is_wrapped is is_wrapped


def test_a_recursive_output_can_be_validated_by_its_schema_alone() -> None:
    output = output_of(returning(Tree))
    assert output is not None
    validator = jsonschema.Draft202012Validator(output.schema)
    assert validator.is_valid({"left": {"left": None}})
    assert not validator.is_valid({"left": {"left": 3}})


def test_a_result_is_held_to_what_was_promised() -> None:
    output = output_of(returning(list[int]))
    assert output is not None
    output.keep([1, 2])
    with pytest.raises(
        TypeError, match=r"not what the function promises: expected int, got str - at \$\[0\]"
    ):
        output.keep(["a"])


# Docstrings.


def test_google_and_rest_docstrings_are_read_and_the_rest_describes() -> None:
    google = read_docstring(
        """Move a file.

        It must exist.

        Args:
            source (str): Where it is: a path.
            **target: Where it goes.

                In detail.

        Returns:
            The new path.
        """
    )
    assert google.parameters == {
        "source": "Where it is: a path.",
        "target": "Where it goes. In detail.",
    }
    assert google.description == "Move a file.\n\nIt must exist.\n\nReturns:\n    The new path."
    rest = read_docstring(
        """Move a file.

        :param str source: Where it is,
            as a path.
        :param target: Where it goes.
        :type target: str
        :returns: The new path.
        """
    )
    assert rest.parameters == {"source": "Where it is, as a path.", "target": "Where it goes."}
    assert rest.description == "Move a file.\n\n:returns: The new path."
    assert read_docstring(None) == read_docstring("")


@given(
    st.text()
    | st.lists(st.sampled_from(["Args:", "  a: b", "    c", ":param x: y", ":param:", "", "z"])).map(
        "\n".join
    )
)
def test_any_text_is_a_docstring(text: str) -> None:
    read_docstring(text)
