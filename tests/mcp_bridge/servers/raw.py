"""A server in plain Python, without the SDK: JSON lines as they are, so that a test sees what was really sent."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

ODD = '{"content":[],"one":1.0,"big":123456789012345678901234567890,"tiny":1e-7,"nothing":null,"é":"\\u001b"}'


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def call(name: str, params: dict[str, Any], line: str) -> str | None:
    match name:
        case "odd":
            return ODD
        case "echo":
            return json.dumps({"content": [], "line": line})
        case "environment":
            return json.dumps(
                {"content": [], "environment": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}
            )
        case "die":
            complain("I die\x1b[2J")
            os._exit(3)
        case "hang":
            return None
        case "garbage":
            say("this is no JSON")
            say('{"jsonrpc": "1.0"}')
            say("[]")
            return '{"content":[]}'
        case "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            return json.dumps({"content": [], "pid": child.pid, "mine": os.getpid()})
        case "huge":
            sys.stdout.write("x" * (65 << 20))
            sys.stdout.flush()
            return None
        case _:
            return json.dumps({"content": [], "isError": True})


def answer(request: dict[str, Any], line: str) -> str | None:
    match request["method"]:
        case "initialize":
            return (
                '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'
                '"serverInfo":{"name":"raw","version":"1"}}'
            )
        case "tools/list":
            return '{"tools":[{"name":"odd","inputSchema":{"type":"object"}}]}'
        case "tools/call":
            return call(request["params"]["name"], request["params"], line)
    return None


def main() -> None:
    complain("raw is here")
    if "--ignore-eof" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "server/discover":
            if "--shy" in sys.argv:
                sys.exit(4)
            say(
                json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "?"}})
            )
        elif "id" in request and (result := answer(request, line)) is not None:
            say(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{result}}}')
    if "--ignore-eof" in sys.argv:
        time.sleep(600)


if __name__ == "__main__":
    main()
