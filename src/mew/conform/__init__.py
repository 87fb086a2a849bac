"""The conformance kit: what the specification demands, tried from outside on any gateway or participant.

requirements.toml  the ledger: one entry for each thing that can be right or wrong    ledger.py  PURE. reads it
cast.py            who the kit may be at a gateway        notation.py  PURE. how that gateway writes its patterns
example.py         a first cast, and a space for it
reaching.py        that a gateway is there at all         handshake.py a way in
wire.py            a connection: what is said and heard   door.py      the same over HTTP
mailbox.py         where the mail of a gateway goes
stage.py           where one check plays: who comes and goes, and when all has arrived
sayings.py         what the kit says, and what allows it  streaming.py streams that it opens
guests.py          somebody new                           giving.py    what somebody is granted
passing.py         what must get through                  refusing.py  what must not
fates.py           what may or may not                    holding.py   that somebody is held to what it holds
observing.py       what the gateway itself says           matching.py, moments.py  PURE. what one looks for in that
checks/            the checks of gateways                 checking.py  where they register
running.py         plays them: none can hang or crash     verdicts.py  PURE. what one comes to, and the evidence
report.py          PURE. what a run comes to              evidence.py  PURE. of what went over the wire, what matters
participant/, participant_checks/                         the half that tries participants
"""

from importlib.resources import files

from .ledger import Requirement, read_ledger

__all__ = ["requirements"]


def requirements() -> tuple[Requirement, ...]:
    """Every requirement of the specification, in the order of the ledger."""
    return read_ledger((files(__name__) / "requirements.toml").read_bytes())
