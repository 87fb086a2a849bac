"""A wrong participant for each requirement."""

from typing import Final

from .envelopes import ENVELOPES, REQUESTS, VALIDATION
from .faults import Wrong
from .memory import CONTROL, MEMORY
from .proposals import FULFILLING, PROPOSALS
from .standing import ENDINGS, STANDING, STREAMS
from .talk import CHATS, REASONINGS

__all__ = ["MUTANTS", "THEMES"]

THEMES: Final = (
    *(ENVELOPES, REQUESTS, VALIDATION, CONTROL, MEMORY, CHATS, REASONINGS),
    *(PROPOSALS, FULFILLING, STANDING, STREAMS, ENDINGS),
)
MUTANTS: Final[dict[str, Wrong]] = {name: wrong for theme in THEMES for name, wrong in theme.items()}
