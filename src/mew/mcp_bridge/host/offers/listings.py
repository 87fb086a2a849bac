"""What a participant lists, page after page: its tools, resources, templates and prompts, as far as hosts take them."""

import logging
from enum import StrEnum
from typing import Any, Final

import mcp_types
from pydantic import BaseModel, ValidationError

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.protocol.json import encode_json
from mew.protocol.visible import named, visible

__all__ = ["What", "listed", "valid"]

_log = logging.getLogger(__name__)

_PAGES_MAX: Final = 1_000
_BYTES_MAX: Final = 8 << 20
_UNKNOWN_METHOD: Final = -32601
_INVALID: Final = -32603


class What(StrEnum):
    """What there is to offer, as a listing's result calls it."""

    TOOLS = "tools"
    RESOURCES = "resources"
    TEMPLATES = "resourceTemplates"
    PROMPTS = "prompts"

    @property
    def listing(self) -> str:
        """The method that lists them."""
        return "resources/templates/list" if self is What.TEMPLATES else f"{self.value}/list"

    @property
    def use(self) -> str:
        """The method that they are listed for."""
        return _USES[self]

    @property
    def key(self) -> str:
        """The field that tells them apart."""
        return _KEYS[self]


_USES: Final = {
    What.TOOLS: "tools/call",
    What.RESOURCES: "resources/read",
    What.TEMPLATES: "resources/read",
    What.PROMPTS: "prompts/get",
}
_KEYS: Final = {
    What.TOOLS: "name",
    What.RESOURCES: "uri",
    What.TEMPLATES: "uriTemplate",
    What.PROMPTS: "name",
}
_SHAPES: Final[dict[What, type[BaseModel]]] = {
    What.TOOLS: mcp_types.Tool,
    What.RESOURCES: mcp_types.Resource,
    What.TEMPLATES: mcp_types.ResourceTemplate,
    What.PROMPTS: mcp_types.Prompt,
}


async def listed(me: Client, participant: str, what: What, *, within_s: float) -> list[dict[str, Any]]:
    """All of them that MCP allows; none, where the participant knows no such method. `within_s` is for each page.

    Raises:
        RpcError: as `request`; or what it answers is no listing, or one of more than 8 MiB or 1,000 pages.
        Absent, Unanswered, Refused, Disconnected: as `request`.
    """
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    cursors: set[str] = set()
    size_bytes = 0
    for _ in range(_PAGES_MAX):
        try:
            page = await me.request(participant, what.listing, params, timeout_s=within_s)
        except RpcError as error:
            if error.code == _UNKNOWN_METHOD:
                return found
            raise
        items = page.get(what) if isinstance(page, dict) else None
        if not isinstance(items, list):
            raise RpcError(_INVALID, f"what {participant!r} answers to {what.listing} is no listing")
        size_bytes += len(encode_json(page))
        if size_bytes > _BYTES_MAX:
            break
        found += valid(participant, what, items)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return found
        if cursor in cursors:
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise RpcError(_INVALID, f"{participant!r} lists {what.value} without end")


def valid(participant: str, what: What, items: list[Any]) -> list[dict[str, Any]]:
    """Those that hosts can read: a single one that they cannot would cost them the whole listing."""
    kept = []
    for item in items:
        try:
            _SHAPES[what].model_validate(item, by_name=False)
        except ValidationError:
            name = item.get(what.key) if isinstance(item, dict) else item
            _log.warning(
                "%s lists %s among its %s, which is not as MCP has it: left out",
                named(participant),
                visible(str(name), 80),
                what.value,
            )
        else:
            kept.append(item)
    return kept
