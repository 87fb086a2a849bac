"""The tools of a server as first seen, kept in a file: one that is different later is marked (decision 0010, 9)."""

import asyncio
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import msgspec

from mew.mcp_bridge.marks import CHANGED
from mew.proposals.digest import NotCanonical, canonical
from mew.protocol.json import encode_json
from mew.protocol.visible import named

__all__ = ["ToolFingerprints", "digest_of", "replace_file"]

_log = logging.getLogger(__name__)

_TOOLS_MAX: Final = 10_000
_FILE_BYTES_MAX: Final = 64 << 20
_VERSION: Final = 1
_NOT_FINGERPRINTS: Final = "expected tools as first seen; move it away to look at all of them as new"
_APART: Final = frozenset({"name", "_meta"})
_WEIGHTY: Final = frozenset({"description", "inputSchema", "outputSchema", "annotations"})
_FIELDS_MAX: Final = 16
_FIELD_CHARS_MAX: Final = 64


class _Fingerprint(msgspec.Struct):
    """One tool: a digest of each field as first seen, and of the whole as last seen."""

    since: str
    fields: dict[str, str]
    last: str
    changed_at: str | None = None


class _File(msgspec.Struct):
    version: int = _VERSION
    tools: dict[str, _Fingerprint] = msgspec.field(default_factory=dict)


class ToolFingerprints:
    """With no path, they are kept as long as this runs. What is first seen stays first, until its file is removed."""

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] | None = None) -> None:
        self._path = path
        self._now = now or (lambda: datetime.now(UTC))
        self._tools: dict[str, _Fingerprint] = {}
        self._is_full = False
        self._saving = asyncio.Lock()

    def load(self) -> None:
        """
        Raises:
            OSError: the file cannot be read.
            ValueError: it is none of these.
        """
        if self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                written = file.read(_FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return
        if len(written) > _FILE_BYTES_MAX:
            raise ValueError(f"{self._path}: {_NOT_FINGERPRINTS}")
        try:
            read = msgspec.json.decode(written, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{self._path}: {_NOT_FINGERPRINTS}") from error
        if read.version != _VERSION:
            raise ValueError(f"{self._path}: of version {read.version}, and only {_VERSION} is known here")
        self._tools = read.tools

    def mark(self, tools: list[Any]) -> tuple[list[Any], bool]:
        """The tools, with a mark in `_meta` of each that is not what it was; and whether there is news to save."""
        marked, has_news = [], False
        for tool in tools:
            changed, is_news = self._seen(tool) if isinstance(tool, dict) else (None, False)
            has_news = has_news or is_news
            if changed is not None:
                meta = tool.get("_meta")
                tool = {**tool, "_meta": {**(meta if isinstance(meta, dict) else {}), CHANGED: changed}}
            marked.append(tool)
        return marked, has_news

    async def save(self) -> None:
        """Write the file, whole or not at all; a disk that does not take it is said in the log, and no more."""
        if self._path is None:
            return
        async with self._saving:
            written = msgspec.json.format(
                encode_json(msgspec.to_builtins(_File(tools=self._tools))), indent=1
            )
            try:
                await asyncio.to_thread(replace_file, self._path, written)
            except OSError as error:
                _log.warning("%s: the tools as first seen cannot be kept: %s", self._path, error.strerror)

    def _seen(self, tool: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
        name = tool.get("name")
        if not isinstance(name, str):
            return None, False
        fields = {field: digest_of(value) for field, value in tool.items() if field not in _APART}
        whole = digest_of(fields)
        known = self._tools.get(name)
        if known is None:
            return None, self._pin(name, fields, whole)
        is_news = known.last != whole
        changed = sorted(
            field for field in {**known.fields, **fields} if known.fields.get(field) != fields.get(field)
        )
        if is_news:
            known.last, known.changed_at = whole, self._at() if changed else None
            if changed:
                shown = ", ".join(map(named, _told(changed)))
                _log.warning("tool %s is not what it was on %s: %s", named(name), known.since, shown)
        if not changed:
            return None, is_news
        return {"since": known.since, "changed_at": known.changed_at, "fields": _told(changed)}, is_news

    def _pin(self, name: str, fields: dict[str, str], whole: str) -> bool:
        if len(self._tools) >= _TOOLS_MAX:
            if not self._is_full:
                self._is_full = True
                _log.warning(
                    "more than %d tools: those beyond are not compared with what they were", _TOOLS_MAX
                )
            return False
        self._tools[name] = _Fingerprint(since=self._at(), fields=fields, last=whole)
        return True

    def _at(self) -> str:
        return self._now().isoformat(timespec="seconds").replace("+00:00", "Z")


def _told(fields: list[str]) -> list[str]:
    """Those that matter most first: readers of the mark take 16, of 64 characters."""
    first = sorted(fields, key=lambda field: (field not in _WEIGHTY, field))
    return [field[:_FIELD_CHARS_MAX] for field in first[:_FIELDS_MAX]]


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value, or of its JSON where it has no canonical form."""
    try:
        written = canonical(value)
    except NotCanonical:
        written = encode_json(value)
    return sha256(written).hexdigest()


def replace_file(path: Path, written: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        OSError: the disk does not take it; what was there before still is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
