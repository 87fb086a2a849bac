"""A value in a configuration file that knows its line, and the one error a wrong configuration gets."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

__all__ = ["ConfigError", "ConfigValue", "Scalar", "shown"]

Scalar: TypeAlias = str | int | float | bool | None

_SIZE_UNITS: Final = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|KiB|MiB|GiB)?")

_Choice = TypeVar("_Choice", bound=StrEnum)
_Value = TypeVar("_Value")


class ConfigError(Exception):
    """The configuration cannot be used; the text says where and why, to a person, and holds no secret."""


@dataclass(frozen=True, slots=True, repr=False)  # a repr would show tokens
class ConfigValue:
    """A value in the file and where it stands: a scalar, a tuple of nodes or a mapping to nodes."""

    value: "Scalar | tuple[ConfigValue, ...] | Mapping[str, ConfigValue]"
    file: str
    line: int
    path: str

    def error(self, message: str) -> ConfigError:
        """The error to raise about this value: file, line and key come first."""
        return ConfigError(
            ": ".join(part for part in (f"{self.file}:{self.line}", self.path, message) if part)
        )

    def fields(self, keys: Collection[str]) -> dict[str, "ConfigValue"]:
        """The entries of this mapping that are not left empty; a key that is not among `keys` is an error."""
        for key, child in self.entries().items():
            if key not in keys:
                hint = get_close_matches(key, keys, n=1)
                help_ = f"did you mean '{hint[0]}'?" if hint else f"valid keys: {', '.join(sorted(keys))}"
                at = ConfigValue(None, self.file, child.line, self.path)
                raise at.error(f"unknown key {shown(key)}, {help_}")
        return {key: child for key, child in self.entries().items() if child.value is not None}

    def read(self, table: Mapping[str, Callable[["ConfigValue"], Any]]) -> dict[str, Any]:
        """The entries of this mapping, each by the reader the table has for its key."""
        return {key: table[key](child) for key, child in self.fields(table).items()}

    def entries(self) -> Mapping[str, "ConfigValue"]:
        if not isinstance(self.value, Mapping):
            raise self._wrong_type("a mapping")
        return self.value

    def items(self) -> tuple["ConfigValue", ...]:
        if not isinstance(self.value, tuple):
            raise self._wrong_type("a list")
        return self.value

    def list_of(self, reader: Callable[["ConfigValue"], _Value]) -> tuple[_Value, ...]:
        return tuple(reader(item) for item in self.items())

    def string(self) -> str:
        """A text of at least one character, without control characters."""
        text = self._text()
        if not text:
            raise self.error("expected a text, is empty")
        if not text.isprintable():
            raise self.error("expected a text without control characters, has some")
        return text

    def prose(self) -> str:
        """Any text, of several lines if need be."""
        return self._text()

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self._wrong_type("true or false")
        return self.value

    def integer(self, *, least: int, most: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self._wrong_type("a whole number")
        self._check(self.value, least, most)
        return self.value

    def number(self, *, least: float, most: float) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._wrong_type("a number")
        self._check(self.value, least, most)
        return float(self.value)

    def size(self, *, least: int, most: int) -> int:
        """A number of bytes, as a number or like `512KiB`, `4MiB`, `1GiB`."""
        if not isinstance(self.value, str):
            return self.integer(least=least, most=most)
        match = _SIZE.fullmatch(self.value)
        if match is None:
            raise self.error(f"expected bytes as a number or like '4MiB', is {shown(self.value)}")
        size = int(match[1]) * _SIZE_UNITS[match[2] or ""]
        self._check(size, least, most)
        return size

    def choice(self, options: type[_Choice]) -> _Choice:
        text = self.string()
        names = [option.value for option in options]
        if text not in names:
            raise self.error(f"expected one of {', '.join(names)}, is {shown(text)}")
        return options(text)

    def plain(self) -> Any:
        """This value as JSON has it."""
        match self.value:
            case tuple():
                return [item.plain() for item in self.value]
            case Mapping():
                return {key: child.plain() for key, child in self.value.items()}
            case _:
                return self.value

    def _text(self) -> str:
        if isinstance(self.value, int | float):
            raise self.error(f"expected a text, is {_type_name(self.value)}: put it in quotes")
        if not isinstance(self.value, str):
            raise self._wrong_type("a text")
        return self.value

    def _check(self, number: float, least: float, most: float) -> None:
        if not least <= number <= most:
            raise self.error(f"expected {least} to {most}, is {number}")

    def _wrong_type(self, expected: str) -> ConfigError:
        return self.error(f"expected {expected}, is {_type_name(self.value)}")


def _type_name(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case Sequence():
            return "a list"
        case _:
            return "a mapping"


def shown(text: str) -> str:
    """A text for an error: quoted, and cut if long."""
    return repr(text if len(text) <= 80 else text[:80] + "…")
