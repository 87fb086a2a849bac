"""`python tests/servers/conforming`, from wherever one is."""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[3])
runpy.run_module("tests.servers.conforming.server", run_name="__main__")
