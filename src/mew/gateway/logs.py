"""How the gateway logs: one line per decision that matters, for people or for machines; no payloads, no secrets."""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TextIO

from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["LogFormat", "LogLevel", "set_up"]


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(form: LogFormat, level: LogLevel, stream: TextIO = sys.stderr) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines() if form is LogFormat.JSON else _TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # aiohttp's access log would write request lines; what matters of a request is logged where it is decided.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    logging.getLogger("aiohttp.server").addFilter(_without_what_was_sent)


def _without_what_was_sent(record: logging.LogRecord) -> bool:
    """A request that is no HTTP is theirs, not ours; aiohttp would log the very bytes, tokens and all."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.msg, record.exc_info = "not HTTP: a request from %s", None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = " ".join(f"{name}={_plain(value)}" for name, value in _fields(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()}{'  ' if fields else ''}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _plain(value: object) -> str:
    """A value on one line: participants choose some of these, and must not be able to forge a line."""
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)
