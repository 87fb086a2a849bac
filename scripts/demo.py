"""`make run`: start the demo space and say how to connect to it."""

import os
import socket
import sys
from pathlib import Path

from mew.gateway.config import load_config
from mew.gateway.tokens import load_tokens

DEMO = Path("examples/demo")


def main() -> None:
    os.chdir(Path(__file__).parent.parent)
    load_tokens(load_config(DEMO / "space.yaml", os.environ), os.environ)
    port = wanted_port() or free_port(8080)
    print(GUIDE.format(url=f"http://127.0.0.1:{port}", tokens=DEMO / ".mew" / "tokens"), flush=True)
    mew = Path(sys.executable).with_name("mew")
    os.execv(mew, [str(mew), "gateway", "--config", str(DEMO / "space.yaml"), "--port", str(port)])


def wanted_port() -> int:
    written = os.environ.get("PORT", "0")
    if not written.isdecimal() or int(written) > 65_535:
        sys.exit(f"PORT={written}: expected a number from 1 to 65535")
    return int(written)


def free_port(usual: int) -> int:
    """The usual port, or any other where somebody has it already."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", usual))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


GUIDE = """
The demo space is at {url} (another port: PORT=9000 make run). Ann may do everything, bot may read and propose,
files answers. In another terminal, from this folder:

  Say hello as ann, and see what everyone sees:
    .venv/bin/python examples/hello.py {url} demo {tokens}/ann.token

  Bot asks for what it may not do, and is refused. So it proposes it; ann approves by making the call herself:
    examples/demo/propose_and_approve.sh {url} {tokens}

  Look at what became of it:
    curl -s {url}/spaces/demo/proposals -H "Authorization: Bearer $(cat {tokens}/ann.token)"

Ctrl-C stops it.
"""


if __name__ == "__main__":
    main()
