"""An MCP server over stdio for the text files of one folder: `python -m mew.demo.files FOLDER`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

__all__ = ["serve"]

_BYTES_MAX: Final = 256 << 10
_FOUND_MAX: Final = 200

_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES: Final = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def serve(folder: Path) -> MCPServer:
    """A server for this folder and what is below it; nothing outside of it, and nothing hidden, can be named."""
    root = folder.resolve()
    server = MCPServer("files", version="1", instructions=f"The text files of the folder {folder.name}.")

    @server.tool(annotations=_READS)
    def list_directory(path: str = ".") -> list[str]:
        """List a folder: each name, those of folders with a slash."""
        with _failures(path):
            found = sorted(
                entry for entry in _inside(root, path).iterdir() if not _is_hidden(Path(entry.name))
            )
        return [f"{entry.name}/" if entry.is_dir() else entry.name for entry in found[:_FOUND_MAX]]

    @server.tool(annotations=_READS)
    def read_text_file(path: str) -> str:
        """Read a text file."""
        with _failures(path), _inside(root, path).open(encoding="utf-8") as file:
            return file.read(_BYTES_MAX)

    @server.tool(annotations=_READS)
    def search_files(text: str) -> list[str]:
        """The files that contain a text, as far as they are looked at: their first 256 KiB."""
        seen = (path for path in sorted(root.rglob("*")) if not _is_hidden(path.relative_to(root)))
        found = (path for path in seen if not path.is_symlink() and text in _beginning(path))
        return [str(path.relative_to(root)) for path in islice(found, _FOUND_MAX)]

    @server.tool(annotations=_WRITES)
    def write_file(path: str, content: str) -> str:
        """Write a text file; what it held before is gone."""
        if len(content.encode()) > _BYTES_MAX:
            raise ToolError(f"more than {_BYTES_MAX} bytes")
        with _failures(path):
            target = _inside(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        return f"wrote {len(content)} characters to {path}"

    @server.tool(annotations=_WRITES)
    def delete_file(path: str) -> str:
        """Delete a file."""
        with _failures(path):
            _inside(root, path).unlink()
        return f"deleted {path}"

    return server


def _inside(root: Path, path: str) -> Path:
    found = (root / path).resolve()
    if not found.is_relative_to(root):
        raise ToolError(f"{path!r} is outside of the folder")
    if _is_hidden(found.relative_to(root)):
        raise ToolError(f"{path!r} is hidden")  # such folders keep tokens
    return found


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _beginning(path: Path) -> str:
    """Nothing where it is no file, or may not be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_BYTES_MAX)
    except OSError:
        return ""


@contextmanager
def _failures(path: str) -> Iterator[None]:
    """What the system says no to, as the caller may know it: without where the folder is."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{path!r}: {error.strerror or type(error).__name__}") from error
    except ValueError as error:
        raise ToolError(f"{path!r} is no text in UTF-8") from error


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("expected the folder to serve: python -m mew.demo.files FOLDER")
    serve(Path(sys.argv[1])).run()
