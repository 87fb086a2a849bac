"""`make run`: make a demo space, if there is none yet, and start it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

DEMO = Path("demo")
MEW = Path(sys.executable).with_name("mew")


def main() -> None:
    os.chdir(Path(__file__).parent.parent)
    if not (DEMO / "space.yaml").exists():
        subprocess.run(
            [MEW, "init", DEMO, "--template", "files", "--yes"], check=True, stdout=subprocess.DEVNULL
        )
    print(GUIDE.format(folder=DEMO), flush=True)
    port = wanted_port() or free_port(8080)
    os.execv(MEW, [str(MEW), "up", "--config", str(DEMO / "space.yaml"), "--port", str(port)])


def wanted_port() -> int:
    written = os.environ.get("PORT", "0")
    if not written.isdecimal() or int(written) > 65_535:
        sys.exit(f"PORT={written}: expected a number from 1 to 65535")
    return int(written)


def free_port(usual: int) -> int:
    """The usual port, or any other where somebody has it already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", usual))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


GUIDE = """
A space with you, a folder of files behind your approval, and an agent that follows a script: it looks around, thinks
aloud, and proposes what it may not do. In another terminal:

    cd {folder}
    ../.venv/bin/mew tail          # what happens, as it happens
    ../.venv/bin/mew proposals     # what waits for you
    ../.venv/bin/mew approve ID    # or: reject ID -m "why not"
    ../.venv/bin/mew grant agent write_file    # from now on it writes without asking
    ../.venv/bin/mew page --open   # the same in a browser

The file it writes is in {folder}/workspace. Another port: PORT=9000 make run.
"""


if __name__ == "__main__":
    main()
