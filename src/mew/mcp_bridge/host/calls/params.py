"""PURE. Params and results on their way through: what belongs to the connection with the host stays there."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

from mew.proposals.preview import PROPOSED_TOKEN

__all__ = ["NotificationOptions", "finished", "inward", "is_json", "with_news"]

_OF_THE_HOST: Final = ("requestState", "inputResponses")
_RESERVED: Final = "io.modelcontextprotocol/"
_PROGRESS: Final = "progressToken"
_SERVER: Final = f"{_RESERVED}serverInfo"
_LOG_LEVEL: Final = f"{_RESERVED}logLevel"
_CACHED: Final = frozenset(
    {"tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"}
)


def inward(params: Mapping[str, Any], **replaced: str) -> dict[str, Any]:
    """What a participant is asked: as the host asked, with the participant's own names.

    Left out is what is between the host and us: the state of a retry, the token of its progress, who it is.
    """
    asked = {name: value for name, value in params.items() if name not in _OF_THE_HOST} | replaced
    meta = asked.pop("_meta", None)
    if isinstance(meta, Mapping):
        kept = {
            key: value for key, value in meta.items() if key != _PROGRESS and not key.startswith(_RESERVED)
        }
        if kept:
            asked["_meta"] = kept
    return asked


def is_json(value: Any) -> bool:
    """Whether JSON has it: what some write as `NaN` or `1e400`, others would silently read as nothing at all."""
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(is_json, value.values()))
        case list():
            return all(map(is_json, value))
        case _:
            return True


class NotificationOptions(NamedTuple):
    """What a host wants to hear while a call is under way: how far it is, and lines of the log from a level on."""

    progress: bool = False
    level: str | None = None


def with_news(params: dict[str, Any], news: NotificationOptions, *, proposed: bool) -> dict[str, Any]:
    """What is asked or proposed, so that whoever carries it out tells that. A request has a token of its own."""
    meta = {
        **({_PROGRESS: PROPOSED_TOKEN} if proposed and news.progress else {}),
        **({_LOG_LEVEL: news.level} if news.level is not None else {}),
    }
    return {**params, "_meta": {**params.get("_meta", {}), **meta}} if meta else params


def finished(
    method: str, result: Mapping[str, Any], server: Mapping[str, Any], *, is_modern: bool
) -> dict[str, Any]:
    """A result as a host of its generation expects it. Whatever a participant called it, it is complete.

    So nobody in a space can make a host ask its user something by answering that input is required.
    """
    told = {name: value for name, value in result.items() if name != "resultType"}
    if not is_modern:
        return told
    meta = told.get("_meta")
    told["resultType"] = "complete"
    told["_meta"] = {**(meta if isinstance(meta, Mapping) else {}), _SERVER: server}
    if method in _CACHED:
        told = {"ttlMs": 0, "cacheScope": "private", **told}
    return told
