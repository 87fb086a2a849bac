"""What the README and the demo show is run here as it stands there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mew.gateway.config import load_config
from mew.gateway.tokens import load_tokens

from .process import Gateway, run_gateway

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("demo")
    with run_gateway(folder, (DEMO / "space.yaml").read_text()) as running:
        yield running


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tokens(demo: Gateway) -> Path:
    return demo.config.parent / ".mew" / "tokens"


def test_hello_says_who_one_is_and_sees_itself_echoed(demo: Gateway) -> None:
    said = run(sys.executable, ROOT / "examples" / "hello.py", demo.url, "demo", tokens(demo) / "ann.token")
    assert said.startswith("I am ann; I may send *, ")
    assert "ann  chat  {'text': 'Hello everyone!'}" in said


def test_the_demo_is_refused_proposes_and_is_approved(demo: Gateway) -> None:
    said = run(DEMO / "propose_and_approve.sh", demo.url, tokens(demo))
    answers = [line for line in said.splitlines() if line.startswith("{")]
    assert [("capability_violation" in line, '"status":"accepted"' in line) for line in answers] == [
        (True, False),
        (False, True),
        (False, True),
        (False, True),
    ]
    assert not [token for token in tokens(demo).glob("*.token") if token.read_text().strip() in said]


def test_every_example_configuration_is_valid(tmp_path: Path) -> None:
    for file in ROOT.glob("examples/**/space.yaml"):
        copy = tmp_path / "space.yaml"
        copy.write_text(file.read_text())
        assert load_tokens(load_config(copy, os.environ), {}).tables
