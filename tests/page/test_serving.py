"""How the page is sent: to whom, with which headers, and not twice."""

import gzip
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from mew.page.files import PageFile, read_files
from mew.page.serving import BuiltPage, wants_page

SCRIPT = b"let a = 1\n" * 100
FILES = {
    "index.html": PageFile(b"<!doctype html>", None, "text/html; charset=utf-8", '"i"'),
    "assets/a-1.js": PageFile(SCRIPT, gzip.compress(SCRIPT), "text/javascript; charset=utf-8", '"a"'),
}
PAGE = BuiltPage(FILES)


def asking(path: str = "/", **headers: str) -> web.Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    match_info = web.UrlMappingMatchInfo({"file": path.rpartition("/")[2]}, None)  # type: ignore[arg-type]  # no route
    return make_mocked_request("GET", path, headers=named, match_info=match_info)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("*/*", False),
        ("application/json", False),
        ("", False),
    ],
)
def test_a_browser_gets_the_page_and_a_program_the_text(*, accept: str, wanted: bool) -> None:
    assert wants_page(asking(Accept=accept)) is wanted


def test_nothing_but_what_is_from_here_may_run_in_the_page() -> None:
    headers = PAGE.index(asking()).headers
    policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"


async def test_the_page_is_asked_for_again_and_its_assets_are_kept_for_good() -> None:
    assert PAGE.index(asking()).headers["Cache-Control"] == "no-cache"
    asset = await PAGE.asset(asking("/assets/a-1.js"))
    assert asset.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert asset.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert asset.body == SCRIPT


async def test_who_takes_gzip_gets_it() -> None:
    packed = await PAGE.asset(asking("/assets/a-1.js", Accept_Encoding="br, gzip;q=0.8"))
    assert packed.headers["Content-Encoding"] == "gzip"
    assert isinstance(packed.body, bytes)
    assert gzip.decompress(packed.body) == SCRIPT
    assert packed.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("offered", ["", "br", "gzip;q=0", "identity"])
async def test_who_does_not_take_gzip_does_not_get_it(offered: str) -> None:
    plain = await PAGE.asset(asking("/assets/a-1.js", Accept_Encoding=offered))
    assert (plain.body, plain.headers.get("Content-Encoding")) == (SCRIPT, None)


@pytest.mark.parametrize("known", ['"i"', 'W/"i"', '"x", "i"'])
def test_who_has_the_page_is_not_sent_it_again(known: str) -> None:
    answer = PAGE.index(asking(If_None_Match=known))
    assert (answer.status, answer.body) == (304, None)


@pytest.mark.parametrize(
    "path", ["/assets/b.js", "/assets/..%2findex.html", "/assets/index.html", "/assets/"]
)
async def test_there_are_no_other_assets(path: str) -> None:
    with pytest.raises(web.HTTPNotFound):
        await PAGE.asset(asking(path))


def test_without_a_build_it_says_how_to_make_one(tmp_path: Path) -> None:
    answer = BuiltPage(read_files(tmp_path)).index(asking())
    assert answer.status == 503
    assert "make web" in (answer.text or "")
