"""The examples in `deploy/` for reverse proxies, each with the real proxy, TLS and the whole conformance kit."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.certificates import make_certificate
from tests.e2e.process import Gateway, run_gateway

pytestmark = pytest.mark.e2e

DEPLOY = Path(__file__).parents[2] / "deploy"
MEW = Path(sys.executable).with_name("mew")
SMALL = {"space": {"id": "demo"}, "participants": {"ann": {"tokens": ["t-ann"]}}}
START_S = 60.0
KIT_S = 300.0


def nginx(folder: Path, port: int, gateway: int) -> list[str]:
    site = _filled(
        "nginx/mew.conf",
        {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "server 127.0.0.1:8080": f"server 127.0.0.1:{gateway}",
            "/etc/ssl/mew": str(folder),
        },
    )
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}include {folder}/site.conf;\n}}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, gateway: int) -> list[str]:
    own = f"tls {folder}/cert.pem {folder}/key.pem"
    site = _filled(
        "caddy/Caddyfile",
        {
            "mew.example.org {": f"https://127.0.0.1:{port} {{\n\t{own}",
            "127.0.0.1:8080": f"127.0.0.1:{gateway}",
        },
    )
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def haproxy(folder: Path, port: int, gateway: int) -> list[str]:
    (folder / "both.pem").write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    site = _filled(
        "haproxy/haproxy.cfg",
        {
            "bind :443": f"bind 127.0.0.1:{port}",
            "127.0.0.1:8080": f"127.0.0.1:{gateway}",
            "/etc/ssl/mew": str(folder),
        },
    )
    (folder / "haproxy.cfg").write_text(site)
    return ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]


Proxy = Callable[[Path, int, int], list[str]]
PROXIES: list[Proxy] = [nginx, caddy, haproxy]


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The verdicts without a proxy."""
    folder = tmp_path_factory.mktemp("direct")
    config = _example(folder)
    with run_gateway(folder, config) as gateway:
        return _verdicts(folder, f"ws://127.0.0.1:{gateway.port}")


@pytest.mark.parametrize("proxy", PROXIES)
def test_the_conformance_kit_says_the_same_through_a_proxy(
    proxy: Proxy, direct: dict[str, str], tmp_path: Path
) -> None:
    with _behind(proxy, tmp_path, _example(tmp_path)) as (_, port):
        assert _verdicts(tmp_path, f"wss://127.0.0.1:{port}") == direct
    assert "fail" not in set(direct.values())


@pytest.mark.parametrize("proxy", PROXIES)
def test_the_page_may_connect_and_metrics_stay_inside(proxy: Proxy, tmp_path: Path) -> None:
    with _behind(proxy, tmp_path, SMALL) as (_, port):
        asked = {"Authorization": "Bearer t-ann", "Origin": f"https://127.0.0.1:{port}"}
        foreign = {**asked, "Origin": "https://evil.example"}
        assert _status(tmp_path, port, "/spaces/demo/participants", asked) == 200
        assert _status(tmp_path, port, "/spaces/demo/participants", foreign) == 403
        assert _status(tmp_path, port, "/metrics", {}) == 403
        assert _status(tmp_path, port, "/ready", {}) == 200


def test_a_proxy_that_names_itself_in_host_is_enough_with_a_public_url(tmp_path: Path) -> None:
    def plain(folder: Path, port: int, gateway: int) -> list[str]:
        command = nginx(folder, port, gateway)
        site = folder / "site.conf"
        kept = [line for line in site.read_text().splitlines() if "proxy_set_header Host" not in line]
        site.write_text("\n".join(kept))
        return command

    with _behind(plain, tmp_path, SMALL) as (_, port):
        asked = {"Authorization": "Bearer t-ann", "Origin": f"https://127.0.0.1:{port}"}
        assert _status(tmp_path, port, "/spaces/demo/participants", asked) == 200


@contextmanager
def _behind(proxy: Proxy, folder: Path, config: dict[str, Any]) -> Iterator[tuple[Gateway, int]]:
    """A gateway with this `space.yaml` behind this proxy."""
    make_certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port: int = chosen.getsockname()[1]
    server = {
        "port": 0,
        "public_url": f"https://127.0.0.1:{port}",
        "trusted_proxies": ["127.0.0.1"],
    }
    with run_gateway(folder, {**config, "server": server}) as gateway:
        command = proxy(folder, port, gateway.port)
        found = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        assert found is not None, f"{command[0]} is not installed: scripts/setup-tests does that"
        environ = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        with subprocess.Popen(
            [found, *command[1:]], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
        ) as process:
            try:
                _wait_for(process, port)
                yield gateway, port
            finally:
                process.terminate()
                process.communicate()


def _example(folder: Path) -> dict[str, Any]:
    """The space that the kit plays in, with its `conform.toml` in the folder."""
    subprocess.run([MEW, "conform", "example", folder], check=True, capture_output=True)
    config: dict[str, Any] = yaml.safe_load((folder / "space.yaml").read_text())
    config.pop("journal", None)  # YAML 1.1 reads its `off` as false
    return {**config, "server": {"port": 0}}


def _wait_for(process: subprocess.Popen[str], port: int) -> None:
    deadline_s = START_S
    while deadline_s > 0:
        if process.poll() is not None:
            raise AssertionError(process.communicate())
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            deadline_s -= 0.1
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    raise AssertionError(f"nothing listens on {port}")


def _verdicts(folder: Path, url: str) -> dict[str, str]:
    trusting = {**os.environ, "SSL_CERT_FILE": str(folder / "cert.pem")}
    command = [str(MEW), "conform", url, "--config", str(folder / "conform.toml"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=trusting, timeout=KIT_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return {one["id"]: one["outcome"] for one in json.loads(done.stdout)["requirements"]}


def _status(folder: Path, port: int, path: str, headers: dict[str, str]) -> int:
    context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    connection = HTTPSConnection("127.0.0.1", port, context=context, timeout=START_S)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def _filled(file: str, changes: dict[str, str]) -> str:
    text = (DEPLOY / file).read_text()
    for before, after in changes.items():
        assert before in text, f"{file} has no {before!r}"
        text = text.replace(before, after)
    return text
