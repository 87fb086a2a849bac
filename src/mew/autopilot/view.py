"""PURE. A typed view of JSON arguments: discrete *heads*, ordered *softs*, and *fine* values.

A rule constrains every head and every soft; a call with a head that the rule has not seen does not match. The values of
identifiers and other literals are *openable* heads: a rule may leave one open if its values hardly ever repeat. Fine
values (a whole path, an address, a command) are in no rule: the guard remembers which of them were rejected.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite, log2
from typing import Any, Final

from mew.protocol.json import encode_json

__all__ = ["DEEP", "View", "canonical", "subject", "view"]

DEEP: Final = 3
"""The depth of the guard's view, the deepest there is."""
_LEAVES_MAX: Final = 200
_LITERAL_CHARS_MAX: Final = 64
_META: Final = re.compile(r"[;|&$`<>(){}\[\]*?!~\\'\"\n\r\t]|\$\(")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UP: Final = re.compile(r"(^|[/\\\s=:])\.\.($|[/\\\s])")
_EMAIL: Final = re.compile(r"[A-Za-z0-9._+-]{1,64}@((?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24})")
_URL: Final = re.compile(
    r"([a-z][a-z0-9+.-]{1,15})://([A-Za-z0-9.-]{1,253}(?::\d{1,5})?)(/[^?#\s]*)?(\?[^#\s]*)?"
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
_HEX: Final = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]{4,}){0,4}", re.IGNORECASE)
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.:@#/+=,%^-]+")
_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:;!?'\"()\-_/@#%+=&*\t\n]*")
_PATH: Final = re.compile(r"[A-Za-z0-9_.@+=, ~-]*(/[A-Za-z0-9_.@+=, -]*)+")
_FLAG: Final = re.compile(r"(--?[A-Za-z0-9][A-Za-z0-9_-]*)(=.*)?")
_WORD: Final = re.compile(r"[a-z][a-z0-9_-]*")
_SQL: Final = re.compile(
    r"\s*(select|insert|update|delete|with|create|drop|alter|truncate|explain|grant)\b", re.I
)
_SQL_TABLE: Final = re.compile(r"\b(?:from|join|into|update|table)\s+([A-Za-z_][A-Za-z0-9_.]*)", re.I)
_SQL_WORDS: Final = re.compile(
    r"\b(where|join|limit|union|group by|order by|having|distinct|returning|set|or|cascade|outfile|sleep|"
    r"information_schema|pg_\w+|load_file|exec|execute|call|grant|revoke)\b",
    re.I,
)
_CONTENT_NAMES: Final = frozenset(
    [
        "content",
        "contents",
        "body",
        "text",
        "code",
        "data",
        "html",
        "markdown",
        "patch",
        "diff",
        "source_code",
        "new_string",
        "old_string",
        "new_text",
        "old_text",
        "snippet",
        "template",
    ]
)
_PROSE_NAMES: Final = frozenset(
    [
        "memo",
        "note",
        "notes",
        "subject",
        "title",
        "description",
        "comment",
        "comments",
        "reason",
        "message",
        "summary",
        "details",
        "caption",
        "prompt",
        "explanation",
        "remark",
        "remarks",
        "label",
        "purpose",
        "agenda",
    ]
)
_PATH_NAMES: Final = frozenset(
    [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "file_path",
        "filepath",
        "dir",
        "directory",
        "folder",
        "cwd",
        "src",
        "dst",
        "source",
        "destination",
        "dest",
        "root",
        "old_path",
        "new_path",
        "from_path",
        "to_path",
        "target_path",
        "workdir",
        "key",
        "object_key",
    ]
)
_COMMAND_NAMES: Final = frozenset(["command", "cmd", "commandline", "command_line", "shell", "run"])
_DATA_OPERANDS: Final = frozenset(["echo", "printf", "grep", "rg", "ag", "sed", "awk"])


@dataclass(frozen=True, slots=True)
class View:
    """`heads` may have several values for a key: the elements of a list."""

    heads: Mapping[str, tuple[str, ...]]
    softs: Mapping[str, float]
    fine: Mapping[str, tuple[str, ...]]
    openable: tuple[str, ...]


def subject(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What a view is taken of: a tool's arguments, and any other member of `params` except its name and `_meta`."""
    if method != "tools/call":
        return {name: value for name, value in params.items() if name != "_meta"}
    arguments = params.get("arguments", {})
    rest = {
        f"params.{name}": value
        for name, value in params.items()
        if name not in ("name", "arguments", "_meta")
    }
    if not isinstance(arguments, dict):
        return {**rest, "params.arguments": arguments}
    return {**arguments, **rest}


def canonical(value: Any) -> str:
    """A text that is the same for the same JSON value, whatever the order of its keys."""
    return encode_json(_ordered(value)).decode()


def view(arguments: Mapping[str, Any], schema: Any = None, depth: int = 1) -> View:
    """The view of a call's arguments, `depth` levels into paths, URLs and commands (1 to `DEEP`)."""
    built = _Builder(depth)
    built.add("", arguments, schema if isinstance(schema, dict) else {})
    built.head("", "fields", " ".join(sorted(built.fields)))
    return built.view()


class _Builder:
    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.fields: dict[str, None] = {}
        self._heads: dict[str, dict[str, None]] = {}
        self._softs: dict[str, float] = {}
        self._fine: dict[str, dict[str, None]] = {}
        self._openable: dict[str, None] = {}

    def view(self) -> View:
        return View(
            {key: tuple(sorted(self._heads[key])) for key in sorted(self._heads)},
            {key: self._softs[key] for key in sorted(self._softs)},
            {key: tuple(sorted(self._fine[key])) for key in sorted(self._fine)},
            tuple(sorted(self._openable)),
        )

    def head(self, leaf: str, aspect: str, value: str) -> None:
        self._heads.setdefault(f"{leaf}#{aspect}", {})[_short(value)] = None

    def soft(self, leaf: str, aspect: str, value: float) -> None:
        key = f"{leaf}#{aspect}"
        self._softs[key] = max(value, self._softs.get(key, value))

    def fine(self, leaf: str, value: str) -> None:
        self._fine.setdefault(f"{leaf}#value", {})[_short(value)] = None

    def add(self, leaf: str, value: Any, schema: Mapping[str, Any], name: str = "") -> None:
        if len(self.fields) > _LEAVES_MAX:
            self.head("", "too-large", canonical(value))
            return
        match value:
            case dict():
                properties = schema.get("properties")
                properties = properties if isinstance(properties, dict) else {}
                if leaf:
                    self.fields[f"{leaf}:object"] = None
                for key, inner in value.items():
                    described = properties.get(key)
                    below = described if isinstance(described, dict) else {}
                    self.add(f"{leaf}.{key}" if leaf else str(key), inner, below, str(key))
            case list():
                items = schema.get("items")
                self.fields[f"{leaf}:array"] = None
                self.soft(leaf, "count", len(value))
                for inner in value:
                    self.add(f"{leaf}[]", inner, items if isinstance(items, dict) else {}, name)
            case bool() | None:
                self.fields[f"{leaf}:literal"] = None
                self.head(leaf, "value", canonical(value))
            case int() | float():
                self.fields[f"{leaf}:number"] = None
                self._number(leaf, value)
            case _:
                self.fields[f"{leaf}:string"] = None
                self._string(leaf, str(value), schema, name.lower())

    def _number(self, leaf: str, value: float) -> None:
        if not isfinite(value) or abs(value) > 2**53:
            self.head(leaf, "value", canonical(value))
            return
        self.head(leaf, "sign", "negative" if value < 0 else "zero or more")
        low = f"{leaf}#number"
        if low in self._softs:  # several in one list: both ends count
            self._softs[f"{leaf}#least"] = min(value, self._softs.get(f"{leaf}#least", self._softs[low]))
        self.soft(leaf, "number", value)

    def _string(self, leaf: str, text: str, schema: Mapping[str, Any], name: str) -> None:
        kind = _kind(text, schema, name)
        self.head(leaf, "kind", kind)
        match kind:
            case "exact":
                self.head(leaf, "value", text)
            case "email":
                self.head(leaf, "domain", text.rpartition("@")[2].lower())
                self.fine(leaf, text.lower())
            case "url":
                self._url(leaf, text)
            case "path":
                self._path(leaf, text)
            case "command":
                self._command(leaf, text)
            case "sql":
                self._sql(leaf, text)
            case "content" | "prose":
                self.head(leaf, "class", _text_class(text))
                self.soft(leaf, "size", _bucket(text))
            case _:  # word, id, date, hex, name
                self.head(leaf, "shape", _shape(kind, text))
                self.head(leaf, "value", text)
                self.fine(leaf, text)
                self._openable[f"{leaf}#value"] = None

    def _url(self, leaf: str, text: str) -> None:
        found = _URL.fullmatch(text)
        assert found is not None, text
        scheme, host, path, query = found.groups()
        segments = [part for part in (path or "").split("/") if part]
        self.head(leaf, "host", f"{scheme}://{host.lower()}")
        self.head(leaf, "under", "/".join(_shape_of_segment(part) for part in segments[: self.depth]))
        names = sorted(part.partition("=")[0] for part in (query or "?")[1:].split("&") if part)
        self.head(leaf, "query", " ".join(names))
        self.soft(leaf, "depth", len(segments))
        self.fine(leaf, text)

    def _path(self, leaf: str, text: str) -> None:
        parts = [part for part in text.split("/") if part not in ("", ".")]
        folders = parts[:-1]
        last = parts[-1] if parts else ""
        extension = last.rpartition(".")[2].lower() if "." in last[1:] else ""
        marks = ["absolute"] if text.startswith("/") else []
        marks += ["home"] if text.startswith("~") else []
        marks += ["hidden"] if any(part.startswith(".") for part in parts) else []
        self.head(leaf, "where", " ".join(marks) or "relative")
        self.head(leaf, "under", "/".join(folders[: self.depth]))
        self.head(leaf, "extension", extension if len(extension) <= 8 else "other")
        if marks[-1:] == ["hidden"] or not extension:
            self.head(leaf, "name", last)
        self.soft(leaf, "depth", len(parts))
        self.fine(leaf, text)

    def _command(self, leaf: str, text: str) -> None:
        words = text.split(" ")
        words = [word for word in words if word]
        flags = sorted({found[1] for word in words[1:] if (found := _FLAG.fullmatch(word))})
        operands = [word for word in words[1:] if not _FLAG.fullmatch(word)]
        named: list[str] = []
        if words and words[0] not in _DATA_OPERANDS:
            for word in operands[: self.depth]:
                if not _WORD.fullmatch(word):
                    break
                named.append(word)
        self.head(leaf, "program", " ".join([words[0] if words else "", *named]))
        self.head(leaf, "flags", " ".join(flags))
        for word in operands[len(named) :]:
            if "/" in word or "." in word:
                marks = "/" if word.startswith("/") else "~" if word.startswith("~") else ""
                folders = [part for part in word.split("/") if part not in ("", ".")]
                root = "/".join(folders[: self.depth] if len(folders) > 1 else [])
                self.head(leaf, "roots", f"{marks}{root or '.'}")
                last = folders[-1] if folders else ""
                if any(part.startswith(".") for part in folders):
                    self.head(leaf, "hidden", last)
                if "." in last[1:]:
                    self.head(leaf, "extension", last.rpartition(".")[2].lower()[:8])
            else:
                self.head(
                    leaf, "operand", "number" if word.isdigit() else "word" if word.isalpha() else "token"
                )
        for found in (_FLAG.fullmatch(word) for word in words[1:]):
            if found is not None and found[2]:
                self.head(leaf, f"value of {found[1]}", found[2][1:])
        self.soft(leaf, "operands", len(operands))
        self.fine(leaf, text)

    def _sql(self, leaf: str, text: str) -> None:
        verb = _SQL.match(text)
        assert verb is not None, text
        self.head(leaf, "verb", verb[1].lower())
        for table in _SQL_TABLE.findall(text) or [""]:
            self.head(leaf, "table", table.lower())
        used = sorted({" ".join(word.lower().split()) for word in _SQL_WORDS.findall(text)})
        self.head(leaf, "clauses", " ".join(used))
        self.soft(leaf, "size", _bucket(text))
        self.fine(leaf, text)


def _kind(text: str, schema: Mapping[str, Any], name: str) -> str:
    """What sort of string it is: by what its schema says, its name, and its characters. Doubt means `exact`.

    A schema cannot declare a string to be free text, of which only class and size would count.
    """
    said = schema.get("x-mew-kind") or schema.get("format")
    content = name in _CONTENT_NAMES
    if "enum" in schema or said == "exact" or _CONTROL.search(text) or (not content and not text.isascii()):
        return "exact"
    if content:
        return "content"
    if _SQL.match(text) or said == "sql" or name in ("sql", "statement"):
        return "sql" if _is_plain_sql(text) else "exact"
    if name in _PROSE_NAMES:
        return "prose" if _PLAIN.fullmatch(text) and not re.search(r"[&;*]", text) else "exact"
    if _EMAIL.fullmatch(text):
        return "email"
    if "://" in text or said in ("uri", "url"):
        return "url" if _URL.fullmatch(text) and not _UP.search(text) and "%" not in text else "exact"
    if _META.search(text) or _UP.search(text):
        return "exact"
    if said == "command" or name in _COMMAND_NAMES:
        return "command"
    if said == "path" or name in _PATH_NAMES or name.endswith(("_path", "_file", "_dir")):
        return "path" if not re.search(r"\s$|^\s|//|%", text) else "exact"
    return _kind_of_characters(text)


def _is_plain_sql(text: str) -> bool:
    """One statement without comments, unions or subqueries: its verb and tables say what it does."""
    if _SQL.match(text) is None or re.search(
        r";\s*\S|--|/\*|\\|\bunion\b|\(\s*select\b", text, re.IGNORECASE
    ):
        return False
    return re.search(r"\bfrom\s+[\w.]+\s*(\w+\s*)?,", text, re.IGNORECASE) is None


def _kind_of_characters(text: str) -> str:
    if _DATE.fullmatch(text):
        return "date"
    if _HEX.fullmatch(text) and any(character.isdigit() for character in text):
        return "hex"
    if _TOKEN.fullmatch(text):
        if "/" in text and _PATH.fullmatch(text) and not text.replace("/", "").isdigit():
            return "path" if "//" not in text and "%" not in text else "exact"
        return "id" if any(character.isdigit() for character in text) else "word"
    words = text.split()
    if len(words) >= 5 and _PLAIN.fullmatch(text):
        return "prose"
    return "name" if _PLAIN.fullmatch(text) and 1 < len(words) < 5 else "exact"


def _shape(kind: str, text: str) -> str:
    """What stays the same in an identifier: letters in front and punctuation, with runs of digits as `9`."""
    if kind == "date":
        return "date" if len(text) == 10 else "time"
    if kind == "hex":
        return f"{len(text)} hexadecimal digits"
    if kind in ("name", "word"):
        return f"{len(text.split())} words" if kind == "name" else "word"
    return re.sub(
        r"[0-9]+", "9", re.sub(r"(?<=[0-9])[A-Za-z]+|[A-Za-z]+(?=[A-Za-z]*[0-9]+[A-Za-z])", _keep_or_x, text)
    )


def _keep_or_x(found: re.Match[str]) -> str:
    return "x" if found.start() else found[0]


def _shape_of_segment(segment: str) -> str:
    return (
        "9" if segment.isdigit() else "hex" if _HEX.fullmatch(segment) and not segment.isalpha() else segment
    )


def _text_class(text: str) -> str:
    if not text.isascii():
        return "not ASCII"
    return "plain" if _PLAIN.fullmatch(text) else "code"


def _bucket(text: str) -> float:
    """Length on a logarithmic scale, so that similar lengths are alike."""
    return float(int(log2(len(text) + 1) * 2)) / 2


def _short(value: str) -> str:
    if len(value) <= _LITERAL_CHARS_MAX:
        return value
    return f"{value[:24]}…sha256:{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(inner) for inner in value] if isinstance(value, list) else value
