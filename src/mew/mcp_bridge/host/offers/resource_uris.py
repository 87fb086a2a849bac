"""PURE. The URI under which a host sees a participant's resource: `mew://files/` and its own URI (0010 §6)."""

from collections.abc import Collection
from typing import Any, Final
from urllib.parse import quote, unquote

__all__ = ["ResourceUris"]

_SCHEME: Final = "mew://"


class ResourceUris:
    """What hosts call resources. With `only`, one participant alone is shown, and its URIs stay as they are."""

    def __init__(self, only: str | None = None) -> None:
        self._only = only

    def outward(self, participant: str, uri: str) -> str:
        """A URI, or a template of one, as hosts are to see it."""
        if self._only is not None:
            return uri
        return f"{_SCHEME}{quote(participant, safe='')}/{uri}"

    def inward(self, uri: str, participants: Collection[str] = ()) -> tuple[str, str] | None:
        """Whose resource it is and what they call it; None where it is nobody's.

        Some hosts write the part after `//` in lower case: it is taken for the one of these participants that it
        would be then, where there is but one.
        """
        if self._only is not None:
            return self._only, uri
        whose, slash, inner = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or not slash or not whose:
            return None
        participant = unquote(whose)
        if participant not in participants:
            alike = [one for one in participants if one.lower() == participant]
            participant = alike[0] if len(alike) == 1 else participant
        return participant, inner

    def result(self, participant: str, result: dict[str, Any]) -> dict[str, Any]:
        """A result with the URIs in it as a host could read them: in contents, content and messages."""
        if self._only is not None:
            return result
        changed = dict(result)
        if isinstance(contents := result.get("contents"), list):
            changed["contents"] = [self._at(participant, item) for item in contents]
        if isinstance(content := result.get("content"), list):
            changed["content"] = [self._block(participant, block) for block in content]
        if isinstance(messages := result.get("messages"), list):
            changed["messages"] = [self._message(participant, message) for message in messages]
        return changed

    def _message(self, participant: str, message: Any) -> Any:
        if not isinstance(message, dict):
            return message
        return message | {"content": self._block(participant, message.get("content"))}

    def _block(self, participant: str, block: Any) -> Any:
        match block:
            case {"type": "resource_link"}:
                return self._at(participant, block)
            case {"type": "resource", "resource": inner}:
                return block | {"resource": self._at(participant, inner)}
            case _:
                return block

    def _at(self, participant: str, item: Any) -> Any:
        if not isinstance(item, dict) or not isinstance(item.get("uri"), str):
            return item
        return item | {"uri": self.outward(participant, item["uri"])}
