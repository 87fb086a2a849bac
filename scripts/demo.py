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
    port = int(os.environ.get("PORT", "0")) or free_port(8080)
    print(GUIDE.format(url=f"http://127.0.0.1:{port}", tokens=DEMO / ".mew" / "tokens"), flush=True)
    mew = Path(sys.executable).with_name("mew")
    os.execv(mew, [str(mew), "gateway", "--config", str(DEMO / "space.yaml"), "--port", str(port)])


def free_port(wanted: int) -> int:
    """The port wanted, or any other where somebody has it already."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


GUIDE = """
The demo space is at {url}, for ann, bot and files. In another terminal, from this folder:

  Say hello as ann, and see what everyone sees:
    .venv/bin/python examples/hello.py {url} demo {tokens}/ann.token

  Let bot ask for something it may only propose, and be refused:
    curl -s {url}/participants/bot/messages \\
      -H "Authorization: Bearer $(cat {tokens}/bot.token)" \\
      -d '{{"kind": "mcp/request", "to": ["files"], "payload": {{"method": "tools/call", "params": {{"name": "write_file"}}}}}}'

  So it proposes; then look at what is open:
    curl -s {url}/participants/bot/messages \\
      -H "Authorization: Bearer $(cat {tokens}/bot.token)" \\
      -d '{{"kind": "mcp/proposal", "to": ["files"], "payload": {{"method": "tools/call", "params": {{"name": "write_file"}}}}}}'
    curl -s {url}/spaces/demo/proposals -H "Authorization: Bearer $(cat {tokens}/ann.token)"

Ctrl-C stops it.
"""


if __name__ == "__main__":
    main()
