"""Runs the conformance kit on our gateway, and writes what it came to: docs/reference/conformance.md and the README.

.venv/bin/python scripts/conformance.py
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MEW = Path(sys.executable).with_name("mew")
PAGE = ROOT / "docs" / "reference" / "conformance.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- conformance -->", "<!-- /conformance -->"
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY")
HEAD = """# Conformance

What `mew conform` says of this gateway, requirement by requirement, written by `scripts/conformance.py`. How to run
it on a gateway or a participant of yours: [Check conformance](../howto/check-conformance.md). *Not offered* is what
a gateway may do and this one, as it was configured here, does not; *not on the wire* is what nobody can see from
outside.

"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = tried(Path(folder))
    PAGE.write_text(HEAD + "\n".join(rows(found)) + "\n", encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    inner = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    table = f"{BEGIN}\n{chr(10).join(summary(found))}\n{END}"
    README.write_text(inner.sub(lambda _: table, text), encoding="utf-8")
    failed = [one["id"] for one in found if one["outcome"] == "fail"]
    print(f"{len(found)} requirements about gateways, failed: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


def tried(folder: Path) -> list[dict[str, Any]]:
    """The requirements with their outcomes, from a gateway that runs as a process of its own."""
    subprocess.run([MEW, "conform", "example", folder], check=True, stdout=subprocess.DEVNULL)
    serving = [MEW, "gateway", "--config", folder / "space.yaml", "--port", "0", "--log-level", "error"]
    with subprocess.Popen(serving, stderr=subprocess.PIPE, text=True) as gateway:
        try:
            assert gateway.stderr is not None
            url = re.findall(r"http://\S+?(?=,)", gateway.stderr.readline())[0]
            kit = folder / "conform.toml"
            kit.write_text(kit.read_text().replace("http://127.0.0.1:8080", url))
            conform = [MEW, "conform", f"ws{url.removeprefix('http')}", "--config", kit, "--json"]
            told = subprocess.run(conform, stdout=subprocess.PIPE, check=False)
        finally:
            gateway.terminate()
    requirements: list[dict[str, Any]] = json.loads(told.stdout)["requirements"]
    return requirements


def rows(found: list[dict[str, Any]]) -> list[str]:
    lines = ["| § | level | requirement | verdict |", "|---|---|---|---|"]
    for one in found:
        sentence = one["sentence"].replace("|", "\\|")
        lines.append(f"| {one['section']} | {one['level']} | {sentence} `{one['id']}` | {verdict(one)} |")
    return lines


def summary(found: list[dict[str, Any]]) -> list[str]:
    counted = Counter((one["level"], verdict(one)) for one in found)
    outcomes = ("pass", "fail", "not offered", "not on the wire")
    lines = [f"| | {' | '.join(outcomes)} |", f"|---|{'---|' * len(outcomes)}"]
    tried_of = [level for level in LEVELS if any(counted[level, outcome] for outcome in outcomes)]
    return lines + [f"| {of} | {' | '.join(str(counted[of, one]) for one in outcomes)} |" for of in tried_of]


def verdict(one: dict[str, Any]) -> str:
    return "not on the wire" if one["outcome"] == "not run" else str(one["outcome"])


if __name__ == "__main__":
    main()
