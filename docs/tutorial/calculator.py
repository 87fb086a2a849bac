"""Adds, and has one memory, like a pocket calculator."""

from pathlib import Path

import mew

calc = mew.Participant("calculator")
memory = {"M": 0.0}


@calc.tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@calc.tool(destructive=True)
async def store(value: float) -> str:
    """Put a number into the memory; what was in it is gone."""
    memory["M"] = value
    return f"M = {value:g}"


calc.run("ws://127.0.0.1:8080", space="demo", token=Path(".mew/tokens/calculator.token"))
