"""PURE. MCP's results from what a Python function returns, and back to the value a caller wants.

Tools give content and, for anything but text and images, the same as `structuredContent`; resources give contents,
prompts messages. What comes back is another participant's: whatever it is, reading it does not fail.
"""

from base64 import b64decode, b64encode
from typing import Any, Final, Literal

import msgspec

from mew.client.errors import ToolError
from mew.client.tools.hints import plain
from mew.client.tools.schema import OutputSchema
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json, encode_json

__all__ = [
    "CONTENT",
    "Image",
    "Message",
    "ToolResult",
    "call_result",
    "contents_of",
    "error_of",
    "failure",
    "messages_of",
    "prompt_result",
    "read_result",
    "value_of",
]


class Image(msgspec.Struct, frozen=True):
    """A picture, or with another `mime_type` a sound, as a tool, a resource or a prompt may return it."""

    data: bytes
    mime_type: str = "image/png"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result in full. `content` is text, an `Image`, a block as MCP has it, or a list of these."""

    content: Any = None
    structured: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt. `content` is text, an `Image`, or a block as MCP has it."""

    content: Any
    role: Literal["user", "assistant"] = "user"


# What a function returns as content, and no schema describes.
CONTENT: Final[tuple[type, ...]] = (Image, ToolResult, Message)


def call_result(value: Any, output: OutputSchema | None = None) -> dict[str, Any]:
    """A CallToolResult. `output` is what the function promised, and is held to.

    Raises:
        TypeError: it has no form in JSON, or is not what was promised.
    """
    if isinstance(value, ToolResult):
        return _given_result(value)
    if output is None and (value is None or isinstance(value, str | Image) or _has_images(value)):
        return {"content": _blocks(value)}
    structured = plain(value)
    if output is not None:
        output.keep(structured)
    text = value if isinstance(value, str) else encode_json(structured).decode()
    is_wrapped = output.is_wrapped if output is not None else not isinstance(structured, dict)
    return {
        "content": [] if value is None else [_text_block(text)],
        "structuredContent": {"result": structured} if is_wrapped else structured,
    }


def failure(text: str) -> dict[str, Any]:
    """The CallToolResult of a tool that ran and failed."""
    return {"content": [_text_block(text)], "isError": True}


def read_result(uri: str, value: Any, mime_type: str | None = None) -> dict[str, Any]:
    """A ReadResourceResult of one resource: text, bytes, an `Image`, or any other value as JSON.

    Raises:
        TypeError: it has no form in JSON.
    """
    if isinstance(value, Image):
        value, mime_type = value.data, mime_type or value.mime_type
    match value:
        case str():
            contents = {"uri": uri, "mimeType": mime_type or "text/plain", "text": _sendable(value)}
        case bytes() | bytearray() | memoryview():
            contents = {
                "uri": uri,
                "mimeType": mime_type or "application/octet-stream",
                "blob": _base64(value),
            }
        case _:
            text = encode_json(plain(value)).decode()
            contents = {"uri": uri, "mimeType": mime_type or "application/json", "text": text}
    return {"contents": [contents]}


def prompt_result(value: Any, description: str = "") -> dict[str, Any]:
    """A GetPromptResult from text, a `Message`, a message as MCP has it, or a list of these.

    Raises:
        TypeError: something else.
    """
    items = value if isinstance(value, list | tuple) else [value]
    messages = [_message(item) for item in items]
    return {"description": description, "messages": messages} if description else {"messages": messages}


def error_of(result: Any) -> str | None:
    """What a tool that failed said; None when it did not fail."""
    if not isinstance(result, dict) or result.get("isError") is not True:
        return None
    texts = _texts(result.get("content"))
    return "\n".join(texts) if texts else "the tool failed and said nothing"


def value_of(result: Any) -> Any:
    """The value in a CallToolResult: structured, else the text, else the blocks; None when it is empty.

    Raises:
        ToolError: the tool failed, with what it said.
    """
    said = error_of(result)
    if said is not None:
        raise ToolError(said)
    if not isinstance(result, dict):
        return result
    structured = result.get("structuredContent")
    content = result.get("content")
    if structured is not None:
        return structured["result"] if _is_wrapped(structured, content) else structured
    if not content:
        return None
    texts = _texts(content)
    is_text = isinstance(content, list) and len(texts) == len(content)
    return "\n".join(texts) if is_text else content


def contents_of(result: Any) -> Any:
    """The value in a ReadResourceResult: text or bytes, and a list of them where there is not exactly one."""
    contents = result.get("contents") if isinstance(result, dict) else None
    if not isinstance(contents, list):
        return result
    values = [_content(item) for item in contents]
    return values[0] if len(values) == 1 else values


def messages_of(result: Any) -> list[Message]:
    """The messages in a GetPromptResult, text as plain text; what is no message is left out."""
    messages = result.get("messages") if isinstance(result, dict) else None
    found = []
    for item in messages if isinstance(messages, list) else []:
        match item:
            case {"role": "user" | "assistant" as role, "content": {"type": "text", "text": str(text)}}:
                found.append(Message(text, role))
            case {"role": "user" | "assistant" as role, "content": content}:
                found.append(Message(content, role))
    return found


def _given_result(given: ToolResult) -> dict[str, Any]:
    result: dict[str, Any] = {"content": _blocks(given.content)}
    if given.structured is not None:
        result["structuredContent"] = plain(given.structured)
        if given.content is None:
            result["content"] = [_text_block(encode_json(result["structuredContent"]).decode())]
    if given.is_error:
        result["isError"] = True
    if given.meta is not None:
        result["_meta"] = plain(given.meta)
    return result


def _has_images(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, Image) for item in value)


def _blocks(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    return [_block(item) for item in (value if isinstance(value, list | tuple) else [value])]


def _block(item: Any) -> dict[str, Any]:
    match item:
        case str():
            return _text_block(item)
        case Image(data, mime_type):
            kind = "audio" if mime_type.startswith("audio/") else "image"
            return {"type": kind, "data": _base64(data), "mimeType": mime_type}
        case {"type": str()}:
            block: dict[str, Any] = plain(item)
            return block
        case _:
            return _text_block(encode_json(plain(item)).decode())


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": _sendable(text)}


def _message(item: Any) -> dict[str, Any]:
    match item:
        case str() | Image():
            return {"role": "user", "content": _block(item)}
        case Message(content, role):
            return {"role": role, "content": _block(content)}
        case {"role": "user" | "assistant" as role, "content": content}:
            return {"role": role, "content": _block(content)}
        case _:
            raise TypeError(f"a prompt returned {type(item).__name__}, which is no message")


def _sendable(text: str) -> str:
    """Lone surrogates, which file names can hold, have no form in UTF-8."""
    return text.encode(errors="replace").decode()


def _base64(data: bytes | bytearray | memoryview) -> str:
    return b64encode(data).decode()


def _texts(content: Any) -> list[str]:
    found = []
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "text", "text": str(text)}:
                found.append(text)
    return found


def _is_wrapped(structured: Any, content: Any) -> bool:
    """Whether `{"result": …}` is MCP's wrapping. Where the text has that very object, it is what was returned."""
    if not isinstance(structured, dict) or structured.keys() != {"result"}:
        return False
    texts = _texts(content)
    try:
        return len(texts) != 1 or bool(decode_json(texts[0].encode()) != structured)
    except (ProtocolError, UnicodeError):
        return True


def _content(item: Any) -> Any:
    match item:
        case {"text": str(text)}:
            return text
        case {"blob": str(blob)}:
            return _decoded(blob, item)
        case _:
            return item


def _decoded(blob: str, item: Any) -> Any:
    try:
        return b64decode(blob, validate=True)
    except ValueError:
        return item
