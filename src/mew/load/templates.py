"""PURE. Envelopes that differ in a number only: each is put together from masked parts made beforehand."""

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Any, Final

from mew.protocol.envelope import PROTOCOL
from mew.protocol.json import encode_json

from .frames import TEXT, head, masked

__all__ = ["FILLING", "SLOT", "Template", "chat", "envelope", "numbered"]

SLOT: Final = "\N{NUMBER SIGN}\N{NUMBER SIGN}"
"""Stands in the text of a template for eight digits; within a string, never at its start or its end alone."""
_NUMBERS: Final = 10_000
_DIGITS: Final = 8
FILLING: Final = "\N{DOLLAR SIGN}fill\N{DOLLAR SIGN}"
_FOUR_DIGITS: Final = [masked(b"%04d" % number) for number in range(_NUMBERS)]


class Template:
    """A frame for each number, all of one length."""

    def __init__(self, text: bytes) -> None:
        """`text` is JSON; what is between two slots begins with the end of a string, or at the start of an object.

        Blanks are put in there, so that each slot begins at a multiple of four, as a mask does.
        """
        pieces = text.split(SLOT.encode())
        at, parts = 0, list[bytes]()
        for piece in pieces[:-1]:
            padded = piece[:1] + b" " * (-(at + len(piece)) % 4) + piece[1:]
            parts.append(masked(padded))
            at += len(padded) + _DIGITS
        parts.append(masked(pieces[-1]))
        self.payload_bytes = at + len(pieces[-1])
        self._first = head(TEXT, self.payload_bytes) + parts[0]
        self._others = parts[1:]

    def frame(self, number: int) -> bytes:
        high, low = divmod(number, _NUMBERS)
        digits = _FOUR_DIGITS[high % _NUMBERS] + _FOUR_DIGITS[low]
        return self._first + digits + digits.join(self._others)


def numbered(templates: Sequence[Template]) -> Iterator[bytes]:
    """Frames of these in turn, each with a number of its own."""
    return map(Template.frame, cycle(templates), count())


def envelope(
    ident: str,
    who: str,
    kind: str,
    payload: dict[str, Any],
    *,
    to: Sequence[str] = (),
    about: str | None = None,
    size: int = 0,
) -> Template:
    """An envelope of this id, which has a slot in it, like `about`, the id that it correlates to.

    `FILLING` in the payload becomes so long that the envelope has `size` bytes, or no less.
    """
    fields: dict[str, Any] = {"protocol": PROTOCOL, "id": ident, "from": who}
    if to:
        fields["to"] = list(to)
    fields["kind"] = kind
    if about is not None:
        fields["correlation_id"] = [about]
    text = encode_json({**fields, "payload": payload})
    least = Template(text.replace(FILLING.encode(), b"")).payload_bytes
    return Template(text.replace(FILLING.encode(), b"x" * max(size - least, 1)))


def chat(ident: str, who: str, *, to: Sequence[str] = (), size: int) -> Template:
    return envelope(ident, who, "chat", {"text": FILLING}, to=to, size=size)
