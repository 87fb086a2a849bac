"""A tool server: python examples/calculator.py URL SPACE TOKEN_FILE"""

import sys
from pathlib import Path
from typing import Literal

import mew

calc = mew.Participant("calculator", instructions="Exact arithmetic on whole numbers and decimals.")


@calc.tool(read_only=True)
async def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


@calc.tool(read_only=True)
def fold(numbers: list[float], operation: Literal["sum", "product"] = "sum") -> float:
    """Combine any number of numbers. (Not async: it runs in a thread.)"""
    if operation == "sum":
        return sum(numbers)
    product = 1.0
    for number in numbers:
        product *= number
    return product


@calc.tool(read_only=True)
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    if b == 0:
        raise mew.ToolError("division by zero")
    return a / b


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    calc.run(sys.argv[1], space=sys.argv[2], token=Path(sys.argv[3]))
