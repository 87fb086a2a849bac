"""A YAML file as a tree of nodes that know their lines."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from .value import ConfigError, ConfigValue, Scalar, shown

__all__ = ["parse_tree", "read_tree"]

_FILE_BYTES_MAX: Final = 1 << 20
_NODES_MAX: Final = 200_000  # aliases and merges can make a small file enormous
_DEPTH_MAX: Final = 64
_DIGITS_MAX: Final = 40


def read_tree(path: Path) -> ConfigValue:
    """Read a YAML file.

    Raises:
        ConfigError: it cannot be read, is not YAML, is empty, or has a key twice.
    """
    try:
        with path.open("rb") as file:
            written = file.read(_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; name yours with --config FILE") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(written) > _FILE_BYTES_MAX:
        raise ConfigError(f"{path}: larger than {_FILE_BYTES_MAX} bytes")
    try:
        return parse_tree(written.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = written.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8") from error


def parse_tree(text: str, file: str) -> ConfigValue:
    """Read YAML 1.2 text (`yes` and `12:30` are texts, as in the TypeScript implementation)."""
    try:
        top = yaml.compose(text, Loader=_Loader)
        if top is None:
            raise ConfigError(f"{file}:1: the file is empty, expected at least 'space' with an 'id'")
        return _Tree(file).node(top, top.start_mark.line + 1, "", _DEPTH_MAX)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{file}:{line}: not YAML: a character that is not allowed") from error
    except yaml.MarkedYAMLError as error:
        # the text of the error itself quotes the line, which may hold a token
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        hint = (
            "; a text that begins with '*' needs quotes" if error.context == "while scanning an alias" else ""
        )
        raise ConfigError(f"{file}:{line}: not YAML: {error.problem or error.context}{hint}") from None
    except RecursionError:
        raise ConfigError(f"{file}:1: nested too deeply") from None


_TAG: Final = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2, and `<<`."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML wants it on the class)


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"^(?:{_pattern})$"), _first)


class _Tree:
    """Turns the nodes of one file into ours, and keeps count of them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._left = _NODES_MAX

    def node(self, node: yaml.Node, line: int, path: str, depth: int) -> ConfigValue:
        self._spend(node, depth)
        match node:
            case yaml.MappingNode():
                entries = {
                    key: self.node(child, key_line, f"{path}.{key}" if path else key, depth - 1)
                    for key, (key_line, child) in self._pairs(node, depth).items()
                }
                return ConfigValue(MappingProxyType(entries), self._file, line, path)
            case yaml.SequenceNode():
                items = (
                    self.node(child, child.start_mark.line + 1, f"{path}[{place}]", depth - 1)
                    for place, child in enumerate(node.value)
                )
                return ConfigValue(tuple(items), self._file, line, path)
            case _:
                return ConfigValue(self._scalar(node), self._file, line, path)

    def _pairs(self, node: yaml.MappingNode, depth: int) -> dict[str, tuple[int, yaml.Node]]:
        own: dict[str, tuple[int, yaml.Node]] = {}
        merged: dict[str, tuple[int, yaml.Node]] = {}
        for key_node, child in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{self._file}:{line}: a key must be a text")
            if key_node.tag == _TAG + "merge":
                for source in self._merged(child):
                    self._spend(source, depth)
                    merged = self._pairs(source, depth - 1) | merged
                continue
            if key_node.value in own:
                first = own[key_node.value][0]
                raise ConfigError(
                    f"{self._file}:{line}: duplicate key {shown(key_node.value)}, first in line {first}"
                )
            own[key_node.value] = (line, child)
        return merged | own

    def _merged(self, node: yaml.Node) -> Iterator[yaml.MappingNode]:
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                raise self._error(source, "'<<' takes mappings")
            yield source

    def _scalar(self, node: yaml.Node) -> Scalar:
        text: str = node.value
        try:
            match node.tag.removeprefix(_TAG):
                case "null":
                    return None
                case "bool":
                    return {"true": True, "false": False}[text.lower()]
                case "int" if len(text) <= _DIGITS_MAX:
                    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
                case "float" if math.isfinite(number := float(text)):
                    return number
                case "str":
                    return text
        except (KeyError, ValueError):
            pass  # a tag was written that does not suit the text
        raise self._error(node, f"not a value that fits its type, {shown(node.tag.removeprefix(_TAG))}")

    def _spend(self, node: yaml.Node, depth: int) -> None:
        self._left -= 1
        if depth < 0 or self._left < 0:
            raise self._error(node, "nested too deeply" if depth < 0 else f"more than {_NODES_MAX} values")

    def _error(self, node: yaml.Node, message: str) -> ConfigError:
        return ConfigError(f"{self._file}:{node.start_mark.line + 1}: {message}")
