"""The conformance kit: what the specification demands, tried from outside on any gateway or participant.

requirements.toml  the ledger: one entry for each thing that can be right or wrong
ledger.py          PURE. reads it
"""

from importlib.resources import files

from .ledger import Requirement, read_ledger

__all__ = ["requirements"]


def requirements() -> tuple[Requirement, ...]:
    """Every requirement of the specification, in the order of the ledger."""
    return read_ledger((files(__name__) / "requirements.toml").read_bytes())
