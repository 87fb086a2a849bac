"""The conformance kit: every requirement of the specification, tested from outside on any gateway or participant.

requirements.toml  the ledger: one entry for each thing that can be right or wrong    ledger.py  PURE. reads it
roles.py           who the kit may be at a gateway, and how that gateway writes its patterns
example.py         a first configuration, and a space for it
connection.py      a WebSocket that sends exactly what it is told        http_api.py  the same over HTTP
mailbox.py         receives the mail of a gateway
match.py           PURE. predicates on envelopes      drafts.py  envelopes to send, and what allows them
context.py         what a check works with: who connects and leaves, and when all has arrived
expectations.py    delivered once and unchanged, or refused              fixtures.py  guests, grants, streams
runner.py          registers and runs the checks; none can hang or crash it
outcome.py         PURE. what a check comes to, and its transcript       report.py    PURE. for people and programs
checks/            the checks of gateways
participant/       what tests a participant           participant_checks/  the checks of participants
"""

from importlib.resources import files

from .ledger import Requirement, read_ledger

__all__ = ["requirements"]


def requirements() -> tuple[Requirement, ...]:
    """Every requirement of the specification, in the order of the ledger."""
    return read_ledger((files(__name__) / "requirements.toml").read_bytes())
