"""The files of the page as they are read."""

import gzip
from pathlib import Path

from mew.page.files import read_files


def test_a_page_that_was_not_built_has_no_files(tmp_path: Path) -> None:
    assert read_files(tmp_path / "static") == {}


def test_files_come_with_what_they_are_and_compressed_where_that_was_done(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets" / "a-1.js").write_text("let a")
    (tmp_path / "assets" / "a-1.js.gz").write_bytes(gzip.compress(b"let a"))
    files = read_files(tmp_path)
    assert files.keys() == {"index.html", "assets/a-1.js"}
    script = files["assets/a-1.js"]
    assert (script.body, script.media_type) == (b"let a", "text/javascript; charset=utf-8")
    assert gzip.decompress(script.compressed or b"") == b"let a"
    assert files["index.html"].compressed is None
    assert files["index.html"].etag != script.etag


def test_what_no_page_is_made_of_is_left_out(tmp_path: Path) -> None:
    for name in (".built-from", "notes.md", "a.js.map", "program.exe"):
        (tmp_path / name).write_text("x")
    assert read_files(tmp_path) == {}
