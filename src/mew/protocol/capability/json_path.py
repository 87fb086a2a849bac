"""JSONPath (RFC 9535) whose cost is known before it runs, and whose regular expressions are RE2's."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import re2
from jsonpath import JSONPath, JSONPathEnvironment
from jsonpath.filter import BaseExpression, FilterQuery, FunctionExtension, StringLiteral
from jsonpath.function_extensions import ExpressionType, FilterFunction
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import Filter

from .values import JSON, AmbiguousPayload, Repeated

__all__ = ["VISITS_MAX", "Path", "PathError", "PathWork"]

VISITS_MAX = 10_000
"""How many nodes the paths of all capabilities may visit for one envelope, at worst: 1 to 3 µs each.

Counted, not timed: every gateway must decide alike.
"""

_VISITS_PER_PATH = 16  # what it takes to begin, in visits
_VALUES_PER_VISIT = 16  # that are counted in the time of one visit

_VALUES_MIN = 16


class PathError(Exception):
    """The path is not a JSONPath we take, or the value is too large for it."""


class Path:
    """A compiled JSONPath. Raises PathError if it does not compile."""

    __slots__ = ("_degree", "_query", "_values_max", "_weight", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            query = _ENVIRONMENT.compile(text)
            assert isinstance(query, JSONPath), f"{text!r} joins paths, which strict RFC 9535 has no sign for"
            degree, weight = _cost(query)
        except PathError:
            raise
        except Exception as error:  # the parser raises more than its own kind on what it did not expect
            raise PathError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        self._query = query
        self._degree, self._weight = (0 if query.singular_query() else degree), weight
        self._values_max = int((VISITS_MAX / weight) ** (1 / degree))
        if self._values_max < _VALUES_MIN:
            raise PathError("it might visit too many nodes of even a small value")

    def visits(self, values: int) -> int:
        """How much work it is, at worst, to find the nodes in a document of this many values."""
        values = min(values, self._values_max)
        followed: int = self._weight * values**self._degree
        return _VISITS_PER_PATH + values // _VALUES_PER_VISIT + followed

    def nodes(self, value: JSON) -> list[JSON]:
        """What the path finds in the value.

        Raises:
            AmbiguousPayload: an object somewhere in the value repeats a key.
            PathError: finding it might take too long.
        """
        for count, part in enumerate(_parts(value)):
            if isinstance(part, Repeated):
                raise AmbiguousPayload("a capability searches a payload in which a key occurs twice")
            if count >= self._values_max:
                raise PathError(f"{self.text!r} searches at most {self._values_max} values")
        return self._query.findall(value)


class PathWork:
    """The budget of one envelope for the paths of all capabilities that are tried on it."""

    __slots__ = ("_values", "spent")

    def __init__(self) -> None:
        self.spent = 0
        self._values: int | None = None

    def spend(self, paths: Sequence[Path], document: JSON) -> bool:
        """Pay for following these paths in the envelope's payload; False if there is not enough left for all."""
        if self._values is None:
            self._values = sum(1 for _ in islice(_parts(document), VISITS_MAX))
            self.spent += self._values // _VALUES_PER_VISIT
        visits = sum([path.visits(self._values) for path in paths])
        if self.spent + visits > VISITS_MAX:
            return False
        self.spent += visits
        return True


def _parts(value: JSON) -> Iterator[JSON]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _cost(query: JSONPath) -> tuple[int, int]:
    """The degree and weight of a query: n values take at most `weight * n ** degree` visits."""
    degree, weight = 0, 1
    for segment in query.segments:
        degree += isinstance(segment, JSONPathRecursiveDescentSegment)
        weight *= len(segment.selectors)
        for selector in segment.selectors:
            if isinstance(selector, Filter):
                for inner in _queries(selector.expression):
                    inner_degree, inner_weight = _cost(inner)
                    degree += 0 if inner.singular_query() else inner_degree
                    weight *= inner_weight + 1
    return max(degree, 1), weight


def _queries(expression: BaseExpression) -> Iterator[JSONPath]:
    """The queries in a filter; on the way, its regular expressions are checked."""
    if isinstance(expression, FilterQuery):
        yield expression.path
        return
    if isinstance(expression, FunctionExtension) and expression.name in ("match", "search"):
        pattern = expression.args[1]
        if not isinstance(pattern, StringLiteral):
            raise PathError(
                f"the second argument of {expression.name}() must be a regular expression, written out"
            )
        try:
            re2.compile(pattern.value, options=_OPTIONS)
        except (re2.error, UnicodeError) as error:
            raise PathError(f"{pattern.value!r} is not a regular expression of RE2") from error
    for child in expression.children():
        yield from _queries(child)


class _Match(FilterFunction):
    """RFC 9535 `match()` in linear time."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012 the library's own form
    return_type = ExpressionType.LOGICAL

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        return re2.compile(pattern, options=_OPTIONS).fullmatch(value) is not None


class _Search(_Match):
    """RFC 9535 `search()` in linear time."""

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        return re2.compile(pattern, options=_OPTIONS).search(value) is not None


class _Environment(JSONPathEnvironment):
    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _Match()
        self.function_extensions["search"] = _Search()

    def getitem(self, obj: Any, key: Any) -> Any:
        if isinstance(obj, str):  # the library would slice a string, but only arrays have elements
            return ""
        return super().getitem(obj, key)


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20
_ENVIRONMENT = _Environment(strict=True)
