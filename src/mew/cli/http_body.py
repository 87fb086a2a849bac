"""The body of an HTTP answer, whole."""

import aiohttp

__all__ = ["body_of"]


async def body_of(answer: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """All of it, or its first `bytes_max` bytes: what `content.read` gives is only what has come so far."""
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) >= bytes_max:
            break
    return bytes(body[:bytes_max])
