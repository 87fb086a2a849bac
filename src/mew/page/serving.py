"""How the page is sent to a browser: what may run in it, how long it may be kept, and compressed where it can be."""

from collections.abc import Mapping
from typing import Final

from aiohttp import hdrs, web

from .files import PageFile, read_files

__all__ = ["BuiltPage", "wants_page"]

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_UNUSED: Final = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _UNUSED),
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
_ASK_AGAIN: Final = "no-cache"
_FOR_GOOD: Final = "public, max-age=31536000, immutable"  # a file that changes gets another name
_NOT_BUILT: Final = """\
The page of this gateway has not been built. In the source tree, run 'make web' and restart the gateway.
Everything else works: see /openapi.json or run 'mew --help'.
"""


class BuiltPage:
    """The built page, read once; a gateway that runs while it is built again serves the one before."""

    ASSETS: Final = "/assets/{file}"

    def __init__(self, files: Mapping[str, PageFile]) -> None:
        self._files = files

    @classmethod
    def load(cls) -> "BuiltPage":
        """The one that belongs to this installation."""
        return cls(read_files())

    def index(self, request: web.BaseRequest) -> web.Response:
        """The page itself, or how to have it built."""
        file = self._files.get("index.html")
        if file is None:
            return web.Response(status=503, text=_NOT_BUILT)
        return _sent(request, file, _ASK_AGAIN)

    async def asset(self, request: web.Request) -> web.Response:
        """What the page is made of.

        Raises:
            HTTPNotFound: it is not made of that.
        """
        file = self._files.get(f"assets/{request.match_info['file']}")
        if file is None:
            raise web.HTTPNotFound
        return _sent(request, file, _FOR_GOOD)


def wants_page(request: web.BaseRequest) -> bool:
    """Whether it is a browser that shows pages; programs get the same as text."""
    return "text/html" in request.headers.get(hdrs.ACCEPT, "").lower()


def _sent(request: web.BaseRequest, file: PageFile, caching: str) -> web.Response:
    headers = {**_HEADERS, hdrs.CACHE_CONTROL: caching, hdrs.ETAG: file.etag, hdrs.VARY: "Accept-Encoding"}
    if file.etag in (tag.strip().removeprefix("W/") for tag in _known_tags(request)):
        return web.Response(status=304, headers=headers)
    headers[hdrs.CONTENT_TYPE] = file.media_type
    body = file.body
    if file.compressed is not None and _takes_gzip(request):
        body = file.compressed
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        headers[hdrs.ETAG] = f"W/{file.etag}"
    return web.Response(body=body, headers=headers)


def _known_tags(request: web.BaseRequest) -> list[str]:
    return request.headers.get(hdrs.IF_NONE_MATCH, "").split(",")


def _takes_gzip(request: web.BaseRequest) -> bool:
    for offered in request.headers.get(hdrs.ACCEPT_ENCODING, "").lower().split(","):
        name, _, weight = offered.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
