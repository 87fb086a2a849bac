"""The conformance kit with every connection on another of three nodes: the verdicts are those of one gateway."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.process import run_gateway
from tests.nodes.redis_server import RedisServer
from tests.nodes.round_robin import round_robin

pytestmark = pytest.mark.e2e

MEW = Path(sys.executable).with_name("mew")
KIT_S = 300.0


def verdicts(folder: Path, url: str) -> dict[str, str]:
    command = [str(MEW), "conform", url, "--config", str(folder / "conform.toml"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=KIT_S, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    return {one["id"]: one["outcome"] for one in json.loads(done.stdout)["requirements"]}


def test_three_nodes_behind_a_load_balancer_conform_as_one_does(redis: RedisServer, tmp_path: Path) -> None:
    subprocess.run([MEW, "conform", "example", tmp_path], check=True, capture_output=True)
    config: dict[str, Any] = yaml.safe_load((tmp_path / "space.yaml").read_text())
    config.pop("journal", None)
    with ExitStack() as stack:
        nodes = [stack.enter_context(run_gateway(tmp_path, config, "--redis", redis.url)) for _ in range(3)]
        port = stack.enter_context(round_robin([node.port for node in nodes]))
        found = verdicts(tmp_path, f"ws://127.0.0.1:{port}")
    assert len(found) > 100
    assert "fail" not in found.values()
