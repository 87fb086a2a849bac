"""Patterns: what a value must look like to fit. Only a text that is written out fits one with a `..` path segment."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .glob import Glob
from .json_path import Path
from .values import JSON, AmbiguousPayload, Repeated, canonical, has_parent_segment

__all__ = [
    "ANYTHING",
    "AnyOf",
    "Anything",
    "Exact",
    "Fields",
    "Not",
    "Pattern",
    "Regex",
    "Scalar",
    "StringPattern",
]

_SEARCHED_MAX: Final = 65_536  # RE2 is linear, but hard expressions take a microsecond a character


@dataclass(frozen=True, slots=True)
class Exact:
    """This string."""

    text: str

    def fits(self, value: JSON) -> bool:
        return bool(value == self.text)


@dataclass(frozen=True, slots=True)
class Anything:
    """`*` or `**` alone: any value that is there, but no string with a `..` segment."""

    def fits(self, value: JSON) -> bool:
        return not isinstance(value, str) or not has_parent_segment(value)


@dataclass(frozen=True, slots=True)
class Regex:
    """`/…/`: a string in which RE2 finds the expression; `^` and `$` bind it to the ends.

    A longer text than it searches is an error, so that neither what allows nor a negation of it lets that through.
    """

    text: str
    compiled: Any

    def fits(self, value: JSON) -> bool:
        if isinstance(value, str) and len(value) > _SEARCHED_MAX:
            raise ValueError(f"a text of {len(value)} characters is not searched")
        return (
            isinstance(value, str)
            and not has_parent_segment(value)
            and self.compiled.search(value.encode("utf-8", "surrogatepass")) is not None
        )


@dataclass(frozen=True, slots=True)
class Not:
    """`!P`: a string that P does not fit, however it is written: `!/etc/**` fits no `//etc/x` and no `/x/../etc/x`."""

    of: "StringPattern"

    def fits(self, value: JSON) -> bool:
        if not isinstance(value, str) or has_parent_segment(value) or self.of.fits(value):
            return False
        plain = canonical(value)
        return plain is value or not self.of.fits(plain)


@dataclass(frozen=True, slots=True)
class Scalar:
    """This number, boolean or null; `1` is `1.0`, as JSON has one kind of number, and neither is `true`."""

    value: float | bool | None

    def fits(self, value: JSON) -> bool:
        return isinstance(value, bool) == isinstance(self.value, bool) and bool(value == self.value)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A value that one of the patterns fits."""

    patterns: tuple["Pattern", ...]

    def fits(self, value: JSON) -> bool:
        return any(pattern.fits(value) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object that has these fields, among others, and where every node a path finds (at least one) fits.

    Paths start at this object. `in_doubt` is the answer when a path cannot be followed: no for what allows,
    yes for what forbids.
    """

    fields: tuple[tuple[str, "Pattern"], ...]
    paths: tuple[tuple[Path, "Pattern"], ...]
    in_doubt: bool

    def fits(self, value: JSON) -> bool:
        if type(value) is not dict:
            if not isinstance(value, dict):
                return False
            if isinstance(value, Repeated):
                value.refuse(name for name, _ in self.fields)
        for name, pattern in self.fields:
            found = value.get(name, _ABSENT)
            if found is _ABSENT or not pattern.fits(found):
                return False
        return not self.paths or all(self._path_fits(path, pattern, value) for path, pattern in self.paths)

    def _path_fits(self, path: Path, pattern: "Pattern", value: JSON) -> bool:
        try:
            nodes = path.nodes(value)
        except AmbiguousPayload:
            raise
        except Exception:  # whatever the library raises, the question stays open
            return self.in_doubt
        return bool(nodes) and all(map(pattern.fits, nodes))


StringPattern: TypeAlias = Exact | Anything | Glob | Regex | Not
Pattern: TypeAlias = StringPattern | Scalar | AnyOf | Fields

ANYTHING = Anything()
_ABSENT: Any = object()
