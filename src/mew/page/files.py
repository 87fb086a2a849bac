"""The files of the built page, each as it is sent: its bytes, compressed where that was done, and what it is."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

__all__ = ["STATIC", "PageFile", "read_files"]

STATIC: Final = Path(__file__).with_name("static")
"""Where the build puts the page (`hatch_build.py`)."""

_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


class PageFile(Struct, frozen=True):
    """`compressed` is the same with gzip; None where that gained nothing."""

    body: bytes
    compressed: bytes | None
    media_type: str
    etag: str


def read_files(folder: Path = STATIC) -> dict[str, PageFile]:
    """All of the page by path, like `index.html` and `assets/index-4f0c.js`; nothing if it was not built.

    What has a name of no kind that a page is made of is left out.
    """
    found: dict[str, PageFile] = {}
    for path in sorted(folder.rglob("*")):
        media_type = _TYPES.get(path.suffix)
        if media_type is not None and path.is_file():
            packed = path.with_name(path.name + ".gz")
            body = path.read_bytes()
            found[path.relative_to(folder).as_posix()] = PageFile(
                body,
                packed.read_bytes() if packed.is_file() else None,
                media_type,
                f'"{hashlib.sha256(body).hexdigest()[:32]}"',
            )
    return found
