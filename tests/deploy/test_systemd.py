"""The systemd unit in `deploy/`, as far as it can be tried without systemd as the first process."""

import re
import socket
import subprocess
from pathlib import Path

import pytest
from tests.e2e.process import WAIT_S, run_gateway

pytestmark = pytest.mark.e2e

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "mew.service"
EXPOSURE_MAX = 2.0


def test_the_unit_is_valid_and_sandboxed(tmp_path: Path) -> None:
    unit = tmp_path / "mew.service"
    unit.write_text(UNIT.read_text().replace("/opt/mew/bin/mew", "/bin/true"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", unit], capture_output=True, text=True, check=False
    )
    level = re.search(r"Overall exposure level for mew.service: ([\d.]+)", rated.stdout)
    assert level is not None, rated.stdout + rated.stderr
    assert float(level[1]) <= EXPOSURE_MAX


def test_the_service_manager_is_told_when_the_gateway_listens_and_when_it_stops(tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(WAIT_S)
        manager.bind(str(address))
        config = {"space": {"id": "demo"}, "participants": {"ann": {}}, "server": {"port": 0}}
        with run_gateway(tmp_path, config, environ={"NOTIFY_SOCKET": str(address)}):
            assert manager.recv(100) == b"READY=1"
        assert manager.recv(100) == b"STOPPING=1"
